"""A commit of another tool that lost rows: `verify` finds it, and every place that speaks of the table says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.http_receiver import http_receiver
from tests.support.policies.projects import write_project
from tests.support.product import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

NUM_FILES, ROWS_OF_A_FILE = 6, 400


def _half_lost(path: Path) -> None:
    """Append files, and replace them all by one with half of their rows, in a commit that claims to change no data."""
    for number in range(NUM_FILES):
        ids = range(number * ROWS_OF_A_FILE, (number + 1) * ROWS_OF_A_FILE)
        deltalake.write_deltalake(str(path), pa.table({"id": pa.array(ids, pa.int64())}), mode="append")
    table = deltalake.DeltaTable(str(path))
    log = path / "_delta_log"
    adds = [
        action["add"]
        for commit in sorted(log.glob("*.json"))
        for action in map(json.loads, commit.read_text(encoding="utf-8").splitlines())
        if "add" in action
    ]
    kept = table.to_pyarrow_table().sort_by("id").slice(0, NUM_FILES * ROWS_OF_A_FILE // 2)
    pq.write_table(kept, path / "half.parquet")
    stats = {
        "numRecords": kept.num_rows,
        "minValues": {"id": 0},
        "maxValues": {"id": kept.num_rows - 1},
        "nullCount": {"id": 0},
    }
    at_ms = adds[-1]["modificationTime"] + 1
    by = {"operation": "OPTIMIZE", "engineInfo": "other-tool/1.0", "operationParameters": {}}
    actions: list[dict[str, object]] = [{"commitInfo": {"timestamp": at_ms, **by}}]
    for add in adds:
        fields = {"path": add["path"], "size": add["size"], "partitionValues": {}, "deletionTimestamp": at_ms}
        actions.append({"remove": {**fields, "dataChange": False, "extendedFileMetadata": True}})
    size = (path / "half.parquet").stat().st_size
    fields = {"path": "half.parquet", "size": size, "partitionValues": {}, "modificationTime": at_ms}
    actions.append({"add": {**fields, "dataChange": False, "stats": json.dumps(stats)}})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{table.version() + 1:020d}.json").write_text(text, encoding="utf-8")


def test_a_quarantine_by_verify_is_told_everywhere(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*arguments: str) -> tuple[int, str]:
        capfd.readouterr()
        code = run(["--project", str(tmp_path), *arguments])
        return code, capfd.readouterr().out

    files = {"maintainer.yml": 'notify: {url: "${env:HOOK}"}\n'}
    files |= {
        f"policies/{name}.yml": f"table: ./{name}\nowner: team-{name}\noptimize: {{when: {{minSmallFiles: 2}}}}\n"
        for name in ("good", "bad")
    }
    write_project(tmp_path, files)
    for number in range(3):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        deltalake.write_deltalake(str(tmp_path / "good"), rows, mode="append")
    _half_lost(tmp_path / "bad")
    lost = NUM_FILES * ROWS_OF_A_FILE // 2
    said = f"{lost:,} of {2 * lost:,} rows are missing after this commit"
    with http_receiver() as receiver:
        monkeypatch.setenv("HOOK", receiver.url)
        assert command("apply", "--yes")[0] == 0
        assert "No rewrite lost a row" in Path(command("report")[1].strip()).read_text(encoding="utf-8")
        assert receiver.posts == []
        assert command("verify", f"./bad@{NUM_FILES}")[0] == 5
        assert command("verify", f"./bad@{NUM_FILES}")[0] == 5
        ((_, _, body),) = receiver.posts  # the second time the table was in quarantine before
    message = json.loads(body)
    assert (message["event"], message["num_tables"]) == ("quarantine", 1)
    (told,) = message["tables"]
    assert (told["table"], told["owner"], told["status"], told["code"]) == (
        "./bad",
        "team-bad",
        "verify_failed",
        "V507",
    )
    assert said in told["what"]

    failed = json.loads(command("history", "--failed", "-o", "json")[1])["history"]
    assert [(row["table"], row["step"], row["status"], row["proof"], row["version_after"]) for row in failed] == [
        ("./bad", "verify", "verify_failed", "fail", NUM_FILES)
    ] * 2
    assert all(said in row["error"] for row in failed)
    states = {row["table"]: row for row in json.loads(command("status", "-o", "json")[1])["tables"]}
    assert (states["./bad"]["state"], states["./bad"]["last_proof"]) == ("quarantined", "fail")
    assert states["./good"]["last_proof"] == "pass"
    for arguments in (("report",), ("report", "--fleet")):
        page = Path(command(*arguments)[1].strip()).read_text(encoding="utf-8")
        assert "No rewrite lost a row" not in page
        assert f"checked version {NUM_FILES} of ./bad, OPTIMIZE by other-tool/1.0: wrong: {said}" in page
    assert command("verify", f"./bad@{NUM_FILES}", "--accept", "half was meant to go")[0] == 0
    assert len(receiver.posts) == 1
