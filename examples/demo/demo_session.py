"""How the demo writes, reads and ages Delta tables: with Spark, and in their folders without it.

The demo is handed a session and imports nothing of Spark: only ``maintainer.delta`` may. An aged table looks as if it
had been written days ago, so that a vacuum finds files that are really expired. A vacuum deletes a file when the log
removed it longer ago than the retention. A demo cannot wait a week, and lowering the retention would show the wrong
habit. So the log's own times are moved back: the time of each commit, of each file it added and removed, and of the
files on disk. Nothing else in a commit changes.

Only for tables of the demo that nobody has open: Spark keeps a table's log in memory by its path, so age a table
under one path and move its folder to another one before it is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maintainer.model.table.log_names import COMMIT_NAME, LAST_CHECKPOINT, LOG_FOLDER, is_of_log

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import DataFrame as Frame
    from maintainer.delta.spark.spark_session import SparkSession as Session


def commit_files(table: Path) -> list[Path]:
    """Return the JSON commits of the table's log, oldest first."""
    return sorted(path for path in (table / LOG_FOLDER).iterdir() if COMMIT_NAME.match(path.name))


def newest_version(table: Path) -> int:
    """Return the version of the newest commit.

    Raises:
        FileNotFoundError: When the folder holds no Delta log.
    """
    commits = commit_files(table)
    if not commits:
        raise FileNotFoundError(f"no commits in {table / LOG_FOLDER}")
    return int(commits[-1].stem)


def data_files(table: Path) -> list[Path]:
    """Return all Parquet files outside the log, whether a version refers to them or not."""
    return sorted(path for path in table.rglob("*.parquet") if LOG_FOLDER not in path.relative_to(table).parts)


@contextmanager
def persisted(frame: Frame) -> Iterator[Frame]:
    """Keep rows in memory while they are written in several loads."""
    try:
        yield frame.persist()
    finally:
        frame.unpersist()


def append(
    frame: Frame,
    table: Path,
    *,
    partition_by: str | None = None,
    properties: Mapping[str, str] | None = None,
    mode: str = "append",
) -> None:
    """Add rows in one commit with one file per partition of the table.

    ``partition_by`` and ``properties`` (``delta.*``) take effect when the append makes the table. The mode
    ``overwrite`` replaces all rows; the old files stay on storage until a vacuum.
    """
    writer = frame.coalesce(1).write.format("delta").mode(mode).options(**(properties or {}))
    if partition_by is not None:
        writer = writer.partitionBy(partition_by)
    writer.save(str(table))


def read_table(spark: Session, table: Path) -> Frame:
    """Return the newest version of a Delta table."""
    return spark.read.format("delta").load(str(table))


def delete_rows(spark: Session, table: Path, condition: str) -> None:
    """Run one DELETE."""
    spark.sql(f"DELETE FROM {quoted(table)} WHERE {condition}").collect()


def quoted(table: Path) -> str:
    """Return the table's name in Spark SQL."""
    return "delta.`" + str(table).replace("`", "``") + "`"


def describe(table: Path, how: str) -> str:
    """Describe a table that was just built in one line: its files, its bytes and how they were made."""
    files = data_files(table)
    size_bytes = sum(file.stat().st_size for file in files)
    return f"{table.name:<9} {len(files):>4} files  {size_bytes / 2**20:>5.1f} MiB   {how}"


_TIMES_MS = {
    "commitInfo": ("timestamp", "inCommitTimestamp"),
    "metaData": ("createdTime",),
    "add": ("modificationTime",),
    "remove": ("deletionTimestamp",),
    "txn": ("lastUpdated",),
}
"""Action and its fields that hold a time (milliseconds since 1970), by the Delta protocol."""

_MAX_COMMITS = 1000


@dataclass(frozen=True, slots=True)
class Aged:
    """What was moved back: commits rewritten and files whose time on disk changed."""

    commits: int
    files: int


def age_table(table: Path, by: timedelta) -> Aged:
    """Move every time in the table's log and on its files back.

    Checksums of the commits (Delta's ``.crc``, Hadoop's ``.*.crc``) no longer fit and are removed; Delta
    writes new ones with the next commit.

    Args:
        table: Folder of a Delta table that nobody has open.
        by: How far back, more than zero.

    Raises:
        ValueError: When the log has a checkpoint (its times could not be moved), more than 1,000 commits
            or none, or ``by`` is not positive: a bug, for the demo ages only what it built.
    """
    if by <= timedelta(0):
        raise ValueError(f"a table can only be made older, not by {by}")
    log = table / LOG_FOLDER
    commits = commit_files(table) if log.is_dir() else []
    if not 0 < len(commits) <= _MAX_COMMITS:
        raise ValueError(f"{log} cannot be aged: {len(commits)} commits, and 1 to {_MAX_COMMITS} can be")
    others = {path.name for path in log.iterdir()} - {commit.name for commit in commits}
    if any(name == LAST_CHECKPOINT or is_of_log(name) for name in others):
        raise ValueError(f"{log} has a checkpoint and cannot be aged")

    for commit in commits:
        lines = commit.read_text(encoding="utf-8").splitlines()
        text = "".join(age_action(line, by) + "\n" for line in lines if line.strip())
        written = commit.with_suffix(".aged")
        written.write_text(text, encoding="utf-8")
        # The time on disk is taken over before it is moved below together with that of all other files.
        stat = commit.stat()
        os.utime(written, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        written.replace(commit)
    for checksum in log.rglob("*.crc"):
        checksum.unlink()
    return Aged(len(commits), _age_files(table, by))


def age_action(line: str, by: timedelta) -> str:
    """Return one action of a commit with its times moved back."""
    action: dict[str, dict[str, Any]] = json.loads(line)
    for kind, fields in _TIMES_MS.items():
        body = action.get(kind)
        for field in fields if body else ():
            if body is not None and isinstance(body.get(field), int):
                body[field] -= by // timedelta(milliseconds=1)
    return json.dumps(action, separators=(",", ":"), ensure_ascii=False)


def _age_files(table: Path, by: timedelta) -> int:
    by_ns = by // timedelta(microseconds=1) * 1000
    count = 0
    for path in table.rglob("*"):
        if path.is_file() and not path.is_symlink():
            stat = path.stat()
            os.utime(path, ns=(stat.st_atime_ns - by_ns, stat.st_mtime_ns - by_ns))
            count += 1
    return count
