"""Turn ``add`` and ``remove`` actions of the log, and the statistics in them, into values of the model. Pure, no Spark.

All engines use it, whether they read Delta's snapshot or the log's files. Statistics are JSON in a text, which any
writer may have spelled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from maintainer.delta.log.schema_names import physical_name
from maintainer.delta.storage.log_paths import partition_spelling as one_spelling
from maintainer.model.table.table_facts import DataFile, DeletionVector, FileKey, PartitionValues, Protocol, TableFacts

RECORDS_FIRST = r'^\{ *"numRecords" *: *(?P<count>\d{1,18}) *[,}]'
"""How nearly every writer begins statistics. Anything else is parsed in full."""
_RECORDS_FIRST = re.compile(RECORDS_FIRST)
_MAX_EXACT_FLOAT = 2.0**53


def num_records(stats: str | None) -> int | None:
    """Return the record count of an action's statistics; None without one, or where readers find no number.

    Parses only what it must.
    """
    if not stats:
        return None
    first = _RECORDS_FIRST.match(stats)
    if first:
        return int(first.group(1))
    try:
        count = whole_count(json.loads(stats).get("numRecords"))
    except (ValueError, AttributeError):
        return None
    return count if count is not None and count >= 0 else None


def whole_count(value: object) -> int | None:
    """Return a count of an action's statistics; None for what is no whole number: a text, a fraction, a truth value.

    Some writers write 12 as ``12.0``.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _MAX_EXACT_FLOAT else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def statistics_in(
    text: object, parse_float: Callable[[str], Any] | None = None, parse_int: Callable[[str], Any] | None = None
) -> Mapping[str, Any] | None:
    """The statistics of an action; None where there are none, or no JSON object. Numbers as ``json`` reads them."""
    try:
        stats = json.loads(text, parse_float=parse_float, parse_int=parse_int) if isinstance(text, str) else None
    except ValueError:
        return None
    return stats if isinstance(stats, Mapping) else None


def value_at(tree: object, path: Sequence[str]) -> object | None:
    """The value of nested maps at a path, None where there is none."""
    for name in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(name)
    return tree


