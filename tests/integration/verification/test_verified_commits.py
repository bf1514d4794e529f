"""`verify` on real tables: commits of anybody, proven, wrong, and not to be checked any more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.policies.projects import write_project
from tests.support.product import (
    CheckResult,
    Checks,
    CommandEngine,
    CommitVerification,
    DeltaCommitProver,
    DeltaEngine,
    DeltaTableEngine,
    EnvironmentUnfit,
    GreatExpectationsVerifier,
    SessionLease,
    TableError,
    TableRef,
    Verdict,
    classic_sessions,
    run,
)
from tests.support.tables.delta_tables import compaction, forge_commit, forget_logs, no_intent, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]

PROVEN, WRONG, NOT_CHECKED = CheckResult.PROVEN, CheckResult.WRONG, CheckResult.NOT_CHECKED


def _build(spark: SparkSession, path: Path, **properties: str) -> None:
    listed = ", ".join(f"'delta.{key}' = '{value}'" for key, value in properties.items())
    given = f" TBLPROPERTIES ({listed})" if listed else ""
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, s STRING, p STRING) USING delta PARTITIONED BY (p){given}")
    frame = spark.range(20).selectExpr("cast(id AS INT) id", "concat('s', id) s", "if(id % 2 = 0, 'a', 'b c') p")
    frame.repartition(3).write.format("delta").mode("append").save(str(path))


def _verify(engine: DeltaTableEngine, path: Path, version: int | None = None, **how: Any) -> CommitVerification:
    forget_logs(engine.jvm.spark)
    prover = DeltaCommitProver(engine.jvm)
    facts = engine.reader.facts(TableRef(str(path)))
    return prover.prove(facts, prover.newest_maintenance(facts) if version is None else version, **how)


def _results(verification: CommitVerification) -> dict[str, CheckResult]:
    return {f"{check.level}: {check.name}": check.result for check in verification.checks}


def _adds(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [action["add"] for action in actions if "add" in action]


def _log(path: Path, version: int) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_commits_of_everybody_are_proven(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path, enableDeletionVectors="true")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")
    spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY (id)")
    with DeltaEngine(lease).worker("verify") as engine:
        optimized = _verify(engine, path)
        assert (optimized.version, optimized.operation, optimized.kind) == (3, "OPTIMIZE", "rewrite")
        assert (optimized.result, optimized.rows_removed, optimized.rows_added) == (PROVEN, 19, 19), optimized.checks
        assert {check.level for check in optimized.checks} == {"actions", "rows", "statistics", "inputs", "files"}
        assert _verify(engine, path, 3, exact=True).result is PROVEN
        # A change of data: only its files can be checked, and they are as many rows as the log says.
        deleted = _verify(engine, path, 2)
        assert (deleted.kind, deleted.result) == ("data_change", CheckResult.FILES_ONLY)
        assert set(_results(deleted)) == {
            "files: every file of version 2 is on storage",
            "files: every file of version 2 can be read",
        }
        spark.range(3).selectExpr("cast(id AS INT) id", "'x' s", "'a' p").write.format("delta").mode("append").save(
            str(path)
        )
        facts = engine.reader.facts(TableRef(str(path)))
        step, batch = compaction(facts, where=lambda file: file.partition_values[0][1] == "a")
        ours = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('some.property' = '1')")
        verification = _verify(engine, path)
        assert (verification.version, verification.run_id, verification.result) == (ours.version, "test", PROVEN), (
            verification.checks
        )
        with pytest.raises(TableError, match="no version 99"):
            _verify(engine, path, 99)


@pytest.mark.every_run
def test_without_a_version_a_repair_counts_as_maintenance(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    for key in ("some.property", "another.property"):
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{key}' = '1')")

    def repair(actions: list[dict[str, Any]]) -> None:
        next(action for action in actions if "commitInfo" in action)["commitInfo"]["operation"] = "FSCK REPAIR TABLE"

    forge_commit(path, 3, repair)
    with DeltaEngine(lease).worker("verify") as engine:
        newest = _verify(engine, path)
        assert (newest.version, newest.operation) == (3, "FSCK REPAIR TABLE")


def test_another_engine_s_compaction_is_proven(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)
    deltalake.DeltaTable(str(path)).optimize.compact()
    with DeltaEngine(lease).worker("verify") as engine:
        verification = _verify(engine, path)
        assert (verification.operation, verification.result, verification.rows_added) == ("OPTIMIZE", PROVEN, 20), (
            verification.checks
        )


def _change_a_row(path: Path, version: int = 2) -> None:
    """Change a row of a file that the version added, on storage; the log says its size."""
    add = max(_adds(_log(path, version)), key=lambda candidate: candidate["size"])
    file = path / add["path"].replace("%20", " ")
    table = pq.read_table(file, partitioning=None)
    names = table.column("s").to_pylist()
    pq.write_table(table.set_column(1, table.schema.field("s"), pa.array(["s0", *names[1:]])), file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def resize(actions: list[dict[str, Any]]) -> None:
        for action in _adds(actions):
            if action["path"] == add["path"]:
                action["size"] = file.stat().st_size

    forge_commit(path, version, resize)


@pytest.mark.every_run
@pytest.mark.parametrize("kind", ["transaction", "command"])
def test_rows_that_an_unproven_commit_changed_are_found_though_they_are_as_many(
    spark: SparkSession, lease: SessionLease, lake: Path, kind: str
) -> None:
    """A command's commit is proven after it: where its run ended before, another one proves it, by either engine."""
    path = lake / "t"
    _build(spark, path, enableDeletionVectors="true")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    shutil.copytree(path, lake / "changed")
    _change_a_row(lake / "changed", 3)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN later INT")
    chosen = DeltaEngine(lease) if kind == "transaction" else CommandEngine(classic_sessions(lease))
    verdicts = {}
    with chosen.worker("settle") as engine:
        for table in (path, lake / "changed"):
            facts = engine.reader.facts(TableRef(str(table)))
            verdicts[table.name] = GreatExpectationsVerifier().version_pair(engine.versions, facts, 3, Checks())
    assert (verdicts["t"].verdict, verdicts["t"].detail) == (Verdict.PASS, None)
    assert verdicts["changed"].verdict is Verdict.FAIL
    assert "hash sum" in str(verdicts["changed"].detail)
    assert {verdict.rows_after for verdict in verdicts.values()} == {19}


