"""Keep what plans read of logs until the deletions that follow, so that these read only what came since."""

from __future__ import annotations

import threading

from maintainer.delta.log.replay.log_replay import LogReplay
from maintainer.delta.storage.known_versions import KnownVersion, KnownVersions

MAX_REMOVALS_KEPT, MAX_LOGS_KEPT = 1_500_000, 1_000
"""Of all logs that were read for a plan, until the deletion: a file that is to go costs 100 bytes, one that was removed
lately 300.
"""


class PlannedLogs:
    """What plans of this process read of logs, for the deletions that follow; used by several threads."""

    def __init__(self) -> None:
        self._known = KnownVersions[LogReplay](MAX_REMOVALS_KEPT, MAX_LOGS_KEPT)
        self._lock = threading.Lock()

    def keep(self, location: str, log: LogReplay) -> None:
        """Keep what was read of a table's log, while there is room."""
        with self._lock:
            self._known.keep(location, KnownVersion(log, log.planned_version, None, len(log.named)))

    def take(self, location: str) -> LogReplay | None:
        """Return what was read of a table's log last, and keep it no longer: a deletion takes it on."""
        with self._lock:
            known = self._known.kept(location)
            self._known.forget(location)
            return None if known is None else known.read
