"""What the logs say: each operation's commit, and the rows and changes that follow from them in their order."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.soak_lake import value_of
from tests.soak.traffic.operation_ledger import Operation, OperationRecord
from tests.soak.traffic.rust_appender import OPERATION_KEY

Row = tuple[int, int, int, str]
"""Id, partition, value, note."""
Change = tuple[str, int, int, int, int, str]
"""Kind of change, version, and the row."""


@dataclass(frozen=True)
class LoggedCommit:
    """One commit of a table's log."""

    version: int
    info: dict[str, Any]
    adds: tuple[str, ...]
    removes: tuple[str, ...]
    change_files: tuple[str, ...] = ()

    @property
    def operation_name(self) -> str | None:
        """The operation of a writer whose commit it is; None for others."""
        return self.info.get(OPERATION_KEY) or (None if self.maintainer_kind else self.info.get("userMetadata"))

    @property
    def maintainer_kind(self) -> str | None:
        """The kind of step of `maintainer` whose commit it is; None for others."""
        try:
            step = str(json.loads(self.info["userMetadata"])["maintainer"]["step"])
        except (KeyError, TypeError, ValueError):
            return None
        return step.rpartition("/")[2].partition("#")[0]

    @property
    def timestamp_ms(self) -> int:
        """When it says that it was made."""
        return int(self.info.get("timestamp", 0))


def read_commits(table: Path) -> list[LoggedCommit]:
    """Return the commits of a table in their order; none may be missing."""
    commits = []
    for number, path in enumerate(sorted((table / "_delta_log").glob("[0-9]*[0-9].json"))):
        if int(path.stem) != number:
            raise ValueError(f"{table}: version {number} is missing from the log")
        actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        commits.append(
            LoggedCommit(number, info, _paths(actions, "add"), _paths(actions, "remove"), _paths(actions, "cdc"))
        )
    return commits


def _paths(actions: list[dict[str, Any]], kind: str) -> tuple[str, ...]:
    return tuple(action[kind]["path"] for action in actions if kind in action)


@dataclass
class TableReplay:
    """What a table must hold, by its writers' operations in the order of their commits."""

    rows: dict[int, Row] = field(default_factory=dict)
    appended: Counter[Row] = field(default_factory=Counter)
    changes: Counter[Change] = field(default_factory=Counter)
    landed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def carry_out(self, operation: Operation, version: int) -> None:
        """Do what the operation does."""
        self.landed[operation.name].append(version)
        match operation.kind:
            case "append":
                for row_id in range(operation.low, operation.high + 1):
                    self._insert(self._new_row(operation, row_id), version)
                    self.appended[self.rows[row_id]] += 1
            case "delete":
                for row_id in range(operation.low, operation.high + 1):
                    if row_id in self.rows:
                        self.changes.update([("delete", version, *self.rows.pop(row_id))])
            case "merge":
                for row_id in (*operation.updated, *range(operation.low, operation.high + 1)):
                    self._upsert(self._new_row(operation, row_id), version)

    def _new_row(self, operation: Operation, row_id: int) -> Row:
        return row_id, operation.part, value_of(row_id, operation.salt), operation.name

    def _insert(self, row: Row, version: int) -> None:
        self.rows[row[0]] = row
        self.changes.update([("insert", version, *row)])

    def _upsert(self, row: Row, version: int) -> None:
        old = self.rows.get(row[0])
        if old is None:
            self._insert(row, version)
            return
        new = (row[0], old[1], row[2], row[3])
        self.rows[row[0]] = new
        self.changes.update([("update_preimage", version, *old)])
        self.changes.update([("update_postimage", version, *new)])


def replay(commits: list[LoggedCommit], records: dict[str, OperationRecord]) -> TableReplay:
    """Carry out the operations that the commits name."""
    result = TableReplay()
    for commit in commits:
        if commit.operation_name in records:
            result.carry_out(records[commit.operation_name].operation, commit.version)
    return result


def strange_commits(commits: list[LoggedCommit], records: dict[str, OperationRecord]) -> Iterator[str]:
    """Name commits that are neither a known operation's nor `maintainer`'s; the first one made the table."""
    for commit in commits[1:]:
        if commit.maintainer_kind is None and commit.operation_name not in records:
            yield f"version {commit.version} ({commit.info.get('operation')}) is nobody's"
