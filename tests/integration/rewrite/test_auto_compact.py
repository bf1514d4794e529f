"""The hook for writers on real tables: what it compacts, what it leaves, and that no writer ever feels it."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import maintainer
from tests.support.product import (
    RUN_PREFIX,
    AutoCompactResult,
    AutoCompactStatus,
    Proof,
    RewriteJob,
    SessionLease,
    SwitchSource,
    prove_rewrite,
    table_engine,
    write_bins,
)
from tests.support.runs.app_runs import commit_info, newest_version
from tests.support.tables.delta_tables import actions_of as commit_actions
from tests.support.tables.delta_tables import files_on_disk, second_engine_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]

ON = {"delta.autoOptimize.autoCompact": "true"}


@pytest.fixture
def writer(lease: SessionLease) -> SparkSession:
    """A session as a writer has it: nothing of ours is set in it."""
    return lease.spark.newSession()


def append(path: Path, *partitions: str) -> None:
    """One commit with a small file in each partition, by another engine: Delta's own hook never sees it."""
    rows = [{"p": name, "id": newest_version(path) + 2 if path.exists() else 1} for name in partitions]
    schema = pa.schema({"p": pa.string(), "id": pa.int64()})
    write_deltalake(str(path), pa.Table.from_pylist(rows, schema=schema), mode="append", partition_by=["p"])


def set_properties(path: Path, properties: dict[str, str]) -> None:
    """Set table properties by a commit written by hand."""
    actions = [action for version in range(newest_version(path) + 1) for action in commit_actions(path, version)]
    metadata = [action["metaData"] for action in actions if "metaData" in action][-1]
    metadata = {**metadata, "configuration": {**metadata["configuration"], **properties}}
    commit(path, {"commitInfo": {"timestamp": 1, "operation": "SET TBLPROPERTIES"}}, {"metaData": metadata})


