"""Find what a table's newest commits wrote: partitions since the last auto compaction, files of rewrites.

For the hook that runs right after a write, and for planning. Reads only, and starts no Spark job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.actions import PartitionNames
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.table_log import TableLog
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.commit_records import MAINTENANCE, CommitStamp
from maintainer.model.table.table_facts import PartitionValues, TableFacts, TableRef

MAX_COMMITS_READ = 200
"""Commits searched for the last auto compaction; a hook must not cost a writer more than this."""


def properties_now(jvm: DeltaJvm, ref: TableRef) -> dict[str, str] | None:
    """The table's properties at its newest version, without its files; None where there is no such Delta table.

    Raises:
        TableError: The log cannot be read.
    """
    jvm.activate()
    with table_errors(ref.identifier):
        if ref.is_path:
            log = jvm.log_of_root(jvm.hadoop_path(ref.location))
        else:
            entry = jvm.catalog_entry(ref.identifier)
            if entry is None or not entry.location:
                return None
            log = jvm.log_at(entry.location)
        snapshot = jvm.update(log)
        if int(snapshot.version()) < 0:
            return None
        configuration: dict[str, str] = jvm.metadata(snapshot)["configuration"]
        return configuration


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
    with table_errors(facts.ref.identifier):
        storage = TableStorage(jvm, jvm.log_at(facts.location))
        oldest = max(facts.version - MAX_COMMITS_READ, -1)
        entries = [commit for commit in storage.commits(after_version=oldest) if commit.version <= facts.version]
        for _, actions in storage.actions_of(reversed(entries), with_adds=True):
            for action in actions:
                if _is_auto_compaction(action.get("commitInfo") or {}):
                    return frozenset(written)
                add = action.get("add")
                if add is not None and add.get("dataChange"):
                    written.add(partitions.values_of(add.get("partitionValues")))
    return frozenset(written) if entries and entries[0].version == 0 else None


def _is_auto_compaction(info: dict[str, Any]) -> bool:
    """Whether a commit is an auto compaction, Delta's or ours. The parameter's value is text."""
    parameters = info.get("operationParameters") or {}
    return info.get("operation") == "OPTIMIZE" and str(parameters.get("auto")).lower() == "true"


MAX_ZORDER_COMMITS_READ = 100
"""Commits searched for a Z-order: a table that is ordered nightly has one among them."""


def paths_of_zorder(storage: TableLog, facts: TableFacts, columns: Iterable[str]) -> frozenset[str]:
    """Return the paths that commits of OPTIMIZE with ``zOrderBy`` of just these columns added.

    Args:
        storage: The table's log.
        facts: The table; commits above its version are not looked at.
        columns: In their order of weight; upper and lower case are alike, as in Spark.
    """
    order = [column.lower() for column in columns]
    oldest = max(facts.version - MAX_ZORDER_COMMITS_READ, -1)
    paths: set[str] = set()
    for entry, info in storage.infos(storage.commits(after_version=oldest)):
        if entry.version <= facts.version and zordered_by(info) == order:
            paths.update(action["add"]["path"] for action in storage.actions(entry, with_adds=True) if "add" in action)
    return frozenset(paths)


def paths_of_rewrites(storage: TableLog, facts: TableFacts, since_ms: int) -> frozenset[str]:
    """Return the paths that rewrites added since a moment: commits of ours, and maintenance by others.

    Args:
        storage: The table's log.
        facts: The table; commits above its version are not looked at.
        since_ms: Milliseconds since 1970 UTC. A file is never newer than the commit file that adds it.
    """
    paths: set[str] = set()
    entries = storage.commits(after_version=max(facts.version - MAX_COMMITS_READ, -1))
    since = (entry for entry in entries if entry.modification_time_ms >= since_ms and entry.version <= facts.version)
    for entry, info in storage.infos(list(since)):
        if str(info.get("operation")).upper() in MAINTENANCE or CommitStamp.from_json(info.get("userMetadata")):
            adds = (action["add"] for action in storage.actions(entry, with_adds=True) if "add" in action)
            paths.update(add["path"] for add in adds if add.get("dataChange") is False)
    return frozenset(paths)


def zordered_by(info: Mapping[str, Any]) -> list[str]:
    """Return the columns that a commit ordered by, in lower case; none for any other commit."""
    if info.get("operation") != "OPTIMIZE":
        return []
    try:
        columns = json.loads((info.get("operationParameters") or {}).get("zOrderBy") or "[]")
    except (TypeError, ValueError):
        return []
    return [str(column).lower() for column in columns] if isinstance(columns, list) else []
