"""What the demo reads from a table's folder without Spark: data files and the newest version."""

from __future__ import annotations

import re
from pathlib import Path

_COMMIT = re.compile(r"(\d{20})\.json")
LOG_FOLDER = "_delta_log"


def commit_files(table: Path) -> list[Path]:
    """Return the JSON commits of the table's log, oldest first."""
    return sorted(path for path in (table / LOG_FOLDER).iterdir() if _COMMIT.fullmatch(path.name))


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
