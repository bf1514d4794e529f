"""Compaction beside OPTIMIZE: the behaviours A of Delta's own suites, through policies and one apply.

A test is named after its behaviour. Where we differ on purpose its docstring begins with "On purpose", and
docs/differences-from-optimize.md lists it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.product import DeltaEngine, PolicyProblems, ReasonCode, RewriteJob, SessionLease, bin_writer
from tests.support.runs.app_runs import applied, commit_info, newest_version, planned
from tests.support.tables.delta_tables import spark_rows
from tests.support.tables.parity_lake import Applied, Case, live_files, run_cases, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

HISTORY_KEYS = {
    "numAddedFiles",
    "numRemovedFiles",
    "numAddedBytes",
    "numRemovedBytes",
    "minFileSize",
    "p25FileSize",
    "p50FileSize",
    "p75FileSize",
    "maxFileSize",
    "numDeletionVectorsRemoved",
}


def ids(*values: int) -> list[dict[str, Any]]:
    return [{"id": value} for value in values]


def five_by_two(path: Path) -> None:
    """Five partitions of two files each."""
    rows = [{"part": part, "id": part} for part in range(5)]
    table_of(rows, rows, by=["part"])(path)


def three_kinds_of_partitions(path: Path) -> None:
    """Partitions 1, 3, 5 with one file of 200 rows, 2, 4, 6 with five of 10 rows."""
    large = [{"p": p, "id": i} for p in (1, 3, 5) for i in range(200)]
    small = [{"p": p, "id": i} for p in (2, 4, 6) for i in range(10)]
    table_of(large + small, *[small] * 4, by=["p"])(path)


def one_of_three(compactable: int) -> Case:
    """Three partitions of which only one has something to compact."""
    rows = [{"p": p, "id": p} for p in range(3)]
    return Case(table_of(rows, [rows[compactable]], by=["p"]))


def by_sizes(path: Path) -> None:
    """Four files, of which the three small ones are smaller together than the next power of the fourth."""
    import random

    chance = random.Random(1)
    for payload in (2_000, 3_000, 9_000, 60_000):
        table_of([{"id": payload, "text": chance.randbytes(payload // 2).hex()}])(path)


TEXT = pa.schema({"k": pa.string(), "v": pa.int64()})
DAYS = [{"date": day, "part": part, "id": part} for day in ("2017-10-10", "2017-10-11") for part in (3, 4)]
NULLS: list[dict[str, Any]] = [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": None, "v": 3}, {"k": None, "v": 4}]
WIDE = [{f"c{number}": number for number in range(5)}]
KEYS = [{"key": "a", "v": 1}]

CASES = {
    "a1": Case(table_of(ids(1, 2, 3), ids(4, 5, 6))),
    "a1_name": Case(table_of(ids(1, 2, 3), ids(4, 5, 6)), name="parity_a1"),
    "a3": Case(table_of(KEYS, KEYS, [{"key": "b", "v": 1}])),
    "a3_where": Case(table_of(KEYS, KEYS), "optimize: {where: \"key = 'a'\"}\n"),
    "a4": Case(table_of(KEYS, [*KEYS, {"key": "b", "v": 1}], by=["key"]), "optimize: {where: \"key = 'a'\"}\n"),
    "a5": Case(table_of(*[[{"id": 0, "v": 1}, {"id": 1, "v": 1}]] * 2, by=["id"])),
    "a6": Case(table_of(*[[{"id": 0, "v": 1}, {"id": 1, "v": 1}]] * 2, by=["id"]), 'optimize: {where: "id = 0"}\n'),
    "a7": Case(three_kinds_of_partitions),
    "a7_first": one_of_three(0),
    "a7_middle": one_of_three(1),
    "a7_last": one_of_three(2),
    "a8": Case(table_of(*[NULLS] * 5, by=["k"], schema=TEXT)),
    "a9": Case(table_of(DAYS, DAYS, by=["date", "part"]), "optimize: {where: \"date = '2017-10-10' AND part = 3\"}\n"),
    "a10": Case(table_of(*[[{"p": "a space", "v": 1}, {"p": "b", "v": 2}]] * 2, by=["p"])),
    "a11_one_byte": Case(five_by_two, "optimize: {batchSize: 1}\n"),
    "a11_gib": Case(five_by_two, "optimize: {batchSize: 1GiB}\n"),
    "a11_where_one_byte": Case(five_by_two, 'optimize: {batchSize: 1, where: "part <= 1"}\n'),
    "a11_where_gib": Case(five_by_two, 'optimize: {batchSize: 1GiB, where: "part <= 1"}\n'),
    "a12": Case(
        table_of([], by=["k"], schema=TEXT),
        "optimize: {batchSize: 1}\n",
    ),
    "a19": Case(table_of(WIDE, WIDE, properties={"delta.dataSkippingNumIndexedCols": "3"})),
    "a24": Case(table_of(ids(1), ids(2), ids(3), ids(4)), "optimize: {minFileSize: 10, maxFileSize: 1GiB}\n"),
}


@pytest.fixture(scope="module")
def lake(lease: SessionLease, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    root = tmp_path_factory.mktemp("parity_a")
    path = root / "lake" / "a1_name"
    lease.spark.sql(f"CREATE TABLE IF NOT EXISTS parity_a1 (id BIGINT) USING delta LOCATION '{path}'")
    return run_cases(DeltaEngine(lease), root, CASES)


def test_a1_two_appends_become_one_file_by_path_and_by_name(lake: Applied) -> None:
    for case in ("a1", "a1_name"):
        assert newest_version(lake.path(case)) == lake.before[case].version + 1
        assert lake.files(case) == {(): 1}
        lake.check_only_layout_changed(case)
    left = [
        thread.name for thread in threading.enumerate() if thread.name.startswith(("OptimizeJob", "maintainer-bin"))
    ]
    assert left == []


def test_a2_again_there_is_nothing_to_do(lake: Applied) -> None:
    """On purpose: no row of zeros comes back; the plan says that there is nothing to do, and why."""
    lake.check_nothing_is_left("a1")
    (left,) = lake.planned("a1", lake.second).left_alone
    assert (left.num_files, left.reason.code) == (1, ReasonCode.AT_TARGET)


def test_a3_a_predicate_is_for_partition_columns_only(lake: Applied) -> None:
    metrics = lake.metrics("a3")
    assert (metrics.num_files_added, metrics.num_files_removed) == (1, 3)
    assert lake.commits("a3")[0]["operationParameters"]["predicate"] == "[]"
    problem = lake.planned("a3_where").problem
    assert problem is not None
    assert (problem.code, "`key` is not a partition column" in problem.what) == ("T410", True)
    assert newest_version(lake.path("a3_where")) == lake.before["a3_where"].version


def test_a4_where_takes_one_partition(lake: Applied) -> None:
    """On purpose: the history's predicate is empty, because we hand over the planned files and no predicate."""
    metrics = lake.metrics("a4")
    assert (metrics.num_files_added, metrics.num_files_removed) == (1, 2)
    assert lake.files("a4") == {("a",): 1, ("b",): 1}
    assert lake.commits("a4")[0]["operationParameters"]["predicate"] == "[]"
    lake.check_only_layout_changed("a4")


