"""Several revisions of one table on real Spark: files move over batch by batch, and each is optimized by itself.

And what owners of a table without the policies ask for by ALTER TABLE. Rows are compared by an engine that shares
nothing with Spark, files by the log's text.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.product import Leases, run
from tests.support.tables.delta_tables import actions_of

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
        configuration = deltalake.DeltaTable(str(self.path)).metadata().configuration
        return {key: value for key, value in configuration.items() if key.startswith(prefix)}

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
        """The ledger's rows of turns that were done, oldest first."""
        rows = deltalake.DeltaTable(str(self.project / ".maintainer" / "ledger")).to_pyarrow_table().to_pylist()
        return sorted((row for row in rows if row["strategy"] is not None), key=lambda row: row["version_after"])


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


def test_revisions_live_side_by_side_and_each_is_optimized_by_itself(lake: Lake, capsys: Capture) -> None:
    # Fragments of revision 1: what is appended is indexed and no more.
    lake.policy("columns: [a, b], strategies: [unindexed]")
    for _ in range(4):
        lake.append(400, 400)
        assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    # Fragments of revision 2 beside them; the old files are from before the time from which files count.
    time.sleep(1.1)
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    for _ in range(4):
        lake.append(400, 400)
        lake.policy(f"columns: [b, pad], strategies: [unindexed], fromTimestamp: '{since}'")
        assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    before, files = lake.contents(), lake.files()
    assert set(files.values()) == {1, 2}

    for revision in (1, 2):
        done, files = len(lake.turns()), lake.files()
        lake.policy(f"columns: [b, pad], strategies: [leveled], revision: {revision}, fromTimestamp: '{since}'")
        assert lake.run("apply", "--yes") == 0, capsys.readouterr()
        turns = lake.turns()[done:]
        assert turns, f"nothing of revision {revision} was compacted"
        assert {(row["strategy"], row["revision"]) for row in turns} == {("leveled", revision)}
        now = lake.files()
        gone = {number for path, number in files.items() if path not in now}
        come = {number for path, number in now.items() if path not in files}
        assert (gone, come) == ({revision}, {revision})
        version = lake.version
        assert lake.run("apply", "--yes") == 0, capsys.readouterr()
        assert lake.version == version
    assert lake.contents() == before

    # Revision 0 only puts on the curve what is on none; a revision that was never made is refused by name.
    lake.policy("columns: [b, pad], revision: 0")
    lake.append(400)
    before, done = lake.contents(), len(lake.turns())
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert {(row["strategy"], row["revision"]) for row in lake.turns()[done:]} == {("unindexed", 2)}
    assert lake.contents() == before
    lake.policy("columns: [b, pad], revision: 7")
    capsys.readouterr()
    version = lake.version
    assert lake.run("apply", "--yes") == 1
    assert "T426" in "".join(capsys.readouterr())
    assert lake.version == version


def test_a_request_on_the_table_is_done_once_and_only_where_it_may(lake: Lake, capsys: Capture) -> None:
    request = "'use.optimization.type' = 'LeveledCompaction', 'use.optimization.bytes-per-iter' = '150000'"
    lake.policy("columns: [a, b], strategies: [unindexed]")
    for _ in range(4):
        lake.append(400, 400)
        assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    before, done, version = lake.contents(), len(lake.turns()), lake.version

    # Where the policy does not honour it, it is a property like others.
    lake.sql(f"SET TBLPROPERTIES ({request})")
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert (lake.version, len(lake.properties("use."))) == (version + 1, 2)

    # Under automatic optimization it is ignored with a note, and stays.
    lake.policy("columns: [a, b], strategies: [unindexed], tableProperties: honour")
    lake.sql(f"SET TBLPROPERTIES ('{AUTO}enabled' = 'true', '{AUTO}revisionId' = '0')")
    capsys.readouterr()
    assert lake.run("plan", "-o", "json") == 0
    note = f"use.optimization.type is ignored: the table is under automatic optimization ({AUTO}enabled)"
    assert note in capsys.readouterr().out
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert (lake.version, len(lake.properties("use."))) == (version + 2, 4)
    lake.sql(f"UNSET TBLPROPERTIES ('{AUTO}enabled', '{AUTO}revisionId')")

    # While another run works on the table it is ignored.
    leases = Leases(lake.project / ".maintainer" / "runs", "20261121T220000Z-7f3a", lambda: time.time_ns() // 1_000_000)
    log = actions_of(lake.path, 0)
    table_id = next(action["metaData"]["id"] for action in log if "metaData" in action)
    lease = leases.acquire(table_id, "lake/t")
    capsys.readouterr()
    assert lake.run("apply", "--yes") == 4, capsys.readouterr()
    assert "A406" in "".join(capsys.readouterr())
    assert (lake.version, len(lake.properties("use."))) == (version + 3, 2)
    leases.release(lease)
    leases.close()

    # `status` and `why` say what is to come.
    assert lake.run("status", "--scheduled", "-o", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)["tables"]
    assert (row["table"], row["scheduled"], row["running"]) == ("lake/t", True, None)
    assert lake.run("why", "lake/t") == 0
    said = capsys.readouterr().out
    assert "leveled: level 2, " in said
    assert "of revision 1: " in said

    # Then it is done: leveled compaction in turns of at most so many bytes; the request is taken back.
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    turns = lake.turns()[done:]
    assert turns
    assert {row["strategy"] for row in turns} == {"leveled"}
    assert all(row["bytes_removed"] <= 150_000 for row in turns), turns
    assert lake.properties("use.") == {}
    assert lake.contents() == before
    version = lake.version
    assert lake.run("apply", "--yes") == 0, capsys.readouterr()
    assert lake.version == version


def location_of(lake: Lake, capsys: Capture) -> str:
    """Where the table lies, as a plan spells it."""
    capsys.readouterr()
    assert lake.run("plan", "-o", "json") == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    return next(
        str(table["observed"]["location"]) for table in tables if table["observed"]["location"].endswith("lake/t")
    )
