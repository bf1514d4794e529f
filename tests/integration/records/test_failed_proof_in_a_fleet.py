"""One of four real tables is written wrong: the others are rewritten, nothing is deleted, and the next run deletes."""

from __future__ import annotations

import json
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.support.product import DeltaEngine, TableStorage, WrittenFile, gateway, run
from tests.support.tables.aged_tables import AgedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMES = ("a", "b", "c", "d")
VACUUM = "vacuum: {retention: 7d, allowLargeDelete: true}\n"


def lose_a_row_of_b(storage: TableStorage, written: list[WrittenFile]) -> None:
    path = Path(storage.uri(written[0].path).removeprefix("file:"))
    if path.parent.name == "b":
        pq.write_table(pq.read_table(path).slice(1), path)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        written[0].add["size"] = path.stat().st_size


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    (tmp_path / "maintainer.yml").write_text("version: 1\nname: fleet\n", encoding="utf-8")
    for name in NAMES:
        table = AgedTable(tmp_path / name)
        table.append(30, "old.parquet", "one.parquet", "three.parquet")
        table.delete(20, "old.parquet")
        (tmp_path / "policies" / f"{name}.yml").write_text(f"version: 1\ntable: ./{name}\n{VACUUM}", encoding="utf-8")
    return tmp_path


def forged_run(project: Path) -> tuple[int, list[str]]:
    """Apply with b written wrong; return the exit code and how the tables ended."""
    with pytest.MonkeyPatch.context() as patch:
        hook = partialmethod(DeltaEngine.__init__, between_write_and_proof=lose_a_row_of_b)
        patch.setattr(DeltaEngine, "__init__", hook)
        code = run(["--project", str(project), "apply", "--yes", "-j", "1"])
    (folder,) = (project / ".maintainer" / "runs").glob("*Z-*")
    results = json.loads((folder / "results.json").read_text())
    return int(code), [table["status"] for table in results["tables"]]


def test_a_failed_proof_costs_its_own_table_and_holds_deletions_back(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_old_file() -> str:
        return "".join(name for name in NAMES if (project / name / "old.parquet").exists())

    assert forged_run(project) == (5, ["done", "verify_failed", "waiting", "waiting"])
    # a came before b, so its vacuum was done; the others are compacted, and keep what waits.
    assert [len(DeltaTable(str(project / name)).file_uris()) for name in NAMES] == [1, 2, 1, 1]
    assert with_old_file() == "bcd"
    assert capsys.readouterr().out.count("C715") == 2

    assert run(["--project", str(project), "apply", "--yes"]) == 6  # b is in quarantine
    assert with_old_file() == "b"


def test_with_a_delta_that_nobody_tested_the_first_failed_proof_stops_the_rest(
    spark: SparkSession, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "TESTED_DELTA", {})
    assert forged_run(project) == (5, ["done", "verify_failed", "not_reached", "not_reached"])
