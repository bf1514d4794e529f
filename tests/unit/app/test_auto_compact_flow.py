"""What the hook does with an engine, from decision to result: on the lake in memory, which has real conflicts."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

import maintainer
from maintainer.app import auto_compact_hook, auto_compact_run
from maintainer.delta.engine import table_engine
from maintainer.delta.log import commit_history
from maintainer.delta.spark import spark_session as session
from maintainer.execution.table.commit_attempt import check_no_update
from maintainer.model.run.auto_compaction import (
    AUTO_COMPACT,
    RUN_PREFIX,
    AutoCompactResult,
    AutoCompactStatus,
    SwitchSource,
)
from maintainer.model.table.table_facts import Protocol, TableFacts, TableRef
from maintainer.planning import auto_compact_plan
from tests.support.runs.fake_lake import FakeLake, FakeWorker, Station
from tests.support.runs.fake_table import FakeTable


class Conf(dict[str, str]):
    """A session's settings: one of Delta's hook, and what Delta notes there after each commit of the session."""

    def __init__(self, last_commit: int | None = None) -> None:
        super().__init__({"spark.databricks.delta.autoCompact.minNumFiles": "3"})
        if last_commit is not None:
            self["spark.databricks.delta.lastCommitVersionInSession"] = str(last_commit)


class Writer:
    """A writer's session."""

    def __init__(self, last_commit: int | None = None) -> None:
        self.conf = Conf(last_commit)


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

        def cancel(self, name: str) -> None:
            lake.cancel(name)

    def properties_now(jvm: object, ref: TableRef) -> dict[str, str] | None:
        table = lake.tables.get(ref.identifier)
        return None if table is None else table.properties

    def partitions_written(jvm: object, facts: TableFacts) -> frozenset[tuple[()]]:
        return frozenset({()})

    monkeypatch.setattr(auto_compact_run, "_own_versions", deque())  # each test has a process of its own
    monkeypatch.setattr(session, "lend_session", nullcontext)
    monkeypatch.setattr(table_engine, "DeltaEngine", Engine)
    monkeypatch.setattr(commit_history, "properties_now", properties_now)
    monkeypatch.setattr(commit_history, "partitions_written", partitions_written)
    return lake


def hook(name: str = "t", last_commit: int | None = None, **arguments: Any) -> AutoCompactResult:
    untyped: Any = maintainer.auto_compact
    result: AutoCompactResult = untyped(Writer(last_commit), name, **arguments)
    return result


def now_ms() -> int:
    return int(time.time() * 1000)


def table_of(lake: FakeLake, num_files: int, **properties: str) -> FakeTable:
    table = lake.table("t", *[(number,) for number in range(num_files)])
    table.properties = {AUTO_COMPACT: "true", **properties}
    return table


def test_it_compacts_and_returns_the_figures(lake: FakeLake) -> None:
    table = table_of(lake, 4)
    result = hook()
    assert (result.status, result.version, result.error_code) == (AutoCompactStatus.COMPACTED, 2, None)
    assert result.compacted
    assert result.metrics is not None
    assert (result.metrics.num_files_removed, result.metrics.num_files_added, result.metrics.num_batches) == (4, 1, 1)
    assert result.metrics.files_removed.total_size == 32
    assert result.settings is not None
    assert result.settings.min_num_files == 3, "from the session"
    assert (table.rows, len(table.live)) == ([0, 1, 2, 3], 1)
    stamp = table.versions[-1].stamp
    assert stamp is not None
    assert (stamp.step_id, stamp.run_id in lake.workers) == ("t/auto_compact", True)


def test_too_few_files_and_the_tables_own_setting_wins_over_the_session(lake: FakeLake) -> None:
    table = table_of(lake, 4, **{"maintainer.autoCompact.minNumFiles": "5"})
    result = hook()
    assert (result.status, table.version) == (AutoCompactStatus.NOT_QUALIFIED, 1)
    assert result.reason.startswith("at most 4 files under 64 MiB")
    assert hook(min_num_files=4).compacted


def test_a_table_that_does_not_want_it(lake: FakeLake) -> None:
    table = table_of(lake, 4, **{AUTO_COMPACT: "false"})
    result = hook()
    assert (result.status, result.reason) == (
        AutoCompactStatus.DISABLED,
        "auto compaction is off (delta.autoOptimize.autoCompact)",
    )
    assert table.version == 1
    wanted = hook(enabled=True)
    assert wanted.switch is not None
    assert (wanted.compacted, wanted.switch.source) == (True, SwitchSource.ARGUMENT)


def test_who_asks_for_it_need_not_care_what_others_say(lake: FakeLake) -> None:
    """Databricks writes `auto` there, which Delta's own hook does not read."""
    table_of(lake, 4, **{AUTO_COMPACT: "auto"})
    result = hook()
    assert (result.status, result.reason) == (
        AutoCompactStatus.FAILED,
        "delta.autoOptimize.autoCompact is `auto`, neither true nor false",
    )
    assert hook(enabled=True).compacted


