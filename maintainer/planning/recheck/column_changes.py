"""Describe how a table's columns changed since a plan was made: one sentence for each changed column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from maintainer.model.plan.plan import PlannedColumn

COLUMN_ID = "delta.columnMapping.id"
"""Stays with a column that is renamed; only tables with column mapping have it."""

MAX_CHANGES = 10
"""Sentences about columns of one table; what is more is counted."""


def column_changes(planned: Sequence[PlannedColumn], now: Sequence[PlannedColumn]) -> tuple[str, ...]:
    """Say which columns were added, removed, renamed or changed, and how; nothing where they are the same."""
    if tuple(planned) == tuple(now):
        return ()
    changes = list(_changes(planned, now)) or ["the order of the columns was changed"]
    rest = len(changes) - MAX_CHANGES
    return (*changes[:MAX_CHANGES], *((f"{rest:,} more changes of columns",) if rest > 0 else ()))


def _changes(planned: Sequence[PlannedColumn], now: Sequence[PlannedColumn]) -> Iterator[str]:
    before, after = {column.name: column for column in planned}, {column.name: column for column in now}
    by_id = {
        column_id: column
        for column in now
        if column.name not in before and (column_id := _column_id(column)) is not None
    }
    renamed: set[str] = set()
    for name, column in before.items():
        if name in after:
            yield from _differences(column, after[name])
            continue
        new = by_id.get(_column_id(column) or "")
        if new is None:
            yield f"column {name} ({column.type}) was removed"
        else:
            renamed.add(new.name)
            yield f"column {name} was renamed to {new.name}"
            yield from _differences(column, new)
    for name, column in after.items():
        if name not in before and name not in renamed:
            yield f"column {name} ({column.type}) was added"


def _differences(before: PlannedColumn, now: PlannedColumn) -> Iterator[str]:
    if before.type != now.type:
        yield f"column {now.name} was of type {before.type}, now {now.type}"
    if before.nullable != now.nullable:
        yield f"column {now.name} {'may hold null now' if now.nullable else 'must not hold null any more'}"
    old, new = dict(before.metadata), dict(now.metadata)
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            what = "comment" if key == "comment" else f"metadata {key}"
            yield f"the {what} of column {now.name} was {_value(old.get(key))}, now {_value(new.get(key))}"


def _column_id(column: PlannedColumn) -> str | None:
    return dict(column.metadata).get(COLUMN_ID)


def _value(text: str | None) -> str:
    """A value as people write it: long ones are cut, for a comment may be a page."""
    if text is None:
        return "not set"
    value = json.loads(text)
    shown = value if isinstance(value, str) else text
    return repr(shown[:60] + "..." if len(shown) > 60 else shown)
