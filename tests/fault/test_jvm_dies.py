"""The JVM of a user's own session is killed in the middle of a loop: named, nothing lost, and the next run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.faults.user_process import POINTS
from tests.support.product import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
POLICY = """\
version: 1
table: lake/t
optimize:
  maxFileSize: 64KiB
  zorder: {columns: [a, b], batchBytes: 40000}
"""


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    """The table's rows by an engine that shares nothing with Spark."""
    return sorted(tuple(row.values()) for row in deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist())


@pytest.mark.parametrize("point", POINTS)
def test_the_jvm_dies_in_the_second_turn(
    point: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, path = tmp_path / "project", tmp_path / "project" / "lake" / "t"
    (project / "policies").mkdir(parents=True)
    (project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (project / "policies" / "t.yml").write_text(POLICY, encoding="utf-8")
    for part in range(6):
        frame = spark.range(part * 1000, part * 1000 + 1000, 1, 1)
        frame = frame.selectExpr("id", "(id * 7919) % 100003 AS a", "(id * 104729) % 65537 AS b")
        frame.write.format("delta").mode("append").save(str(path))
    before = rows_of(path)

    done = subprocess.run(
        [sys.executable, "-m", "tests.support.faults.user_process", str(project), point],
        cwd=ROOT, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    dying, dead = json.loads(done.stdout.splitlines()[-1])

    # What is said: no bug, no traceback; the run failed, and a further one in that process cannot begin.
    for document in (dying, dead):
        assert "E699" not in document["out"] + document["err"], document
        assert "Traceback" not in document["out"] + document["err"], document
    assert dying["code"] == 1, dying
    assert "E612" in dying["out"] or "C703" in dying["out"], dying
    assert dead["code"] == 2, dead
    assert "error[E612]: the Spark JVM has gone" in dead["err"]
    assert "start this Python process again" in dead["err"]
    assert not list(project.rglob("crash-*.txt"))
    assert not list(project.rglob("traceback.txt"))

    # The revision's commit and the first turn stay, and the second where it had landed; no row is lost.
    assert deltalake.DeltaTable(str(path)).version() == 5 + 2 + (1 if point == POINTS[1] else 0)
    assert rows_of(path) == before

    # The next process settles it and goes on to the end; a further apply commits nothing.
    assert run(["--project", str(project), "apply", "--yes"]) == 0, capsys.readouterr()
    table = deltalake.DeltaTable(str(path))
    assert table.version() > 8
    assert rows_of(path) == before
    assert run(["--project", str(project), "apply", "--yes"]) == 0, capsys.readouterr()
    assert deltalake.DeltaTable(str(path)).version() == table.version()
