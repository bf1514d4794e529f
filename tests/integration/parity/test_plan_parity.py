"""Our plan against Delta's own OPTIMIZE on a copy of the same table: files removed, files added, bins, commits.

Many random cases for the price of one command: each partition of a table is a case of its own. The files of a
partition have 1, 2, 4, 8, ... rows, so the row count of a file that OPTIMIZE added says exactly which files it
was made of. Tables are written by another engine, one file a partition and commit.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.product import (
    KNOWN_PROPERTIES,
    CompactStep,
    DeltaEngine,
    DeltaTableEngine,
    Lane,
    OptimizePolicy,
    PropertyKind,
    ReasonCode,
    SessionLease,
    TableFacts,
    TableInput,
    TablePlan,
    TableRef,
    ZOrderMode,
    ZOrderPolicy,
    ZOrderStep,
    plan_table,
    worker_session,
)
from tests.support.runs.app_runs import commit_info
from tests.support.tables.builders import NEVER_TOUCHED, make_optimize, make_policy
from tests.support.tables.delta_tables import no_intent, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(2), pytest.mark.nightly]

OPTIMIZE = "spark.databricks.delta.optimize."
MAX_BYTES = 40_000
NOW_MS = 4_000_000_000_000
NUM_PARTITIONS = 16
BY_SPARK = (Lane.SPARK,)
"""Figures are compared with those of OPTIMIZE: another writer makes files of other sizes of the same rows."""


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("parity") as worker:
        yield worker


def make_table(path: Path, seed: int, *, num_partitions: int = NUM_PARTITIONS) -> Path:
    """A table of random files: one to seven a partition, from 1 KB to a little above the bin size."""
    chance = random.Random(seed)
    counts = [chance.randint(1, 7) for _ in range(num_partitions)]
    for number in range(max(counts)):
        rows: list[dict[str, object]] = []
        for partition, count in enumerate(counts):
            if number >= count:
                continue
            payload = chance.choice(
                [chance.randint(0, 44_000), chance.randint(0, 9_000), chance.randint(14_500, 15_500)]
            )
            texts = [chance.randbytes(payload // 2**number // 2).hex() for _ in range(2**number)]
            rows += [{"p": partition, "id": chance.getrandbits(40), "payload": text} for text in texts]
        data = pa.Table.from_pylist(rows, schema=pa.schema({"p": pa.int32(), "id": pa.int64(), "payload": pa.string()}))
        write_deltalake(str(path), data, mode="append", partition_by=["p"])
    return path


@dataclass(frozen=True)
class Commit:
    """What one commit removed (paths) and added (partition and rows), and whether it says it changed data."""

    removed: frozenset[str]
    added: tuple[tuple[str | None, int], ...]
    data_change: frozenset[bool]


def commits_after(path: Path, version: int) -> list[Commit]:
    commits = []
    for log in sorted((path / "_delta_log").glob("*.json")):
        if int(log.stem) <= version:
            continue
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        adds = [action["add"] for action in actions if "add" in action]
        removes = [action["remove"] for action in actions if "remove" in action]
        added = sorted((add["partitionValues"].get("p"), json.loads(add["stats"])["numRecords"]) for add in adds)
        commits.append(
            Commit(
                frozenset(remove["path"] for remove in removes),
                tuple(added),
                frozenset(action["dataChange"] for action in adds + removes),
            )
        )
    return commits


def optimize(lease: SessionLease, path: Path, policy: OptimizePolicy, *, zorder: str = "", batches: bool = True) -> int:
    """Run Delta's OPTIMIZE in a session of its own; return its ``numBins``."""
    session = worker_session(lease)
    session.conf.set(OPTIMIZE + "minFileSize", str(policy.min_file_size_bytes))
    session.conf.set(OPTIMIZE + "maxFileSize", str(policy.max_file_size_bytes))
    session.conf.set(OPTIMIZE + "maxDeletedRowsRatio", str(policy.max_deleted_rows_ratio))
    if batches:
        session.conf.set(OPTIMIZE + "batchSize", str(policy.batch_size_bytes))
    (row,) = session.sql(f"OPTIMIZE delta.`{path}` {zorder}").collect()
    return int(row["metrics"]["numBins"])


def plan(engine: DeltaTableEngine, path: Path, policy: OptimizePolicy) -> tuple[TableFacts, TablePlan]:
    facts = engine.reader.facts(TableRef(str(path)))
    planned = plan_table(
        TableInput(make_policy(optimize=policy, name=str(path)), facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21))
    )
    assert planned.problem is None
    return facts, planned


def rewrite_of(planned: TablePlan) -> CompactStep | ZOrderStep:
    (step,) = planned.steps
    assert isinstance(step, (CompactStep, ZOrderStep))
    return step


