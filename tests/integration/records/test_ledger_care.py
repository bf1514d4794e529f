"""The ledger as a table: rebuilt when it is lost, compacted by its own policy, and every ready query runs."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

import maintainer
from tests.support.product import LedgerTable, SessionLease, run, worker_session
from tests.support.runs.ledger_queries import EXPECTED, HISTORY, LEDGER_ROWS, ROW, answers, query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


def small_files(spark: SparkSession, path: Path, first: int, num_files: int = 3) -> None:
    for number in range(first, first + num_files):
        spark.range(number * 10, number * 10 + 10, 1, 1).write.format("delta").mode("append").save(str(path))


def rows_in(ledger: Path) -> list[dict[str, Any]]:
    rows = deltalake.DeltaTable(str(ledger)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["started_at"], row["step_id"]))


def ended(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """How each table of a printed run ended."""
    tables = json.loads(capsys.readouterr().out)["tables"]
    return {table["ref"]["identifier"]: table["status"] for table in tables}


def test_a_lost_ledger_is_rebuilt_from_run_folders_and_from_histories(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies").mkdir()
    for name in ("a", "b"):
        (tmp_path / "policies" / f"{name}.yml").write_text(f"version: 1\ntable: lake/{name}\nowner: team\n")
        small_files(spark, tmp_path / "lake" / name, 0)
    project = ("--project", str(tmp_path))
    ledger, runs = tmp_path / ".maintainer" / "ledger", tmp_path / ".maintainer" / "runs"
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    small_files(spark, tmp_path / "lake" / "a", 3)
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    capsys.readouterr()
    before = rows_in(ledger)
    assert [(row["table"], row["kind"], row["source"]) for row in before] == [
        ("lake/a", "compact", None), ("lake/b", "compact", None), ("lake/a", "compact", None)
    ]  # fmt: skip

    # Nothing is missing, so nothing is appended.
    assert run([*project, "ledger", "rebuild"]) == 0
    assert capsys.readouterr().out.startswith("0 rows appended: 0 from run folders, 0 from histories of tables; 3 were")

    # A file of the ledger is lost: its log alone does not show it, `status` does.
    lost = next(ledger.glob("*.parquet"))
    content = lost.read_bytes()
    lost.unlink()
    assert run([*project, "status"]) == 1
    *_, totals, line = capsys.readouterr().out.splitlines()
    assert totals.endswith("; our own ledger: problem")
    assert line.startswith("warning[E656]: the ledger is damaged (found: 1 of its 2 files are missing")
    assert "; move the damaged folder away and keep it, then `maintainer ledger rebuild` adds what " in line
    lost.write_bytes(content)
    assert run([*project, "status"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("; our own ledger: ok")

    # The ledger is lost, and the folder of the first run, too.
    shutil.rmtree(ledger)
    assert run([*project, "status"]) == 1
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("warning[E655]: the ledger is gone")
    assert "; if it is lost: `maintainer ledger rebuild`; " in line
    first, _ = sorted(path for path in runs.iterdir() if (path / "results.json").is_file())
    shutil.rmtree(first)
    rebuild = [*project, "ledger", "rebuild", "--older-than", "0s"]
    assert run([*rebuild, "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("3 rows would be appended: 1 from run folders, 2 from histories")
    assert not ledger.exists()
    assert run(rebuild) == 0
    assert capsys.readouterr().out.startswith("3 rows appended: 1 from run folders, 2 from histories of tables; 0 were")

    after = rows_in(ledger)
    of_histories = sorted(after[:2], key=lambda row: row["table"])  # the two tables were rewritten side by side
    assert [(row["table"], row["run_id"] == first.name, row["source"]) for row in (*of_histories, *after[2:])] == [
        ("lake/a", True, "history"), ("lake/b", True, "history"), ("lake/a", False, "run folder")
    ]  # fmt: skip
    assert {**after[2], "source": None} == before[2]
    what_commits_say = (
        "run_id", "step_id", "kind", "table", "table_id", "owner", "policy_file", "policy_digest", "version_before",
        "version_after", "num_files_removed", "num_files_added", "bytes_removed", "bytes_added",
    )  # fmt: skip
    for old, new in zip(before[:2], of_histories, strict=True):
        assert {name: new[name] for name in what_commits_say} == {name: old[name] for name in what_commits_say}
        assert (new["predicted_files_removed"], new["proof_result"], new["status"]) == (None, "none", "unknown")

    # Whoever reads the ledger sees the runs of which no folder is left.
    assert run([*project, "history", "--ledger", "-o", "json"]) == 0
    history = json.loads(capsys.readouterr().out)["history"]
    assert [(row["table"], row["run_id"]) for row in history] == [
        (row["table"], row["run_id"]) for row in reversed(after)
    ]
    assert run([*project, "history", "--ledger", "--failed", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["history"] == []

    # Again: nothing is there twice.
    assert run(rebuild) == 0
    assert capsys.readouterr().out.startswith("0 rows appended: 0 from run folders, 0 from histories of tables; 3 were")
    assert rows_in(ledger) == after


def test_two_that_rebuild_at_once_leave_each_row_once(lease: SessionLease, tmp_path: Path) -> None:
    location = str(tmp_path / "ledger")
    rows = [replace(ROW, step_id=f"t{number}/compact", source="history") for number in range(5)]
    LedgerTable(worker_session(lease), location).append("r0", (replace(ROW, run_id="r0"),))
    errors: list[BaseException] = []
    start = threading.Barrier(2)

    def rebuild() -> None:
        try:
            ledger = LedgerTable(worker_session(lease), location)
            version = ledger.contents().version
            start.wait(60)
            ledger.append_missing(rows, after_version=version)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=rebuild) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert len(rows_in(Path(location))) == 6
    contents = LedgerTable(worker_session(lease), location).contents()
    assert len(contents.keys) == 6
    assert contents.version == 1


def test_the_ledger_is_compacted_and_proven_like_any_table(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: lake/t\n")
    small_files(spark, tmp_path / "lake" / "t", 0, 1)
    ledger = tmp_path / ".maintainer" / "ledger"
    table = LedgerTable(spark, str(ledger))
    for number in range(19):
        table.append(f"r{number}", (replace(ROW, run_id=f"r{number}"),))
    project = ("--project", str(tmp_path))

    assert run([*project, "status", "-o", "json"]) == 0
    states = {row["table"]: row for row in json.loads(capsys.readouterr().out)["tables"]}
    assert (states[".maintainer/ledger"]["state"], states[".maintainer/ledger"]["small_files"]) == ("ok", 19)
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    assert ended(capsys) == {".maintainer/ledger": "up_to_date", "lake/t": "up_to_date"}

    table.append("r19", (replace(ROW, run_id="r19"),))
    before = rows_in(ledger)
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    assert ended(capsys) == {".maintainer/ledger": "done", "lake/t": "up_to_date"}
    # The compaction itself is a row, appended after it.
    after = rows_in(ledger)
    assert [row["table"] for row in after if row not in before] == [".maintainer/ledger"]
    assert len(after) == 21
    assert len(deltalake.DeltaTable(str(ledger)).file_uris()) == 2
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    assert ended(capsys) == {".maintainer/ledger": "up_to_date", "lake/t": "up_to_date"}


def test_each_ready_query_answers_the_same_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "ledger")
    LedgerTable(spark, location).append("r1", LEDGER_ROWS)
    spark.read.format("delta").load(location).createOrReplaceTempView("ledger")
    columns = (
        "version long, readVersion long, operation string, operationMetrics map<string, string>, "
        "isBlindAppend boolean, userMetadata string"
    )
    spark.createDataFrame(HISTORY, columns).createOrReplaceTempView("history")
    for about, expected in EXPECTED.items():
        assert answers([row.asDict() for row in spark.sql(query(about)).collect()]) == expected, about


def test_commits_of_the_hook_come_into_the_ledger_with_the_next_apply(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yml").write_text("version: 1\ntable: lake/a\n")
    table, ledger = tmp_path / "lake" / "a", tmp_path / ".maintainer" / "ledger"
    project = ("--project", str(tmp_path))

    def of_hook() -> list[tuple[int, str, str]]:
        rows = [row for row in rows_in(ledger) if row["kind"] == "auto_compact"]
        return [(row["version_after"], row["run_id"][:24], row["source"]) for row in rows]

    small_files(spark, table, 0)
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    small_files(spark, table, 3)
    made = maintainer.auto_compact(spark, table, enabled=True, min_num_files=2)
    assert made.compacted
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    expected = [(made.version, "maintainer-auto-compact-", "history")]
    assert of_hook() == expected
    assert run([*project, "apply", "--yes", "-o", "json"]) == 0
    assert run([*project, "ledger", "rebuild", "--older-than", "0s"]) == 0
    assert of_hook() == expected
    capsys.readouterr()
    for source in ((), ("--ledger",)):
        assert run([*project, "history", "lake/a", "-o", "json", *source]) == 0
        rows = [row for row in json.loads(capsys.readouterr().out)["history"] if row["step"] == "auto_compact"]
        assert [(row["version_after"], row["status"]) for row in rows] == [(made.version, "succeeded")]
    hook = rows[0]["run_id"]
    away = table.rename(tmp_path / "away")  # the table's log is elsewhere: the ledger tells
    assert run([*project, "show", hook, "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["history"]
    assert (row["run_id"], row["table"], row["version_after"]) == (hook, "lake/a", made.version)
    assert run([*project, "show", f"{hook}0"]) == 2
    assert "error[E643]: no log of the project's tables here, and no row" in capsys.readouterr().err
    away.rename(table)
