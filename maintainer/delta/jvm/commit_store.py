"""Make commits on disks and on S3 fail when the version exists, by replacing the log store of the log that commits.

The session's settings stay as they are, and so do a borrowed session's other tables.
"""

from __future__ import annotations

import threading
from importlib import resources

from maintainer.delta.jvm.active_session import JavaObject
from maintainer.delta.jvm.gateway import Gateway, required, tested_pairs
from maintainer.errors import EnvironmentUnfit
from maintainer.model.table.store_kinds import S3_SCHEMES

REQUIRED = required(
    {
        "storage.DelegatingLogStore": "getDelegate/1 schemeToLogStoreMap",
        "storage.LogStoreAdaptor": "<init>/1 logStoreImpl/0",
        "io.delta.storage.HDFSLogStore": "<init>/1 write/4",
        "io.delta.storage.S3SingleDriverLogStore": "<init>/1 write/4",
        "org.codehaus.janino.SimpleCompiler": "<init>/0 setParentClassLoader/1 cook/1 getClassLoader/0",
    }
)
"""What this module and its Java classes call or change, beside what ``storage`` lists."""

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

_SOURCES = {name: f"{name.rpartition('.')[2]}.java" for name in (EXCLUSIVE_LOG_STORE, CONDITIONAL_LOG_STORE)}

_compile_lock = threading.Lock()
_compiled: list[tuple[JavaObject, dict[str, JavaObject]]] = []
"""The last JVM's gateway, and the stores in it: workers of a run share them."""


class CommitStoreCalls(Gateway):
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
        log_path = log.logPath()
        scheme = str(log_path.toUri().getScheme())
        if scheme in S3_SCHEMES:
            return str(self._store_of(CONDITIONAL_LOG_STORE).guard(log.store(), log_path, log.newDeltaHadoopConf()))
        if scheme != "file":
            return None
        return str(self._store_of(EXCLUSIVE_LOG_STORE).guard(log.store(), log_path))

    def _store_of(self, name: str) -> JavaObject:
        gateway: JavaObject = self.spark.sparkContext._gateway
        with _compile_lock:
            if not _compiled or _compiled[0][0] is not gateway:
                _compiled[:] = [(gateway, {})]
            stores = _compiled[0][1]
            if name not in stores:
                stores[name] = self._compile(gateway, name)
            return stores[name]

    def _compile(self, gateway: JavaObject, name: str) -> JavaObject:
        """Compile the class in memory, beside Delta's own classes wherever those were loaded from."""
        loader = self._module("storage.LogStore$").getClass().getClassLoader()
        try:
            compiler = self._jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook((resources.files(__package__) / _SOURCES[name]).read_text(encoding="utf-8"))
            constructors = compiler.getClassLoader().loadClass(name).getConstructors()
            arguments = gateway.new_array(self._jvm.java.lang.Object, 1)
            arguments[0] = self._session.sessionState().newHadoopConf()
            return constructors[0].newInstance(arguments)
        except Exception as error:
            raise EnvironmentUnfit(
                "the log store that never replaces a commit cannot be compiled in this Spark",
                code="E633",
                found=" ".join(str(error).split())[:300],
                allowed=f"Spark with its own Janino, {tested_pairs()}",
                help="run maintainer in a Python process without an active Spark session",
            ) from error
