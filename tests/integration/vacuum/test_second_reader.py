"""Right before a deletion Delta Kernel reads the log as well: what it finds must be what the log says, and decides."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.product import (
    CommitConflict,
    DeltaEngine,
    DeltaTableEngine,
    Refused,
    SessionLease,
    TableFacts,
    TableRef,
    TableStorage,
    VacuumStep,
)
from tests.support.tables.delta_tables import (
    bytes_of,
    compaction,
    files_on_disk,
    forget_logs,
    no_intent,
    removed_files,
    spark_rows,
    stamp,
)
from tests.support.tables.vacuum_cases import forget_add

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(2)]

NO_RETENTION = "'delta.deletedFileRetentionDuration' = 'interval 0 hours'"


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("second") as worker:
        yield worker


def compacted(spark: SparkSession, engine: DeltaTableEngine, path: Path) -> TableFacts:
    """Three files that a compaction replaced by one; another file was appended afterwards."""
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ({NO_RETENTION})")
    spark.range(30).repartition(3).write.format("delta").mode("append").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    spark.range(5).coalesce(1).write.format("delta").mode("append").save(str(path))
    return engine.reader.facts(facts.ref)


def live_names(path: Path) -> set[str]:
    """The names of the live files as a second engine reads the log; the table has no partitions."""
    return {Path(uri).name for uri in deltalake.DeltaTable(str(path)).file_uris()}


def vacuum_step(engine: DeltaTableEngine, facts: TableFacts) -> VacuumStep:
    removed = removed_files(engine, facts)
    assert len(removed) == 3
    return VacuumStep(removed, int(time.time() * 1000) + 1, 0, "vacuum.retention", ())


@pytest.mark.every_run
def test_an_add_that_our_replay_forgets_stops_the_deletion(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    right = compacted(spark, engine, path)
    forgotten = min(live_names(path))
    step = vacuum_step(engine, right)
    before = bytes_of(path)
    with monkeypatch.context() as patch:
        forget_add(patch, forgotten)
        engine.reader.forget(right.location)
        wrong = engine.reader.facts(right.ref)
        assert len(wrong.files) == 1, "the fault must reach the facts"
        with pytest.raises(Refused) as refused:
            engine.writer.vacuum(wrong, step, stamp("t/vacuum"), no_intent)
    size = (path / forgotten).stat().st_size
    assert (refused.value.code, refused.value.where) == ("A452", f"{path}@{right.version}")
    assert f"only in that of Delta Kernel: {forgotten} ({size:,} bytes)" in str(refused.value.found)
    assert bytes_of(path) == before, "not even VACUUM START"
    # What was kept of the table is dropped: the next look reads the log anew, and the deletion is made.
    again = engine.reader.facts(right.ref)
    assert engine.writer.vacuum(again, step, stamp("t/vacuum"), no_intent).num_files_deleted == 3
    assert files_on_disk(path) == live_names(path)


def actions_by_json(path: Path, version: int, since_ms: int) -> tuple[set[str], set[str]]:
    """Live files and removals since a moment, from the commits alone: each as sorted JSON of what identifies it."""
    live: dict[str, str] = {}
    removed: set[str] = set()
    for number in range(version + 1):
        lines = (path / "_delta_log" / f"{number:020}.json").read_text().splitlines()
        actions = [json.loads(line) for line in lines]
        for body in [action["remove"] for action in actions if "remove" in action]:
            live.pop(_identity(body), None)
            if body["deletionTimestamp"] >= since_ms:
                removed.add(_identity(body))
        for body in [action["add"] for action in actions if "add" in action]:
            live[_identity(body)] = json.dumps([_identity(body), body["size"]])
    return set(live.values()), removed


def _identity(body: dict[str, Any]) -> str:
    return json.dumps([body["path"], body.get("deletionVector")], sort_keys=True)


@pytest.mark.parametrize(
    "properties",
    [
        "'delta.checkpointInterval' = '3'",
        "'delta.checkpointInterval' = '3', 'delta.checkpointPolicy' = 'v2'",
        "'delta.checkpointInterval' = '3', 'delta.checkpoint.writeStatsAsJson' = 'false', "
        "'delta.checkpoint.writeStatsAsStruct' = 'true'",
        "'delta.checkpointInterval' = '100'",
        "'delta.checkpointInterval' = '3', 'delta.columnMapping.mode' = 'name'",
    ],
    ids=["classic", "v2", "statistics as columns", "none", "column mapping"],
)
def test_what_kernel_finds_is_what_the_commits_say(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, properties: str
) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', {properties})"
    )
    moments = []
    for number in range(3):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT id, 'a b/{number}' FROM range({number * 10}, {number * 10 + 10})")
        moments.append(int(time.time() * 1000))
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = {number * 10 + 1}")
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id BETWEEN {number * 10 + 5} AND {number * 10 + 9}")
    version = max(int(file.name[:20]) for file in (path / "_delta_log").glob("*.json"))
    (table_id,) = [row["id"] for row in spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()]
    for damaged in (path / "_delta_log").glob("0*.crc"):  # a checksum file is believed by nobody here
        damaged.with_name(f".{damaged.name}.crc").unlink()
        damaged.write_text('{"tableSizeBytes":0,"numFiles":0,"numMetadata":1,"numProtocol":1}')
    storage = TableStorage(engine.jvm, f"file:{path}")
    for at, since_ms in ((version, 0), (version, moments[0]), (version, moments[2]), (version - 4, moments[1])):
        found = list(engine.jvm.kernel_actions(storage.folder, at, since_ms))
        live = {json.dumps([_identity(row["add"]), row["add"]["size"]]) for row in found if "add" in row}
        removed = {_identity(row["remove"]) for row in found if "remove" in row}
        assert (live, removed) == actions_by_json(path, at, since_ms)
        assert sum("add" in row for row in found) == len(live)
        (metadata,) = [row["metaData"] for row in found if "metaData" in row]
        assert metadata["id"] == table_id


def test_a_log_that_kernel_cannot_read_is_read_by_spark(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    facts = compacted(spark, engine, path)
    step, rows = vacuum_step(engine, facts), spark_rows(spark, path)

    def fails(*arguments: object) -> None:
        raise ValueError("Kernel does not know this log")

    monkeypatch.setattr(type(engine.jvm), "kernel_actions", fails)
    right = live_names(path)
    blind = replace(facts, files=facts.files[1:])
    with pytest.raises(Refused, match="only in that of Delta's snapshot"):
        engine.writer.vacuum(blind, step, stamp("t/vacuum"), no_intent)
    assert engine.writer.vacuum(facts, step, stamp("t/vacuum"), no_intent).num_files_deleted == 3
    assert (files_on_disk(path), spark_rows(spark, path)) == (right, rows)


def test_a_commit_of_the_same_size_in_the_place_of_another(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    facts = compacted(spark, engine, path)
    step, before = vacuum_step(engine, facts), files_on_disk(path)
    commit = path / "_delta_log" / f"{1:020}.json"

    def overwrite(read_version: int, proof: object) -> None:
        commit.write_text(commit.read_text().replace('"mode":"Append"', '"mode":"Absent"'))
        commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
        forget_logs(spark)

    with pytest.raises(CommitConflict, match="the log is not the one"):
        engine.writer.vacuum(facts, step, stamp("t/vacuum"), overwrite)
    assert files_on_disk(path) == before
