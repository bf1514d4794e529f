"""The command line on real tables: plan, apply, apply again, and what a user meets on a bad day.

Commands run in this process: they borrow the tests' session, as they borrow a notebook's. What must be untouched is
compared by a hash over every byte below the table.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.product import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(3)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    return tmp_path


def write_policy(project: Path, table: str, extra: str = "") -> None:
    path = project / "policies" / f"{table.replace('/', '_')}.yaml"
    path.write_text(f"version: 1\ntable: {table}\n{extra}", encoding="utf-8")


def small_files(spark: SparkSession, path: Path, num_files: int = 4, rows_each: int = 25) -> None:
    for number in range(num_files):
        frame = spark.range(number * rows_each, (number + 1) * rows_each, 1, 1)
        frame.selectExpr("id", "id % 7 AS k").write.format("delta").mode("append").save(str(path))


def tree_hash(root: Path) -> str:
    """Names and bytes of everything below a folder."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        digest.update(str(path.relative_to(root)).encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def rows_by_second_engine(path: Path) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist())


def newest_version(path: Path) -> int:
    return deltalake.DeltaTable(str(path)).version()


def command(project: Path, *args: str) -> int:
    return run(["--project", str(project), *args])


def one_json(out: str) -> Any:
    return json.loads(out)