@pytest.mark.every_run
def test_a_wrong_commit_is_named(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    commit = path / "_delta_log" / f"{2:020d}.json"
    good = commit.read_text(encoding="utf-8")

    def lost_file(actions: list[dict[str, Any]]) -> None:
        actions.remove(next(action for action in actions if "add" in action))

    def wrong_partition(actions: list[dict[str, Any]]) -> None:
        _adds(actions)[0]["partitionValues"]["p"] = "elsewhere"

    def wrong_bound(actions: list[dict[str, Any]]) -> None:
        first_add = _adds(actions)[0]
        first_add["stats"] = json.dumps({**json.loads(first_add["stats"]), "maxValues": {"id": 3, "s": "s9"}})

    def data_change(actions: list[dict[str, Any]]) -> None:
        for action in _adds(actions):
            action["dataChange"] = True

    def kept_source(actions: list[dict[str, Any]]) -> None:
        actions.remove(next(action for action in actions if "remove" in action))

    def removes(actions: list[dict[str, Any]], **changes: str) -> None:
        action = next(action for action in actions if "remove" in action)
        actions.append({"remove": {**action["remove"], **changes}})

    def stranger_removed(actions: list[dict[str, Any]]) -> None:
        removes(actions, path="p=0/never-live.parquet")

    def removed_twice(actions: list[dict[str, Any]]) -> None:
        removes(actions)

    expected = {
        lost_file: "rows",
        wrong_partition: "rows",
        wrong_bound: "statistics",
        data_change: "actions",
        stranger_removed: "actions",
        removed_twice: "actions",
        kept_source: "rows",
    }
    with DeltaEngine(lease).worker("verify") as engine:
        assert _verify(engine, path).result is PROVEN
        for forged, level in expected.items():
            forge_commit(path, 2, forged)
            verification = _verify(engine, path, 2)
            assert [check.level for check in verification.checks if check.result is WRONG] == [level], (
                forged.__name__,
                verification.checks,
            )
            assert verification.content_is_wrong is (level != "statistics")
            commit.write_text(good, encoding="utf-8")
        _change_a_row(path)
        verification = _verify(engine, path, 2)
        assert WRONG in {check.result for check in verification.checks if check.level == "rows"}
        assert WRONG in {check.result for check in _verify(engine, path, 2, exact=True).checks if check.level == "rows"}


@pytest.mark.every_run
def test_partition_values_that_others_spell_anew_are_a_finding_and_ours_are_wrong(
    spark: SparkSession, lease: SessionLease, lake: Path
) -> None:
    path = lake / "t"
    rows = pa.table({"id": [1, 2], "ts": pa.array([0, 0], pa.timestamp("us", tz="UTC"))})
    for _ in range(2):
        deltalake.write_deltalake(str(path), rows, mode="append", partition_by=["ts"])
    (text,) = {
        action["add"]["partitionValues"]["ts"]
        for file in (path / "_delta_log").glob("*.json")
        for line in file.read_text(encoding="utf-8").splitlines()
        if "add" in (action := json.loads(line))
    }
    spark.sql(f"OPTIMIZE delta.`{path}`")

    def ours(actions: list[dict[str, Any]]) -> None:
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        info["userMetadata"] = stamp().to_json()

    with DeltaEngine(lease).worker("verify") as engine:
        of_others = _verify(engine, path)
        finding = of_others.worst(CheckResult.SPELLED_ANEW)
        assert (of_others.result, of_others.content_is_wrong) == (CheckResult.SPELLED_ANEW, False), of_others.checks
        assert finding is not None
        assert f"ts of 2 files with 4 rows was {text!r} and is" in str(finding.detail)
        assert "readers in UTC see what they saw, and elsewhere other values" in str(finding.detail)
        forge_commit(path, 2, ours)
        of_ours = _verify(engine, path)
        assert [check.level for check in of_ours.checks if check.result is WRONG] == ["actions"], of_ours.checks
        assert of_ours.content_is_wrong


def test_an_optimize_in_another_zone_spells_anew_and_is_not_wrong(
    spark: SparkSession, lease: SessionLease, lake: Path
) -> None:
    """Its session read a time without a zone as its own: rows that are the same there differ in UTC."""
    path = lake / "t"
    for moment in ("2020-05-05 00:00:00", "2020-12-05 00:00:00"):
        spark.sql(f"SELECT 1L AS id, TIMESTAMP'{moment}' AS ts").write.format("delta").mode("append").partitionBy(
            "ts"
        ).save(str(path))

    def zoneless(actions: list[dict[str, Any]]) -> None:
        for add in _adds(actions):
            add["partitionValues"]["ts"] = add["partitionValues"]["ts"][:10] + " 00:00:00"

    for version in range(2):
        forge_commit(path, version, zoneless)
    writer = spark.newSession()
    writer.conf.set("spark.sql.session.timeZone", "Europe/Vilnius")
    # Files of one partition that are rewritten alone: OPTIMIZE with a Z-order takes them.
    writer.sql(f"OPTIMIZE delta.`{path}` ZORDER BY (id)")
    texts = {add["partitionValues"]["ts"] for add in _adds(_log(path, 2))}
    assert texts == {"2020-05-04T21:00:00.000000Z", "2020-12-04T22:00:00.000000Z"}

    def moved(actions: list[dict[str, Any]]) -> None:
        _adds(actions)[0]["partitionValues"]["ts"] = "2020-05-04T21:07:00.000000Z"

    with DeltaEngine(lease).worker("verify") as engine:
        for how in ({}, {"exact": True}):
            verified = _verify(engine, path, **how)
            assert (verified.result, verified.content_is_wrong) == (CheckResult.SPELLED_ANEW, False), verified.checks
            spelled, rows = [check for check in verified.checks if check.level in ("partitions", "rows")]
            assert "readers in a time zone such as " in str(spelled.detail)
            assert rows.result is PROVEN
            assert "2 rows" in str(rows.detail)
            assert "as readers in a time zone such as " in str(rows.detail)
        forge_commit(path, 2, moved)
        assert [check.level for check in _verify(engine, path).checks if check.result is WRONG] == ["rows"]


def test_what_cannot_be_checked_is_not_called_wrong(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    with DeltaEngine(lease).worker("verify") as engine:
        facts = engine.reader.facts(TableRef(str(path)))
        live = {file.path for file in facts.files}
        actions = [json.loads(line) for line in (path / "_delta_log" / f"{2:020d}.json").read_text().splitlines()]
        removed = [action["remove"]["path"] for action in actions if "remove" in action]
        for removed_path in removed:
            (path / removed_path.replace("%20", " ")).unlink()
        verification = _verify(engine, path, 2)
        assert {check.level: check.result for check in verification.checks} == {
            "actions": PROVEN,
            "rows": NOT_CHECKED,
            "statistics": NOT_CHECKED,
            "files": PROVEN,
        }
        assert verification.result is NOT_CHECKED
        # The version before needs the files that are gone; the newest does not, so that is no damage.
        before = _verify(engine, path, 1)
        assert [check.result for check in before.checks] == [NOT_CHECKED]
        # A file that the newest version needs is another matter.
        (path / sorted(live)[0].replace("%20", " ")).unlink()
        assert WRONG in {check.result for check in _verify(engine, path, 2).checks if check.level == "files"}


def test_the_command_proves_records_and_holds(
    spark: SparkSession, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lake / "t"
    _build(spark, path)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    root = write_project(tmp_path / "project", {"maintainer.yml": "", "policies/t.yml": f"table: {path}"})

    def verify(*arguments: str) -> tuple[int, str]:
        code = run(["--project", str(root), "verify", *arguments])
        return code, capsys.readouterr().out

    code, out = verify("-o", "json")
    document = json.loads(out)
    assert (code, document["counts"]) == (
        0,
        {"proven": 1, "files_only": 0, "wrong": 0, "not_checked": 0, "spelled_anew": 0},
    )
    assert document["tables"][0]["commit"]["version"] == 2
    assert run(["--project", str(root), "show", document["run_id"], "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == document

    def lost_file(actions: list[dict[str, Any]]) -> None:
        actions.remove(next(action for action in actions if "add" in action))

    forge_commit(path, 2, lost_file)
    forget_logs(spark)
    code, out = verify(f"{path}@2", "--content", "exact")
    assert (code, " rows are missing after this commit\n" in out) == (5, True)
    code, out = verify(f"{path}@2", "--accept", "forged by a test")
    assert (code, "accepted: the quarantine is lifted (V507" in out) == (0, True)


@pytest.mark.every_run
def test_spark_is_not_asked_in_a_session_that_skips_unreadable_files(
    spark: SparkSession, lease: SessionLease, lake: Path
) -> None:
    path = lake / "t"
    _build(spark, path)
    with DeltaEngine(lease).worker("verify") as engine:
        key = "spark.sql.files.ignoreCorruptFiles"
        with engine.jvm.setting(key, "true"):
            assert _verify(engine, path, 1).result is CheckResult.FILES_ONLY, "DuckDB counts, which skips nothing"
            broken = next(path.rglob("p=a/*.parquet"))
            broken.write_bytes(broken.read_bytes()[:-4] + b"gone")
            with pytest.raises(EnvironmentUnfit) as caught:
                _verify(engine, path, 1)
        assert caught.value.code == "E606"
        assert NOT_CHECKED in _results(_verify(engine, path, 1)).values()