def commit(path: Path, *actions: dict[str, Any]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{newest_version(path) + 1:020d}.json").write_text(text)


def partitions_of(path: Path) -> dict[str, int]:
    """Live files by partition, through the second engine."""
    counts: dict[str, int] = {}
    for uri in DeltaTable(str(path)).file_uris():
        name = next(part for part in uri.split("/") if part.startswith("p=")).removeprefix("p=")
        counts[name] = counts.get(name, 0) + 1
    return counts


@pytest.mark.long
def test_it_compacts_what_has_enough_small_files_and_says_so_as_delta_does(
    writer: SparkSession, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = lake / "t"
    for _ in range(3):
        append(path, "a", "b")
    append(path, "a")
    set_properties(path, {**ON, "maintainer.autoCompact.minNumFiles": "4"})
    rows, version = second_engine_rows(path), newest_version(path)
    with caplog.at_level(logging.INFO, "maintainer.auto_compact"):
        result = maintainer.auto_compact(writer, str(path))
    assert (result.status, result.partitions, result.version) == (AutoCompactStatus.COMPACTED, ("p=a",), version + 1)
    assert result.switch is not None
    assert result.switch.source is SwitchSource.PROPERTY
    assert partitions_of(path) == {"a": 1, "b": 3}
    assert second_engine_rows(path) == rows
    info = commit_info(path, version + 1)
    assert (info["operation"], info["operationParameters"]["auto"]) == ("OPTIMIZE", True)
    metrics = result.metrics
    assert metrics is not None
    assert (metrics.num_files_removed, metrics.num_files_added, metrics.num_bins) == (4, 1, 1)
    assert info["operationMetrics"]["numRemovedBytes"] == str(metrics.files_removed.total_size)
    said = json.loads(caplog.records[-1].getMessage())
    assert said["opType"] == "delta.commit.hooks.autoOptimize.execute.metrics"
    assert said["metrics"]["numFilesRemoved"] == 4
    # Again: nothing was written since.
    assert maintainer.auto_compact(writer, str(path)).status is AutoCompactStatus.NOT_QUALIFIED
    assert newest_version(path) == version + 1


@pytest.mark.long
def test_only_partitions_written_since_the_last_auto_compaction_are_looked_at(writer: SparkSession, lake: Path) -> None:
    path = lake / "t"
    for _ in range(3):
        append(path, "a", "b", "c")
    append(path, "c")

    def hook(**arguments: Any) -> AutoCompactResult:
        return maintainer.auto_compact(writer, path, enabled=True, **arguments)

    assert hook(min_num_files=4).partitions == ("p=c",)
    # a and b have three files each, but nobody has written them since.
    assert hook(min_num_files=3).status is AutoCompactStatus.NOT_QUALIFIED
    append(path, "b")
    assert hook(min_num_files=3).partitions == ("p=b",)
    assert partitions_of(path) == {"a": 3, "b": 1, "c": 1}
    # Without the restriction one partition with enough small files opens the whole table.
    result = hook(min_num_files=3, modified_partitions_only=False)
    assert (result.status, partitions_of(path)) == (AutoCompactStatus.COMPACTED, {"a": 1, "b": 1, "c": 1})


def test_large_files_do_not_count_and_sizes_are_kept(writer: SparkSession, lake: Path) -> None:
    path = lake / "t"
    for _ in range(4):
        append(path, "a")
    size = max(file.stat().st_size for file in path.rglob("p=a/*.parquet"))
    small = maintainer.auto_compact(
        writer, path, enabled=True, min_num_files=4, min_file_size=1, max_file_size=size * 9
    )
    assert (small.status, newest_version(path)) == (AutoCompactStatus.NOT_QUALIFIED, 3)
    assert "at most 0 files under 1 B" in small.reason
    halves = maintainer.auto_compact(writer, path, enabled=True, min_num_files=4, max_file_size=size * 2 + 2)
    assert (halves.status, partitions_of(path)) == (AutoCompactStatus.COMPACTED, {"a": 2})


def test_a_disabled_table_is_left_alone_whoever_disables_it(writer: SparkSession, lake: Path) -> None:
    path = lake / "t"
    for _ in range(3):
        append(path, "a")
    off = maintainer.auto_compact(writer, path, min_num_files=2)
    assert (off.status, off.reason) == (AutoCompactStatus.DISABLED, "auto compaction is off (default)")
    set_properties(path, ON)
    writer.conf.set("spark.databricks.delta.autoCompact.enabled", "false")
    off = maintainer.auto_compact(writer, path, min_num_files=2)
    assert (off.status, off.reason) == (AutoCompactStatus.DISABLED, "auto compaction is off (session)")
    assert newest_version(path) == 3
    set_properties(path, {"delta.autoOptimize.autoCompact": "false", "delta.autoOptimize": "true"})
    writer.conf.unset("spark.databricks.delta.autoCompact.enabled")
    result = maintainer.auto_compact(writer, path, min_num_files=2)
    assert result.switch is not None
    assert (result.status, result.switch.source) == (AutoCompactStatus.COMPACTED, SwitchSource.LEGACY_PROPERTY)


def test_the_writers_session_is_left_exactly_as_it_was(writer: SparkSession, lake: Path) -> None:
    path = lake / "t"
    for _ in range(2):
        append(path, "a")
    context, properties = writer.sparkContext, ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool")
    jvm: Any = writer._jvm
    classic = jvm.org.apache.spark.sql.classic.SparkSession
    classic.setActiveSession(writer._jsparkSession)
    context.setJobGroup("mine", "my job")
    context.setLocalProperty("spark.scheduler.pool", "my pool")
    writer.conf.set("spark.databricks.delta.commitInfo.userMetadata", "mine")

    def state() -> tuple[Any, ...]:
        active = classic.getActiveSession().get().equals(writer._jsparkSession)
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(writer._jsparkSession, str(path))
        store = log.store().getDelegate(log.logPath()).logStoreImpl().getClass().getName()
        return dict(writer.conf.getAll), active, [context.getLocalProperty(key) for key in properties], store

    try:
        before = state()
        assert before[1:] == (True, ["mine", "my job", "my pool"], "io.delta.storage.HDFSLogStore")
        assert maintainer.auto_compact(writer, path, enabled=True, min_num_files=2).compacted
        assert state() == before
    finally:
        for key in properties:
            context.setLocalProperty(key, None)  # type: ignore[arg-type]  # None removes the property


def test_a_writer_that_is_faster_wins_and_nobody_is_hurt(
    writer: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    for _ in range(3):
        append(path, "a", "b")

    def meanwhile(job: RewriteJob) -> None:
        write_bins(job)
        DeltaTable(str(path)).delete("p = 'a' AND id = 1")

    monkeypatch.setattr(table_engine, "write_bins", meanwhile)
    result = maintainer.auto_compact(writer, path, enabled=True, min_num_files=3, quiet_after_updates="0s")
    assert (result.status, result.error_code, result.version) == (AutoCompactStatus.YIELDED, "C701", None)
    assert "another writer won" in result.reason
    assert newest_version(path) == 3
    assert sorted(partitions_of(path).values()) == [2, 3]
    assert len(files_on_disk(path)) == 6, "what was written is removed"


def test_a_table_that_others_update_is_hot_and_the_callers_own_merge_is_none_of_that(
    writer: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    for _ in range(4):
        append(path, "a")

    def hook() -> AutoCompactResult:
        return maintainer.auto_compact(writer, path, enabled=True, min_num_files=3)

    # The session of the writer updates and calls: nobody else is at work.
    writer.conf.set("spark.databricks.delta.autoCompact.enabled", "false")
    writer.sql(f"UPDATE delta.`{path}` SET id = 100 WHERE id = 1")
    result = hook()
    assert (result.status, partitions_of(path)) == (AutoCompactStatus.COMPACTED, {"a": 1}), result.reason
    for _ in range(3):
        append(path, "a")
    # Somebody else updates while the hook writes, a file that it does not take.

    def meanwhile(job: RewriteJob) -> None:
        write_bins(job)
        append(path, "a")
        DeltaTable(str(path)).update(updates={"id": "id + 1"}, predicate=f"id = {newest_version(path) + 1}")

    rows, files = second_engine_rows(path), len(files_on_disk(path))
    monkeypatch.setattr(table_engine, "write_bins", meanwhile)
    result = hook()
    assert (result.status, result.error_code) == (AutoCompactStatus.YIELDED, "C718"), result.reason
    assert result.reason.startswith("hot: UPDATE by another writer ")
    assert len(files_on_disk(path)) == files + 2, "what was written is removed"
    assert sum(second_engine_rows(path).values()) == sum(rows.values()) + 1
    monkeypatch.undo()
    # And a moment after it.
    result = hook()
    assert (result.status, result.error_code) == (AutoCompactStatus.NOT_QUALIFIED, "C718")
    assert "(quietAfterUpdates 10m)" in result.reason
    assert maintainer.auto_compact(writer, path, enabled=True, min_num_files=3, quiet_after_updates="0s").compacted


@pytest.mark.long
def test_a_failure_is_a_result_and_nothing_is_committed(
    writer: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    for _ in range(3):
        append(path, "a")

    def losing(job: RewriteJob) -> None:
        write_bins(job)
        add = job.written[0].add
        lost = (DeltaTable(str(path)).file_uris()[0]).removeprefix("file://")
        (path / add["path"].replace("%3D", "=")).write_bytes(Path(lost).read_bytes())

    monkeypatch.setattr(table_engine, "write_bins", losing)
    result = maintainer.auto_compact(writer, path, enabled=True, min_num_files=3)
    assert result.status is AutoCompactStatus.FAILED
    assert result.error_code in ("V501", "V502", "C702")
    assert newest_version(path) == 2
    assert len(files_on_disk(path)) == 3
    monkeypatch.undo()
    missing = maintainer.auto_compact(writer, lake / "nothing", enabled=True)
    assert (missing.status, missing.error_code) == (AutoCompactStatus.FAILED, "T401")
    set_properties(path, {"maintainer.autoCompact.maxFileSize": "big"})
    unread = maintainer.auto_compact(writer, path, enabled=True)
    assert (unread.status, "maxFileSize is `big`" in unread.reason) == (AutoCompactStatus.FAILED, True)


def test_an_attempt_that_is_too_slow_commits_nothing_later(
    writer: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    for _ in range(3):
        append(path, "a")

    def slow(job: RewriteJob) -> Proof:
        proof = prove_rewrite(job)
        assert job.stop.wait(60), "the worker is told, so that work in this process ends as Spark's jobs do"
        return proof

    monkeypatch.setattr(table_engine, "prove_rewrite", slow)
    result = maintainer.auto_compact(writer, path, enabled=True, min_num_files=3, timeout_seconds=5)
    assert (result.status, result.error_code, result.version) == (AutoCompactStatus.FAILED, "C711", None), result.reason
    assert result.reason == "not done within 5 s and cancelled; nothing was committed"
    assert not any(thread.name.startswith(RUN_PREFIX) for thread in threading.enumerate())
    assert (newest_version(path), len(files_on_disk(path))) == (2, 3), "what was written is removed"


@pytest.mark.long
def test_a_stream_that_calls_it_for_each_batch_goes_on(writer: SparkSession, lake: Path) -> None:
    source, target = lake / "source", lake / "target"
    for _ in range(5):
        append(source, "a")
    append(target, "a")
    set_properties(target, ON)
    results: list[AutoCompactResult] = []

    def each(frame: Any, batch: int) -> None:
        frame.sparkSession.conf.set("spark.databricks.delta.autoCompact.enabled", "false")  # Delta's own hook
        frame.write.format("delta").mode("append").save(str(target))
        results.append(maintainer.auto_compact(frame.sparkSession, target, enabled=True, min_num_files=3))

    stream = writer.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(source))
    query = (
        stream.writeStream.foreachBatch(each)
        .option("checkpointLocation", str(lake / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(200)
    assert query.exception() is None
    # One file at first; every second batch makes three of it and what the last one wrote.
    assert [result.status.value for result in results] == ["not_qualified", "compacted"] * 2 + ["not_qualified"]
    assert partitions_of(target) == {"a": 2}
    assert DeltaTable(str(target)).to_pyarrow_table().num_rows == 6
