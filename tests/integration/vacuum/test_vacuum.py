"""Deletion: exactly the planned files go, nothing that any version inside the horizon needs."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import (
    CommitConflict,
    DeltaEngine,
    DeltaTableEngine,
    MaintainerError,
    Refused,
    RemovedFile,
    SessionLease,
    TableFacts,
    TableRef,
    VacuumStep,
    vector_path,
)
from tests.support.tables.delta_tables import (
    age,
    compaction,
    files_on_disk,
    forget_logs,
    history,
    no_intent,
    removed_files,
    spark_rows,
    stamp,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(2)]

DAY_MS = 86_400_000
NO_RETENTION = "interval 0 hours"


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("vacuum") as worker:
        yield worker


def _step(files: tuple[RemovedFile, ...], *, before_ms: int | None = None, seconds: int = 0) -> VacuumStep:
    return VacuumStep(files, before_ms or int(time.time() * 1000), seconds, "vacuum.retention", ())


def _compacted(spark: SparkSession, engine: DeltaTableEngine, path: Path, retention: str | None) -> TableFacts:
    """Three small files compacted into one: three removed files."""
    frame = spark.range(30).selectExpr("id", "'a b' p").repartition(3)
    writer = frame.write.format("delta").partitionBy("p")
    if retention:
        writer = writer.option("delta.deletedFileRetentionDuration", retention)
    writer.save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    return engine.reader.facts(facts.ref)


@pytest.mark.every_run
def test_exactly_the_planned_files_go(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    facts = _compacted(spark, engine, path, NO_RETENTION)
    rows = spark_rows(spark, path)
    (path / "p=a b" / "untracked.parquet").write_bytes(b"not ours")
    removed = removed_files(engine, facts)
    assert len(removed) == 3
    assert all((file.kind, file.size_bytes > 0) == ("data", True) for file in removed)
    kept = files_on_disk(path)
    chosen = removed[:2]
    calls: list[int] = []
    receipt = engine.writer.vacuum(facts, _step(chosen), stamp("t/vacuum"), lambda version, _: calls.append(version))
    assert calls == [facts.version]
    assert (receipt.num_files_deleted, receipt.remaining) == (2, ())
    assert receipt.bytes_deleted == sum(file.size_bytes for file in chosen)
    gone = {file.path.replace("%20", " ") for file in chosen}
    assert files_on_disk(path) == kept - gone
    assert spark_rows(spark, path) == rows
    end, start = history(spark, path, 2)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["userMetadata"] == end["userMetadata"] == stamp("t/vacuum").to_json()
    assert start["operationMetrics"]["numFilesToDelete"] == "2"
    assert start["operationMetrics"]["sizeOfDataToDelete"] == str(receipt.bytes_deleted)
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"]["numDeletedFiles"] == "2"
    assert (receipt.version_before, receipt.version_after) == (facts.version, facts.version + 2)
    assert not (path / "_delta_log" / "_last_vacuum_info").exists()
    later = engine.reader.facts(facts.ref)
    left = removed_files(engine, later)
    assert [file.path for file in left] == [removed[2].path]


def test_a_writer_whose_clock_is_behind_makes_no_file_look_old(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    _compacted(spark, engine, path, NO_RETENTION)
    log = path / "_delta_log" / f"{1:020}.json"
    before = log.stat().st_mtime_ns // 1_000_000
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for action in lines:
        (body,) = action.values()
        body.update({key: body[key] - 30 * DAY_MS for key in ("timestamp", "deletionTimestamp") if key in body})
    for crc in (path / "_delta_log").glob("*.crc"):
        crc.unlink()
    for crc in (path / "_delta_log").glob(".*.crc"):
        crc.unlink()
    log.write_text("\n".join(json.dumps(action) for action in lines) + "\n")
    forget_logs(engine.jvm.spark)
    facts = engine.reader.facts(TableRef(str(path)))
    assert removed_files(engine, facts, before_ms=before - DAY_MS) == ()
    removed = removed_files(engine, facts)
    assert [file.removed_in_version for file in removed] == [1, 1, 1]


def test_deletion_vector_files_and_shared_data_files(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )
    spark.range(20).coalesce(1).write.format("delta").mode("append").save(str(path))
    for number in (3, 4):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = {number}")
    rows = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    vectors = {file.name for file in path.rglob("deletion_vector*.bin")}
    assert len(vectors) == 2
    removed = removed_files(engine, facts)
    # The data file was removed twice and added again twice: it is live. Only the first vector's file is not needed.
    assert [file.kind for file in removed] == ["deletion_vector"]
    receipt = engine.writer.vacuum(facts, _step(removed), stamp("t/vacuum"), no_intent)
    assert receipt.num_files_deleted == 1
    assert len({file.name for file in path.rglob("deletion_vector*.bin")}) == 1
    assert spark_rows(spark, path) == rows


Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def _five_digits(four_bytes: bytes) -> str:
    number = int.from_bytes(four_bytes, "big")
    return "".join(Z85[number // 85**power % 85] for power in range(4, -1, -1))


@pytest.mark.long
def test_vector_files_are_named_as_delta_names_them(engine: DeltaTableEngine, lake: Path) -> None:
    jvm = engine.jvm
    root = jvm.path(f"file:{lake}")
    for number in range(200):
        vector_id = uuid.UUID(int=random.Random(number).getrandbits(128))
        prefix = "" if number % 3 == 0 else f"a{number}Z"
        text = prefix + "".join(_five_digits(vector_id.bytes[start : start + 4]) for start in range(0, 16, 4))
        ours = vector_path(text)
        assert ours is not None
        assert str(jvm.vector_path("u", text, root).toUri().getPath()) == f"{lake}/{ours}"
        assert str(vector_id) in ours


def test_the_horizon_is_the_time_of_the_commit(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    facts = _compacted(spark, engine, path, None)
    now_ms = int(time.time() * 1000)
    assert removed_files(engine, facts, before_ms=now_ms - 7 * DAY_MS) == ()
    with pytest.raises(Refused) as caught:
        engine.writer.vacuum(facts, _step((), before_ms=now_ms - 6 * DAY_MS), stamp("t/vacuum"), no_intent)
    assert caught.value.code == "A430"
    # A remover that began 20 days ago and committed just now: readers needed the files until just now.
    log = path / "_delta_log" / f"{facts.version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] -= 20 * DAY_MS
    log.write_text("\n".join(map(json.dumps, actions)) + "\n")
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    forget_logs(engine.jvm.spark)
    assert removed_files(engine, facts, before_ms=now_ms - 7 * DAY_MS) == ()
    age(path, 10)
    forget_logs(engine.jvm.spark)
    facts = engine.reader.facts(facts.ref)
    removed = removed_files(engine, facts, before_ms=now_ms - 7 * DAY_MS)
    assert len(removed) == 3
    step = _step(removed, before_ms=now_ms - 7 * DAY_MS, seconds=7 * 86_400)
    assert engine.writer.vacuum(facts, step, stamp("t/vacuum"), no_intent).num_files_deleted == 3
    assert spark.read.format("delta").load(str(path)).count() == 30


def test_a_restore_in_between_stops_the_deletion(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    facts = _compacted(spark, engine, path, NO_RETENTION)
    removed = removed_files(engine, facts)
    key = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    spark.conf.set(key, "false")
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {facts.version - 1}")
    spark.conf.unset(key)
    before = files_on_disk(path)
    with pytest.raises(CommitConflict, match="RESTORE"):
        engine.writer.vacuum(facts, _step(removed), stamp("t/vacuum"), no_intent)
    # Also with facts that already know the restored version: the files are live again.
    restored = engine.reader.facts(facts.ref)
    assert not {file.path for file in restored.files} & {file.path for file in removed_files(engine, restored)}
    with pytest.raises(CommitConflict, match="live again"):
        engine.writer.vacuum(restored, _step(removed), stamp("t/vacuum"), no_intent)
    assert files_on_disk(path) == before


def test_nothing_outside_the_table_and_nothing_behind_a_symlink(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    facts = _compacted(spark, engine, path, NO_RETENTION)
    outside = lake / "precious"
    outside.mkdir()
    (outside / "x.parquet").write_bytes(b"precious")
    (path / "link").symlink_to(outside)
    log = facts.version
    for bad in (f"file:{outside}/x.parquet", "../precious/x.parquet", "link/x.parquet", f"_delta_log/{log:020d}.json"):
        with pytest.raises(MaintainerError) as caught:
            engine.writer.vacuum(facts, _step((RemovedFile(bad, 1, 1),)), stamp("t/vacuum"), no_intent)
        assert caught.value.code == "A431", bad
    assert (outside / "x.parquet").read_bytes() == b"precious"
    # A link in the place of a removed file is no file of the table.
    (removed, *_) = removed_files(engine, facts)
    place = path / removed.path.replace("%20", " ")
    place.unlink()
    place.symlink_to(outside / "x.parquet")
    left = removed_files(engine, facts)
    assert removed.path not in {other.path for other in left}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs chattr")
def test_what_will_not_go_is_named(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    import subprocess

    path = lake / "t"
    facts = _compacted(spark, engine, path, NO_RETENTION)
    removed = removed_files(engine, facts)
    stuck = path / removed[1].path.replace("%20", " ")
    if subprocess.run(["chattr", "+i", str(stuck)], capture_output=True).returncode != 0:
        pytest.skip("this file system has no immutable files")
    try:
        receipt = engine.writer.vacuum(facts, _step(removed), stamp("t/vacuum"), no_intent)
    finally:
        subprocess.run(["chattr", "-i", str(stuck)], check=True)
    assert receipt.num_files_deleted == 2
    assert [line.split(" (")[0] for line in receipt.remaining] == [removed[1].path]
    assert receipt.bytes_deleted == removed[0].size_bytes + removed[2].size_bytes
