"""Storage below a table: file systems, paths in the log, and text that is cut down in the JVM."""

from __future__ import annotations

from maintainer.delta.jvm.gateway import Gateway, JavaObject, Required

REQUIRED: tuple[Required, ...] = (
    ("DeltaLog", "store", 0),
    ("DeltaLog", "newDeltaHadoopConf", 0),
    ("DeltaLog", "logPath", 0),
    ("actions.DeletionVectorDescriptor", "apply", 6),
    ("actions.DeletionVectorDescriptor", "absolutePath", 1),
    ("storage.LogStore", "listFrom", 2),
    ("storage.LogStore", "read", 2),
    ("storage.LogStore", "readAsIterator", 2),
)
"""What this module calls of Delta's private surface."""


class StorageCalls(Gateway):
    """File systems and paths of a table."""

    def file_system(self, log: JavaObject) -> tuple[JavaObject, JavaObject]:
        """Hadoop's file system of the table and the configuration that its DeltaLog uses."""
        conf = log.newDeltaHadoopConf()
        return log.dataPath().getFileSystem(conf), conf

    def child(self, root: JavaObject, relative: str) -> JavaObject:
        """A path below (or, if ``relative`` is absolute, beside) a root, from its percent-encoded form in the log."""
        return self._jvm.org.apache.hadoop.fs.Path(root, self.path(relative))

    def vector_path(self, kind: str, path: str, root: JavaObject) -> JavaObject:
        """Where Delta says a deletion vector file lies, from its storage type and encoded path."""
        one = self._jvm.java.lang.Integer.valueOf(1)
        vector = self._delta.actions.DeletionVectorDescriptor.apply(kind, path, self._option(one), 1, 0, self._none)
        return vector.absolutePath(root)
