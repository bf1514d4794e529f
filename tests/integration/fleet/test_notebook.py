"""examples/notebook.ipynb is run as it is, in a kernel of its own, on a small real table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import nbformat
import pytest
from nbclient import NotebookClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples" / "notebook.ipynb"

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_the_notebook_maintains_a_table(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        rows = spark.range(number * 10, number * 10 + 10, 1, 1)
        rows.write.format("delta").mode("append").save(str(tmp_path / "lake" / "orders"))
    (tmp_path / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "orders.yml").write_text("version: 1\ntable: ./lake/orders\n", encoding="utf-8")
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call] # it has no types
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"

    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()

    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    fragments = "".join(data.get("text/html", "") for data in shown)
    for text in ("Project", "lake/orders", "compact", "Status of 1 table", "History of "):
        assert text in fragments
    assert shown[-1]["text/plain"] == "('succeeded', 'pass')"
    table = deltalake.DeltaTable(str(tmp_path / "lake" / "orders"))
    assert table.version() == 3
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == list(range(30))
    (run_folder,) = (tmp_path / ".maintainer" / "runs").iterdir()
    assert {"report.html", "junit.xml", "results.json"} <= {path.name for path in run_folder.iterdir()}
