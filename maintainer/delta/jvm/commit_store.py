"""Make commits on disks and on S3 fail when the version exists, by a log store of our own for the log that commits.

That log is one of our own, too, so the session's settings and its own log of the table stay as they are. Only Delta's
commands commit through the session's log: while they run it has our log store, and Delta's again after the last.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from maintainer.delta.jvm.gateway import required
from maintainer.delta.jvm.java_classes.compiled_classes import CompiledClasses
from maintainer.delta.jvm.sessions import JavaObject
from maintainer.model.table.store_kinds import CreatedOnce, store_kind

REQUIRED = required(
    {
        "storage.DelegatingLogStore": "getDelegate/1 schemeToLogStoreMap",
        "storage.LogStoreAdaptor": "<init>/1 logStoreImpl/0",
        "io.delta.storage.HDFSLogStore": "<init>/1 write/4",
        "io.delta.storage.S3SingleDriverLogStore": "<init>/1 write/4 pathLock",
        "io.delta.storage.internal.PathLock": "acquire/1 release/1",
    }
)
"""What this module and the Java classes of log stores call or change, beside what ``storage`` lists."""

EXCLUSIVE_LOG_STORE = "maintainer.ExclusiveLogStore"
NO_HARD_LINKS = "no hard links"
CONDITIONAL_LOG_STORE = "maintainer.ConditionalLogStore"
NO_CONDITIONAL_WRITES = "no conditional writes"
IGNORES_CONDITION = "ignores the condition"
"""What the Java classes say, the last two where a store cannot or does not keep `If-None-Match`."""

RENAMING_STORES = frozenset(
    f"{package}.{name}"
    for package in ("io.delta.storage", "org.apache.spark.sql.delta.storage")
    for name in ("HDFSLogStore", "LocalLogStore", "S3SingleDriverLogStore")
)
"""Delta's stores that check whether a version exists and then rename or write. On a disk another writer may commit in
between. Chosen for all schemes at once (``spark.delta.logStore.class``), they cannot be replaced."""

OWN_LOG = {"fs.maintainer.log": "own"}
"""An option of a file system that none knows. Delta keeps a ``DeltaLog`` with a log store of its own for each path and
set of such options: with this one we have a log beside the one that others in the session have of the same table."""

_GUARDS = {CreatedOnce.BY_CONDITION: CONDITIONAL_LOG_STORE, CreatedOnce.BY_LINK: EXCLUSIVE_LOG_STORE}

_lent_lock = threading.Lock()
_lent: dict[JavaObject, int] = {}
"""Log stores of the session's own logs that commit through ours now, and for how many commands."""


class CommitStoreCalls(CompiledClasses):
    """What writes a table's next version."""

    def make_commits_exclusive(self, log: JavaObject) -> str | None:
        """Have a ``DeltaLog`` commit so that it never replaces a version, where Delta would look and then write.

        On a disk by hard links, on S3 by conditional writes. Whether a bucket keeps the condition is tried once in a
        process, with an object in the log's folder that is removed again. Call it right before each commit: Delta drops
        logs from its cache and opens them anew. It costs a millisecond, and some hundred more the first time in a JVM.

        Returns:
            The class that writes the commits; ``NO_HARD_LINKS``, ``NO_CONDITIONAL_WRITES`` or ``IGNORES_CONDITION`` if
            Delta's own still does, because the storage cannot do better; None where the table is elsewhere.
        """
        guard = self._guard_of(log)
        return None if guard is None else str(guard.guard(log.store(), log.logPath(), log.newDeltaHadoopConf()))

    @contextmanager
    def commands_exclusive(self, log: JavaObject) -> Iterator[str | None]:
        """Have all that commits through a ``DeltaLog`` of the session do so exclusively, within the block.

        Where several commands overlap, the last of them gives the log Delta's own store again.

        Yields:
            What ``make_commits_exclusive`` returns.
        """
        store = log.store()
        with _lent_lock:
            writer = self.make_commits_exclusive(log)
            _lent[store] = _lent.get(store, 0) + 1
        try:
            yield writer
        finally:
            with _lent_lock:
                _lent[store] -= 1
                if not _lent[store]:
                    del _lent[store]
                    if writer in (EXCLUSIVE_LOG_STORE, CONDITIONAL_LOG_STORE):
                        self.compiled(str(writer)).release(store, log.logPath())

    def _guard_of(self, log: JavaObject) -> JavaObject | None:
        name = _GUARDS.get(store_kind(str(log.logPath().toUri().toString())).created_once)
        return None if name is None else self.compiled(name)
