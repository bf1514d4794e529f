"""The answer to a commit is lost, or another writer comes into the middle of a run: what comes of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest
from py4j.protocol import Py4JNetworkError

from tests.support.product import (
    CommitNotLanded,
    CommitUnknown,
    DeltaEngine,
    DeltaJvm,
    DeltaTableEngine,
    Reason,
    ReasonCode,
    SessionLease,
    SetPropertiesStep,
    TableRef,
    VerificationFailed,
    run,
)
from tests.support.product import rewrite_commit as commit_module
from tests.support.tables.delta_tables import compaction, files_on_disk, no_intent, second_engine_rows, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("fates") as worker:
        yield worker


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with partitions 0 and 1 of two files each, ids 0 to 39; each test takes a copy."""
    path = tmp_path_factory.mktemp("made") / "t"
    frame = spark.range(40).selectExpr("id", "cast(id % 2 AS INT) p").repartition(2)
    frame.write.format("delta").partitionBy("p").save(str(path))
    return path


LOST: dict[str, tuple[bool, BaseException, type[BaseException] | None, str]] = {
    # What happened: did the commit land, what was raised instead of an answer, what comes of it, and what it says.
    "landed, then the connection broke": (True, Py4JNetworkError("gone"), None, ""),
    "landed, then a hook failed": (True, RuntimeError("hook"), None, ""),
    "landed, then we were interrupted": (True, KeyboardInterrupt(), None, ""),
    "not there, the connection broke": (False, Py4JNetworkError("gone"), CommitUnknown, "the connection broke"),
    "not there, we were interrupted": (False, KeyboardInterrupt(), CommitUnknown, "the connection broke"),
    "not there, Delta failed": (False, RuntimeError("storage"), CommitNotLanded, "did not land"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.every_run if name.endswith("the connection broke") else ()) for name in LOST],
)
@pytest.mark.sampled(2)
def test_a_lost_answer_is_settled_from_the_log(
    name: str, made: Path, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed, raised, expected, says = LOST[name]
    path = lake / "t"
    shutil.copytree(made, path)
    rows = second_engine_rows(path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    real = engine.jvm.commit

    def lossy(*args: Any) -> int:
        if landed:
            real(*args)
        raise raised

    monkeypatch.setattr(engine.jvm, "commit", lossy)
    before = files_on_disk(path)
    if expected is None:
        receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
        assert (receipt.version, receipt.num_files_removed, receipt.num_files_added) == (facts.version + 1, 4, 2)
    else:
        with pytest.raises(expected, match=says):
            engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
        # Unknown: it may still land, so nothing is removed. Certain: nothing is left behind.
        assert len(files_on_disk(path) - before) == (2 if expected is CommitUnknown else 0)
    assert engine.reader.find_commit(facts, stamp(), after_version=-1) == (facts.version + 1 if landed else None)
    assert second_engine_rows(path) == rows


@pytest.mark.every_run
def test_a_commit_that_would_remove_other_files_than_planned_is_not_made(
    made: Path, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    shutil.copytree(made, path)
    rows, before = second_engine_rows(path), files_on_disk(path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    real = engine.jvm.removes_of
    monkeypatch.setattr(engine.jvm, "removes_of", lambda sources, now_ms: real(sources[1:], now_ms))
    with pytest.raises(VerificationFailed) as caught:
        engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert caught.value.code == "V502"
    assert (engine.reader.facts(facts.ref).version, files_on_disk(path)) == (facts.version, before)
    assert second_engine_rows(path) == rows


@pytest.mark.every_run
def test_properties_that_landed_are_set_although_the_answer_was_lost(
    made: Path, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    shutil.copytree(made, path)
    facts = engine.reader.facts(TableRef(str(path)))
    step = SetPropertiesStep((("team", None),), (("team", "a"),), (Reason(ReasonCode.PROPERTY_DRIFT, ""),))
    real = engine.jvm.set_properties

    def lossy(*args: Any) -> None:
        real(*args)
        raise Py4JNetworkError("gone")

    monkeypatch.setattr(engine.jvm, "set_properties", lossy)
    receipt = engine.writer.set_properties(facts, step, stamp("t/set_properties"), no_intent)
    assert receipt.version == facts.version + 1
    assert deltalake.DeltaTable(str(path)).metadata().configuration["team"] == "a"


@pytest.mark.every_run
def test_a_log_that_cannot_be_asked_leaves_the_fate_unknown(
    made: Path, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    shutil.copytree(made, path)
    rows = second_engine_rows(path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    real = engine.jvm.commit

    def lossy(*args: Any) -> int:
        real(*args)
        raise RuntimeError("the answer is lost")

    def unreadable(*args: Any, **kwargs: Any) -> int:
        raise OSError("storage does not answer")

    monkeypatch.setattr(engine.jvm, "commit", lossy)
    monkeypatch.setattr(commit_module, "find_stamp", unreadable)
    with pytest.raises(CommitUnknown, match="log cannot be read") as caught:
        engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert "the answer is lost; then storage does not answer" in (caught.value.found or "")
    monkeypatch.undo()
    # It had landed; had the written files been removed, the table would be broken now.
    assert engine.reader.find_commit(facts, stamp(), after_version=-1) == facts.version + 1
    assert second_engine_rows(path) == rows


# -- the same through `apply` -------------------------------------------------------------------------------


BESIDE: dict[str, tuple[str, int, int, str, int, str]] = {
    # What another writer does right before our commit, how often; then: exit code, status of the step, commits of
    # ours, and what the step says.
    "an append": ("INSERT INTO {t} VALUES (100, 0)", 1, 0, "succeeded", 1, ""),
    "a DELETE in one of two partitions": (
        "DELETE FROM {t} WHERE id = 2", 1, 0, "succeeded", 1, "batch 0: 1 of 2 bins are no longer live"
    ),
    "a DELETE in both partitions": (
        "DELETE FROM {t} WHERE id < 2", 1, 0, "yielded", 0, "the files were replaced before they could be read"
    ),
    "a new column": ("ALTER TABLE {t} ADD COLUMN more INT", 1, 0, "yielded", 0, "A403"),
    "properties, each time": ("ALTER TABLE {t} SET TBLPROPERTIES ('team' = '{n}')", 99, 0, "yielded", 0, "C701"),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.sampled(1)
def test_apply_beside_another_writer(
    name: str,
    spark: SparkSession,
    made: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    statement, times, exit_code, status, commits, says = BESIDE[name]
    path = tmp_path / "lake" / "orders"
    shutil.copytree(made, path)
    (tmp_path / "policies").mkdir()
    # Else the other writer's update makes the table hot, and it is left alone: see test_hot_table.py.
    policy = "version: 1\ntable: lake/orders\noptimize: {quietAfterUpdates: 0s}\n"
    (tmp_path / "policies" / "orders.yaml").write_text(policy, encoding="utf-8")
    acted: list[int] = []
    real: Callable[..., int] = DeltaJvm.commit

    def beside(self: DeltaJvm, *args: Any) -> int:
        if len(acted) < times and self.spark is not spark and "orders" in str(args[0].deltaLog().dataPath()):
            acted.append(1)
            spark.sql(statement.replace("{t}", f"delta.`{path}`").replace("{n}", str(len(acted))))
        return real(self, *args)

    monkeypatch.setattr(DeltaJvm, "commit", beside)
    assert run(["--project", str(tmp_path), "apply", "--yes", "-o", "json"]) == exit_code
    monkeypatch.undo()
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    (step,) = table["steps"]
    assert (step["status"], len(step["commits"])) == (status, commits), step
    assert says in json.dumps(step)
    history = deltalake.DeltaTable(str(path)).history()
    assert sum(row["operation"] == "OPTIMIZE" for row in history) == commits
    # The other writer's work stands, all of it, and nothing of ours lies about.
    assert len(history) == 1 + len(acted) + commits
    named = {action for log in (path / "_delta_log").glob("*.json") for action in _added(log)}
    assert files_on_disk(path) <= named


def _added(log: Path) -> list[str]:
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [action["add"]["path"] for action in actions if "add" in action]
