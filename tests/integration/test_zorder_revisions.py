"""Several revisions of one table on real Spark: files move over batch by batch, and each is optimized by itself.

And what owners of a table without the policies ask for by ALTER TABLE. Rows are compared by an engine that shares
nothing with Spark, files by the log's text.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from maintainer.cli.main import run
from tests.rewrites import actions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

Capture = pytest.CaptureFixture[str]
AUTO = "use.optimization.autoOptimize."


class Lake:
    """One table in one project, with the commands."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.project, self.path = spark, root / "project", root / "project" / "lake" / "t"
        self.rows = 0
        (self.project / "policies").mkdir(parents=True)
        (self.project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")

    def policy(self, zorder: str, max_file_size: str = "1MiB") -> None:
        """Write the table's policy."""
        size = f"  maxFileSize: {max_file_size}"
        lines = ["version: 1", "table: lake/t", "optimize:", size, f"  zorder: {{{zorder}}}"]
        (self.project / "policies" / "t.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def append(self, *sizes: int, beyond: int = 0) -> None:
        """One file and one commit for each size; ``beyond`` moves the values of ``a`` away from all before."""
        for size in sizes:
            frame = self.spark.range(self.rows, self.rows + size, 1, 1).selectExpr(
                "id", f"(id * 7919) % 100003 + {beyond} AS a", "(id * 104729) % 65537 AS b",
                "sha2(cast(id as string), 256) AS pad",
            )  # fmt: skip
            frame.write.format("delta").mode("append").save(str(self.path))
            self.rows += size

    def sql(self, change: str) -> None:
        """Alter the table."""
        self.spark.sql(f"ALTER TABLE delta.`{self.path}` {change}").collect()

    def run(self, *args: str) -> int:
        """A command in this project."""
        return run(["--project", str(self.project), *args])

    def contents(self) -> Counter[tuple[Any, ...]]:
        """All rows."""
        return Counter(
            tuple(row.values()) for row in deltalake.DeltaTable(str(self.path)).to_pyarrow_table().to_pylist()
        )

    @property
    def version(self) -> int:
        """The newest version."""
        return int(deltalake.DeltaTable(str(self.path)).version())

    def properties(self, prefix: str) -> dict[str, str]:
        """Table properties that begin so."""
        found = deltalake.DeltaTable(str(self.path)).metadata().configuration
        return {key: value for key, value in found.items() if key.startswith(prefix)}

    def files(self) -> dict[str, int]:
        """Live files and the revision that their tag names, 0 without."""
        live: dict[str, int] = {}
        for version in range(self.version + 1):
            for action in actions_of(self.path, version):
                if "remove" in action:
                    del live[action["remove"]["path"]]
                elif "add" in action:
                    tag = (action["add"].get("tags") or {}).get("maintainer.zorder.revision", "0")
                    live[action["add"]["path"]] = int(tag.partition(":")[0])
        return live

    def turns(self) -> list[dict[str, Any]]:
        """The ledger's rows of turns, oldest first."""
        found = deltalake.DeltaTable(str(self.project / ".maintainer" / "ledger")).to_pyarrow_table().to_pylist()
        return sorted((row for row in found if row["kind"] == "zorder"), key=lambda row: row["version_after"])


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)


def test_files_of_an_old_revision_move_over_batch_by_batch_and_the_loop_ends(lake: Lake, capsys: Capture) -> None:
    lake.policy("columns: [a, b]", "64KiB")
    lake.append(3000, 3000, 3000)
    before = lake.contents()
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert set(lake.files().values()) == {1}

    # Other columns: a second revision, and all files in turns of some of them.
    lake.policy("columns: [b, id], batchBytes: 200000", "64KiB")
    done = len(lake.turns())
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    second = lake.turns()[done:]
    moved = [row for row in second if row["strategy"] == "unindexed"]
    assert len(moved) >= 3, second
    assert {row["revision"] for row in second} == {2}
    assert sum(row["elements"] for row in moved) == 9000
    assert all(row["bytes_removed"] <= 200_000 for row in moved)
    assert set(lake.files().values()) == {2}
    assert set(lake.properties("maintainer.zorder.revision.")) == {
        "maintainer.zorder.revision.1",
        "maintainer.zorder.revision.2",
    }
    version = lake.version
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert lake.version == version
    assert lake.contents() == before

    # Values beyond the boundaries, in more than a fifth of the bytes: a third revision of the same columns.
    lake.policy("columns: [a, b], batchBytes: 10000000", "64KiB")
    lake.append(4000, 4000, beyond=1_000_000)
    before = lake.contents()
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert set(lake.files().values()) == {3}
    (newest,) = lake.properties("maintainer.zorder.revision.3").values()
    first = json.loads(newest)["columns"][0]
    assert (first["name"], int(first["high"]) > 1_000_000) == ("a", True)
    version = lake.version
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert lake.version == version
    assert lake.contents() == before
