"""The session of one worker of the command engine: classic or Spark Connect, with settings that are put back.

``classic_sessions`` opens them on a classic Spark session, where the transaction engine could run as well. In the text
of Delta's commands names, paths and values are quoted, so no text of a policy becomes SQL.

A table's log and its files are read through Spark's data sources: where paths lie on a Spark Connect server. Each read
is a job, so many commit files are read at once. A commit file never changes, so it is kept as long as the storage
object lives: for one operation on one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.schema_names import name_parts, quote
from maintainer.delta.spark.spark_session import SessionLease, worker_session
from maintainer.delta.storage.failures.engine_failures import describe, message_of
from maintainer.delta.storage.file_store import FileSource, StoredFile
from maintainer.delta.storage.log_paths import text_uri
from maintainer.delta.storage.table_log import TableLog
from maintainer.delta.verify.version_proof import VERSION_SETTINGS
from maintainer.engine.process_loss import is_engine_lost
from maintainer.model.table.log_names import COMMIT_NAME
from maintainer.model.table.table_facts import PartitionValues, TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PIECE_BYTES = 16 << 20

_DELTA_AND_ZONE = "SELECT java_method('io.delta.package', 'VERSION'), java_method('java.time.ZoneId', 'systemDefault')"
_SAME_AS_UTC = ("UTC", "Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Z", "Zulu", "Universal")


@dataclass(slots=True)
class CommandSession:
    """A session of our own. ``interrupt`` cancels what runs in it; ``describe`` names the next jobs.

    ``cores`` is how many tasks run at once, 0 where nobody knows. ``exclusive_commits`` makes commits to the table at a
    location exclusive within a block and says what writes them; None where the JVM that commits is out of reach.

    Everything goes through Spark's public API, so that a classic session and one of Spark Connect are the same here.
    """

    spark: SparkSession
    interrupt: Callable[[], object]
    describe: Callable[[str], None] = lambda text: None
    cores: int = 0
    exclusive_commits: Callable[[str], AbstractContextManager[str | None]] = lambda location: nullcontext()

    def __post_init__(self) -> None:
        for key, value in VERSION_SETTINGS.items():
            self.spark.conf.set(key, value)

    def rows(self, statement: str) -> list[Any]:
        """Run a statement and return its rows."""
        return list(self.spark.sql(statement).collect())

    def what_shifts_times(self) -> str | None:
        """What makes commands of this session shift times of partitions, as messages say it; None where nothing does.

        Delta before 4.1 takes a time's text, which is of the session's zone (UTC), for one of Java's: delta#5599.
        """
        try:
            ((delta, zone),) = self.rows(_DELTA_AND_ZONE)
            is_right = zone in _SAME_AS_UTC or tuple(map(int, delta.split(".")[:2])) >= (4, 1)
        except Exception as error:  # a server that lets nobody call Java, or another Delta
            if is_engine_lost(error):
                raise
            return f"the server does not say which Delta it has: {message_of(error)}"
        return None if is_right else f"Delta {delta}, and Java's time zone is {zone}"

    def files(self, path: str, *, recursive: bool = False) -> DataFrame:
        """List a folder: ``path`` (text), ``size`` (bytes), ``at`` (milliseconds). Contents are not read.

        Files whose names begin with ``_`` or ``.`` are not listed, nor what lies in folders of such names; partition
        folders (``_p=1``) are.
        """
        reader = self.spark.read.format("binaryFile").option("__globPaths__", "false")
        reader = reader.option("recursiveFileLookup", str(recursive).lower())
        return reader.load(path).selectExpr("path", "length AS size", "unix_millis(modificationTime) AS at")

    def contents(self, paths: list[str]) -> DataFrame:
        """The contents of files: ``path`` (text), and pieces of at most 16 MiB by number, which a message can carry."""
        reader = self.spark.read.format("binaryFile").option("__globPaths__", "false")
        pieces = f"explode(sequence(0, CAST(greatest(length - 1, 0) DIV {PIECE_BYTES} AS INT))) AS piece"
        part = f"substring(content, piece * {PIECE_BYTES} + 1, {PIECE_BYTES}) AS part"
        return reader.load(paths).selectExpr("path", "content", pieces).selectExpr("path", "piece", part)


def classic_sessions(lease: SessionLease) -> Callable[[str], AbstractContextManager[CommandSession]]:
    """Return what opens a worker's session on a lease, with a job group of its own."""

    @contextmanager
    def open_one(name: str) -> Iterator[CommandSession]:
        spark = worker_session(lease)
        jvm, cancel = DeltaJvm(spark), partial(spark.sparkContext.cancelJobGroup, name)
        describe = partial(jvm.enter_thread, name)
        describe(f"maintainer worker {name}")
        try:
            yield CommandSession(spark, cancel, describe, lease.cores, partial(_exclusive_commits, jvm))
        finally:
            jvm.leave_thread()

    return open_one


@contextmanager
def _exclusive_commits(jvm: DeltaJvm, location: str) -> Iterator[str | None]:
    with ExitStack() as stack:
        writer = None
        with suppress(Exception):
            # This engine asks for nothing private. Another build of Delta commits as all its writers do.
            writer = stack.enter_context(jvm.commands_exclusive(jvm.log_of_root(jvm.path(location), {})))
        yield writer


_CASTS = frozenset(
    {"boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz"}
)


