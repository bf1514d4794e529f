"""What the history says of a Z-order: by whom does not matter, by which columns does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from maintainer.delta.log.commit_history import (
    MAX_HISTORY_READ,
    MAX_ZORDER_COMMITS_READ,
    paths_of_rewrites,
    paths_of_zorder,
    zordered_by,
)
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.table_log import LogEntry, TableLog
from maintainer.model.table.commit_records import CommitStamp
from tests.support.tables.builders import make_facts


def entry_at(version: int, at_ms: int = 0) -> LogEntry:
    return LogEntry(version, StoredFile(f"file:/lake/{version}", -1, at_ms, False, False))


class Log(TableLog):
    """Commits in memory; remembers from where they were asked for."""

    def __init__(self, *infos: dict[str, Any]) -> None:
        super().__init__(LocalFiles(), "file:/lake")
        self.made = infos
        self.asked: list[int] = []

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        self.asked.append(after_version)
        return [entry_at(number) for number in range(after_version + 1, len(self.made))]

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        return self.made[entry.version]

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        yield {"commitInfo": self.made[entry.version]}
        yield {"remove": {"path": "gone"}}
        yield {"add": {"path": f"f{entry.version}"}}


def optimize(columns: str) -> dict[str, Any]:
    return {"operation": "OPTIMIZE", "operationParameters": {"predicate": "[]", "zOrderBy": columns}}


def test_paths_are_those_of_commits_that_ordered_by_just_these_columns() -> None:
    log = Log(optimize('["a","b"]'), optimize('["B"]'), optimize("[]"), {"operation": "WRITE"}, optimize('["A", "b"]'))
    facts = make_facts(version=4)
    assert paths_of_zorder(log, facts, ("a", "B")) == {"f0", "f4"}
    assert paths_of_zorder(log, facts, ("b",)) == {"f1"}
    assert paths_of_zorder(log, make_facts(version=3), ("a", "b")) == {"f0"}


def test_only_the_newest_commits_are_read() -> None:
    log = Log(*[optimize('["a"]')] * (MAX_ZORDER_COMMITS_READ + 10))
    facts = paths_of_zorder(log, make_facts(version=MAX_ZORDER_COMMITS_READ + 9), ("a",))
    assert len(facts) == MAX_ZORDER_COMMITS_READ
    assert log.asked == [9]


class Timed(Log):
    """One commit a second; a commit adds a file without and one with new data."""

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        return [entry_at(entry.version, entry.version * 1000) for entry in super().commits(after_version=after_version)]

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        for number, (kind, changes) in enumerate(product(("add", "remove"), (False, True, None))):
            body = {"path": f"{kind}{entry.version}-{number}"} | ({} if changes is None else {"dataChange": changes})
            yield {kind: body}


def test_files_of_rewrites_are_those_that_maintenance_added_without_data() -> None:
    stamp = {"userMetadata": CommitStamp("20261121T220001Z-0000", "t/compact", 0, "d").to_json()}
    log = Timed(*({"operation": name} for name in ("OPTIMIZE", "WRITE", "REORG", "MERGE")), stamp, {}, optimize("[]"))
    assert paths_of_rewrites(log, make_facts(version=5), 0) == {"add0-0", "add2-0", "add4-0"}
    assert paths_of_rewrites(log, make_facts(version=6), 2001) == {"add4-0", "add6-0"}


def test_a_log_is_not_read_further_than_so_many_commits() -> None:
    log = Timed(*[optimize("[]")] * (MAX_HISTORY_READ + 200))
    paths_of_rewrites(log, make_facts(version=MAX_HISTORY_READ + 199), 0)
    assert log.asked == [199]


@pytest.mark.parametrize(
    "info",
    [{}, {"operation": "WRITE"}, optimize("{"), optimize("7"), {"operation": "OPTIMIZE", "operationParameters": None}],
)
def test_other_commits_ordered_by_nothing(info: dict[str, Any]) -> None:
    assert zordered_by(info) == []
