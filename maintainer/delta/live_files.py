"""The live files of a table's newest version, read once and shared by the facts and the rewrite that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.winners import removed_key


@dataclass(frozen=True)
class LoadedFiles:
    """AddFiles of one version: their fields as plain values, and handles for those that a rewrite needs."""

    handles: JavaObject
    adds: tuple[dict[str, Any], ...]
    positions: dict[tuple[str, str], int]

    def __contains__(self, key: object) -> bool:
        return key in self.positions

    def handle(self, key: tuple[str, str]) -> JavaObject:
        """The AddFile in the JVM with this path and deletion vector id."""
        return self.handles.get(self.positions[key])


class LiveFiles:
    """Reads live files, and keeps those of the last version read: planning and rewriting look at the same one.

    A version of a table is immutable, and the key names version, table and time of the commit, so that what is kept
    is never stale. One worker's, used on its thread.
    """

    def __init__(self, jvm: DeltaJvm) -> None:
        self._jvm = jvm
        self._last: tuple[tuple[object, ...], LoadedFiles] | None = None

    def of(self, log: JavaObject, snapshot: JavaObject) -> LoadedFiles:
        """The live files of a snapshot; one Spark job unless it is the version last read."""
        table_id = self._jvm.metadata(snapshot)["id"]
        key = (self._jvm.location(log), table_id, int(snapshot.version()), int(snapshot.timestamp()))
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        self._last = None
        handles, adds = self._jvm.scan_files(snapshot)
        loaded = LoadedFiles(handles, tuple(adds), {removed_key(add): place for place, add in enumerate(adds)})
        self._last = (key, loaded)
        return loaded