def test_a_faster_writer_wins(lake: FakeLake) -> None:
    table = table_of(lake, 4)
    lake.at("commit", lambda where: where.table.delete_file("f0"), times=1)
    result = hook()
    assert (result.status, result.error_code, result.version) == (AutoCompactStatus.YIELDED, "C701", None)
    assert (table.version, table.rows) == (2, [1, 2, 3])


def test_a_table_that_others_updated_a_moment_ago_is_hot(lake: FakeLake) -> None:
    table = table_of(lake, 5)
    table.delete_file("f4", at_ms=now_ms() - 120_000)
    result = hook()
    assert (result.status, result.error_code, table.version) == (AutoCompactStatus.NOT_QUALIFIED, "C718", 2)
    assert result.reason == "hot: DELETE by another writer 2m ago (quietAfterUpdates 10m)"
    assert hook(quiet_after_updates="1m").compacted


@pytest.mark.parametrize("said", ["argument", "property"])
def test_who_knows_that_nobody_else_updates_says_so(lake: FakeLake, said: str) -> None:
    properties = {"maintainer.autoCompact.quietAfterUpdates": "0s"} if said == "property" else {}
    table_of(lake, 5, **properties).delete_file("f4", at_ms=now_ms())
    result = hook(quiet_after_updates="0s") if said == "argument" else hook()
    assert result.compacted
    assert result.settings is not None
    assert result.settings.quiet_after_updates_seconds == 0


def test_an_update_while_we_write_holds_the_commit_back_though_it_took_none_of_our_files(lake: FakeLake) -> None:
    table = table_of(lake, 4)

    def update(where: Station) -> None:
        where.table.commit(set(), {"new": (9,)})
        where.table.delete_file("new", at_ms=now_ms())

    lake.at("write", update, times=1)
    result = hook()
    assert (result.status, result.error_code) == (AutoCompactStatus.YIELDED, "C718")
    assert result.reason.startswith("hot: DELETE by another writer")
    assert (table.version, sorted(table.live)) == (3, ["f0", "f1", "f2", "f3"])


def test_an_update_of_the_session_that_calls_is_nobody_elses_and_is_remembered(lake: FakeLake) -> None:
    table = table_of(lake, 6)
    table.delete_file("f5", at_ms=now_ms())
    assert hook(last_commit=2, min_num_files=99).status is AutoCompactStatus.NOT_QUALIFIED
    table.delete_file("f4", at_ms=now_ms())
    assert hook(last_commit=3).compacted, "version 2 is the caller's, too, as the call before said"
    for number in range(4):
        table.commit(set(), {f"more{number}": (number,)})
    table.delete_file("more3", at_ms=now_ms())
    result = hook(last_commit=table.version - 1)
    assert (result.status, result.error_code) == (AutoCompactStatus.NOT_QUALIFIED, "C718")


def test_after_its_own_compaction_a_table_that_others_update_rests(lake: FakeLake) -> None:
    table = table_of(lake, 5)
    table.delete_file("f4")
    assert hook().compacted, "that was long ago"
    table.versions[-1].at_ms = now_ms()
    for number in range(4):
        table.commit(set(), {f"more{number}": (number,)})
    result = hook()
    assert (result.status, result.error_code) == (AutoCompactStatus.NOT_QUALIFIED, "C718")
    assert result.reason.startswith("resting: our last rewrite was ")


def test_a_table_that_is_only_appended_to_never_rests(lake: FakeLake) -> None:
    table = table_of(lake, 4)
    for number in range(3):
        assert hook().compacted
        for more in range(4):
            table.commit(set(), {f"more{number}-{more}": (more,)})


def test_what_is_not_proven_is_not_committed(lake: FakeLake) -> None:
    table = table_of(lake, 4)

    def lose(where: Station) -> None:
        assert where.rows is not None
        where.rows.pop()

    lake.at("write", lose)
    result = hook()
    assert (result.status, result.error_code, table.version) == (AutoCompactStatus.FAILED, "V501", 1)


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1)])
def test_whatever_the_engine_does_is_a_result(lake: FakeLake, error: BaseException) -> None:
    table = table_of(lake, 4)

    def fail(where: Station) -> None:
        raise error

    lake.at("write", fail, times=1)
    result = hook()
    assert (result.status, table.version) == (AutoCompactStatus.FAILED, 1)
    assert type(error).__name__ in result.reason
    assert hook().compacted, "the next one is not held up"


def test_no_such_table_and_a_setting_that_cannot_be_read(lake: FakeLake) -> None:
    result = hook("nothing")
    assert (result.status, result.error_code) == (AutoCompactStatus.FAILED, "T401")
    table_of(lake, 4, **{"maintainer.autoCompact.maxFileSize": "big"})
    result = hook()
    assert (result.status, "maxFileSize is `big`" in result.reason) == (AutoCompactStatus.FAILED, True)
    table_of(lake, 4, **{AUTO_COMPACT: "perhaps"})
    result = hook()
    assert (result.status, "neither true nor false" in result.reason) == (AutoCompactStatus.FAILED, True)