@pytest.mark.every_run
def test_plan_changes_no_byte_apply_does_it_and_a_second_apply_commits_nothing(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, events = project / "lake" / "orders", project / "lake" / "events"
    small_files(spark, orders)
    small_files(spark, events, num_files=3)
    write_policy(project, "lake/orders", "optimize: {maxFileSize: 1MiB, zorder: {columns: [k], mode: full}}\n")
    write_policy(project, "lake/events", "autoCompact: true\nvacuum: {retention: 7d}\n")
    rows = {path: rows_by_second_engine(path) for path in (orders, events)}
    before = tree_hash(project / "lake")

    assert command(project, "plan", "--out", str(project / "plan.json"), "--detailed-exitcode") == 3
    assert tree_hash(project / "lake") == before
    capsys.readouterr()

    assert command(project, "apply", "--yes", str(project / "plan.json"), "-o", "json") == 0
    outcome = one_json(capsys.readouterr().out)
    assert outcome["counts"] == {**dict.fromkeys(outcome["counts"], 0), "done": 2}
    # orders: one Z-order commit. events: properties, then compaction.
    assert (newest_version(orders), newest_version(events)) == (4, 4)
    assert {path: rows_by_second_engine(path) for path in rows} == rows
    assert len(deltalake.DeltaTable(str(orders)).file_uris()) == 1
    assert deltalake.DeltaTable(str(events)).metadata().configuration["delta.autoOptimize.autoCompact"] == "true"

    assert command(project, "apply", "--yes", "-o", "json") == 0
    again = one_json(capsys.readouterr().out)
    assert again["counts"]["up_to_date"] == 2  # the ledger counts as no table of the user's
    assert (newest_version(orders), newest_version(events)) == (4, 4)

    assert command(project, "history", "lake/events", "-o", "json") == 0
    rows_of_history = one_json(capsys.readouterr().out)["history"]
    assert [row["step"] for row in rows_of_history if row["run_id"]] == ["compact", "set_properties"]
    assert {row["step"] for row in rows_of_history if not row["run_id"]} == {"WRITE"}
    ledger = deltalake.DeltaTable(str(project / ".maintainer" / "ledger")).to_pyarrow_table().to_pylist()
    assert Counter((row["table"], row["kind"], row["status"]) for row in ledger) == Counter(
        [
            ("lake/orders", "zorder", "succeeded"),
            ("lake/events", "set_properties", "succeeded"),
            ("lake/events", "compact", "succeeded"),
        ]
    )


def test_a_run_leaves_its_record_and_every_commit_carries_the_run(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_files(spark, project / "lake" / "orders")
    write_policy(project, "lake/orders")
    assert command(project, "apply", "--yes", "-o", "jsonl") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["type"] == "version"
    (folder,) = (project / ".maintainer" / "runs").iterdir()
    assert {"plan.json", "results.json", "events.jsonl", "junit.xml", "assertions"} <= {
        p.name for p in folder.iterdir()
    }
    assert list((folder / "assertions").glob("*.json"))
    (newest,) = deltalake.DeltaTable(str(project / "lake" / "orders")).history(1)
    assert newest["operation"] == "OPTIMIZE"
    assert json.loads(newest["userMetadata"])["maintainer"]["run"] == folder.name


@pytest.mark.parametrize(
    ("sick", "code"),
    [("missing", "T401"), ("plain", "T402"), ("truncated", "T403")],
)
def test_a_table_that_cannot_be_read_is_one_message_and_stops_no_other(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str], sick: str, code: str
) -> None:
    lake = project / "lake"
    small_files(spark, lake / "well", num_files=2)
    if sick == "plain":
        (lake / "plain").mkdir()
        (lake / "plain" / "notes.txt").write_text("not a table", encoding="utf-8")
    elif sick == "truncated":
        small_files(spark, lake / "truncated", num_files=3)
        log = lake / "truncated" / "_delta_log"
        for crc in log.glob("*.crc"):
            crc.unlink()
        newest = log / f"{2:020}.json"
        newest.write_bytes(newest.read_bytes()[:-40])
        for checksum in log.glob(".*.crc"):
            checksum.unlink()
        shutil.move(lake / "truncated", lake / "broken")
        shutil.move(lake / "broken", lake / "truncated2")
        sick = "truncated2"  # a place that no session has seen before
    write_policy(project, "lake/well")
    write_policy(project, f"lake/{sick}")
    before = tree_hash(lake / sick) if (lake / sick).exists() else None

    assert command(project, "plan") == 1
    captured = capsys.readouterr()
    assert code in captured.out
    assert "Traceback" not in captured.out + captured.err

    assert command(project, "apply", "--yes") == 1
    captured = capsys.readouterr()
    assert f"error[{code}]" in captured.out
    assert "Traceback" not in captured.out + captured.err
    assert "1 done" in captured.out
    assert "1 failed" in captured.out
    assert len(deltalake.DeltaTable(str(lake / "well")).file_uris()) == 1
    assert (tree_hash(lake / sick) if (lake / sick).exists() else None) == before


def test_tables_changed_between_plan_and_apply_are_refused_by_themselves(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, plan = project / "lake", str(project / "plan.json")
    for name in ("kept", "wider", "upgraded"):
        small_files(spark, lake / name, num_files=2)
        write_policy(project, f"lake/{name}")
    assert command(project, "plan", "--out", plan) == 0
    spark.sql(f"ALTER TABLE delta.`{lake / 'wider'}` ADD COLUMN note STRING")
    spark.sql(f"ALTER TABLE delta.`{lake / 'upgraded'}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    before = tree_hash(lake)
    capsys.readouterr()

    for option in ("--all-or-nothing", "--exact"):
        assert command(project, "apply", "--yes", plan, option) == 4
        err = capsys.readouterr().err
        assert "error[A403]: the plan is stale" in err
        assert "lake/wider: column note (string) was added" in err
        assert "lake/upgraded: the table feature deletionVectors was added" in err
        assert tree_hash(lake) == before

    others = tree_hash(lake / "wider"), tree_hash(lake / "upgraded")
    assert command(project, "apply", "--yes", plan) == 6
    out = capsys.readouterr().out
    assert out.count("error[A403]: lake/wider: not as planned: column note (string) was added") == 1
    assert "3 tables: 1 done, 2 blocked." in out
    assert "Exit code 6: part done: some tables were changed, others were refused." in out
    assert (tree_hash(lake / "wider"), tree_hash(lake / "upgraded")) == others
    assert len(deltalake.DeltaTable(str(lake / "kept")).file_uris()) == 1


def test_a_table_dropped_between_plan_and_apply_fails_by_its_own_cause(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_files(spark, project / "lake" / "kept", num_files=2)
    small_files(spark, project / "lake" / "dropped", num_files=2)
    write_policy(project, "lake/kept")
    write_policy(project, "lake/dropped")
    assert command(project, "plan", "--out", str(project / "plan.json")) == 0
    shutil.rmtree(project / "lake" / "dropped")
    capsys.readouterr()

    assert command(project, "apply", "--yes", str(project / "plan.json")) == 1
    assert "error[T401]: lake/dropped: " in capsys.readouterr().out
    assert len(deltalake.DeltaTable(str(project / "lake" / "kept")).file_uris()) == 1


def test_a_policy_changed_since_the_plan_or_an_edited_plan_is_refused(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_files(spark, project / "lake" / "orders", num_files=2)
    write_policy(project, "lake/orders")
    plan = project / "plan.json"
    assert command(project, "plan", "--out", str(plan)) == 0
    before = tree_hash(project / "lake")

    edited = project / "edited.json"
    edited.write_text(
        plan.read_text(encoding="utf-8").replace('"max_threads": 8', '"max_threads": 9'), encoding="utf-8"
    )
    assert edited.read_bytes() != plan.read_bytes()
    assert command(project, "apply", "--yes", str(edited)) == 4
    assert "A402" in capsys.readouterr().err

    write_policy(project, "lake/orders", "optimize: {maxThreads: 2}\n")
    assert command(project, "apply", "--yes", str(plan)) == 4
    printed = capsys.readouterr().out
    assert "error[A403]: lake/orders: not as planned: policy key optimize.maxThreads was 8, now 2\n" in printed
    assert "  --> policies/lake_orders.yaml" in printed
    assert tree_hash(project / "lake") == before


def test_files_that_are_gone_are_dropped_from_a_saved_plan_and_new_ones_are_not_added(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = project / "lake" / "orders"
    spark.range(40).selectExpr("id", "id % 2 AS p").repartition(4).write.format("delta").partitionBy("p").save(
        str(orders)
    )
    write_policy(project, "lake/orders")
    assert command(project, "plan", "--out", str(project / "plan.json")) == 0
    spark.sql(f"DELETE FROM delta.`{orders}` WHERE p = 0 AND id < 10")
    small_files_in_p1 = spark.range(100, 104, 1, 2).selectExpr("id", "1L AS p")
    small_files_in_p1.write.format("delta").mode("append").save(str(orders))
    rows = rows_by_second_engine(orders)
    capsys.readouterr()

    assert command(project, "apply", "--yes", str(project / "plan.json"), "-o", "json") == 0
    (table,) = one_json(capsys.readouterr().out)["tables"]
    (commit,) = table["steps"][0]["commits"]
    # Of partition 1 exactly the four planned files; partition 0 changed and is left for the next plan.
    assert (commit["num_files_removed"], commit["num_files_added"]) == (4, 1)
    assert (table["status"], table["problem"]["code"]) == ("done", "A403")
    assert table["problem"]["what"].startswith("left out: 1 bin with 4 files, ")
    assert rows_by_second_engine(orders) == rows


@contextmanager
def immutable(folder: Path) -> Iterator[None]:
    """Make a folder refuse new names, also to root."""
    done = subprocess.run(["chattr", "+i", str(folder)], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("this file system cannot make a folder immutable")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(folder)], capture_output=True, check=True)


def test_a_read_only_table_is_one_message_and_nothing_is_changed(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = project / "lake" / "orders"
    small_files(spark, orders, num_files=2)
    write_policy(project, "lake/orders")
    before = tree_hash(orders)
    with immutable(orders):
        assert command(project, "plan") == 0
        capsys.readouterr()
        assert command(project, "apply", "--yes") == 1
    captured = capsys.readouterr()
    assert "error[T405]" in captured.out
    assert "Traceback" not in captured.out + captured.err
    assert tree_hash(orders) == before


def test_a_full_disk_is_one_message_and_the_table_stays_as_it_was(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = project / "lake"
    small.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(small)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("only root can mount a small disk")
    try:
        frame = spark.range(0, 60_000, 1, 2).selectExpr("id", "uuid() AS text")
        frame.write.format("delta").option("compression", "uncompressed").save(str(small / "orders"))
        write_policy(project, "lake/orders")
        rows = rows_by_second_engine(small / "orders")
        before = {path.relative_to(small): path.read_bytes() for path in small.rglob("*") if path.is_file()}
        assert command(project, "apply", "--yes") == 1
        captured = capsys.readouterr()
        assert "error[E631]" in captured.out
        assert "Traceback" not in captured.out + captured.err
        assert rows_by_second_engine(small / "orders") == rows
        # What was half written when the disk was full may stay behind; nothing that was there is touched.
        assert {name: (small / name).read_bytes() for name in before} == before
    finally:
        # Lazily: the task that met the full disk may hold its file open for a moment longer.
        subprocess.run(["umount", "--lazy", str(small)], capture_output=True, check=True)


def fake_java(folder: Path, version: str) -> Path:
    """A Java home whose ``java -version`` says what is wanted."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("version", "code"), [(None, "E601"), ("1.8.0_292", "E602"), ("11.0.2", "E602")], ids=["none", "8", "11"]
)
def test_no_java_or_an_old_one_is_one_message_and_exit_2(
    spark: SparkSession, project: Path, tmp_path: Path, version: str | None, code: str
) -> None:
    small_files(spark, project / "lake" / "orders", num_files=2)
    write_policy(project, "lake/orders")
    before = tree_hash(project / "lake")
    env = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")}
    env["PATH"] = str(tmp_path / "nothing")
    if version is not None:
        env["JAVA_HOME"] = str(fake_java(tmp_path / "java", version))
    done = subprocess.run(
        [sys.executable, "-m", "maintainer", "--project", str(project), "apply", "--yes"],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 2
    assert f"error[{code}]" in done.stderr
    assert "= help:" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert tree_hash(project / "lake") == before
