"""The AddFiles that a rewrite takes, as handles of Delta's own class: read from the log at the snapshot's version."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from maintainer.delta.actions import num_records
from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.winners import removed_key

FileKey = tuple[str, str]
"""Path and deletion vector id: what Delta reconciles by."""


def live_files(
    jvm: DeltaJvm, log: JavaObject, snapshot: JavaObject, wanted: Collection[FileKey]
) -> dict[FileKey, JavaObject]:
    """Those of the wanted files that are live in the snapshot, each as an ``AddFile`` in the JVM.

    Read through Kernel at the snapshot's version, without a Spark job; by Spark, where Kernel does not read the table.
    The action's JSON is Delta's own serialization; of the statistics only ``numRecords`` is kept, as OPTIMIZE does it.
    """
    keys = frozenset(wanted)
    found = _through_kernel(jvm, log, snapshot, keys)
    if found is None:
        handles, adds = jvm.scan_files(snapshot)
        return {key: handles.get(at) for at, add in enumerate(adds) if (key := removed_key(add)) in keys}
    return {key: jvm.action(json.dumps({"add": slim(add)}, ensure_ascii=False)) for key, add in found.items()}


def _through_kernel(
    jvm: DeltaJvm, log: JavaObject, snapshot: JavaObject, keys: frozenset[FileKey]
) -> dict[FileKey, dict[str, Any]] | None:
    try:
        folder = jvm.folder_of_log(log)
        seen = jvm.kernel_snapshot(folder, int(snapshot.version()))
        metadata, protocol = jvm.kernel_state(seen)
        # A table that was dropped and created again may have a version of the same number.
        if metadata["id"] != jvm.metadata(snapshot)["id"]:
            return None
        # Kernel leaves out who clustered a file.
        if "clustering" in (protocol.get("writerFeatures") or ()):
            return None
        return {key: add for add in jvm.kernel_adds(folder, seen) if (key := removed_key(add)) in keys}
    except Exception:
        # Whatever Kernel stumbles over, Spark reads it or says what is wrong.
        return None


def slim(add: dict[str, Any]) -> dict[str, Any]:
    """An ``add`` action as a snapshot has it, of whose statistics only ``numRecords`` is kept."""
    records = num_records(add.get("stats"))
    # A snapshot's files change no data any more, says Delta's own reader of them.
    kept = {**{key: value for key, value in add.items() if key != "stats"}, "dataChange": False}
    return kept if records is None else {**kept, "stats": json.dumps({"numRecords": records}, separators=(",", ":"))}
