"""Makes a table look as if it had been written days ago, so that a vacuum finds files that are really expired.

A vacuum deletes a file when the log removed it longer ago than the retention. A demo cannot wait a week, and
lowering the retention would show the wrong habit. So the log's own times are moved back: the time of each
commit, of each file it added and removed, and of the files on disk. Nothing else in a commit changes.

Only for tables of the demo that nobody has open: Spark keeps a table's log in memory by its path, so age a
table under one path and move its folder to another one before it is read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from maintainer.cli.demo.sample_files import LOG_FOLDER, commit_files

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
    if any(".checkpoint." in path.name or path.name == "_last_checkpoint" for path in log.iterdir()):
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