def test_a5_one_file_a_partition_in_one_commit(lake: Applied) -> None:
    assert lake.files("a5") == {("0",): 1, ("1",): 1}
    assert len(lake.commits("a5")) == 1
    lake.check_only_layout_changed("a5")


def test_a6_partitions_outside_where_keep_their_files(lake: Applied) -> None:
    assert lake.files("a6") == {("0",): 1, ("1",): 2}


def test_a7_no_partition_is_skipped_or_stops_the_rest(lake: Applied) -> None:
    metrics = lake.metrics("a7")
    assert (metrics.num_files_removed, metrics.num_files_added, metrics.partitions_optimized) == (15, 3, 3)
    assert set(lake.files("a7").values()) == {1}
    assert len(lake.commits("a7")) == 1
    for case in ("a7_first", "a7_middle", "a7_last"):
        assert lake.files(case) == {("0",): 1, ("1",): 1, ("2",): 1}
        lake.check_only_layout_changed(case)


def test_a8_null_is_a_partition(lake: Applied) -> None:
    assert lake.files("a8") == {("a",): 1, ("b",): 1, (None,): 1}
    rows = {file["partitionValues"]["k"]: file["stats"] for file in live_files(lake.path("a8"))}
    assert ['"numRecords":10' in rows[None], '"numRecords":5' in rows["a"]] == [True, True]
    lake.check_only_layout_changed("a8")


