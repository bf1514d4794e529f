"""What the hook does with an engine, from decision to result: on the lake in memory, which has real conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import maintainer
from maintainer.delta.engine import table_engine
from maintainer.delta.log import write_history
from maintainer.delta.spark import spark_session as session
from maintainer.model.run.auto_compaction import AUTO_COMPACT, AutoCompactResult, AutoCompactStatus, SwitchSource
from maintainer.model.table.table_facts import Protocol, TableFacts, TableRef
from tests.support.runs.fake_lake import FakeLake, FakeTable, FakeWorker, Station


class Conf:
    def get(self, key: str, default: str | None = None) -> str | None:
        return {"spark.databricks.delta.autoCompact.minNumFiles": "3"}.get(key, default)


class Writer:
    """A writer's session with a setting of Delta's hook in it."""

    conf = Conf()


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> FakeLake:
    lake = FakeLake()

    class Engine:
        def __init__(self, lease: object) -> None:
            self.lease = lease

        @contextmanager
        def worker(self, name: str) -> Iterator[FakeWorker]:
            with lake.worker(name) as worker:
                vars(worker)["jvm"] = lake
                yield worker  # type: ignore[misc]  # the lake's own worker

    def properties_now(jvm: object, ref: TableRef) -> dict[str, str] | None:
        table = lake.tables.get(ref.identifier)
        return None if table is None else table.properties

    def partitions_written(jvm: object, facts: TableFacts) -> frozenset[tuple[()]]:
        return frozenset({()})

    monkeypatch.setattr(session, "lend_session", lambda spark: spark)
    monkeypatch.setattr(table_engine, "DeltaEngine", Engine)
    monkeypatch.setattr(write_history, "properties_now", properties_now)
    monkeypatch.setattr(write_history, "partitions_written", partitions_written)
    return lake


def hook(name: str = "t", **arguments: Any) -> AutoCompactResult:
    untyped: Any = maintainer.auto_compact
    found: AutoCompactResult = untyped(Writer(), name, **arguments)
    return found


def table_of(lake: FakeLake, num_files: int, **properties: str) -> FakeTable:
    table = lake.table("t", *[(number,) for number in range(num_files)])
    table.properties = {AUTO_COMPACT: "true", **properties}
    return table


def test_it_compacts_and_returns_the_figures(lake: FakeLake) -> None:
    table = table_of(lake, 4)
    found = hook()
    assert (found.status, found.version, found.error_code) == (AutoCompactStatus.COMPACTED, 2, None)
    assert found.compacted
    assert found.metrics is not None
    assert (found.metrics.num_files_removed, found.metrics.num_files_added, found.metrics.num_batches) == (4, 1, 1)
    assert found.metrics.files_removed.total_size == 32
    assert found.settings is not None
    assert found.settings.min_num_files == 3, "from the session"
    assert (table.rows, len(table.live)) == ([0, 1, 2, 3], 1)
    stamp = table.versions[-1].stamp
    assert stamp is not None
    assert (stamp.step_id, stamp.run_id in lake.workers) == ("t/auto_compact", True)


def test_too_few_files_and_the_tables_own_setting_wins_over_the_session(lake: FakeLake) -> None:
    table = table_of(lake, 4, **{"maintainer.autoCompact.minNumFiles": "5"})
    found = hook()
    assert (found.status, table.version) == (AutoCompactStatus.NOT_QUALIFIED, 1)
    assert found.reason.startswith("at most 4 files under 64 MiB")
    assert hook(min_num_files=4).compacted


def test_a_table_that_does_not_want_it(lake: FakeLake) -> None:
    table = table_of(lake, 4, **{AUTO_COMPACT: "false"})
    found = hook()
    assert (found.status, found.reason) == (
        AutoCompactStatus.DISABLED,
        "auto compaction is off (delta.autoOptimize.autoCompact)",
    )
    assert table.version == 1
    wanted = hook(enabled=True)
    assert wanted.switch is not None
    assert (wanted.compacted, wanted.switch.source) == (True, SwitchSource.ARGUMENT)


def test_a_faster_writer_wins(lake: FakeLake) -> None:
    table = table_of(lake, 4)
    lake.at("commit", lambda where: where.table.delete_file("f0"), times=1)
    found = hook()
    assert (found.status, found.error_code, found.version) == (AutoCompactStatus.YIELDED, "C701", None)
    assert (table.version, table.rows) == (2, [1, 2, 3])


def test_what_is_not_proven_is_not_committed(lake: FakeLake) -> None:
    table = table_of(lake, 4)

    def lose(where: Station) -> None:
        assert where.rows is not None
        where.rows.pop()

    lake.at("write", lose)
    found = hook()
    assert (found.status, found.error_code, table.version) == (AutoCompactStatus.FAILED, "V501", 1)


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1)])
def test_whatever_the_engine_does_is_a_result(lake: FakeLake, error: BaseException) -> None:
    table = table_of(lake, 4)

    def fail(where: Station) -> None:
        raise error

    lake.at("write", fail, times=1)
    found = hook()
    assert (found.status, table.version) == (AutoCompactStatus.FAILED, 1)
    assert type(error).__name__ in found.reason
    assert hook().compacted, "the next one is not held up"


def test_no_such_table_and_a_setting_that_cannot_be_read(lake: FakeLake) -> None:
    found = hook("nothing")
    assert (found.status, found.error_code) == (AutoCompactStatus.FAILED, "T401")
    table_of(lake, 4, **{"maintainer.autoCompact.maxFileSize": "big"})
    found = hook()
    assert (found.status, "maxFileSize is `big`" in found.reason) == (AutoCompactStatus.FAILED, True)
    table_of(lake, 4, **{AUTO_COMPACT: "perhaps"})
    found = hook()
    assert (found.status, "neither true nor false" in found.reason) == (AutoCompactStatus.FAILED, True)


def test_a_table_that_cannot_be_maintained_is_not_a_failure(lake: FakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, facts = table_of(lake, 4), FakeTable.facts
    managed = Protocol(3, 7, (), ("catalogManaged",))
    monkeypatch.setattr(FakeTable, "facts", lambda self: replace(facts(self), protocol=managed))
    found = hook()
    assert (found.status, found.error_code, table.version) == (AutoCompactStatus.NOT_QUALIFIED, "T407", 1)


def test_one_at_a_time_for_one_table(lake: FakeLake) -> None:
    table_of(lake, 4)
    inner: list[AutoCompactResult] = []
    lake.at("write", lambda where: inner.append(hook()), times=1)
    assert hook().compacted
    assert [one.status for one in inner] == [AutoCompactStatus.NOT_QUALIFIED]
    assert "is running in this process" in inner[0].reason
