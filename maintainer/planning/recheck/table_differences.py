"""Say in sentences how a table, or its policy, is not as it was planned. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from maintainer.model.plan.plan import PlannedColumn, TablePlan
from maintainer.model.table.table_facts import Protocol
from maintainer.policy.resolve.policy_values import PolicyValues, value_changes

COLUMN_ID = "delta.columnMapping.id"
"""Stays with a column that is renamed; only tables with column mapping have it."""

MAX_CHANGES = 10
"""Sentences about columns of one table, and about keys of its policy; what is more is counted."""


def column_changes(planned: Sequence[PlannedColumn], now: Sequence[PlannedColumn]) -> tuple[str, ...]:
    """Say which columns were added, removed, renamed or changed, and how; nothing where they are the same."""
    if tuple(planned) == tuple(now):
        return ()
    changes = list(_changes(planned, now)) or ["the order of the columns was changed"]
    return _first(changes, "changes of columns")


def policy_changes_since(plan: TablePlan, values_now: PolicyValues) -> tuple[str, ...]:
    """Say which keys of a table's policy are not as they were planned: ``vacuum.retention was 7d, now 8d``.

    Args:
        plan: The plan of the table, of which something is carried out.
        values_now: What the policy says now.
    """
    known = bool(plan.policy_values and values_now)
    changes = [f"policy key {change}" for change in value_changes(plan.policy_values, values_now)] if known else []
    return _first(changes, "changes of its policy") if changes else (f"its policy was changed ({plan.policy_file})",)


def _first(changes: Sequence[str], noun: str) -> tuple[str, ...]:
    rest = len(changes) - MAX_CHANGES
    return (*changes[:MAX_CHANGES], *((f"{rest:,} more {noun}",) if rest > 0 else ()))


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
            yield from _column_differences(column, after[name])
            continue
        new = by_id.get(_column_id(column) or "")
        if new is None:
            yield f"column {name} ({column.type}) was removed"
        else:
            renamed.add(new.name)
            yield f"column {name} was renamed to {new.name}"
            yield from _column_differences(column, new)
    for name, column in after.items():
        if name not in before and name not in renamed:
            yield f"column {name} ({column.type}) was added"


def _column_differences(before: PlannedColumn, now: PlannedColumn) -> Iterator[str]:
    if before.type != now.type:
        yield f"column {now.name} was of type {before.type}, now {now.type}"
    if before.nullable != now.nullable:
        yield f"column {now.name} {'may be null now' if now.nullable else 'must not be null any more'}"
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


def protocol_changes(planned: Protocol, now: Protocol) -> Iterator[str]:
    """Say which table features and which protocol versions are other ones."""
    if planned == now:
        return
    before = {*planned.reader_features, *planned.writer_features}
    after = {*now.reader_features, *now.writer_features}
    for feature in sorted(after - before):
        yield f"the table feature {feature} was added"
    for feature in sorted(before - after):
        yield f"the table feature {feature} was removed"
    for what, old, new in (
        ("reader", planned.min_reader_version, now.min_reader_version),
        ("writer", planned.min_writer_version, now.min_writer_version),
    ):
        if old != new:
            yield f"the protocol's {what} version was {old}, now {new}"
    if before == after and planned.reader_features != now.reader_features:
        yield names_changed("the reader features", planned.reader_features, now.reader_features)


def names_changed(what: str, planned: tuple[str, ...], now: tuple[str, ...]) -> str:
    """Say which names were there and which are now: ``the partition columns were a, now none``."""
    return f"{what} were {_listed(planned)}, now {_listed(now)}"


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(columns) or "none"
