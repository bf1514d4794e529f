"""The table's schema as planning needs it: partition types, a list for the plan, columns by name, dropped columns.

The schema string is Delta's JSON (Spark's ``StructType.json``). Files that may still hold dropped columns are found
by opening as few as possible.

With column mapping, DROP COLUMN changes only the schema; the values stay in the files. REORG PURGE reads the footer
of every file of the table each time. Three checks come first here. Column ids are never reused, so ids up to
``delta.columnMapping.maxColumnId`` that the schema lacks are the dropped columns; without any there is nothing to do.
Files that we wrote carry a digest of the columns dropped at that time; an equal digest means that none was dropped
since. And a file written after such a file was written without the same columns. Only the remaining files are opened.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from maintainer.errors import LogUnreadable, TableError
from maintainer.model.plan.layout_tags import DROPPED_COLUMNS_TAG
from maintainer.model.plan.plan import PlannedColumn
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.policy.diagnostics import nearest
from maintainer.units import read_digits

# Moves with every append to a table with an identity column; it is state, not schema.
_STATE_KEYS = frozenset({"delta.identity.highWaterMark"})

_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^`.]+)")


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column of the schema: its name parts as the schema spells them, and its type's name."""

    parts: tuple[str, ...]
    type_name: str

    @property
    def dotted(self) -> str:
        """Parts joined by dots, for people."""
        return ".".join(self.parts)

    @property
    def quoted(self) -> str:
        """Parts joined by dots, in back-ticks where a part itself has a dot or a back-tick: safe to parse again.

        So ``TableFacts.columns_with_stats`` names columns, too.
        """
        return ".".join(
            "`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part for part in self.parts
        )


def read_schema(facts: TableFacts) -> list[dict[str, Any]]:
    """Return the fields of the schema.

    Raises:
        TableError: T403, the log's schema string cannot be read.
    """
    with suppress(ValueError, KeyError, TypeError):
        fields = json.loads(facts.schema_json)["fields"]
        if all(isinstance(field["name"], str) and "type" in field for field in fields):
            return list(fields)
    raise LogUnreadable(
        "the schema in the table's log cannot be read",
        where=at_version(facts),
        help=f"nothing was changed; compare the {LOG_FOLDER} folder with a backup",
    )


def at_version(facts: TableFacts) -> str:
    """Name the place of a finding: ``sales.orders@1841``."""
    return f"{facts.ref}@{facts.version}"


def planned_columns(facts: TableFacts) -> tuple[PlannedColumn, ...]:
    """List the schema for a plan: equal exactly when names, types, nullability, order and metadata are.

    Raises:
        TableError: T403, the schema cannot be read.
    """
    return tuple(_listed(read_schema(facts), ()))


def _listed(fields: list[dict[str, Any]], above: tuple[str, ...]) -> Iterator[PlannedColumn]:
    for field in fields:
        yield from _columns_of((*above, str(field.get("name"))), field.get("type"), field)


def _columns_of(path: tuple[str, ...], type_: Any, field: dict[str, Any]) -> Iterator[PlannedColumn]:  # noqa: ANN401
    """A field and everything in its type; elements of arrays, keys and values of maps count as fields."""
    metadata = without_state(field.get("metadata") or {})
    assert isinstance(metadata, dict)
    texts = tuple((name, json.dumps(value, sort_keys=True, ensure_ascii=False)) for name, value in metadata.items())
    name = FoundColumn(path, "").quoted
    kind = _type_name(type_)
    yield PlannedColumn(name, kind, bool(field.get("nullable", True)), tuple(sorted(texts)))
    if not isinstance(type_, dict):
        return
    match kind:
        case "struct":
            yield from _listed(type_.get("fields") or [], path)
        case "array":
            element = {"nullable": type_.get("containsNull", True)}
            yield from _columns_of((*path, "element"), type_.get("elementType"), element)
        case "map":
            value = {"nullable": type_.get("valueContainsNull", True)}
            yield from _columns_of((*path, "key"), type_.get("keyType"), {"nullable": False})
            yield from _columns_of((*path, "value"), type_.get("valueType"), value)
        case _:
            yield PlannedColumn(f"{name}.type", json.dumps(type_, sort_keys=True))


def without_state(schema: object) -> object:
    """Return a schema's JSON without its state: high-water marks of identity columns."""
    if isinstance(schema, dict):
        return {key: without_state(inner) for key, inner in schema.items() if key not in _STATE_KEYS}
    if isinstance(schema, list):
        return [without_state(inner) for inner in schema]
    return schema


def partition_types(facts: TableFacts) -> dict[str, str]:
    """Map each partition column, in order, to Spark's name of its type."""
    types = {field["name"].lower(): _type_name(field["type"]) for field in read_schema(facts)}
    return {column: types.get(column.lower(), "unknown") for column in facts.partition_columns}


def find_column(facts: TableFacts, name: str) -> FoundColumn | None:
    """Find a column by its dotted name, as Spark does without regard to case; None when there is none.

    ``a.b`` is the field ``b`` of the struct ``a``, or else a column that is called just so; a part in back-ticks
    may hold dots.
    """
    parts = [(quoted.replace("``", "`") or plain) for quoted, plain in _NAME_PART.findall(name)]
    fields = read_schema(facts)
    return _descend(fields, parts) or _descend(fields, [name])


