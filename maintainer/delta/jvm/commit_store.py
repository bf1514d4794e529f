"""Make commits on disks fail when the version exists, by replacing the log store of the log that commits.

The session's settings stay as they are, and so do a borrowed session's other tables.
"""

from __future__ import annotations

import threading
from importlib import resources

from maintainer.delta.jvm.gateway import Gateway, JavaObject, Required
from maintainer.errors import EnvironmentUnfit

REQUIRED: tuple[Required, ...] = (
    ("storage.DelegatingLogStore", "getDelegate", 1),
    ("storage.LogStoreAdaptor", "logStoreImpl", 0),
)
"""What this module's Java class calls of Delta's private surface, beside what ``storage`` lists."""

EXCLUSIVE_LOG_STORE = "maintainer.ExclusiveLogStore"
NO_HARD_LINKS = "no hard links"

RENAMING_STORES = frozenset(
    f"{package}.{name}"
    for package in ("io.delta.storage", "org.apache.spark.sql.delta.storage")
    for name in ("HDFSLogStore", "LocalLogStore", "S3SingleDriverLogStore")
)
"""Delta's stores that check whether a version exists and then rename or write. On a disk another writer may commit in
between. Chosen for all schemes at once (``spark.delta.logStore.class``), they cannot be replaced."""

_SOURCE = resources.files(__package__) / "ExclusiveLogStore.java"

_compile_lock = threading.Lock()
_compiled: list[tuple[JavaObject, JavaObject]] = []
"""The last JVM's gateway, and the store in it: workers of a run share both."""


class CommitStoreCalls(Gateway):
    """What writes a table's next version."""

    def make_commits_exclusive(self, log: JavaObject) -> str | None:
        """Have a ``DeltaLog`` on a disk commit by hard links, where Delta would look and then rename.

        Call it right before each commit: Delta drops logs from its cache and opens them anew. It costs a millisecond,
        and some hundred more the first time in a JVM.

        Returns:
            The class that writes the commits; ``NO_HARD_LINKS`` if Delta's own still does, because the file system has
            none; None where the table is not on a disk.
        """
        log_path = log.logPath()
        if str(log_path.toUri().getScheme()) != "file":
            return None
        return str(self._exclusive_store().guard(log.store(), log_path))

    def _exclusive_store(self) -> JavaObject:
        gateway: JavaObject = self.spark.sparkContext._gateway
        with _compile_lock:
            if not _compiled or _compiled[0][0] is not gateway:
                _compiled[:] = [(gateway, self._compile(gateway))]
            return _compiled[0][1]

    def _compile(self, gateway: JavaObject) -> JavaObject:
        """Compile the class in memory, beside Delta's own classes wherever those were loaded from."""
        loader = self._module("storage.LogStore$").getClass().getClassLoader()
        try:
            compiler = self._jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook(_SOURCE.read_text(encoding="utf-8"))
            constructors = compiler.getClassLoader().loadClass(EXCLUSIVE_LOG_STORE).getConstructors()
            arguments = gateway.new_array(self._jvm.java.lang.Object, 1)
            arguments[0] = self._session.sessionState().newHadoopConf()
            return constructors[0].newInstance(arguments)
        except Exception as error:
            raise EnvironmentUnfit(
                "the log store that commits to disks cannot be compiled in this Spark",
                code="E633",
                found=" ".join(str(error).split())[:300],
                allowed="Spark 4.1 with its own Janino, and delta-spark 4.4.0",
                help="run maintainer in a Python process without an active Spark session",
            ) from error
