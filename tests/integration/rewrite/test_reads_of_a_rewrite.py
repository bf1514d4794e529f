"""What one rewrite reads: how many Spark jobs it and its checks start, and how often the log's live files are read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.product import (
    Batch,
    Checks,
    CommitReceipt,
    DeltaEngine,
    DeltaJvm,
    DeltaTableEngine,
    GreatExpectationsVerifier,
    LiveFilesReader,
    ReplayedVersion,
    SessionLease,
    TableFacts,
    TableRef,
    TableStorage,
    Verdict,
    replay_version,
    version_reader,
)
from tests.support.tables.delta_tables import compaction, forget_logs, no_intent, second_engine_rows, stamp
from tests.support.tables.sick_tables import let_rest, make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(3)]

REPLAY = "maintainer.delta.transaction.live_files.replay_version"


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("reads") as worker:
        yield worker


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions whose live files were read as a whole, in order; not where statistics are what is read."""
    versions: list[int] = []

    def noted(storage: TableStorage, version: int, *listed: Any, with_statistics: Any = False) -> ReplayedVersion:
        if with_statistics is False:
            versions.append(version)
        return replay_version(storage, version, *listed, with_statistics=with_statistics)

    monkeypatch.setattr(REPLAY, noted)
    return versions


def num_jobs(engine: DeltaTableEngine) -> int:
    return int(engine.jvm.spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def rewritten(engine: DeltaTableEngine, path: Path, number: int = 0) -> tuple[TableFacts, Batch, CommitReceipt]:
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    return facts, batch, engine.writer.rewrite(facts, step, batch, replace(stamp(), batch=number), no_intent)


@pytest.mark.every_run
@pytest.mark.parametrize(("num_commits", "checkpoints"), [(4, []), (10, [10])], ids=["nothing due", "a checkpoint due"])
def test_spark_jobs_of_a_rewrite_and_its_checks(
    engine: DeltaTableEngine, lake: Path, num_commits: int, checkpoints: list[int]
) -> None:
    path = lake / f"after-{num_commits}"
    make_table(path, num_commits)
    let_rest(path)
    rows, before = second_engine_rows(path), num_jobs(engine)
    facts, batch, receipt = rewritten(engine, path)
    written = num_jobs(engine) - before
    result = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
    assert result.verdict is Verdict.PASS
    assert (result.rows_before, result.rows_after) == (len(rows), len(rows))
    # Written by another engine, so no version has a checksum file: with Kernel's, Delta opens the log and the new
    # version without a job. The one job writes the bins. The proof reads them without Spark.
    by_delta = JOBS_OF_DELTAS_CHECKPOINT if checkpoints and engine.jvm.spark.version.startswith("4.0.") else 0
    assert (written, num_jobs(engine) - before - written) == (1 + by_delta, CHECKS)
    assert second_engine_rows(path) == rows
    assert [int(file.name[:20]) for file in (path / "_delta_log").glob("*.checkpoint.parquet")] == checkpoints


JOBS_OF_DELTAS_CHECKPOINT = 5
"""Kernel writes none with Spark 4.0: it needs a class of Parquet 1.16."""

CHECKS = 0
"""The commits are replayed, and DuckDB counts the rows of the files that changed."""


def test_checks_open_what_changed_and_look_for_the_rest(
    engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    make_table(path, 5)
    opened: list[list[str]] = []
    count = version_reader.rows_in_footers

    def counted(storage: TableStorage, adds: Sequence[Any]) -> int:
        opened.append([str(add["path"]) for add in adds])
        return count(storage, adds)

    monkeypatch.setattr(version_reader, "rows_in_footers", counted)
    facts = engine.reader.facts(TableRef(str(path)))
    taken = {file.path for file in facts.files[:3]}
    step, batch = compaction(facts, where=lambda file: file.path in taken)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    result = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
    assert (result.verdict, result.rows_before, result.rows_after) == (Verdict.PASS, 50, 50)
    old, new = opened
    assert (set(old), len(new)) == (taken, 1)


def test_each_version_is_read_once(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, whole_reads: list[int]
) -> None:
    path = lake / "t"
    make_table(path, 3)
    first = engine.reader.facts(TableRef(str(path))).version
    for number in (0, 1):
        facts, batch, receipt = rewritten(engine, path, number)
        assert receipt.version == first + 1 + number
        result = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
        assert result.verdict is Verdict.PASS
        assert engine.versions.missing_files(facts, receipt.version).paths == ()
    # Each commit of ours is read on top of the version before it.
    assert whole_reads == [first]


def test_a_commit_is_read_on_top_of_the_version_before(
    spark: SparkSession,
    engine: DeltaTableEngine,
    lake: Path,
    whole_reads: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Appends, deleted rows, files that go, a new column: what is put together is what Spark reads as a whole."""
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    for statement in (
        "INSERT INTO delta.`{t}` SELECT /*+ REPARTITION(1) */ CAST(id AS INT), 'a' FROM range(10)",
        "INSERT INTO delta.`{t}` VALUES (10, NULL), (11, 'a b%')",
        "DELETE FROM delta.`{t}` WHERE id = 3",
        "DELETE FROM delta.`{t}` WHERE id IN (4, 11)",
        "ALTER TABLE delta.`{t}` ADD COLUMN more INT",
        "INSERT INTO delta.`{t}` VALUES (12, 'a', 1)",
    ):
        spark.sql(statement.format(t=path))
    facts = engine.reader.facts(TableRef(str(path)))
    one_by_one = LiveFilesReader(engine.jvm)
    on_top = [one_by_one.of_version(facts, version) for version in range(facts.version + 1)]
    # The table's first version and the one that changed its schema are read as a whole.
    assert len(whole_reads) == 2
    replayed = [LiveFilesReader(engine.jvm).of_version(facts, version) for version in range(facts.version + 1)]
    monkeypatch.setattr(LiveFilesReader, "_read", lambda *_: None)
    log = engine.jvm.log_at(facts.location)
    for version in range(facts.version + 1):
        by_spark = LiveFilesReader(engine.jvm).of_snapshot(facts, engine.jvm.snapshot_at(log, version), ())
        for files in (on_top[version], replayed[version]):
            assert files is not None
            expected = (version, by_spark.columns, by_spark.rows)
            assert (files.version, files.columns, files.rows) == expected
            assert files.adds.keys() == by_spark.adds.keys()
            for key, add in by_spark.adds.items():
                ours = {name: value for name, value in files.adds[key].items() if value is not None}
                theirs = {name: value for name, value in add.items() if value is not None}
                assert {name: ours.get(name) for name in theirs} == theirs


def test_a_version_that_was_replaced_is_read_again(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, whole_reads: list[int]
) -> None:
    path = lake / "t"
    make_table(path, 3)
    facts = engine.reader.facts(TableRef(str(path)))
    reader = LiveFilesReader(engine.jvm)
    read = reader.of_version(facts, facts.version)
    assert read is not None
    assert frozenset(read.adds) == facts.file_keys
    assert reader.of_version(facts, facts.version) is read
    commit = path / "_delta_log" / f"{facts.version:020d}.json"
    lines = commit.read_text(encoding="utf-8").splitlines()
    commit.unlink()
    commit.write_text("\n".join(line for line in lines if not line.startswith('{"add"')) + "\n", encoding="utf-8")
    again = reader.of_version(facts, facts.version)
    assert again is not None
    assert frozenset(again.adds) < facts.file_keys
    assert whole_reads == [facts.version, facts.version]


def test_of_a_very_large_table_only_the_files_asked_for_are_held(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    make_table(path, 4)
    facts = engine.reader.facts(TableRef(str(path)))
    snapshot = engine.jvm.update(engine.jvm.log_at(facts.location))
    monkeypatch.setattr("maintainer.delta.transaction.live_files.MAX_FILES_KEPT", 2)
    wanted = {facts.files[0].key, facts.files[-1].key}
    reader = LiveFilesReader(engine.jvm)
    part = reader.of_snapshot(facts, snapshot, wanted)
    assert (set(part.adds), part.complete) == (wanted, False)
    whole = reader.of_version(facts, facts.version)
    assert whole is not None
    assert (frozenset(whole.adds), whole.complete) == (facts.file_keys, True)
    assert reader.of_version(facts, facts.version) is not whole


def checkpoint_of(path: Path, version: int) -> list[tuple[str, int]]:
    """How many actions of each kind a checkpoint holds, by a reader of Parquet alone."""
    table = pq.read_table(path / "_delta_log" / f"{version:020d}.checkpoint.parquet")
    kinds = {"add", "remove", "metaData", "protocol", "txn"} & set(table.column_names)
    return sorted((kind, len(table) - table[kind].null_count) for kind in kinds if table[kind].null_count < len(table))


def break_checkpoints(monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no checkpoint")

    for method in methods:
        monkeypatch.setattr(DeltaJvm, method, broken)


@pytest.mark.parametrize("broken", [(), ("kernel_checkpoint",), ("kernel_checkpoint", "checkpoint")])
def test_a_checkpoint_that_falls_due(
    spark: SparkSession,
    engine: DeltaTableEngine,
    lake: Path,
    broken: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kernel writes it, or else Delta does, or else nobody: the commit has landed."""
    path, deltas_own = lake / "t", lake / "deltas_own"
    make_table(path, 10)
    rows = second_engine_rows(path)
    shutil.copytree(path, deltas_own)
    break_checkpoints(monkeypatch, *broken)
    _, _, receipt = rewritten(engine, path)
    assert receipt.version == 10
    assert second_engine_rows(path) == rows
    if "checkpoint" in broken:
        assert not list((path / "_delta_log").glob("*.checkpoint.parquet"))
        return
    monkeypatch.setattr("maintainer.delta.rewrite.rewrite_job.is_kernels", lambda *_: False)
    rewritten(engine, deltas_own)
    assert checkpoint_of(path, 10) == checkpoint_of(deltas_own, 10)
    for version in range(10):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    forget_logs(spark)
    assert second_engine_rows(path) == rows
    assert spark.read.format("delta").load(str(path)).count() == len(rows)
