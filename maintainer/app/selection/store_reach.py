"""Stores that are away, asked for a sign of life before tables are opened, and buckets that refuse each table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from maintainer.app.engine_access import OpenedEngine
from maintainer.errors import StoreRefusal, TableError
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


CONFIRMED = 2
"""As many tables of a bucket must be refused for one reason before the others are not asked for."""


@dataclass(slots=True)
class RefusingBuckets:
    """What buckets refused in one look. Credentials belong to a bucket, so one reason holds for all of its tables."""

    _refused: dict[tuple[str, str], list[StoreRefusal]] = field(default_factory=dict)

    def refused(self, ref: TableRef, error: StoreRefusal) -> None:
        """Keep what a table was refused for."""
        if bucket := _bucket_of(ref):
            self._refused.setdefault((bucket, error.code), []).append(error)

    def raise_known(self, ref: TableRef) -> None:
        """Raise for a table whose bucket refused two others alike.

        Raises:
            StoreRefusal: The reason, as of this table.
        """
        bucket = _bucket_of(ref)
        for (refusing, code), errors in list(self._refused.items()):
            if refusing == bucket and len(errors) >= CONFIRMED:
                why = errors[0]
                raise StoreRefusal(why.what, code=code, where=ref.identifier, found=why.found, help=why.help)


def _bucket_of(ref: TableRef) -> str:
    return urlsplit(ref.location).netloc if ref.is_path else ""