def test_a9_two_partition_columns(lake: Applied) -> None:
    counts = lake.files("a9")
    assert counts.pop(("2017-10-10", "3")) == 1
    assert set(counts.values()) == {2}


def test_a10_a_partition_value_with_a_space(lake: Applied) -> None:
    assert lake.files("a10") == {("a space",): 1, ("b",): 1}
    lake.check_only_layout_changed("a10")


@pytest.mark.parametrize(
    ("case", "commits", "left"),
    [("one_byte", 5, 5), ("gib", 1, 5), ("where_one_byte", 2, 8), ("where_gib", 1, 8)],
)
def test_a11_one_commit_a_batch(lake: Applied, case: str, commits: int, left: int) -> None:
    infos = lake.commits(f"a11_{case}")
    assert [info["operation"] for info in infos] == ["OPTIMIZE"] * commits
    assert lake.metrics(f"a11_{case}").num_batches == commits
    assert sum(lake.files(f"a11_{case}").values()) == left
    lake.check_only_layout_changed(f"a11_{case}")


def test_a12_an_empty_table_has_no_commit(lake: Applied) -> None:
    assert (lake.planned("a12").state, lake.commits("a12")) == ("up_to_date", [])


def test_a13_bins_run_at_the_same_time(lease: SessionLease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"p": p, "id": p} for p in range(2)]
    table_of(rows, rows, by=["p"])(tmp_path / "t")
    both = threading.Barrier(2, timeout=60)
    write = bin_writer._write_bin

    def together(job: RewriteJob, *arguments: Any) -> Any:
        both.wait()
        return write(job, *arguments)

    monkeypatch.setattr(bin_writer, "_write_bin", together)
    outcome = applied(DeltaEngine(lease), tmp_path, f"table: {tmp_path / 't'}\noptimize: {{maxThreads: 2}}\n")
    assert outcome.step.status.value == "succeeded"
    assert len(live_files(tmp_path / "t")) == 2


