"""Stores that are away, asked for a sign of life before tables are opened."""

from __future__ import annotations

from collections.abc import Iterable

from maintainer.app.engine_access import OpenedEngine
from maintainer.errors import TableError
from maintainer.model.table.table_facts import TableRef
from maintainer.units import count_of


def tables_out_of_reach(
    opened: OpenedEngine, tables: Iterable[TableRef], *, ends: bool = True
) -> dict[str, TableError]:
    """Return T435 for each table, by its identifier, whose store is certainly away.

    Args:
        opened: The engine.
        tables: The tables that will be opened.
        ends: Whether the command ends where none of them can be reached.

    Raises:
        TableError: T435, they all lie on stores that are away.
    """
    refs = {ref.identifier: ref for ref in tables}
    away = opened.away({ref.location for ref in refs.values() if ref.is_path})
    lost = {name: away[ref.location] for name, ref in refs.items() if ref.location in away}
    if ends and lost and len(lost) == len(refs):
        first, *others = sorted(lost)
        error = lost[first]
        error.where = first + (f" and {count_of(len(others), 'more table')}" if others else "")
        error.found = "; ".join(sorted({table.found or "" for table in lost.values()}))
        raise error
    return lost
