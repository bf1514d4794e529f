"""Stores and metastores that are away, and buckets that refuse each of their tables for one reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from maintainer.engine.protocols import SignOfLife, TableReader
from maintainer.errors import StoreRefusal
from maintainer.model.table.table_facts import TableFacts, TableRef

CONFIRMED = 2
"""As many tables of a bucket must be refused for one reason before the others are not asked for."""


@dataclass(slots=True)
class RefusingBuckets:
    """What buckets refused in one look. Credentials belong to a bucket, so one reason holds for all of its tables.

    ``signs`` are the signs of life that tables wait for; ``others_wait`` tells whether other tables wait for these.
    """

    signs: Mapping[str, SignOfLife] = field(default_factory=dict)
    others_wait: Callable[[], bool] = lambda: False
    _refused: dict[tuple[str, str], list[StoreRefusal]] = field(default_factory=dict)

    def facts(self, reader: TableReader, ref: TableRef) -> TableFacts:
        """Read a table, unless its bucket is known to refuse it.

        Raises:
            MaintainerError: As ``TableReader.facts``, or the reason that is known.
        """
        self.raise_known(ref)
        try:
            return reader.facts(ref)
        except StoreRefusal as error:
            self.refused(ref, error)
            raise

    def refused(self, ref: TableRef, error: StoreRefusal) -> None:
        """Keep what a table was refused for."""
        if bucket := _bucket_of(ref):
            self._refused.setdefault((bucket, error.code), []).append(error)

    def raise_known(self, ref: TableRef) -> None:
        """Raise for a table whose store or metastore is away, or whose bucket refused two others alike.

        Raises:
            MaintainerError: The reason, as of this table.
        """
        sign = self.signs.get(ref.identifier)
        if sign is not None and (away := sign.error(self.others_wait)) is not None:
            raise away
        bucket = _bucket_of(ref)
        for (refusing, code), errors in list(self._refused.items()):
            if refusing == bucket and len(errors) >= CONFIRMED:
                why = errors[0]
                raise StoreRefusal(why.what, code=code, where=ref.identifier, found=why.found, help=why.help)


def _bucket_of(ref: TableRef) -> str:
    return urlsplit(ref.location).netloc if ref.is_path else ""
