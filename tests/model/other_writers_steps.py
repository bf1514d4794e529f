"""What others do to the table of the model, each statement in two steps: it reads, and later it commits or fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.model.lake_state import Key, Lake


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that is still to be run, or that has read and not committed yet.

    Attributes:
        kind: ``append``, ``delete`` (of a row), ``restore`` (of the version before), ``compact`` or ``tick``.
        row: The row that is appended or deleted.
        head: The version that it read, None before.
    """

    kind: str
    row: int = 0
    head: int | None = None


def moves(lake: Lake, statement: Statement) -> Iterator[tuple[Lake, Statement | None]]:
    """Where a statement may be after its next step; None is its end."""
    if statement.kind == "tick":
        yield replace(lake, clock=lake.clock + 1), None
    elif statement.head is None:
        yield lake, replace(statement, head=lake.head)
    else:
        yield _commit(lake, statement, statement.head), None


def _commit(lake: Lake, statement: Statement, head: int) -> Lake:
    """Commit what a statement decided at a version, if nothing that it read was changed since; else it fails."""
    read = lake.live(head)
    match statement.kind:
        case "append":
            name = f"append{statement.row}"
            appended = lake.with_file(name, [statement.row]).committed([(name, ())], [])
            return replace(appended, expected=lake.expected | {statement.row})
        case "delete":
            change = _without_row(lake, read, statement.row)
            if change is None or change[0] not in lake.live():
                return lake
            removed, added = change
            deleted = lake.committed([added] if added is not None else [], [removed])
            return replace(deleted, expected=lake.expected - {statement.row})
        case "restore":
            if head == 0 or lake.head != head:
                return lake
            wanted, live = lake.live(head - 1), lake.live()
            if any(name not in lake.storage for name, _ in wanted - live):
                return lake  # Delta refuses: files are missing
            restored = lake.committed(sorted(wanted - live), sorted(live - wanted))
            return replace(restored, expected=frozenset(lake.visible(wanted)))
        case _:
            rows = lake.visible(read)
            if lake.live() != read or len(read) < 2:
                return lake
            name = f"theirs{lake.head}"
            return lake.with_file(name, rows).committed([(name, ())], sorted(read))


def _without_row(lake: Lake, read: frozenset[Key], row: int) -> tuple[Key, Key | None] | None:
    """The file that has the row and the same file without it; no file at all where it was the last row."""
    for name, gone in sorted(read):
        rows = lake.rows_of(name)
        if row in rows and rows.index(row) not in gone:
            places = tuple(sorted((*gone, rows.index(row))))
            return (name, gone), ((name, places) if len(places) < len(rows) else None)
    return None
