"""List, read and delete a table's files and commits, wherever they lie, without Spark jobs.

The storage behind a path or URI is the disk, obstore, or Hadoop's file system for all the rest. What was read of
versions of tables is kept, bounded by files and versions, whatever the size of the fleet.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from maintainer.delta.jvm import DeltaJvm, JavaObject, TableFolder
from maintainer.delta.storage.file_store import FileStore, StoredFile, one_spelling
from maintainer.delta.storage.hadoop_files import HadoopFiles
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.log_paths import path_uri, store_of
from maintainer.delta.storage.object_files import Bucket, ObjectFiles
from maintainer.delta.storage.table_log import TableLog
from maintainer.engine.store.cloud_settings import StoreSettings, only_hadoop, setting_names, store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import OF_TABLES
from maintainer.engine.store.store_failures import BUSY, StoreFailure
from maintainer.errors import EnvironmentUnfit
from maintainer.model.cached_property import cached_property
from maintainer.model.table.log_names import LOG_FOLDER, vector_path
from maintainer.model.table.store_kinds import SERVED_SCHEMES, store_kind

_DOTS = re.compile(r"/\.{1,2}(?:/|$)")
_FOR_HADOOP = "spark.hadoop."


@dataclass(frozen=True, slots=True)
class _Buckets:
    """The clients of this process, by settings, and which of them a session's settings mean."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    by_settings: dict[tuple[object, ...], Bucket] = field(default_factory=dict)
    by_session: WeakKeyDictionary[DeltaJvm, dict[str, Bucket | str]] = field(default_factory=WeakKeyDictionary)
    """A text is the setting that obstore has no equal for."""


_BUCKETS = _Buckets()


def bucket_of(base_uri: str, settings: StoreSettings) -> Bucket:
    """Return the client of a bucket or container, made once for each set of settings.

    Args:
        base_uri: Its URI, without a path.
        settings: From Spark's settings.

    Raises:
        EnvironmentUnfit: E681, obstore is not installed or takes none of the settings.
    """
    with _BUCKETS.lock:
        key = (base_uri, *settings.key)
        bucket = _BUCKETS.by_settings.get(key)
        if bucket is None:
            storage = ObjectStorage.open(base_uri, settings, OF_TABLES)
            bucket = _BUCKETS.by_settings[key] = Bucket(storage, partial(bucket_of, base_uri, settings))
        return bucket


def files_of(jvm: DeltaJvm, root: JavaObject, conf: JavaObject) -> FileStore:
    """Return the store that a Hadoop path lies on: the disk, obstore, or Hadoop's file system for all the rest."""
    uri = root.toUri()
    if uri.getScheme() in SERVED_SCHEMES:
        base_uri = f"{uri.getScheme()}://{uri.getAuthority()}"
        bucket = _bucket_for(jvm, base_uri, conf)
        if not isinstance(bucket, str):
            return ObjectFiles(base_uri, bucket, lambda: HadoopFiles(jvm, root.getFileSystem(conf)))
    file_system = root.getFileSystem(conf)
    return LocalFiles() if str(file_system.getUri().getScheme()) == "file" else HadoopFiles(jvm, file_system)


def why_hadoop(jvm: DeltaJvm, root: JavaObject) -> str | None:
    """Say what sends a place of S3, ADLS or GCS through Hadoop's file system; None where nothing does.

    A setting, or what the store refuses to obstore: it is asked once.
    """
    uri = root.toUri()
    if uri.getScheme() not in SERVED_SCHEMES:
        return None
    bucket = _bucket_for(jvm, f"{uri.getScheme()}://{uri.getAuthority()}", jvm.hadoop_conf())
    if isinstance(bucket, str):
        return bucket.removeprefix(_FOR_HADOOP)
    try:
        next(bucket.storage.below(f"{str(uri.getPath()).strip('/')}/{LOG_FOLDER}/"), None)
    except StoreFailure as failure:
        return None if failure.gave_no_answer or failure.code == BUSY else failure.found
    return None


