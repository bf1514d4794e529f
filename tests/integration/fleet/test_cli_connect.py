"""The command line against a real Spark Connect server, in a process of its own that has no Spark in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.product import run
from tests.support.suites.package_path import PACKAGE_PATH
from tests.support.tables.delta_tables import bytes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

ROOT = Path(__file__).parents[3]
POLICY = """version: 1
table: lake/orders
optimize: {maxFileSize: 1MiB}
autoCompact: true
vacuum: {retention: 7d}
verify:
  expectations:
    - {type: expect_column_values_to_not_be_null, column: id}
"""


def _maintainer(project: Path, *args: str, **variables: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr. No JAVA_HOME and no Java on the path: nothing of Spark may be started here."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "JAVA_", "PYSPARK_"))}
    env.update({"PYTHONPATH": PACKAGE_PATH, "PATH": "/nowhere", **variables})
    command = [sys.executable, "-m", "maintainer", "--project", str(project), *args]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


def _rows(path: Path) -> Counter[str]:
    return Counter(map(str, deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist()))


def test_plan_and_apply_and_apply_again(spark: SparkSession, connect_url: str, tmp_path: Path) -> None:
    table = tmp_path / "lake" / "orders"
    for number in range(4):
        frame = spark.range(number * 25, number * 25 + 25, 1, 1).selectExpr("id", "id % 2 AS p")
        frame.write.format("delta").partitionBy("p").mode("append").save(str(table))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "orders.yaml").write_text(POLICY)
    rows, before = _rows(table), bytes_of(table)

    code, out, err = _maintainer(tmp_path, "plan", "--remote", connect_url, "--detailed-exitcode", "-o", "json")
    assert (code, bytes_of(table) == before) == (3, True), err
    (planned,) = json.loads(out)["tables"]
    assert [step["kind"] for step in planned["steps"]] == ["set_properties", "compact"]
    assert "not_by_engine" in [entry["reason"]["code"] for entry in planned["left_alone"]]

    code, out, err = _maintainer(tmp_path, "apply", "--yes", "-o", "json", SPARK_REMOTE=connect_url)
    assert code == 0, err
    assert "warning[E654]" in err
    outcome = json.loads(out)
    assert outcome["counts"]["done"] == 1
    steps: list[dict[str, Any]] = outcome["tables"][0]["steps"]
    assert [step["status"] for step in steps] == ["succeeded", "succeeded"]
    proof = steps[1]["commits"][0]["proof"]
    assert proof["read"] == proof["written"]
    assert {assertion["outcome"] for assertion in steps[1]["assertions"]} == {"pass"}
    named = {assertion["expectation"] for assertion in steps[1]["assertions"]}
    counted = "expect_column_pair_values_to_be_equal: rows before, by scan = rows after, by scan"
    assert {counted, "expect_column_values_to_not_be_null"} <= named
    assert _rows(table) == rows
    delta_table = deltalake.DeltaTable(str(table))
    assert (delta_table.version(), len(delta_table.file_uris())) == (5, 2)
    assert delta_table.metadata().configuration["delta.autoOptimize.autoCompact"] == "true"
    assert [row["operation"] for row in delta_table.history(2)] == ["OPTIMIZE", "SET TBLPROPERTIES"]
    assert not (tmp_path / ".maintainer" / "ledger").exists()

    code, out, err = _maintainer(tmp_path, "apply", "--yes", "--remote", connect_url, "-o", "json")
    assert (code, json.loads(out)["counts"]["up_to_date"]) == (0, 1), err
    assert deltalake.DeltaTable(str(table)).version() == 5


HOT_POLICY = "version: 1\ntable: lake/orders\n{}\n"
NOT_HOT = "optimize: {quietAfterUpdates: 0s}"


def _updated_by_others(spark: SparkSession, project: Path, extra: str = "") -> Path:
    """Four small files, then a row that somebody else updated a moment ago."""
    table = project / "lake" / "orders"
    for number in range(4):
        spark.range(number * 25, number * 25 + 25, 1, 1).write.format("delta").mode("append").save(str(table))
    spark.sql(f"UPDATE delta.`{table}` SET id = 1000 WHERE id = 99")
    (project / "policies").mkdir()
    (project / "policies" / "orders.yaml").write_text(HOT_POLICY.format(extra))
    return table


@pytest.mark.long
def test_a_table_that_others_update_is_left_alone_as_hot(spark: SparkSession, connect_url: str, tmp_path: Path) -> None:
    table = _updated_by_others(spark, tmp_path)
    before = bytes_of(table)
    code, out, err = _maintainer(tmp_path, "plan", "--remote", connect_url, "-o", "json")
    (planned,) = json.loads(out)["tables"]
    assert (code, planned["steps"], bytes_of(table) == before) == (0, [], True), err
    assert "hot" in [entry["reason"]["code"] for entry in planned["left_alone"]]

    for number in range(3):
        code, out, err = _maintainer(tmp_path, "apply", "--yes", "--remote", connect_url, "-o", "json")
        assert (code, json.loads(out)["counts"]["waiting"], bytes_of(table) == before) == (0, 1, True), err
        assert ("hot in 3 runs in a row" in err) == (number == 2), err

    (tmp_path / "policies" / "orders.yaml").write_text(HOT_POLICY.format(NOT_HOT))
    rows = _rows(table)
    code, out, err = _maintainer(tmp_path, "apply", "--yes", "--remote", connect_url, "-o", "json")
    assert (code, json.loads(out)["counts"]["done"]) == (0, 1), err
    assert _rows(table) == rows


@pytest.mark.long
def test_the_rows_of_a_run_wait_for_one_that_can_write_the_ledger(
    spark: SparkSession, connect_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = _updated_by_others(spark, tmp_path, NOT_HOT)
    code, out, err = _maintainer(tmp_path, "apply", "--yes", "--remote", connect_url, "-o", "json")
    assert code == 0, err
    run_id = json.loads(out)["run_id"]
    commits = [step["commits"][0]["version"] for step in json.loads(out)["tables"][0]["steps"]]
    for command in (("history", "--ledger"), ("ledger", "rebuild")):
        code, out, err = _maintainer(tmp_path, *command, "--remote", connect_url)
        assert (code, "error[E620]" in err, "Traceback" in err) == (2, True, False), err
    code, out, err = _maintainer(tmp_path, "history", "lake/orders", "-o", "json")
    history = json.loads(out)["history"]
    assert (code, [row["version_after"] for row in history]) == (0, [5, 4, 3, 2, 1, 0]), err
    assert [row["run_id"] for row in history if row["version_after"] in commits] == [run_id]

    # The same commands where there is a session of this machine: what waited is in the ledger, once.
    for _ in range(2):
        assert run(["--project", str(tmp_path), "apply", "--yes"]) == 0
    capsys.readouterr()
    ledger = deltalake.DeltaTable(str(tmp_path / ".maintainer" / "ledger")).to_pyarrow_table().to_pylist()
    mine = [(row["kind"], row["version_after"], row["table_id"]) for row in ledger if row["run_id"] == run_id]
    assert mine == [("compact", 5, str(deltalake.DeltaTable(str(table)).metadata().id))]


@pytest.mark.long
def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "orders.yaml").write_text(POLICY)
    (tmp_path / "maintainer.yml").write_text("version: 1\nengine: transaction\n")
    code, _, err = _maintainer(tmp_path, "plan", "--remote", "sc://127.0.0.1:1")
    assert (code, "error[E620]" in err) == (2, True), err
    code, _, err = _maintainer(tmp_path, "plan", "--engine", "command", "--remote", "127.0.0.1:1")
    assert (code, "error[E635]" in err) == (2, True), err
