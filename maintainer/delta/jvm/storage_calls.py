"""The file system, folders and paths of a table in the JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from maintainer.delta.jvm.gateway import Gateway, required
from maintainer.delta.jvm.sessions import JavaObject, java_class
from maintainer.model.table.log_names import LOG_FOLDER

REQUIRED = required(
    {
        "DeltaLog": "store/0 newDeltaHadoopConf/0 logPath/0",
        "actions.DeletionVectorDescriptor": "apply/6 absolutePath/1",
        "storage.LogStore$": "apply/1",
        "org.apache.spark.deploy.SparkHadoopUtil": "get/0 newConfiguration/1",
        "org.apache.spark.sql.internal.SessionState": "newHadoopConf/0",
    }
)
"""Private methods of Delta and Spark that this module calls."""

_S3_MODEL = "software.amazon.awssdk.services.s3.model"


def planned_hadoop_conf(jvm: JavaObject, settings: Mapping[str, str]) -> JavaObject:
    """Make the Hadoop configuration that a session with these settings will have, as Spark makes it."""
    spark_conf = java_class(jvm, "org.apache.spark.SparkConf")(False)
    for key, value in settings.items():
        spark_conf.set(key, value)
    return java_class(jvm, "org.apache.spark.deploy.SparkHadoopUtil").get().newConfiguration(spark_conf)


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A table's root and log folder as Hadoop sees them, and what reads them. Opening one reads no log.

    ``root`` and ``log_path`` are qualified Hadoop paths; ``open_store`` returns the LogStore that Delta would use.
    """

    file_system: JavaObject
    conf: JavaObject
    root: JavaObject
    log_path: JavaObject
    open_store: Callable[[], JavaObject]

    @property
    def store(self) -> JavaObject:
        """The LogStore; a Spark session is started for it, where none runs yet."""
        return self.open_store()

    @property
    def location(self) -> str:
        """The table's root as a percent-encoded URI, as ``DeltaLog`` says it."""
        return str(self.root.toUri().toString())


class StorageCalls(Gateway):
    """File systems and paths of a table."""

    def folder_of_log(self, log: JavaObject) -> TableFolder:
        """The folder of an open DeltaLog, reached with the configuration that it uses."""
        conf = log.newDeltaHadoopConf()
        file_system = log.dataPath().getFileSystem(conf)
        return TableFolder(file_system, conf, log.dataPath(), log.logPath(), log.store)

    def folder_at(self, root: JavaObject) -> TableFolder:
        """The folder at a Hadoop path, qualified as ``DeltaLog`` does it. No Delta log is opened for it."""
        conf = self.hadoop_conf()
        below = self._path(root, LOG_FOLDER)
        file_system = below.getFileSystem(conf)
        log_path = file_system.makeQualified(below)
        return TableFolder(file_system, conf, log_path.getParent(), log_path, self._store)

    def hadoop_conf(self) -> JavaObject:
        """The session's Hadoop configuration, made once: a copy has a thousand entries."""
        if self._hadoop_conf is None:
            if self._started is None and self._unstarted is not None:
                self._hadoop_conf = self._unstarted.hadoop_conf()
            else:
                self._hadoop_conf = self._session.sessionState().newHadoopConf()
        return self._hadoop_conf

    def hadoop_settings(self, conf: JavaObject, keys: Iterable[str]) -> dict[str, tuple[str, list[str]]]:
        """Return settings of a Hadoop configuration that are not empty, each with the names of where it was set."""
        values = {key: str(conf.get(key) or "") for key in keys}
        return {
            key: (value, [str(source) for source in conf.getPropertySources(key) or ()])
            for key, value in values.items()
            if value
        }

    def proxy_property(self) -> str | None:
        """The property of Java's by which all its clients take a proxy; None where there is none."""
        system = self._java("java.lang.System")
        names = ("http.proxyHost", "https.proxyHost")
        return next((name for name in names if system.getProperty(name)), None)

    def _store(self) -> JavaObject:
        """The session's LogStore, made once."""
        if self._log_store is None:
            self._log_store = self._module("storage.LogStore$").apply(self._session)
        return self._log_store

    def io_counters(self, bucket_uri: str, names: Iterable[str]) -> dict[str, int]:
        """Return what Hadoop's client of a bucket counted since the JVM started; 0 where it does not count that."""
        file_system = self.path(f"{bucket_uri}/").getFileSystem(self.hadoop_conf())
        counters = file_system.getIOStatistics().counters()
        return {name: int(counters.get(name) or 0) for name in names}

    def require_s3_client(self, file_system: JavaObject) -> None:
        """Raise where S3A's own client, or the classes of its requests, are not there under their names."""
        self._class(f"{_S3_MODEL}.DeleteObjectsRequest")
        _s3_client(file_system)

    def delete_objects(
        self, file_system: JavaObject, versions: Mapping[str, str | None]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Delete objects, or a version of each, by one request of S3A's own client; it needs Hadoop 3.4 or newer.

        Args:
            file_system: An ``S3AFileSystem``.
            versions: Their keys, each with the version that goes; None hides the object.

        Returns:
            What kept which, and the version ids of the delete markers that were made. ``null``, of a bucket whose
            versions are suspended, names no certain one and is left out.
        """
        model = self._java(_S3_MODEL)
        objects = self._array_list()
        for key, version in versions.items():
            objects.add(model.ObjectIdentifier.builder().key(key).versionId(version).build())
        asked = model.Delete.builder().objects(objects).quiet(False).build()
        request = model.DeleteObjectsRequest.builder().bucket(file_system.getBucket()).delete(asked).build()
        answer = _s3_client(file_system).deleteObjects(request)
        kept = {str(error.key()): f"{error.code()}: {error.message()}" for error in answer.errors()}
        made = ((str(entry.key()), entry.deleteMarkerVersionId()) for entry in answer.deleted())
        return kept, {key: str(marker) for key, marker in made if marker not in (None, "null")}

    def object_versions(
        self, file_system: JavaObject, prefix: str, after: str
    ) -> tuple[dict[str, list[tuple[str, bool, bool]]], bool]:
        """List the versions of the first objects behind a key, by one request.

        Returns:
            By key the versions: their ids, whether each is a delete marker, and whether the newest; and whether there
            are more, which may be older ones of the last key.
        """
        request = self._java(_S3_MODEL).ListObjectVersionsRequest.builder().bucket(file_system.getBucket())
        answer = _s3_client(file_system).listObjectVersions(request.prefix(prefix).keyMarker(after).build())
        listed: dict[str, list[tuple[str, bool, bool]]] = {}
        for entries, is_marker in ((answer.deleteMarkers(), True), (answer.versions(), False)):
            for entry in entries:
                version = (str(entry.versionId()), is_marker, bool(entry.isLatest()))
                listed.setdefault(str(entry.key()), []).append(version)
        return listed, bool(answer.isTruncated())

    def child(self, root: JavaObject, relative: str) -> JavaObject:
        """A path below (or, if ``relative`` is absolute, beside) a root, from its percent-encoded form in the log."""
        return self._path(root, self.path(relative))

    def vector_path(self, kind: str, path: str, root: JavaObject) -> JavaObject:
        """Return where Delta places a deletion vector file, from its storage type and encoded path."""
        offset = self._java("java.lang.Integer").valueOf(1)
        vector = self._in_delta("actions.DeletionVectorDescriptor").apply(
            kind, path, self._option(offset), 1, 0, self._none
        )
        return vector.absolutePath(root)


def _s3_client(file_system: JavaObject) -> JavaObject:
    return file_system.getS3AInternals().getAmazonS3Client("deletion")
