"""Vacuum through the command line on real tables: clones, streams, the trash, and Delta's own VACUUM beside it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.checker.truth_records import flat
from tests.support.product import DeltaEngine, SessionLease, TableRef, VacuumQuestion, run
from tests.support.tables.aged_tables import AgedTable, tree
from tests.support.tables.delta_tables import DAY_MS, age, files_on_disk, forget_logs, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]

BACK = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    return tmp_path


def write_policy(
    project: Path, name: str, extra: str = "vacuum: {retention: 7d, allowLargeDelete: rewritten}\n"
) -> Path:
    (project / "policies" / f"{name}.yaml").write_text(f"version: 1\ntable: lake/{name}\n{extra}", encoding="utf-8")
    return project / "lake" / name


def compacted(spark: SparkSession, path: Path) -> set[str]:
    """Three files compacted into one by OPTIMIZE; returns the names of the three."""
    spark.range(30).repartition(3).write.format("delta").save(str(path))
    old = files_on_disk(path)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    return old


def aged(spark: SparkSession, *paths: Path, days: int = 10) -> None:
    for path in paths:
        age(path, days)
    forget_logs(spark)


def command(project: Path, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["--project", str(project), *args])
    return code, capsys.readouterr().out


def settings(spark: SparkSession) -> dict[str, str]:
    return dict(spark.conf.getAll)


def test_a_real_clone_keeps_its_files_and_reads_them(
    spark: SparkSession, lease: SessionLease, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, clone = write_policy(project, "source"), write_policy(project, "clone")
    spark.range(30).repartition(3).write.format("delta").save(str(source))
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    needed = files_on_disk(source)
    spark.sql(f"OPTIMIZE delta.`{source}`")
    aged(spark, source, clone)
    rows = spark_rows(spark, clone)
    before, conf = tree(project / "lake"), settings(lease.spark)
    code, out = command(project, capsys, "plan", "-o", "json")
    plans = {table["ref"]["identifier"]: table for table in json.loads(out)["tables"]}
    reasons = [
        entry["reason"] for entry in plans["lake/source"]["left_alone"] if entry["reason"]["code"] == "kept_for_clone"
    ]
    assert (code, plans["lake/source"]["steps"]) == (0, [])
    assert reasons[0]["text"].startswith("3 files (")
    assert reasons[0]["text"].endswith("that lake/clone refers to, as a shallow clone does")
    assert command(project, capsys, "apply", "--yes", "-s", "lake/source", "-o", "json")[0] == 0
    assert tree(project / "lake") == before
    assert needed <= files_on_disk(source)
    assert spark_rows(spark, clone) == rows
    assert settings(lease.spark) == conf


@pytest.mark.long
def test_a_real_stream_goes_on_after_a_vacuum(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, sink = project / "chk", project / "sink"
    policy = f"vacuum: {{retention: 7d, allowLargeDelete: true}}\nconsumers: [{{name: s, checkpoint: {checkpoint}}}]\n"
    table = write_policy(project, "t", policy)

    def stream() -> None:
        query = (
            spark.readStream.format("delta").load(str(table)).writeStream.format("delta")
            .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(str(sink))
        )  # fmt: skip
        assert query.awaitTermination(60)

    spark.range(10).repartition(2).write.format("delta").save(str(table))
    first = files_on_disk(table)
    stream()
    spark.range(10, 20).repartition(2).write.format("delta").mode("append").save(str(table))
    behind = files_on_disk(table) - first
    spark.sql(f"OPTIMIZE delta.`{table}`")
    aged(spark, table)
    code, out = command(project, capsys, "plan", "-o", "json")
    assert (code, [table["steps"] for table in json.loads(out)["tables"]]) == (0, [[]])
    stream()
    assert sorted(row.id for row in spark.read.format("delta").load(str(sink)).collect()) == list(range(20))
    # The stream has read everything: now the files may go, and it still goes on.
    code, out = command(project, capsys, "apply", "--yes", "-o", "json")
    assert code == 0, out
    assert not (first | behind) & files_on_disk(table)
    spark.range(20, 25).write.format("delta").mode("append").save(str(table))
    stream()
    assert sorted(row.id for row in spark.read.format("delta").load(str(sink)).collect()) == list(range(25))


def test_the_trash_and_back(spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_policy(project, "t", "vacuum: {retention: 7d, trash: 7d, allowLargeDelete: rewritten}\n")
    old = compacted(spark, table)
    rows = spark_rows(spark, table)
    aged(spark, table)
    before = tree(table)
    code, out = command(project, capsys, "apply", "--yes", "-o", "json")
    assert code == 0, out
    run_id = json.loads(out)["run_id"]
    after = tree(table)
    assert before.keys() - after.keys() == old
    assert spark_rows(spark, table) == rows
    (trash,) = (project / "lake" / ".maintainer-trash").iterdir()
    assert {file.name for file in (trash / run_id / "files").iterdir()} == old
    # Nothing is overwritten: a file in the place of one that comes back stays, and the other stays in the trash.
    taken = sorted(old)[0]
    (table / taken).write_bytes(b"somebody else's")
    code, out = command(project, capsys, "undelete", "--yes", "lake/t", "--run", run_id)
    assert code == 1
    assert "2 files (" in out
    assert f"{taken} (there is a file in its place)" in out
    (table / taken).unlink()
    code, out = command(project, capsys, "undelete", "--yes", "lake/t", "--run", run_id)
    assert code == 0, out
    restored = tree(table)
    assert {path: restored[path] for path in before} == before
    assert not list((project / "lake" / ".maintainer-trash").rglob("*.parquet"))
    assert command(project, capsys, "undelete", "--yes", "lake/t", "--run", run_id)[0] == 1
    spark.conf.set(BACK, "false")
    try:
        assert spark_rows(spark, table, 0) == rows
    finally:
        spark.conf.unset(BACK)


def test_a_later_run_empties_the_trash(spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_policy(project, "t", "vacuum: {retention: 7d, trash: 1s, allowLargeDelete: rewritten}\n")
    old = compacted(spark, table)
    aged(spark, table)
    assert command(project, capsys, "apply", "--yes", "-o", "json")[0] == 0
    (manifest,) = (project / "lake" / ".maintainer-trash").rglob("manifest.json")
    document: dict[str, Any] = json.loads(manifest.read_text())
    document["keep_until_ms"] -= 1000
    manifest.write_text(json.dumps(document))
    version = deltalake.DeltaTable(str(table)).version()
    code, out = command(project, capsys, "apply", "--yes", "-o", "json")
    assert (code, json.loads(out)["counts"]["done"]) == (0, 1)
    assert list((project / "lake" / ".maintainer-trash").rglob("*.parquet")) == []
    assert deltalake.DeltaTable(str(table)).version() == version
    # Nothing was committed, and no record claims a version.
    run_id = json.loads(out)["run_id"]
    lines = (project / ".maintainer" / "runs" / run_id / "events.jsonl").read_text(encoding="utf-8").splitlines()
    (result,) = [flat(event) for event in map(json.loads, lines) if event["type"] == "result"]
    assert (result["fate"], result["version"], result["num_files_emptied"]) == ("no_commit", None, len(old))
    for ledger in ((), ("--ledger",)):
        code, out = command(project, capsys, "history", "lake/t", "-o", "json", *ledger)
        (row,) = [row for row in json.loads(out)["history"] if row["run_id"] == run_id]
        assert (row["step"], row["status"], row["version_after"]) == ("vacuum", "succeeded", None)
    code, out = command(project, capsys, "show", run_id)
    assert "emptied from the trash" in out


@pytest.mark.long
@pytest.mark.contradicts(
    "promised_versions_are_whole", reason="after our vacuum Delta's own deletes files that old versions need"
)
def test_deltas_own_lite_vacuum_works_after_ours(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_policy(project, "t")
    old = compacted(spark, table)
    aged(spark, table)
    assert command(project, capsys, "apply", "--yes", "-o", "json")[0] == 0
    assert not old & files_on_disk(table)
    again = files_on_disk(table)
    spark.range(5).write.format("delta").mode("overwrite").save(str(table))
    aged(spark, table)
    spark.sql(f"VACUUM delta.`{table}` LITE")
    assert not again & files_on_disk(table)
    assert Counter(deltalake.DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist()) == Counter(range(5))


def test_deciding_that_nothing_is_to_be_deleted_costs_no_spark_job(
    spark: SparkSession, lease: SessionLease, lake: Path
) -> None:
    table = AgedTable(lake / "t")
    table.append(60, "a.parquet", "b.parquet")
    table.rewrite(30, "ab.parquet", "a.parquet", "b.parquet")
    for name in ("a", "b"):
        (table.path / f"{name}.parquet").unlink()
    with DeltaEngine(lease).worker("quiet") as worker:
        facts = worker.reader.facts(TableRef(str(table.path)))
        tracker = spark.sparkContext.statusTracker()
        before = set(tracker.getJobIdsForGroup("quiet"))
        moment = table.made_at_ms
        history = worker.reader.vacuum_history(facts, (), removed_before_ms=moment - 7 * DAY_MS)
        facts = replace(facts, history=history)
        looked = worker.reader.vacuum_look(facts, VacuumQuestion(moment - 7 * DAY_MS, moment))
        assert set(tracker.getJobIdsForGroup("quiet")) == before
    assert (history.longest_write_ms, looked.removed_files) == (None, ())
