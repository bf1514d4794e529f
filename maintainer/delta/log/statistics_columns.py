"""Name the columns of a table that may have statistics in its log.

Which types get bounds is decided twice, by the lane that writes them and by the proof that judges them: a mistake in
a rule that both use would prove itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maintainer.delta.log.schema_names import physical_name


@dataclass(frozen=True, slots=True)
class StatisticsColumn:
    """One column that may have statistics: a leaf of the schema, where arrays and maps count as leaves."""

    logical: tuple[str, ...]
    physical: tuple[str, ...]
    kind: str

    @property
    def name(self) -> str:
        """The name for people."""
        return ".".join(self.logical)


def statistics_columns(schema: dict[str, Any], partition_columns: tuple[str, ...]) -> tuple[StatisticsColumn, ...]:
    """Every leaf of a table's schema that is stored in its files, in order."""
    hidden = {partition_column.lower() for partition_column in partition_columns}
    fields = [field for field in schema["fields"] if field["name"].lower() not in hidden]
    return tuple(_leaves(fields, (), ()))


def _leaves(
    fields: list[dict[str, Any]], logical: tuple[str, ...], physical: tuple[str, ...]
) -> Iterator[StatisticsColumn]:
    for field in fields:
        kind, metadata = field["type"], field.get("metadata") or {}
        here = (*logical, field["name"])
        stored = (*physical, physical_name(field))
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _leaves(kind["fields"], here, stored)
        else:
            plain = kind if isinstance(kind, str) else kind["type"]
            collated = "__COLLATIONS" in metadata
            yield StatisticsColumn(here, stored, f"{plain} collated" if collated else plain)
