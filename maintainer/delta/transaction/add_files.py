"""Read the AddFiles that a rewrite takes, as handles of Delta's class, at the snapshot's version."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.actions import num_records
from maintainer.delta.log.conflicting_commit import removed_key

FileKey = tuple[str, str]
"""Path and deletion vector id: what Delta reconciles by."""


def live_files(
    jvm: DeltaJvm, log: JavaObject, snapshot: JavaObject, file_keys: Collection[FileKey]
) -> dict[FileKey, JavaObject]:
    """Return the files that are live in the snapshot, each as an ``AddFile`` in the JVM.

    Read through Kernel at the snapshot's version, without a Spark job; by Spark, where Kernel does not read the table.
    The action's JSON is Delta's own serialization; of the statistics only ``numRecords`` is kept, as OPTIMIZE does it.
    """
    keys = frozenset(file_keys)
    # Kernel leaves out who clustered a file.
    clustered = "clustering" in (jvm.protocol(snapshot).get("writerFeatures") or ())
    table_id = jvm.metadata(snapshot)["id"]
    adds = None if clustered else adds_through_kernel(jvm, log, int(snapshot.version()), table_id)
    if adds is None:
        handles, adds = jvm.scan_files(snapshot)
        return {key: handles.get(at) for at, add in enumerate(adds) if (key := removed_key(add)) in keys}
    return {
        key: jvm.action(json.dumps({"add": add}, ensure_ascii=False))
        for add in adds
        if (key := removed_key(add)) in keys
    }


def adds_through_kernel(jvm: DeltaJvm, log: JavaObject, version: int, table_id: str) -> list[dict[str, Any]] | None:
    """The ``add`` actions that are live at a version, without a Spark job; None where Kernel does not read them.

    As a snapshot has them: of the statistics, most of a log, only ``numRecords`` is kept.

    What Kernel cannot read is left to Spark, which reads it or says what is wrong. A table that was dropped and
    created again may have a version of the same number: then the ids differ, and the result is None as well.
    """
    try:
        folder = jvm.folder_of_log(log)
        kernel_snapshot = jvm.kernel_snapshot(folder, version)
        metadata, _ = jvm.kernel_state(kernel_snapshot)
        return [_slim(add) for add in jvm.kernel_adds(folder, kernel_snapshot)] if metadata["id"] == table_id else None
    except Exception:
        return None


def _slim(add: dict[str, Any]) -> dict[str, Any]:
    """An ``add`` action as a snapshot has it, of whose statistics only ``numRecords`` is kept."""
    records = num_records(add.get("stats"))
    # A snapshot's files change no data any more, says Delta's own reader of them.
    slim = {**{key: value for key, value in add.items() if key != "stats"}, "dataChange": False}
    return slim if records is None else {**slim, "stats": json.dumps({"numRecords": records}, separators=(",", ":"))}