def predicted_commits(step: CompactStep | ZOrderStep) -> list[Commit]:
    return [
        Commit(
            frozenset(file.path for file in batch.files),
            tuple(sorted((bin_.partition_values[0][1], bin_.live_records or 0) for bin_ in batch.bins)),
            frozenset({False}),
        )
        for batch in step.batches
    ]


@pytest.mark.parametrize(
    ("seed", "min_size", "batch_size"),
    [
        pytest.param(11, MAX_BYTES * 3 // 4, 150_000, marks=pytest.mark.long),
        (22, MAX_BYTES, 1 << 40),
        pytest.param(33, MAX_BYTES, 100_000, marks=pytest.mark.long),
        (44, 8_000, 1),
    ],
)
def test_compaction_plans_exactly_what_optimize_does(
    lease: SessionLease, engine: DeltaTableEngine, lake: Path, seed: int, min_size: int, batch_size: int
) -> None:
    table = make_table(lake / "table", seed)
    policy = make_optimize(min_size=min_size, max_size=MAX_BYTES, batch_size=batch_size, lanes=BY_SPARK)
    facts, planned = plan(engine, table, policy)
    step = rewrite_of(planned)
    copy = Path(shutil.copytree(table, table.with_name("copy")))
    sizes = [bin_.size_bytes for batch in step.batches for bin_ in batch.bins]
    assert len(set(sizes)) == len(sizes), "of equal bins Delta takes any first: choose another seed"
    num_bins = optimize(lease, copy, policy)
    assert num_bins == sum(len(batch.bins) for batch in step.batches)
    assert commits_after(copy, facts.version) == predicted_commits(step)
    left = sum(entry.num_files for entry in planned.left_alone)
    assert left == len(facts.files) - sum(len(batch.files) for batch in step.batches)
    check_engine(engine, facts, step, table, copy)


def check_engine(
    engine: DeltaTableEngine, facts: TableFacts, step: CompactStep | ZOrderStep, ours: Path, theirs: Path
) -> None:
    """Carry the step out, and compare every commit with that of OPTIMIZE on the copy: files and figures."""
    for number, batch in enumerate(step.batches):
        engine.writer.rewrite(facts, step, batch, stamp(batch=number), no_intent)
    assert commits_after(ours, facts.version) == commits_after(theirs, facts.version)
    for version in range(facts.version + 1, facts.version + 1 + len(step.batches)):
        left, right = commit_info(ours, version), commit_info(theirs, version)
        for key in ("operation", "operationParameters", "operationMetrics"):
            assert left[key] == right[key], (version, key)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 108))
def test_plan_engine_and_optimize_agree_on_random_tables(
    lease: SessionLease, engine: DeltaTableEngine, lake: Path, seed: int
) -> None:
    """Also how many partitions there are, what counts as small and how much a commit takes is up to chance."""
    chance = random.Random(seed)
    table = make_table(lake / "table", seed, num_partitions=chance.randint(1, 24))
    min_size, batch_size = chance.randint(1_000, MAX_BYTES), chance.choice([1, 60_000, 200_000, 1 << 40])
    policy = make_optimize(min_size=min_size, max_size=MAX_BYTES, batch_size=batch_size, lanes=BY_SPARK)
    facts, planned = plan(engine, table, policy)
    copy = Path(shutil.copytree(table, table.with_name("copy")))
    num_bins = optimize(lease, copy, policy)
    if not planned.steps:
        assert (num_bins, commits_after(copy, facts.version)) == (0, [])
        return
    step = rewrite_of(planned)
    assert num_bins == sum(len(batch.bins) for batch in step.batches)
    assert commits_after(copy, facts.version) == predicted_commits(step)
    check_engine(engine, facts, step, table, copy)