def text_literal(text: str) -> str:
    """A string literal: both characters that Spark's parser reads specially are escaped."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def table_of_path(path: str) -> str:
    """A table by its path, as Spark writes paths (not percent-encoded)."""
    return f"delta.{quote(path)}"


def table_name(ref: TableRef) -> str:
    """A table as a statement names it: by path, or by the parts of its catalog name."""
    if ref.is_path:
        return table_of_path(ref.location)
    return ".".join(quote(part) for part in name_parts(ref.identifier))


def in_partitions(partitions: Iterable[PartitionValues], types: Mapping[str, str]) -> str:
    """A condition that holds for the rows of exactly these partitions; ``true`` for a table without partitions.

    Values are given as the log spells them and cast to the column's type. The empty text of a text column is a value,
    and apart from null.
    """
    conditions = []
    for values in partitions:
        terms = [_is(column, value, types.get(column, "string")) for column, value in values]
        conditions.append("(" + " AND ".join(terms) + ")" if terms else "true")
    listed = sorted(set(conditions))
    return "true" if "true" in listed else " OR ".join(listed)


def _is(column: str, value: str | None, kind: str) -> str:
    if value is None:
        return f"{quote(column)} IS NULL"
    literal = text_literal(value)
    if kind in _CASTS or kind.startswith("decimal"):
        literal = f"CAST({literal} AS {kind})"
    return f"{quote(column)} = {literal}"


def optimize(table: str, where: str, zorder_by: Sequence[str] = (), *, full: bool = False) -> str:
    """``OPTIMIZE``; Z-order columns are already quoted. ``full`` is for clustered tables."""
    condition = "" if where == "true" else f" WHERE {where}"
    order = f" ZORDER BY ({', '.join(zorder_by)})" if zorder_by else ""
    return f"OPTIMIZE {table}{' FULL' if full else ''}{condition}{order}"


def reorg_purge(table: str, where: str) -> str:
    """``REORG TABLE ... APPLY (PURGE)``."""
    condition = "" if where == "true" else f" WHERE {where}"
    return f"REORG TABLE {table}{condition} APPLY (PURGE)"


def set_properties(table: str, properties: Mapping[str, str]) -> str:
    """``ALTER TABLE ... SET TBLPROPERTIES``."""
    listed = ", ".join(f"{text_literal(key)} = {text_literal(value)}" for key, value in properties.items())
    return f"ALTER TABLE {table} SET TBLPROPERTIES ({listed})"


FILES_READ_AT_ONCE = 500


class SessionFiles(FileSource):
    """Implements ``FileSource`` through a session."""

    def __init__(self, session: CommandSession) -> None:
        self._session = session
        self._commits: dict[str, bytes] = {}

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """Folders are not listed, nor files whose names begin with ``_`` or ``.``."""
        files = self.below(uri, recursive=False)
        return {uri: file for uri, file in files.items() if file.name > after}

    def below(self, uri: str, *, recursive: bool) -> dict[str, StoredFile]:
        """The files of a folder, or all below it, by URI; none if there is no folder. Spark follows symlinks."""
        try:
            rows = self._session.files(_path(uri), recursive=recursive).collect()
        except Exception as error:
            if any(failure.condition == "PATH_NOT_FOUND" for failure in describe(error)):
                return {}
            raise
        files = (StoredFile(text_uri(str(row[0])), int(row[1]), int(row[2]), False, False) for row in rows)
        return {file.uri: file for file in files}

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        body = next(self.read_many([StoredFile(uri, -1, 0, False, False)]))
        return body if first_bytes is None else body[:first_bytes]

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        """Up to ``FILES_READ_AT_ONCE`` are read by one job."""
        wanted = list(files)
        for start in range(0, len(wanted), FILES_READ_AT_ONCE):
            group = wanted[start : start + FILES_READ_AT_ONCE]
            bodies = self._read([file.uri for file in group if file.uri not in self._commits])
            bodies.update((file.uri, self._commits[file.uri]) for file in group if file.uri in self._commits)
            self._commits.update((file.uri, bodies[file.uri]) for file in group if COMMIT_NAME.match(file.name))
            yield from (bodies[file.uri] for file in group)

    def _read(self, uris: list[str]) -> dict[str, bytes]:
        pieces: dict[str, dict[int, bytes]] = {uri: {} for uri in uris}
        for row in self._session.contents([_path(uri) for uri in uris]).collect() if uris else ():
            pieces[text_uri(str(row[0]))][int(row[1])] = bytes(row[2])
        missing = [uri for uri, parts in pieces.items() if not parts]
        if missing:
            raise FileNotFoundError(missing[0])
        return {uri: b"".join(parts[number] for number in sorted(parts)) for uri, parts in pieces.items()}


class CommandStorage(TableLog):
    """The storage of one table; ``root`` as Spark writes it (``file:/a b``: qualified, not percent-encoded)."""

    files: SessionFiles

    def __init__(self, session: CommandSession, root: str) -> None:
        super().__init__(SessionFiles(session), text_uri(root.rstrip("/")))

    @property
    def root_text(self) -> str:
        """The table's root as Spark's readers take it."""
        return _path(self.root_uri)

    def sizes(self, uris: Iterable[str]) -> dict[str, int]:
        """Bytes of every file below the root by its URI, as listed now, and of those of ``uris`` outside it.

        A shallow clone refers to some.
        """
        listed = self.files.below(self.root_uri, recursive=True)
        for folder in {uri.rpartition("/")[0] for uri in uris if not uri.startswith(self.root_uri + "/")}:
            listed.update(self.files.below(folder, recursive=False))
        return {uri: file.size_bytes for uri, file in listed.items()}


def _path(uri: str) -> str:
    """The path as Spark's readers take it."""
    return unquote(uri, errors="surrogateescape")
