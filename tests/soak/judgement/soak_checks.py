"""What must be true at the end of a soak; each check names what is not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake

from tests.soak.judgement.commit_replay import LoggedCommit, TableReplay, strange_commits
from tests.soak.soak_lake import TABLES, SoakTable
from tests.soak.soak_settings import SoakSettings
from tests.soak.traffic.operation_ledger import ACKNOWLEDGED, OperationRecord

MAX_EXAMPLES = 3
MAINTAINER_FILE = re.compile(r"(?:^|/)part-\d{8}T\d{6}Z-[0-9a-z]+-")
"""Names of files that `maintainer` writes carry the run."""
FILE_CLOCK_MS = 2000


def _differences(where: str, expected: Counter[Any], actual: Counter[Any]) -> Iterator[str]:
    for word, rest in (("missing", expected - actual), ("too many", actual - expected)):
        if rest:
            examples = ", ".join(map(str, sorted(rest)[:MAX_EXAMPLES]))
            yield f"{where}: {sum(rest.values())} {word}, such as {examples}"


def settled_operations(
    table: SoakTable, commits: list[LoggedCommit], records: dict[str, OperationRecord], replayed: TableReplay
) -> Iterator[str]:
    """Every acknowledged operation has landed, none has landed twice, and every commit is somebody's."""
    for text in strange_commits(commits, records):
        yield f"{table.name}: {text}"
    for name, versions in replayed.landed.items():
        if len(versions) > 1:
            yield f"{table.name}: {name} has landed in versions {versions}"
        if records[name].operation.table != table.name:
            yield f"{table.name}: {name} has landed here, it was meant for {records[name].operation.table}"
    for name, record in records.items():
        is_here = record.operation.table == table.name
        # A merge or delete that meets no row makes no commit; a merge of this soak always inserts.
        makes_a_commit = record.operation.kind != "delete"
        if is_here and makes_a_commit and record.outcome == ACKNOWLEDGED and name not in replayed.landed:
            yield f"{table.name}: {name} was acknowledged, and no commit names it"


def rows_in_table(table: SoakTable, settings: SoakSettings) -> Counter[Any]:
    """Return the rows of the newest version as delta-rs reads them."""
    query = deltalake.QueryBuilder().register("rows", deltalake.DeltaTable(str(table.path(settings))))
    columns = query.execute("SELECT id, part, value, note FROM rows").read_all()
    names = ("id", "part", "value", "note")
    return Counter(zip(*(columns.column(name).to_pylist() for name in names), strict=True))


def content(table: SoakTable, settings: SoakSettings, replayed: TableReplay) -> Iterator[str]:
    """The table holds each row that it must hold once, with its last value, and no other."""
    expected = Counter(replayed.rows.values())
    yield from _differences(f"{table.name}: rows in the table", expected, rows_in_table(table, settings))


def _seen(table: SoakTable, settings: SoakSettings) -> Counter[Any]:
    seen: Counter[Any] = Counter()
    for path in sorted((settings.streams / table.name).glob("batch-*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            values = (row["id"], row["part"], row["value"], row["note"])
            change = (row["_change_type"], row["_commit_version"]) if table.reader == "changes" else ()
            seen.update([(*change, *values)])
    return seen


def rows_read(settings: SoakSettings) -> dict[str, int]:
    """Return how many rows or changes each reader saw."""
    return {table.name: sum(_seen(table, settings).values()) for table in TABLES.values() if table.reader}


def reader_returns(settings: SoakSettings) -> int:
    """Return how often readers were away and came back."""
    return len(list(settings.streams.glob("*/return-*")))


def reader(table: SoakTable, settings: SoakSettings, replayed: TableReplay) -> Iterator[str]:
    """The reader saw each row that was appended, or each change, once, and never failed."""
    for path in sorted((settings.streams / table.name).glob("error-*")):
        yield f"{table.name}: the reader failed: {path.read_text(encoding='utf-8')[:600]}"
    expected: Counter[Any] = replayed.changes if table.reader == "changes" else replayed.appended
    yield from _differences(f"{table.name}: what the reader saw", expected, _seen(table, settings))


def files_on_disk(table: SoakTable, settings: SoakSettings) -> dict[str, Path]:
    """Return the data files below a table's folder by their names in the log."""
    root = table.path(settings)
    return {
        str(path.relative_to(root)): path
        for path in root.rglob("*.parquet")
        if "_delta_log" not in path.parts and not path.name.startswith(".")
    }


def unnamed_files(table: SoakTable, commits: list[LoggedCommit]) -> Iterator[str]:
    """Each file that `maintainer` adds carries its run: so those that a failed statement left can be told apart."""
    for commit in commits:
        if commit.maintainer_kind:
            for path in commit.adds:
                if not MAINTAINER_FILE.search(path):
                    yield f"{table.name}: version {commit.version} adds {path}, whose name does not say the run"


def files_left_by_writers(
    table: SoakTable, settings: SoakSettings, records: dict[str, OperationRecord], replayed: TableReplay
) -> list[Path]:
    """Return files written during a statement that failed or met no row, as far as they are not `maintainer`'s.

    Where a DELETE takes every row of a file, Spark removes the file and leaves the vector it wrote: so a vector may
    be any statement's. `maintainer` writes none.
    """
    left = []
    for path in table.path(settings).rglob("*"):
        if path.suffix not in (".parquet", ".bin", ".crc") or "_delta_log" in path.parts:
            continue
        if MAINTAINER_FILE.search(path.name):
            continue
        written_ms = path.stat().st_mtime_ns / 1e6
        is_vector = path.name.lstrip(".").startswith("deletion_vector_")
        if any(
            record.begun_ms - FILE_CLOCK_MS <= written_ms <= record.ended_ms + FILE_CLOCK_MS
            for name, record in records.items()
            if record.operation.table == table.name and (is_vector or name not in replayed.landed)
        ):
            left.append(path)
    return left


def late_files(
    table: SoakTable, settings: SoakSettings, commits: list[LoggedCommit], grace_seconds: float, now_ms: int
) -> list[str]:
    """Return files that the log removed longer ago than a vacuum may take, and which are still there.

    A file that gets a deletion vector is removed and added in one commit: it is live.
    """
    removed: dict[str, int] = {}
    for commit in commits:
        removed |= dict.fromkeys(commit.removes, commit.timestamp_ms)
        for path in commit.adds:
            removed.pop(path, None)
    limit = now_ms - 1000 * grace_seconds
    there = files_on_disk(table, settings)
    return sorted(path for path, moment in removed.items() if moment < limit and path in there)