def test_a14_two_spellings_of_one_instant_stay_apart(spark: SparkSession, lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (v INT, at TIMESTAMP) USING delta PARTITIONED BY (at)")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for normalized in ("true", "false"):
        session.conf.set("spark.databricks.delta.write.utcTimestampPartitionValues", normalized)
        for _ in range(2):
            session.sql(f"INSERT INTO delta.`{path}` VALUES (1, TIMESTAMP'2000-01-01 12:00:00')")
    spellings = {file["partitionValues"]["at"] for file in live_files(path)}
    assert spellings == {"2000-01-01T12:00:00.000000Z", "2000-01-01 12:00:00"}
    outcome = applied(DeltaEngine(lease), tmp_path, f"table: {path}\n")
    assert outcome.step.metrics is not None
    assert (outcome.step.metrics.num_files_removed, outcome.step.metrics.num_files_added) == (4, 2)
    assert {file["partitionValues"]["at"] for file in live_files(path)} == spellings


@pytest.mark.parametrize("where", ["", "p IN (SELECT 1)", "p = (SELECT max(p) FROM t)"])
def test_a15_a16_a_predicate_that_is_none_or_asks_another_table(
    lease: SessionLease, tmp_path: Path, where: str
) -> None:
    with pytest.raises(PolicyProblems) as error:
        planned(DeltaEngine(lease), tmp_path, f'table: a.b\noptimize: {{where: "{where}"}}\n')
    assert any(finding.is_error for finding in error.value.loaded.diagnostics)


def test_a17_a_table_managed_by_its_catalog_is_named_and_not_touched(lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table_of(ids(1), ids(2))(path)
    log = path / "_delta_log" / f"{newest_version(path) + 1:020d}.json"
    features = '["catalogManaged","vacuumProtocolCheck","inCommitTimestamp"]'
    log.write_text(
        '{"commitInfo":{"inCommitTimestamp":1,"timestamp":1,"operation":"UPGRADE PROTOCOL"}}\n'
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
        f'"readerFeatures":["catalogManaged","vacuumProtocolCheck"],"writerFeatures":{features}}}}}\n'
    )
    _, plan = planned(DeltaEngine(lease), tmp_path, f"table: {path}\n")
    (table,) = plan.tables
    assert table.problem is not None
    assert table.problem.code == "T407", table.problem
    assert table.steps == ()


@pytest.mark.parametrize("mode", ["id", "name"])
def test_a18_column_mapping(spark: SparkSession, lease: SessionLease, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (v INT, k STRING, day DATE) USING delta PARTITIONED BY (day, k) "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
    )
    values = ", ".join(f"({v}, {k}, DATE'{day}')" for day in ("2017-10-10", "2017-10-11") for v, k in
                       ((1, "'a'"), (3, "null"), (4, "''")))  # fmt: skip
    for _ in range(2):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES {values}")
    rows, files = spark_rows(spark, path), len(live_files(path))
    outcome = applied(DeltaEngine(lease), tmp_path, f"table: {path}\noptimize: {{where: \"day = '2017-10-10'\"}}\n")
    assert outcome.step.metrics is not None
    # Spark writes an empty text as null: that day has the partitions a and null.
    assert (outcome.step.metrics.partitions_optimized, outcome.step.metrics.num_files_added) == (2, 2)
    assert len(live_files(path)) == files - outcome.step.metrics.num_files_removed + 2
    assert spark_rows(spark, path) == rows


def test_a19_columns_with_statistics_are_counted(lake: Applied) -> None:
    metrics = lake.metrics("a19")
    assert (metrics.num_table_columns, metrics.num_table_columns_with_stats) == (5, 3)


def test_a20_figures_of_a_whole_table(lake: Applied) -> None:
    metrics, before = lake.metrics("a5"), [file["size"] for file in lake.before["a5"].files]
    after = [file["size"] for file in live_files(lake.path("a5"))]
    added, removed = metrics.files_added, metrics.files_removed
    assert (added.min, added.max, added.total_size) == (min(after), max(after), sum(after))
    assert (removed.min, removed.max, removed.total_size) == (min(before), max(before), sum(before))
    assert (metrics.total_considered_files, metrics.total_files_skipped) == (len(before), 0)


def test_a21_the_history_has_the_keys_of_optimize(lake: Applied) -> None:
    (info,) = lake.commits("a5")
    assert (info["operation"], set(info["operationMetrics"])) == ("OPTIMIZE", HISTORY_KEYS)
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}


def test_a22_a_file_that_fits_beside_no_other_survives(lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    by_sizes(path)
    files = sorted(live_files(path), key=lambda add: int(add["size"]))
    small, largest = sum(int(file["size"]) for file in files[:3]), int(files[3]["size"])
    assert small < largest
    outcome = applied(DeltaEngine(lease), tmp_path, f"table: {path}\noptimize: {{maxFileSize: {largest + 1}, "
                    f"minFileSize: {largest + 1}}}\n")  # fmt: skip
    assert outcome.step.metrics is not None
    assert (outcome.step.metrics.num_files_removed, outcome.step.metrics.num_files_added) == (3, 1)
    assert files[3]["path"] in {file["path"] for file in live_files(path)}


def test_a23_a_lone_file_with_many_deleted_rows_is_rewritten(
    spark: SparkSession, lease: SessionLease, tmp_path: Path
) -> None:
    """On purpose: OPTIMIZE drops every bin of one file, so that such a file is never cleaned."""
    path = tmp_path / "t"
    spark.range(0, 100, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 50")
    outcome = applied(DeltaEngine(lease), tmp_path, f"table: {path}\n")
    assert outcome.step.metrics is not None
    assert (outcome.step.metrics.num_files_removed, outcome.step.metrics.num_files_added) == (1, 1)
    (left,) = live_files(path)
    assert left.get("deletionVector") is None
    assert commit_info(path, newest_version(path))["operationMetrics"]["numDeletionVectorsRemoved"] == "1"


def test_a24_no_file_is_small(lake: Applied) -> None:
    assert (lake.planned("a24").state, lake.commits("a24")) == ("up_to_date", [])
    assert len(lake.before["a24"].files) == 4
