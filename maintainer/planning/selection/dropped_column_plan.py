"""Find files that may still hold dropped columns, and open as few as possible.

With column mapping, DROP COLUMN changes only the schema; the values stay in the files. REORG PURGE reads the footer
of every file of the table each time. Three checks come first here. Column ids are never reused, so ids up to
``delta.columnMapping.maxColumnId`` that the schema lacks are the dropped columns; without any there is nothing to do.
Files that we wrote carry a digest of the columns dropped at that time; an equal digest means that none was dropped
since. And a file written after such a file was written without the same columns. Only the remaining files are opened.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from maintainer.model.plan.steps import DROPPED_COLUMNS_TAG
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.selection.schema_columns import read_schema

CLOCK_SLACK_MS = 3_600_000
"""How far the clocks of two writers may differ: a file is known to be later than another one only by more than this."""

MAX_COLUMN_ID = 1_000_000
"""Above it the ids are not looked at: no table has so many columns, so the property is not what it says."""

_MODE = "delta.columnMapping.mode"
_MAX_ID = "delta.columnMapping.maxColumnId"
_ID = "delta.columnMapping.id"
_NESTED_IDS = "delta.columnMapping.nested.ids"


def dropped_columns_digest(facts: TableFacts) -> str | None:
    """Digest the ids of all columns that were ever dropped; None where none was, or column mapping is off.

    Raises:
        TableError: T403, the schema cannot be read.
    """
    properties = facts.property_map
    largest = properties.get(_MAX_ID, "")
    if properties.get(_MODE, "none") not in ("name", "id") or not largest.isdecimal():
        return None
    if not 0 < int(largest) <= MAX_COLUMN_ID:
        return None
    used: set[int] = set()
    _collect_ids(read_schema(facts), used)
    dropped = [number for number in range(1, int(largest) + 1) if number not in used]
    return hashlib.sha256(json.dumps(dropped).encode()).hexdigest()[:16] if dropped else None


def files_to_open(facts: TableFacts) -> tuple[DataFile, ...]:
    """Return the files of which only their own footers say whether they hold dropped columns, oldest first."""
    digest = dropped_columns_digest(facts)
    if digest is None:
        return ()
    times_ms = [file.modification_time_ms for file in facts.files if file.tag(DROPPED_COLUMNS_TAG) == digest]
    latest_ms = min(times_ms) + CLOCK_SLACK_MS if times_ms else None
    return tuple(
        sorted(
            (
                file
                for file in facts.files
                if file.tag(DROPPED_COLUMNS_TAG) != digest
                and (latest_ms is None or file.modification_time_ms <= latest_ms)
            ),
            key=lambda file: (file.modification_time_ms, file.key),
        )
    )


def _collect_ids(value: Any, ids: set[int]) -> None:  # noqa: ANN401 (any JSON value)
    """Collect the ids of all fields, also of fields within structs, arrays and maps."""
    if isinstance(value, dict):
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            if isinstance(metadata.get(_ID), int):
                ids.add(metadata[_ID])
            nested = metadata.get(_NESTED_IDS)
            if isinstance(nested, dict):
                ids |= {number for number in nested.values() if isinstance(number, int)}
        for key, inner in value.items():
            if key != "metadata":
                _collect_ids(inner, ids)
    elif isinstance(value, list):
        for inner in value:
            _collect_ids(inner, ids)
