"""Checksum files of versions: kept up where a table has them, and begun on a small table that has none."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.product import (
    BORROWED,
    WRITE_CHECKSUM,
    DeltaEngine,
    DeltaTableEngine,
    LocalFiles,
    Proof,
    SessionLease,
    TableRef,
    lend_session,
    worker_session,
)
from tests.support.tables.delta_tables import (
    compaction,
    forget_logs,
    no_intent,
    second_engine_rows,
    spark_rows,
    stamp,
)
from tests.support.tables.sick_tables import let_rest, make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("checksums") as worker:
        yield worker


def checksums(path: Path) -> list[int]:
    """Versions that have a checksum file."""
    return sorted(int(file.name[:20]) for file in (path / "_delta_log").glob("*.crc") if not file.name.startswith("."))


def jobs_of_commit(engine: DeltaTableEngine, path: Path) -> int:
    """Compact the table; returns how many Spark jobs ran from the INTENT on."""
    store = engine.jvm.spark.sparkContext._jsc.sc().statusStore()
    before: list[int] = []

    def intent(version: int, proof: Proof | None) -> None:
        before.append(int(store.jobsList(None).size()))

    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    engine.writer.rewrite(facts, step, batch, stamp(), intent)
    return int(store.jobsList(None).size()) - before[0]


def of_version(path: Path, version: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((path / "_delta_log" / f"{version:020d}.crc").read_text(encoding="utf-8"))
    return document


def test_a_small_table_of_another_engine_gets_a_checksum_and_its_commit_no_spark_job(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "theirs"
    make_table(path, 4)
    let_rest(path)
    assert jobs_of_commit(engine, path) == 0
    assert checksums(path) == [3, 4]
    for version in (3, 4):
        table = deltalake.DeltaTable(str(path), version=version)
        sizes = pa.table(table.get_add_actions()).column("size_bytes").to_pylist()
        checksum = of_version(path, version)
        assert (checksum["numFiles"], checksum["tableSizeBytes"]) == (len(sizes), sum(sizes))
        assert checksum["metadata"]["id"] == str(table.metadata().id)
    # Delta builds the state of both versions and compares it with the checksum; it raises where they differ.
    log = engine.jvm.log_at(path.as_uri())
    for version in (3, 4):
        engine.jvm.snapshot_at(log, version).validateChecksum(engine.jvm.string_map({}))
    assert len(second_engine_rows(path)) == len(spark_rows(spark, path)) == 40


def test_none_is_written_where_the_setting_is_off_or_the_session_is_somebody_elses(
    engine: DeltaTableEngine, lake: Path
) -> None:
    for name, setting in {"off": WRITE_CHECKSUM, "borrowed": BORROWED}.items():
        make_table(lake / name, 4)
        let_rest(lake / name)
        with engine.jvm.setting(setting, "false"):
            jobs_of_commit(engine, lake / name)
        assert checksums(lake / name) == []


def test_a_session_that_was_borrowed_says_so(lease: SessionLease) -> None:
    assert worker_session(lease).conf.get(BORROWED, None) is None
    assert worker_session(lend_session(lease.spark)).conf.get(BORROWED, None) == "true"


def test_what_the_log_knows_of_a_table_with_everything_is_what_delta_computes(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream's transactions, row tracking, in-commit timestamps, clustering, deletion vectors; Delta validates.

    Written here as on a store, where a rename is a copy: Delta derives the next checksum, and we write it.
    """
    path, source = lake / "t", lake / "source"
    properties = {"enableRowTracking": "true", "enableInCommitTimestamps": "true", "enableDeletionVectors": "true"}
    texts = ", ".join(f"'delta.{name}' = '{value}'" for name, value in properties.items())
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta CLUSTER BY (id) TBLPROPERTIES ({texts})")
    spark.range(0).write.format("delta").save(str(source))
    for start in (0, 40):
        spark.range(start, start + 40, 1, 2).write.format("delta").mode("append").save(str(source))
        stream_once(spark, source, path, lake / "checkpoint")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 50)")
    token = only_transaction(path)
    for checksum in (path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    let_rest(path)
    forget_logs(spark)
    monkeypatch.setattr(LocalFiles, "renames_cheaply", False)
    rows, version = spark_rows(spark, path), deltalake.DeltaTable(str(path)).version()
    facts = engine.reader.facts(TableRef(str(path)))
    forget_logs(spark)
    step, batch = compaction(facts)
    with engine.jvm.setting("spark.databricks.delta.incremental.commit.verify", "true"):
        engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert checksums(path) == [version, version + 1]
    log = engine.jvm.log_at(path.as_uri())
    forget_logs(spark)
    for number in (version, version + 1):
        assert engine.jvm.snapshot_at(log, number).validateChecksum(engine.jvm.string_map({}))
        document = of_version(path, number)
        assert [(txn["appId"], txn["version"]) for txn in document["setTransactions"]] == [token]
        assert {domain["domain"] for domain in document["domainMetadata"]} == {"delta.clustering", "delta.rowTracking"}
        assert document["inCommitTimestampOpt"] == commit_info(path, number)["inCommitTimestamp"]
    assert (of_version(path, version)["numDeletedRecordsOpt"], of_version(path, version + 1)["numFiles"]) == (2, 1)
    spark.range(80, 120).write.format("delta").mode("append").save(str(source))
    stream_once(spark, source, path, lake / "checkpoint")
    assert only_transaction(path)[1] == token[1] + 1
    assert sum(spark_rows(spark, path).values()) == sum(rows.values()) + 40


def stream_once(spark: SparkSession, source: Path, path: Path, checkpoint: Path) -> None:
    """Let a stream append what is new, and end."""
    stream = spark.readStream.format("delta").load(str(source)).writeStream.format("delta")
    stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(str(path)).awaitTermination()


def only_transaction(path: Path) -> tuple[str, int]:
    """The id of the table's only writer with transactions, and its newest number: read from the commits as JSON."""
    lines = [line for file in sorted((path / "_delta_log").glob("*.json")) for line in file.read_text().splitlines()]
    tokens = {txn["appId"]: int(txn["version"]) for line in lines if (txn := json.loads(line).get("txn"))}
    ((name, number),) = tokens.items()
    return name, number


def commit_info(path: Path, version: int) -> dict[str, Any]:
    lines = (path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8").splitlines()
    (info,) = (json.loads(line)["commitInfo"] for line in lines if line.startswith('{"commitInfo"'))
    return dict(info)


def test_without_a_checksum_the_rewrite_goes_on(
    engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(files: LocalFiles, uri: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(LocalFiles, "write", fail)
    path = lake / "theirs"
    make_table(path, 4)
    let_rest(path)
    assert jobs_of_commit(engine, path) <= 2  # protocol and metadata of the new version; its state takes three more
    assert checksums(path) == []
    assert deltalake.DeltaTable(str(path)).version() == 4


def test_a_commit_of_the_last_seconds_is_left_to_its_writer(engine: DeltaTableEngine, lake: Path) -> None:
    """Where both write the file at once, Delta leaves its temporary file in the log."""
    path = lake / "theirs"
    make_table(path, 4)
    jobs_of_commit(engine, path)
    assert checksums(path) == []


def test_a_table_with_checksums_keeps_them(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "sparks"
    spark.range(40).repartition(4).write.format("delta").save(str(path))
    assert checksums(path) == [0]
    assert jobs_of_commit(engine, path) == 0
    assert checksums(path) == [0, 1]


def test_the_settings_of_the_session_are_as_before(engine: DeltaTableEngine, lake: Path) -> None:
    make_table(lake / "theirs", 2)
    jobs_of_commit(engine, lake / "theirs")
    for key in ("incremental.commit.enabled", "writeChecksumFile.enabled", "allFilesInCrc.enabled"):
        assert engine.jvm.spark.conf.get(f"spark.databricks.delta.{key}", None) is None
