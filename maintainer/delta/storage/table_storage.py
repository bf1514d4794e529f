"""List, read and delete a table's files and commits, wherever they lie, without Spark jobs."""

from __future__ import annotations

from functools import cached_property

from maintainer.delta.jvm import DeltaJvm, JavaObject, TableFolder
from maintainer.delta.storage.file_store import FileStore, StoredFile, one_spelling
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.storage.open_files import direct_files, files_of
from maintainer.delta.storage.table_log import TableLog
from maintainer.model.table.log_names import vector_path


class TableStorage(TableLog):
    """The storage of one table, from its open DeltaLog, its folder or its URI; the last two need no read of the log.

    A URI needs no JVM where the disk or obstore serves it.
    """

    files: FileStore

    def __init__(self, jvm: DeltaJvm, log: JavaObject | TableFolder | str) -> None:
        self._jvm = jvm
        self._log = log
        direct = direct_files(jvm, log) if isinstance(log, str) else None
        if direct is None:
            root = self.folder.file_system.makeQualified(self.folder.root)
            root_uri = one_spelling(str(root.toUri().toString())).rstrip("/")
            direct = files_of(jvm, root, self.folder.conf), root_uri
            self.location = self.folder.location
        else:
            self.location = direct[1]
        super().__init__(*direct)
        self._vectors: dict[tuple[str, str], str] = {}

    @cached_property
    def folder(self) -> TableFolder:
        """The folder as Hadoop sees it; starts the JVM."""
        if isinstance(self._log, TableFolder):
            return self._log
        if isinstance(self._log, str):
            return self._jvm.folder_at(self._jvm.path(self._log))
        return self._jvm.folder_of_log(self._log)

    def is_below_root(self, uri: str) -> bool:
        """Whether a qualified URI lies strictly below the table's root by its text (see ``vacuum`` for links)."""
        parts = uri[len(self.root_uri) + 1 :].split("/")
        return uri.startswith(self.root_uri + "/") and ".." not in parts

    def status(self, uri: str) -> StoredFile | None:
        """One file's status, symlinks not followed; None if it is not there."""
        return self.files.status(uri)

    def children(self, uri: str) -> dict[str, StoredFile]:
        """The direct children of a directory by URI; empty if there is no such directory."""
        return self.files.children(uri)

    def delete(self, uri: str) -> bool:
        """Delete one file, never a directory with something in it; False if it was not there."""
        return self.files.delete(uri)

    def vector_uri(self, kind: str, path: str) -> str:
        """The URI of a deletion vector file from its storage type and encoded path, as Delta decodes it."""
        key = (kind, path)
        if key not in self._vectors:
            below = vector_path(path) if kind == "u" else None
            if below is not None:
                return f"{self._root_uri}/{below}"
            file_system = self.folder.file_system
            uri = self._jvm.vector_path(kind, path, file_system.makeQualified(self.folder.root))
            self._vectors[key] = one_spelling(str(file_system.makeQualified(uri).toUri().toString()))
        return self._vectors[key]


def storage_of_path(jvm: DeltaJvm, text: str) -> TableStorage:
    """Return the storage of the table at a path or URI as people write it."""
    uri = path_uri(text)
    is_direct = direct_files(jvm, uri) is not None
    return TableStorage(jvm, uri if is_direct else jvm.folder_at(jvm.hadoop_path(text)))