def test_a_table_that_cannot_be_maintained_is_not_a_failure(lake: FakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, facts = table_of(lake, 4), FakeTable.facts
    managed = Protocol(3, 7, (), ("catalogManaged",))
    monkeypatch.setattr(FakeTable, "facts", lambda self: replace(facts(self), protocol=managed))
    result = hook()
    assert (result.status, result.error_code, table.version) == (AutoCompactStatus.NOT_QUALIFIED, "T407", 1)


def test_one_at_a_time_for_one_table(lake: FakeLake) -> None:
    table_of(lake, 4)
    inner: list[AutoCompactResult] = []
    lake.at("write", lambda where: inner.append(hook()), times=1)
    assert hook().compacted
    assert [result.status for result in inner] == [AutoCompactStatus.NOT_QUALIFIED]
    assert "is running in this process" in inner[0].reason


def until_cancelled(where: Station) -> None:
    """Take so long that the hook's caller loses patience; then go on, as what no cancel reaches does."""
    where.lake.cancel_events[where.lake.workers[-1]].wait(10)


def leave() -> None:
    """Wait for attempts that still work."""
    for thread in threading.enumerate():
        if thread.name.startswith(RUN_PREFIX):
            thread.join(20)
            assert not thread.is_alive()


def test_an_attempt_that_is_too_slow_while_it_writes_commits_nothing_later(lake: FakeLake) -> None:
    table = table_of(lake, 4)
    lake.at("write", until_cancelled, times=1)
    result = hook(timeout_seconds=0.2)
    leave()
    assert (result.status, result.error_code, result.version) == (AutoCompactStatus.FAILED, "C711", None)
    assert result.reason == "not done within 0.2 s and cancelled; nothing was committed"
    assert table.version == 1
    assert hook().compacted, "the next one is not held up"


@pytest.mark.parametrize("ends", ["in time", "late"])
def test_an_attempt_that_is_too_slow_before_its_commit_commits_nothing_later(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    table, release = table_of(lake, 4), threading.Event()

    def slow(*arguments: Any, **named: Any) -> None:
        check_no_update(*arguments, **named)
        if ends == "late":
            assert release.wait(20)
        else:
            until_cancelled(Station(lake, table))

    monkeypatch.setattr(auto_compact_run, "check_no_update", slow)
    monkeypatch.setattr(auto_compact_hook, "CANCEL_SECONDS", 0.1 if ends == "late" else 20)
    result = hook(timeout_seconds=0.2)
    release.set()
    leave()
    assert (result.status, result.error_code, table.version) == (AutoCompactStatus.FAILED, "C711", 1)


def test_what_had_landed_before_it_was_cancelled_is_in_the_result(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(lake, 4)
    monkeypatch.setattr(auto_compact_plan, "BATCH_SIZE_BYTES", 1)
    lake.at("landed", until_cancelled, times=1)
    result = hook(timeout_seconds=0.5, max_file_size=18)
    assert (result.status, result.error_code, result.version) == (AutoCompactStatus.FAILED, "C711", 2)
    assert result.reason == "not done within 0.5 s and cancelled; what had landed stays, up to version 2"
    assert result.metrics is not None
    assert (result.metrics.num_files_removed, table.version) == (2, 2)
    assert result.compacted, "it committed something, however it ended"


def test_a_commit_that_is_under_way_is_waited_for_and_told(lake: FakeLake) -> None:
    table = table_of(lake, 4)
    lake.at("commit", until_cancelled, times=1)
    result = hook(timeout_seconds=0.2)
    assert (result.status, result.version, table.version) == (AutoCompactStatus.COMPACTED, 2, 2)


def test_a_commit_that_may_still_land_is_said_and_how_to_find_it(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, release = table_of(lake, 4), threading.Event()
    monkeypatch.setattr(auto_compact_hook, "CANCEL_SECONDS", 0.3)
    monkeypatch.setattr(auto_compact_hook, "CANCEL_AGAIN_SECONDS", 0.05)
    lake.at("commit", lambda where: release.wait(20), times=1)
    result = hook(timeout_seconds=0.2)
    (run,) = lake.workers
    assert (result.status, result.error_code, table.version) == (AutoCompactStatus.FAILED, "C711", 1)
    assert "a commit may still land" in result.reason
    assert f"`maintainer show {run}`" in result.reason
    assert len(lake.cancelled) > 1, "Spark jobs that start a moment later are cancelled, too"
    release.set()
    leave()
    stamp = table.versions[-1].stamp
    assert stamp is not None
    assert (table.version, stamp.run_id) == (2, run)


def test_an_interrupt_of_the_caller_is_raised_and_nothing_is_committed_later(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, writing = table_of(lake, 4), threading.Event()

    def slow(where: Station) -> None:
        writing.set()
        until_cancelled(where)

    def interrupted(calls: object, timeout: float) -> None:
        assert writing.wait(20)
        raise KeyboardInterrupt

    lake.at("write", slow)
    with monkeypatch.context() as patch:
        patch.setattr(auto_compact_hook, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hook()
    leave()
    assert table.version == 1
