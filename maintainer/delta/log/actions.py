"""Turn ``add`` and ``remove`` actions of the log into values of the model. Pure, no Spark.

All engines use it, whether they read Delta's snapshot or the log's files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from maintainer.delta.log.conflicting_commit import removed_key
from maintainer.delta.log.schema_names import PHYSICAL_NAME
from maintainer.delta.storage.log_paths import partition_spelling as one_spelling
from maintainer.model.table.table_facts import DataFile, DeletionVector, PartitionValues, Protocol

_RECORDS_FIRST = re.compile(r'\{"numRecords":(\d{1,18})[,}]')
"""How Delta writes statistics. Anything else is parsed in full."""
_MAX_EXACT_FLOAT = 2.0**53


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
            return str(field["metadata"].get(PHYSICAL_NAME, field["name"]))
    return column


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
        count = _whole_count(json.loads(stats).get("numRecords"))
    except (ValueError, AttributeError):
        return None
    return count if count is not None and count >= 0 else None


def _whole_count(value: object) -> int | None:
    """Return a count of an action's statistics; None for what is no whole number: a text, a fraction, a truth value.

    Some writers write 12 as ``12.0``.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _MAX_EXACT_FLOAT else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def live_rows(adds: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the live rows that ``add`` actions count, without deleted rows; None if one has no count."""
    total = 0
    for add in adds:
        records = num_records(add.get("stats"))
        if records is None:
            return None
        total += records - int((add.get("deletionVector") or {}).get("cardinality") or 0)
    return total


def deletion_vector(action: Mapping[str, Any]) -> DeletionVector | None:
    """Return the deletion vector of an ``add`` or ``remove``; None without one."""
    fields = action.get("deletionVector")
    if not fields:
        return None
    return DeletionVector(removed_key(dict(action))[1], int(fields["cardinality"]), int(fields["sizeInBytes"]))


def data_file(action: Mapping[str, Any], names: PartitionNames, shared: dict[Any, Any] | None = None) -> DataFile:
    """Return the file that an ``add`` or ``remove`` names. A ``remove`` may lack size and statistics.

    Args:
        action: The action's body.
        names: The table's partition columns.
        shared: Equal partition values and tags of files made with one dict are one object: files are many,
            partitions few.
    """
    shared = {} if shared is None else shared
    stored = action.get("partitionValues") or {}
    # The log's texts are the key: of a column that is missing not even null.
    texts = names.texts_of(stored)
    if (spelled := shared.get(("partition", texts))) is None:
        values = names.values_of(stored)
        spelled = shared["partition", texts] = (values, None if texts == values else texts)
    tags = tuple(sorted((action.get("tags") or {}).items()))
    return DataFile(
        path=action["path"],
        size_bytes=int(action.get("size") or 0),
        modification_time_ms=int(action.get("modificationTime") or 0),
        partition_values=spelled[0],
        physical_records=num_records(action.get("stats")),
        deletion_vector=deletion_vector(action),
        tags=shared.setdefault(tags, tags),
        clustering_provider=action.get("clusteringProvider"),
        stored_values=spelled[1],
    )


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
