"""Tables whose store or metastore is away, which is asked for a sign of life before they are opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from maintainer.app.engine_access import OpenedEngine
from maintainer.engine.protocols import SignOfLife
from maintainer.model.table.table_facts import TableRef
from maintainer.units import count_of


def tables_out_of_reach(
    opened: OpenedEngine, tables: Iterable[TableRef], *, ends: bool = True
) -> Mapping[str, SignOfLife]:
    """Begin to ask where tables are, and return what tells for each, by its identifier, whether that is away.

    It waits only where nothing else can be done meanwhile.

    Args:
        opened: The engine.
        tables: The tables that will be opened.
        ends: Whether the command ends where none of them can be reached.

    Raises:
        MaintainerError: T435 or E647, all of them are certainly away.
    """
    refs = {ref.identifier: ref for ref in tables}
    signs = opened.signs_of_life(refs.values())
    if not ends or not refs or len(signs) < len(refs):
        return signs
    lost = {}
    for name in sorted(refs):
        if (error := signs[name].error()) is None:
            return signs
        lost[name] = error
    first, *others = lost
    error = lost[first]
    error.where = first + (f" and {count_of(len(others), 'more table')}" if others else "")
    error.found = "; ".join(sorted({table.found or "" for table in lost.values()}))
    raise error