def direct_files(jvm: DeltaJvm, uri: str, *, holds_tables: bool = False) -> tuple[FileStore, str] | None:
    """Return the store behind a URI, and the URI in its one spelling; None where only Hadoop can tell.

    No JVM is started, unless a store refuses a request.

    Args:
        jvm: Whose settings decide.
        uri: A percent-encoded URI, as ``text_uri`` makes it from a path.
        holds_tables: It is a folder to look in, which may be a whole bucket, and no table's own.
    """
    access = jvm.direct
    scheme, _, rest = one_spelling(uri).partition(":")
    if access is None or scheme not in access.schemes:
        return None
    base_uri, path = f"{scheme}:", rest
    if scheme != "file":
        authority, _, path = rest.removeprefix("//").partition("/")
        base_uri, path = f"{scheme}://{authority}", f"/{path}"
        if not rest.startswith("//") or not authority:
            return None
    path = "/" + "/".join(part for part in path.split("/") if part)
    is_top = path == "/" and (scheme == "file" or not holds_tables)
    if (rest.startswith("//") and scheme == "file") or is_top or _DOTS.search(path):
        return None
    root_uri = f"{base_uri}{path}".rstrip("/")
    if scheme == "file":
        return LocalFiles(), root_uri
    conf = {name: value for name in setting_names(base_uri) if (value := access.conf.get(name))}
    if any("$" in value or value != value.strip() for value in conf.values()):
        return None
    bucket = _client(base_uri, conf)
    if isinstance(bucket, str):
        return None

    def hadoop() -> FileStore:
        return HadoopFiles(jvm, jvm.path(root_uri).getFileSystem(jvm.hadoop_conf()))

    # S3A looks for keys where obstore does, unless a setting names providers: then there is no client of obstore.
    more = store_kind(base_uri).spelled != "s3"
    return ObjectFiles(base_uri, bucket, hadoop, hadoop_has_more_keys=more), root_uri


def _bucket_for(jvm: DeltaJvm, base_uri: str, conf: JavaObject) -> Bucket | str:
    """Return the client for a session's settings, or what has no equal in obstore: one of them, a proxy of Java's."""
    with _BUCKETS.lock:
        known = _BUCKETS.by_session.setdefault(jvm, {})
    if base_uri not in known:
        names = {name.removeprefix(_FOR_HADOOP): name for name in setting_names(base_uri)}
        found = jvm.hadoop_settings(conf, names)
        # Hadoop's own defaults are nobody's wish.
        spark_conf = {
            names[key]: value
            for key, (value, sources) in found.items()
            if not all(source.endswith("-default.xml") for source in sources)
        }
        known[base_uri] = jvm.proxy_property() or _client(base_uri, spark_conf)
    return known[base_uri]


def _client(base_uri: str, conf: Mapping[str, str]) -> Bucket | str:
    """Return a client, or why obstore has none: a setting without an equal, or what it cannot make a client of."""
    setting = only_hadoop(base_uri, conf)
    try:
        return setting or bucket_of(base_uri, store_settings(base_uri, conf))
    except EnvironmentUnfit as error:
        return error.found or error.what


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
        return self._files_behind(uri).status(uri)

    def by_store(self, uris: Iterable[str]) -> Iterator[tuple[FileStore, list[str]]]:
        """Yield each store that files or folders of the log lie on, with its URIs: a clone's may be anywhere."""
        places = defaultdict[str, list[str]](list)
        for uri in uris:
            places[store_of(uri)].append(uri)
        yield from ((self._files_behind(there[0]), there) for there in places.values())

    def _files_behind(self, uri: str) -> FileStore:
        if store_of(uri) == store_of(self._root_uri):
            return self.files
        direct = direct_files(self._jvm, uri, holds_tables=True)
        return direct[0] if direct else files_of(self._jvm, self._jvm.path(uri), self._jvm.hadoop_conf())

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


_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class KnownVersion(Generic[_Read]):
    """What was read of a version, the commit file that made it, and how many live files it has."""

    read: _Read
    version: int
    commit: StoredFile | None
    num_files: int


class KnownVersions(Generic[_Read]):
    """Known versions by a key of who reads them; the least recently used goes first. One worker's, used on its thread.

    What is kept counts only while its commit file is the same one: another writer may replace a version, and a table
    may be dropped and created again.
    """

    def __init__(self, max_files: int, max_versions: int) -> None:
        self._max_files = max_files
        self._max_versions = max_versions
        self._known: OrderedDict[Hashable, KnownVersion[_Read]] = OrderedDict()
        self.num_files = 0

    def __len__(self) -> int:
        return len(self._known)

    def kept(self, key: Hashable) -> KnownVersion[_Read] | None:
        """Return what is kept, as it is, and mark it as the most recently used."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def get(self, key: Hashable, storage: TableStorage) -> KnownVersion[_Read] | None:
        """Return what is kept, if the table's storage has the same commit file; else drop it."""
        known = self.kept(key)
        if known is not None and storage.status(storage.commit_uri(known.version)) != known.commit:
            self.forget(key)
            return None
        return known

    def keep(self, key: Hashable, known: KnownVersion[_Read]) -> None:
        """Keep a version in the place of the one before; one with too many files is not kept."""
        self.forget(key)
        if known.num_files > self._max_files:
            return
        self._known[key] = known
        self.num_files += known.num_files
        while self.num_files > self._max_files or len(self._known) > self._max_versions:
            self.forget(next(iter(self._known)))

    def forget(self, key: Hashable) -> None:
        """Drop what is kept under a key."""
        known = self._known.pop(key, None)
        if known is not None:
            self.num_files -= known.num_files

    def clear(self) -> None:
        self._known.clear()
        self.num_files = 0