def named_in(tree: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all leaves of nested maps."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from named_in(value, (*path, name))
    elif path:
        yield path


@dataclass(frozen=True, slots=True)
class PartitionNames:
    """A table's partition columns by their logical names, and the names under which the log keeps their values.

    ``types`` are their types by Spark's names; left out, all are text.
    """

    logical: tuple[str, ...]
    physical: tuple[str, ...]
    types: tuple[str, ...] = ()

    @staticmethod
    def of(metadata: Mapping[str, Any]) -> PartitionNames:
        """Read the names from a ``metaData`` action."""
        schema = json.loads(metadata["schemaString"])
        logical = tuple(metadata["partitionColumns"])
        types = {str(field["name"]).lower(): field["type"] for field in schema["fields"]}
        physical = tuple(to_physical(schema, column) for column in logical)
        return PartitionNames(logical, physical, tuple(str(types.get(column.lower())) for column in logical))

    @staticmethod
    def of_facts(facts: TableFacts) -> PartitionNames:
        """Read the names from the facts of a table."""
        return PartitionNames.of({"schemaString": facts.schema_json, "partitionColumns": facts.partition_columns})

    def values_of(self, stored: Mapping[str, str | None] | None) -> PartitionValues:
        """Return the partition values of an action, each in its one spelling."""
        stored_values = stored or {}
        columns = zip(self.logical, self.physical, self.types or ("string",) * len(self.logical), strict=True)
        return tuple((name, one_spelling(stored_values.get(key), type_name)) for name, key, type_name in columns)

    def texts_of(self, stored: Mapping[str, str | None] | None) -> PartitionValues:
        """Return the partition values of an action letter for letter, without columns that it does not have."""
        stored_values = stored or {}
        columns = zip(self.logical, self.physical, strict=True)
        return tuple((name, stored_values[key]) for name, key in columns if key in stored_values)


def read_protocol(action: Mapping[str, Any]) -> Protocol:
    """Read a ``protocol`` action as facts hold it."""
    return Protocol(
        action["minReaderVersion"],
        action["minWriterVersion"],
        tuple(sorted(action.get("readerFeatures") or ())),
        tuple(sorted(action.get("writerFeatures") or ())),
    )


def to_physical(schema: dict[str, Any], column: str) -> str:
    """The name under which the log stores a column's partition values: physical under column mapping."""
    for field in schema["fields"]:
        if field["name"].lower() == column.lower():
            return physical_name(field)
    return column


def live_rows(adds: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the live rows that ``add`` actions count, without deleted rows; None if one has no count."""
    total = 0
    for add in adds:
        records = num_records(add.get("stats"))
        if records is None:
            return None
        total += records - int((add.get("deletionVector") or {}).get("cardinality") or 0)
    return total


def removed_key(remove: Mapping[str, Any]) -> FileKey:
    """Return path and deletion vector id of a ``remove`` (or ``add``) action: what Delta reconciles by."""
    return (remove["path"], vector_id(remove.get("deletionVector")))


def vector_id(vector: Mapping[str, Any] | None) -> str:
    """Return the id of a ``deletionVector`` of the log; empty for none."""
    if not vector:
        return ""
    offset = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"


def deletion_vector(fields: Mapping[str, Any]) -> DeletionVector:
    """Return a ``deletionVector`` of the log as facts hold it."""
    return DeletionVector(vector_id(fields), int(fields["cardinality"]), int(fields["sizeInBytes"]))


class LoggedFile(NamedTuple):
    """A file as an ``add`` or ``remove`` names it: a tuple, as a table may have a million of them.

    ``partition_values`` and ``tags`` may be shared with other files. ``stats`` is None unless it was asked for.
    """

    path: str
    size_bytes: int
    modification_time_ms: int
    partition_values: Mapping[str, str | None]
    records: int | None
    deletion_vector: Mapping[str, Any] | None
    tags: Mapping[str, str | None] | None
    clustering_provider: str | None
    base_row_id: int | None
    default_row_commit_version: int | None
    stats: str | None

    @staticmethod
    def of(
        action: Mapping[str, Any], shared: dict[Any, Any] | None = None, *, with_statistics: bool = False
    ) -> LoggedFile:
        """Read an action's body. A ``remove`` may lack size and statistics.

        Args:
            action: The body.
            shared: Equal partition values of files made with one dict are one object: files are many, partitions few.
            with_statistics: Keep the text of its statistics.
        """
        values, stats = action.get("partitionValues") or {}, action.get("stats")
        if shared is not None:
            values = shared.setdefault(tuple(values.items()), values)
        return LoggedFile(
            action["path"],
            int(action.get("size") or 0),
            int(action.get("modificationTime") or 0),
            values,
            num_records(stats),
            action.get("deletionVector"),
            action.get("tags"),
            action.get("clusteringProvider"),
            action.get("baseRowId"),
            action.get("defaultRowCommitVersion"),
            stats if with_statistics else None,
        )

    @property
    def key(self) -> FileKey:
        return (self.path, vector_id(self.deletion_vector))

    def as_add(self) -> dict[str, Any]:
        """The ``add`` that a snapshot has of the file; of its statistics the record count alone."""
        known = {
            "tags": self.tags,
            "deletionVector": self.deletion_vector,
            "clusteringProvider": self.clustering_provider,
            "baseRowId": self.base_row_id,
            "defaultRowCommitVersion": self.default_row_commit_version,
            "stats": None if self.records is None else f'{{"numRecords":{self.records}}}',
        }
        # A snapshot's files change no data any more, says Delta's own reader of them.
        add = {"path": self.path, "partitionValues": dict(self.partition_values), "size": self.size_bytes,
               "modificationTime": self.modification_time_ms, "dataChange": False}  # fmt: skip
        return add | {name: value for name, value in known.items() if value is not None}

    def data_file(self, names: PartitionNames, shared: dict[Any, Any] | None = None) -> DataFile:
        """The file as facts have it; equal partition values and tags of files made with one dict are one object."""
        shared = {} if shared is None else shared
        # The log's texts are the key: of a column that is missing not even null.
        texts = names.texts_of(self.partition_values) if names.logical else ()
        if (spelled := shared.get(("partition", texts))) is None:
            values = names.values_of(self.partition_values)
            spelled = shared["partition", texts] = (values, None if texts == values else texts)
        tags = tuple(sorted((self.tags or {}).items()))
        return DataFile(
            path=self.path,
            size_bytes=self.size_bytes,
            modification_time_ms=self.modification_time_ms,
            partition_values=spelled[0],
            physical_records=self.records,
            deletion_vector=None if self.deletion_vector is None else deletion_vector(self.deletion_vector),
            tags=shared.setdefault(tags, tags),
            clustering_provider=self.clustering_provider,
            stored_values=spelled[1],
        )


def data_file(action: Mapping[str, Any], names: PartitionNames) -> DataFile:
    """Return the file that an ``add`` or ``remove`` names."""
    return LoggedFile.of(action).data_file(names)


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """What one commit removed and added, by its own actions; ``adds`` and ``info`` as the log has them."""

    version: int
    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    data_changed: bool = False
    adds: tuple[Mapping[str, Any], ...] = ()
    info: Mapping[str, Any] | None = None


def committed_files(
    version: int,
    actions: Iterable[Mapping[str, Any]],
    names: PartitionNames,
    earlier_files: Mapping[tuple[str, str], DataFile] | None = None,
) -> CommittedFiles:
    """Sort a commit's file actions.

    Args:
        version: The commit's version.
        actions: Its actions, each with its one key (``add``, ``remove``, ``commitInfo``...).
        names: The table's partition columns.
        earlier_files: Files of the version before by their key. A ``remove`` has few fields, so its file is
            taken from here where it is given, with the statistics of its ``add``.
    """
    earlier_files = earlier_files or {}
    removed: list[DataFile] = []
    added: list[DataFile] = []
    adds: list[Mapping[str, Any]] = []
    info: Mapping[str, Any] | None = None
    changed = False
    for action in actions:
        info = action.get("commitInfo", info)
        adds += [action["add"]] if "add" in action else []
        for kind, sorted_into in (("remove", removed), ("add", added)):
            if kind in action:
                file = data_file(action[kind], names)
                sorted_into.append(earlier_files.get(file.key, file) if kind == "remove" else file)
                changed = changed or bool(action[kind].get("dataChange", True))
    return CommittedFiles(version, tuple(removed), tuple(added), changed, tuple(adds), info)
