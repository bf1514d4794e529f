"""Open the storage behind a path or URI: the disk, obstore, or Hadoop's file system for all the rest."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.storage.file_store import FileStore, one_spelling
from maintainer.delta.storage.hadoop_files import HadoopFiles
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.object_files import Bucket, ObjectFiles
from maintainer.engine.store.cloud_settings import StoreSettings, only_hadoop, setting_names, store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import OF_TABLES
from maintainer.engine.store.store_failures import BUSY, StoreFailure
from maintainer.errors import EnvironmentUnfit
from maintainer.model.table.log_names import LOG_FOLDER
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


def direct_files(jvm: DeltaJvm, uri: str) -> tuple[FileStore, str] | None:
    """Return the store behind a URI, and the URI in its one spelling; None where only Hadoop can tell.

    No JVM is started, unless a store refuses a request.

    Args:
        jvm: Whose settings decide.
        uri: A percent-encoded URI, as ``text_uri`` makes it from a path.
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
    if (rest.startswith("//") and scheme == "file") or path == "/" or _DOTS.search(path):
        return None
    root_uri = f"{base_uri}{path}"
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
