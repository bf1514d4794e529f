"""Find recent updates by other writers and the partitions they read: commits that may conflict with a rewrite.

A commit with a ``remove`` is an update, whatever its operation; a pure append, also of a stream, is not. In Delta an
update fails when a rewrite lands before it and removed a file that the update *read*. What it read is bounded only by
those parts of its predicate that compare partition columns with literals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import product
from typing import Any

from maintainer.delta.log.actions import PartitionNames
from maintainer.delta.log.predicate_bounds import bounded_partitions
from maintainer.delta.storage.table_log import TableLog, commits_among
from maintainer.model.table.commit_records import MAINTENANCE, CommitStamp
from maintainer.model.table.table_facts import PartitionValues, TableFacts, Update
from maintainer.planning.selection.schema_columns import partition_types
from maintainer.policy.predicate.predicate_lex import read_timestamp, time_distances

MAX_COMMITS_LOOKED_AT = 1000
"""The newest; on object storage each is a request. A table with more appends than that in the time looked at may have
an update that is not seen: the commit itself still finds every conflict."""

MAX_UPDATES = 50
"""Only the newest so many are read whole."""


def read_updates(
    log: TableLog, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
) -> tuple[Update, ...]:
    """Return the updates of others that were committed since a moment or above a version, newest first.

    Args:
        log: The table's log.
        facts: The table: its partition columns, and the partitions that hold live files.
        since_ms: Milliseconds since 1970 UTC. A clock that runs ahead makes no commit younger than its file.
        after_version: Everything above it is looked at, however old it says it is.
        until_version: See ``TableReader.updates``.
    """
    names = PartitionNames.of({"schemaString": facts.schema_json, "partitionColumns": facts.partition_columns})
    live = {file.partition_texts: file.partition_values for file in facts.files}
    updates: list[Update] = []
    if until_version is None:
        entries = log.commits(after_version=max(facts.version - MAX_COMMITS_LOOKED_AT, -1))
    else:
        entries = commits_among(log.listed_with(until_version).values())
    for entry, info in log.infos(entries[::-1][:MAX_COMMITS_LOOKED_AT]):
        at_ms = min(_moment(info) or entry.modification_time_ms, entry.modification_time_ms)
        if (at_ms < since_ms and entry.version <= after_version) or len(updates) >= MAX_UPDATES:
            break
        if info.get("isBlindAppend") is True or CommitStamp.from_json(info.get("userMetadata")) is not None:
            continue
        removes = [action["remove"] for action in log.actions(entry) if "remove" in action]
        if removes:
            operation = str(info.get("operation") or "a commit that does not name itself")
            updates.append(Update(entry.version, at_ms, operation, _read(info, removes, names, live, facts)))
    return tuple(updates)


def _read(
    info: Mapping[str, Any],
    removes: Sequence[Mapping[str, Any]],
    names: PartitionNames,
    live: Mapping[PartitionValues, PartitionValues],
    facts: TableFacts,
) -> frozenset[PartitionValues] | None:
    """The partitions that the commit read or changed; None where nothing in the log bounds them."""
    if not facts.partition_columns or any(remove.get("partitionValues") is None for remove in removes):
        return None
    touched = _touched([remove["partitionValues"] for remove in removes], names, live, partition_types(facts))
    operation = str(info.get("operation") or "").upper()
    parameters = info.get("operationParameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    if operation in MAINTENANCE or str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true":
        return touched  # these read the very files that they replace
    if operation == "MERGE" and parameters.get("notMatchedBySourcePredicates") not in (None, "[]", []):
        return None  # rows of the target without a match are read wherever they are
    read = bounded_partitions(_conjuncts(parameters.get("predicate")), partition_types(facts), live)
    return None if read is None else read | touched


def _touched(
    removed: Sequence[Mapping[str, str | None]],
    names: PartitionNames,
    live: Mapping[PartitionValues, PartitionValues],
    types: Mapping[str, str],
) -> frozenset[PartitionValues]:
    """The partitions that files were removed from, and the live ones that are the same to a reader in some zone."""
    gone = {names.texts_of(stored): names.values_of(stored) for stored in removed}
    touched = set(gone.values())
    if "timestamp" in types.values():
        near: dict[tuple[object, ...], list[PartitionValues]] = {}
        for texts, values in gone.items():
            near.setdefault(tuple(_days(value, types[column])[0] for column, value in values), []).append(texts)
        for texts, values in live.items():
            keys = product(*(_days(value, types[column]) for column, value in values))
            if any(_may_be(texts, other, types) for key in keys for other in near.get(key, ())):
                touched.add(values)
    return frozenset(touched)


def _days(value: str | None, type_name: str) -> tuple[object, ...]:
    """A value; of a time stamp its day in UTC, and those beside it that it may have in other zones."""
    moment = read_timestamp(value or "") if type_name == "timestamp" else None
    return (value,) if moment is None else tuple(moment.toordinal() + day for day in (0, -1, 1))


def _may_be(texts: PartitionValues, other: PartitionValues, types: Mapping[str, str]) -> bool:
    """Whether all time stamps of two partitions are the same moments to some reader."""
    others = dict(other)
    distances = (time_distances(text or "", others.get(name) or "", types[name]) for name, text in texts)
    return all(distance is None or timedelta(0) in distance for distance in distances)


def _conjuncts(predicate: object) -> list[str]:
    """The commit's predicate: a JSON list of texts that must all hold, or one text."""
    if not isinstance(predicate, str):
        return []
    try:
        listed = json.loads(predicate)
    except ValueError:
        return [predicate]
    return [str(condition) for condition in listed] if isinstance(listed, list) else [predicate]


def _moment(info: Mapping[str, Any]) -> int:
    value = info.get("inCommitTimestamp") or info.get("timestamp")
    return value if isinstance(value, int) else 0
