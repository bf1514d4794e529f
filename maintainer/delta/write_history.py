"""What a table's newest commits wrote, for the hook that runs right after a write. Changes no byte, starts no job."""

from __future__ import annotations

from typing import Any

from maintainer.delta.actions import PartitionNames
from maintainer.delta.error_classes import as_table_error
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.storage import TableStorage
from maintainer.model.table import PartitionValues, TableFacts, TableRef

MAX_COMMITS_READ = 200
"""So far back is looked for the last auto compaction; a hook must not cost a writer more than this."""


def properties_now(jvm: DeltaJvm, ref: TableRef) -> dict[str, str] | None:
    """The table's properties at its newest version, without its files; None where there is no such Delta table.

    Raises:
        TableError: The log cannot be read.
    """
    jvm.activate()
    try:
        if ref.is_path:
            log = jvm.log_of_root(jvm.hadoop_path(ref.location))
        else:
            found = jvm.catalog_location(ref.identifier)
            if found is None or not found[0]:
                return None
            log = jvm.log_at(found[0])
        snapshot = jvm.update(log)
        if int(snapshot.version()) < 0:
            return None
        configuration: dict[str, str] = jvm.metadata(snapshot)["configuration"]
        return configuration
    except Exception as error:
        raise as_table_error(error, ref.identifier) from error


def partitions_written(jvm: DeltaJvm, facts: TableFacts) -> frozenset[PartitionValues] | None:
    """Partitions that commits added data to after the last auto compaction, up to the version of ``facts``.

    Only adds that change data count: a rewrite moves rows and writes nothing new.

    Returns:
        The partitions; None where no auto compaction was found and the commits that could be read do not reach back
        to the table's first one.

    Raises:
        TableError: The log cannot be read.
    """
    jvm.activate()
    metadata = {"schemaString": facts.schema_json, "partitionColumns": facts.partition_columns}
    partitions = PartitionNames.of(metadata)
    written: set[PartitionValues] = set()
    try:
        storage = TableStorage(jvm, jvm.log_at(facts.location))
        oldest = max(facts.version - MAX_COMMITS_READ, -1)
        entries = [one for one in storage.commits(after_version=oldest) if one.version <= facts.version]
        for entry in reversed(entries):
            for action in storage.actions(entry, with_adds=True):
                if _is_auto_compaction(action.get("commitInfo") or {}):
                    return frozenset(written)
                add = action.get("add")
                if add is not None and add.get("dataChange"):
                    written.add(partitions.values_of(add.get("partitionValues")))
    except Exception as error:
        raise as_table_error(error, facts.ref.identifier) from error
    return frozenset(written) if entries and entries[0].version == 0 else None


def _is_auto_compaction(info: dict[str, Any]) -> bool:
    """Delta's and ours are marked alike; the parameter's value is text."""
    parameters = info.get("operationParameters") or {}
    return info.get("operation") == "OPTIMIZE" and str(parameters.get("auto")).lower() == "true"
