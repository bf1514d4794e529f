"""A seeded fleet of small Delta tables for benchmarks, and readers of their logs that need no Spark.

Three kinds of tables: *fragmented* (many small files, and files past retention from an overwrite ten days
ago), *healthy* (one file) and *medium* (fewer and larger files). The same seed gives the same rows; file
names and times differ.
"""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from examples.demo.demo_session import age_table, commit_files, data_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXPIRED_FILES = 10
_AGE = timedelta(days=10)
_MEDIUM_FILE_BYTES = 4 * 2**20
_ROW_BYTES = 53  # of the rows below, compressed, measured


@dataclass(frozen=True, slots=True)
class FleetSize:
    """How many tables of each kind, and how large."""

    fragmented: int = 6
    files: int = 40
    rows_per_file: int = 2_000
    healthy: int = 2
    medium: int = 1
    medium_bytes: int = 96 * 2**20

    def describe(self) -> str:
        """One sentence for a report."""
        return (
            f"Tables: {self.fragmented} fragmented ({self.files} files of {self.rows_per_file:,} rows, and "
            f"{EXPIRED_FILES} expired files), {self.healthy} healthy (one file), {self.medium} medium (about "
            f"{self.medium_bytes // 2**20} MiB in files of 4 MiB)"
        )


@dataclass(frozen=True, slots=True)
class TableState:
    """One table as its log and its folder show it, read without Spark.

    ``rewritten_bytes`` are the bytes added by commits that changed no data (``dataChange`` false).
    """

    version: int
    live: tuple[str, ...]
    live_bytes: int
    on_disk: int
    rewritten_bytes: int


def build_fleet(spark: SparkSession, lake: Path, size: FleetSize, seed: int) -> list[str]:
    """Build the tables into ``lake`` and return their names."""
    names = []
    for number in range(size.fragmented):
        names.append(f"fragmented_{number:02d}")
        _build_aged(spark, lake / names[-1], size, seed * 1000 + number)
    for number in range(size.healthy):
        names.append(f"healthy_{number:02d}")
        rows = make_rows(spark, size.rows_per_file, 1, seed * 1000 + 500 + number)
        rows.write.format("delta").save(str(lake / names[-1]))
    for number in range(size.medium):
        names.append(f"medium_{number:02d}")
        files = math.ceil(size.medium_bytes / _MEDIUM_FILE_BYTES)
        rows = make_rows(spark, files * (_MEDIUM_FILE_BYTES // _ROW_BYTES), files, seed * 1000 + 900 + number)
        rows.write.format("delta").save(str(lake / names[-1]))
    return names


def make_rows(spark: SparkSession, rows: int, files: int, seed: int) -> DataFrame:
    """Rows of a plain event table: the id, a hash, a key of a thousand values, a time and a text."""
    return spark.range(0, rows, 1, files).selectExpr(
        "id",
        f"xxhash64(id, {seed}L) AS h",
        f"CAST(pmod(xxhash64({seed}L, id), 1000) AS INT) AS k",
        "timestamp_seconds(1700000000 + id) AS t",
        f"md5(CAST(id + {seed} AS STRING)) AS s",
    )


def _build_aged(spark: SparkSession, table: Path, size: FleetSize, seed: int) -> None:
    # Built beside its place and moved: Spark remembers a log by its path, and this one changes under it.
    staged = table.with_name(f".{table.name}")
    garbage = make_rows(spark, EXPIRED_FILES * 100, EXPIRED_FILES, seed)
    garbage.write.format("delta").save(str(staged))
    rows = make_rows(spark, size.files * size.rows_per_file, size.files, seed)
    rows.write.format("delta").mode("overwrite").save(str(staged))
    age_table(staged, _AGE)
    staged.rename(table)


def copy_fleet(source: Path, target: Path) -> None:
    """Copy a lake with the times of its files: what expired stays expired."""
    shutil.copytree(source, target, copy_function=shutil.copy2)


def read_state(table: Path, *, since_version: int = -1) -> TableState:
    """Replay a table's JSON log.

    Args:
        table: Folder of the table.
        since_version: Bytes rewritten count from the commit after this one.

    Raises:
        ValueError: When the log does not start at version 0 (then a checkpoint would have to be read).
    """
    commits = commit_files(table)
    if not commits or int(commits[0].stem) != 0:
        raise ValueError(f"the log of {table} does not start at version 0")
    live: dict[str, int] = {}
    rewritten = 0
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                add = action["add"]
                live[add["path"]] = add["size"]
                if not add["dataChange"] and int(commit.stem) > since_version:
                    rewritten += add["size"]
            elif "remove" in action:
                live.pop(action["remove"]["path"], None)
    return TableState(
        version=int(commits[-1].stem),
        live=tuple(sorted(live)),
        live_bytes=sum(live.values()),
        on_disk=len(data_files(table)),
        rewritten_bytes=rewritten,
    )


def content(table: Path) -> tuple[int, int, int]:
    """Rows, sum of ids and sum of hashes of the newest version, read with pyarrow from the live files."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows, ids, hashes = 0, 0, 0
    for path in read_state(table).live:
        columns = pq.read_table(table / unquote(path), columns=["id", "h"])
        rows += columns.num_rows
        ids += pc.sum(columns["id"]).as_py() or 0
        # Half of each hash: the sum of whole ones leaves 64 bits.
        hashes += pc.sum(pc.shift_right(columns["h"], 32)).as_py() or 0
    return rows, ids, hashes