def _descend(fields: list[dict[str, Any]], parts: list[str]) -> FoundColumn | None:
    names: list[str] = []
    type_: Any = {"type": "struct", "fields": fields}
    for part in parts:
        inner = type_["fields"] if isinstance(type_, dict) and type_.get("type") == "struct" else []
        match = next((field for field in inner if field["name"].lower() == part.lower()), None)
        if match is None:
            return None
        names.append(match["name"])
        type_ = match["type"]
    return FoundColumn(tuple(names), _type_name(type_)) if names else None


def _type_name(type_: object) -> str:
    return str(type_.get("type", "unknown")) if isinstance(type_, dict) else str(type_)


UNORDERED_TYPES = ("array", "map", "struct", "variant", "geometry", "geography", "void", "interval")
"""Types of columns that rows cannot be ordered by."""


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """Columns that a policy names to order rows by.

    Attributes:
        noun: What a message calls one of them.
        key: The policy's key that names them.
        where: The line of that key.
        facts: The table that they are looked for in.
    """

    noun: str
    key: str
    where: str
    facts: TableFacts

    def found(self, names: Sequence[str]) -> tuple[FoundColumn, ...]:
        """Return the columns as the schema spells them; all wrong columns of one kind are refused at once.

        Raises:
            TableError: T411 no such column, T412 a partition column, T414 a type without order.
        """
        by_name = [(name, find_column(self.facts, name)) for name in names]
        missing = [name for name, column in by_name if column is None]
        if missing:
            close = nearest_column(self.facts, missing[0])
            help = f"did you mean `{close}`?" if close else f"the table has {', '.join(self.facts.columns)}"
            what, found = f"{self._called(missing)} does not exist", ", ".join(missing)
            raise TableError(what, code="T411", where=self.where, found=found, help=help)
        columns = tuple(column for _, column in by_name if column is not None)
        partition_columns = {name.lower() for name in self.facts.partition_columns}
        of_partitions = [column for column in columns if column.dotted.lower() in partition_columns]
        if of_partitions:
            what = f"{self.called(of_partitions)} is a partition column: all of a file has one value of it"
            raise self.wrong(what, of_partitions, code="T412")
        unordered = [column for column in columns if column.type_name.startswith(UNORDERED_TYPES)]
        if unordered:
            what = f"{self.called(unordered)} has a type without order"
            raise self.wrong(what, unordered, code="T414", types=True)
        return columns

    def refuse_twice(self, columns: Sequence[FoundColumn], names: Sequence[str]) -> None:
        """Refuse a column that is named twice, also in another spelling.

        Raises:
            TableError: T420.
        """
        if len(set(columns)) < len(columns):
            what, found = f"a {self.noun} is named twice", ", ".join(names)
            raise TableError(what, code="T420", where=self.where, found=found, help="remove one of the two")

    def called(self, columns: Sequence[FoundColumn]) -> str:
        """Return what a message calls these columns."""
        return self._called([column.dotted for column in columns])

    def _called(self, names: Sequence[str]) -> str:
        return f"{self.noun} {', '.join(f'`{name}`' for name in names)}"

    def wrong(
        self, what: str, columns: Sequence[FoundColumn], *, code: str, types: bool = False, help: str | None = None
    ) -> TableError:
        """Return the error about some of them; with ``types`` it names their types, too."""
        found = ", ".join(f"{column.dotted} {column.type_name}" if types else column.dotted for column in columns)
        help = help or f"leave it out of {self.key}"
        return TableError(what, code=code, where=self.where, found=found, help=help)


def nearest_column(facts: TableFacts, name: str) -> str | None:
    """Return the column whose name is most like the one given, None when none is."""
    return nearest(name, [FoundColumn(parts, "").quoted for parts in _leaves(read_schema(facts), ())])


def _leaves(fields: list[dict[str, Any]], above: tuple[str, ...]) -> list[tuple[str, ...]]:
    leaves: list[tuple[str, ...]] = []
    for field in fields:
        path = (*above, field["name"])
        if isinstance(field["type"], dict) and field["type"].get("type") == "struct":
            leaves += _leaves(field["type"]["fields"], path)
        else:
            leaves.append(path)
    return leaves


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
    largest = read_digits(properties.get(_MAX_ID))
    if properties.get(_MODE, "none").lower() not in ("name", "id") or largest is None or largest > MAX_COLUMN_ID:
        return None
    used: set[int] = set()
    _collect_ids(read_schema(facts), used)
    dropped = [number for number in range(1, largest + 1) if number not in used]
    return hashlib.sha256(json.dumps(dropped).encode()).hexdigest()[:16] if dropped else None


def files_to_open(facts: TableFacts) -> tuple[DataFile, ...]:
    """Return the files of which only their own footers say whether they hold dropped columns, oldest first."""
    digest = dropped_columns_digest(facts)
    if digest is None:
        return ()
    times_ms = [file.modification_time_ms for file in facts.files if file.tag(DROPPED_COLUMNS_TAG) == digest]
    latest_ms = min(times_ms, default=math.inf) + CLOCK_SLACK_MS
    others = (file for file in facts.files if file.tag(DROPPED_COLUMNS_TAG) != digest)
    unknown = (file for file in others if file.modification_time_ms <= latest_ms)
    return tuple(sorted(unknown, key=lambda file: (file.modification_time_ms, file.key)))


def _collect_ids(value: Any, ids: set[int]) -> None:  # noqa: ANN401 (any JSON value)
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