def test_zorder_takes_the_partitions_that_optimize_takes(
    lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    """On purpose we leave a lone file that would be a lone file again; the rest is the same."""
    table = make_table(lake / "table", 4, num_partitions=6)
    policy = make_optimize(max_size=MAX_BYTES, zorder=ZOrderPolicy(("id",), ZOrderMode.FULL))
    facts, planned = plan(engine, table, policy)
    step = rewrite_of(planned)
    assert {entry.reason.code for entry in planned.left_alone} <= {ReasonCode.NO_PARTNER}
    lone = sum(entry.num_files for entry in planned.left_alone)
    copy = Path(shutil.copytree(table, table.with_name("copy")))
    assert optimize(lease, copy, policy, zorder="ZORDER BY (id)", batches=False) == 6
    (commit,) = commits_after(copy, facts.version)
    taken = frozenset(file.path for batch in step.batches for file in batch.files)
    assert taken <= commit.removed
    assert len(commit.removed) == len(taken) + lone
    rows_added: Counter[str | None] = Counter()
    for partition, rows in commit.added:
        rows_added[partition] += rows
    for bin_ in (bin_ for batch in step.batches for bin_ in batch.bins):
        assert rows_added[bin_.partition_values[0][1]] == bin_.live_records
    # A partition with few rows may fill fewer ranges than asked for, never more.
    assert len(commit.added) <= step.num_files_added + lone


@pytest.mark.parametrize("zorder", [None, ZOrderPolicy(("id",), ZOrderMode.FULL)])
def test_after_our_rewrite_there_is_nothing_left_to_plan(
    engine: DeltaTableEngine, lake: Path, zorder: ZOrderPolicy | None
) -> None:
    path = make_table(lake / "own", 5, num_partitions=6)
    policy = make_optimize(min_size=MAX_BYTES * 3 // 4, max_size=MAX_BYTES, batch_size=300_000, zorder=zorder)
    facts, planned = plan(engine, path, policy)
    step = rewrite_of(planned)
    for number, batch in enumerate(step.batches):
        engine.writer.rewrite(facts, step, batch, stamp(batch=number), no_intent)
    if zorder is None:
        assert commits_after(path, facts.version) == predicted_commits(step)
    after, second = plan(engine, path, policy)
    assert second.state == "up_to_date"
    assert after.version == facts.version + len(step.batches)
    assert sum(entry.num_files for entry in second.left_alone) == len(after.files)
    written = [file for file in after.files if file.key not in facts.file_keys]
    assert {file.tags for file in written} == {tuple(sorted(step.file_tags))}


def test_deletion_vectors_are_selected_as_optimize_selects_them(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    """Ten files of 1000 rows: 6 % deleted in two, 1 % in a third, and one tiny file."""
    path = lake / "deleted"
    spark.range(0, 10_000, 1, 10).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 60 OR (id >= 1000 AND id < 1060) OR (id >= 2000 AND id < 2010)")
    spark.range(1).coalesce(1).write.format("delta").mode("append").save(str(path))
    tiny = min(file.size_bytes for file in engine.reader.facts(TableRef(str(path))).files)
    policy = make_optimize(min_size=tiny + 10, max_size=1 << 30)
    facts, planned = plan(engine, path, policy)
    copy = Path(shutil.copytree(path, lake / "copy"))
    optimize(lease, copy, policy)
    step = rewrite_of(planned)
    (commit,) = commits_after(copy, facts.version)
    assert commit.removed == {file.path for batch in step.batches for file in batch.files}
    assert commit.added == ((None, 940 + 940 + 1),)
    assert [bin_.live_records for batch in step.batches for bin_ in batch.bins] == [1881]


def test_a_lone_file_with_deleted_rows_is_planned_where_optimize_leaves_it(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "lone"
    spark.range(0, 100, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 50")
    policy = make_optimize(min_size=1, max_size=1 << 30)
    facts, planned = plan(engine, path, policy)
    copy = Path(shutil.copytree(path, lake / "copy"))
    assert optimize(lease, copy, policy) == 0
    assert commits_after(copy, facts.version) == []
    assert [file.key for file in rewrite_of(planned).batches[0].files] == [file.key for file in facts.files]


def test_an_append_only_table_may_be_rewritten(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "append_only"
    spark.range(0, 100, 1, 4).write.format("delta").option("delta.appendOnly", "true").save(str(path))
    policy = make_optimize(min_size=1 << 20, max_size=1 << 20)
    facts, planned = plan(engine, path, policy)
    copy = Path(shutil.copytree(path, lake / "copy"))
    optimize(lease, copy, policy)
    step = rewrite_of(planned)
    (commit,) = commits_after(copy, facts.version)
    assert commit.removed == {file.path for file in facts.files} == {file.path for file in step.batches[0].files}
    engine.writer.rewrite(facts, step, step.batches[0], stamp(), no_intent)
    assert len(engine.reader.facts(TableRef(str(path))).files) == 1


def test_the_list_of_table_properties_is_that_of_this_delta(spark: SparkSession) -> None:
    module = getattr(spark._jvm.org.apache.spark.sql.delta, "DeltaConfigs$")  # type: ignore[union-attr]  # py4j
    known = module.__getattr__("MODULE$").getAllConfigs()
    names = {str(known.values().toSeq().apply(i).key()) for i in range(known.size())}
    ours = {name for name in KNOWN_PROPERTIES if name not in ("delta.lastUpdateVersion", "delta.lastCommitTimestamp")}
    assert names - ours == set()
    if metadata.version("delta-spark") == "4.4.0":  # earlier ones lack some
        assert ours - names == set()
    assert KNOWN_PROPERTIES["delta.autoOptimize.autoCompact"] is PropertyKind.BOOLEAN
