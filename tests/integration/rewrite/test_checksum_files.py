"""Checksum files of versions: kept up where a table has them, and begun by Kernel on a small table that has none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from maintainer.delta.engine.table_engine import DeltaEngine, DeltaTableEngine
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.spark.spark_session import SessionLease
from maintainer.model.run.outcome import Proof
from maintainer.model.table.table_facts import TableRef
from tests.support.tables.delta_tables import compaction, second_engine_rows, spark_rows, stamp
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


def test_a_table_whose_checkpoints_are_its_own_matter_gets_none(engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "theirs"
    make_table(path, 4)
    let_rest(path)
    deltalake.DeltaTable(str(path)).alter.set_table_properties({"delta.checkpointPolicy": "classic"})
    let_rest(path)
    jobs_of_commit(engine, path)
    assert checksums(path) == []


def test_without_a_checksum_the_rewrite_goes_on(
    engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(DeltaJvm, "kernel_checksum", fail)
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
