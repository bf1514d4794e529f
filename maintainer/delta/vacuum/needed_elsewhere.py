"""Find what others need of a table: files that shallow clones name, versions that streams have yet to read. Read only.

A shallow clone's log names its source's files by absolute path, and the source has no trace of its clones. So the log
of every known table is read: all paths in its commits, and those of its newest version where its first commits are
cleaned away. A table around this one, or with a link to it, may name its files by relative paths. What was read once is
kept, and later only newer commits are read. No Spark job runs and no snapshot is made.

A checkpoint holds ``offsets/N`` (what batch N reads up to, one JSON line for each source, after a version and a line of
metadata) and ``commits/N`` (batch N is done). After a restart the stream goes on from the last batch that is done. How
it was told to begin is not in there.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from maintainer.delta.log.replay.log_replay import LogReplay
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.storage.failures.engine_failures import as_table_error
from maintainer.delta.storage.file_identity import NeededFiles, canonical_uri, empty_folder
from maintainer.delta.storage.file_store import FileStore, java_quote
from maintainer.delta.storage.log_paths import is_absolute, log_uri, path_uri
from maintainer.delta.storage.table_log import LogEntry, TableLog
from maintainer.engine.protocols import is_one_place
from maintainer.errors import MaintainerError, NoTable, NotDelta
from maintainer.model.table.log_names import vector_of_id
from maintainer.model.table.storage_facts import StreamPosition
from maintainer.model.table.table_facts import TableFacts, TableRef

CATALOG_SECONDS = 60.0
"""For so long a list of a catalog's tables is good: what is deleted was removed long before, at least by retention."""
_OUTSIDE = re.compile(rb'"path"\s*:\s*"(?:/|[A-Za-z][A-Za-z0-9+.-]*:|[^"]*(?:\\|\.\.|%2[eE]))|"storageType"\s*:\s*"p"')
"""Paths that may lead outside. JSON may be spaced and any character escaped: other writers than Delta's do so."""


class Locator(Protocol):
    """Finds tables; the engine's reader does."""

    def place_of(self, ref: TableRef) -> tuple[FileStore, str]:
        """The store and the root URI of a table.

        Raises:
            TableError: T401, T402.
        """

    def neighbours_in_catalog(self, tables: Iterable[TableRef]) -> Iterable[TableRef]:
        """Other tables in the databases of the tables that have names.

        Raises:
            EnvironmentUnfit: E647, the catalog does not answer.
        """

    def facts(self, ref: TableRef) -> TableFacts: ...


@dataclass(slots=True)
class _Known:
    """What one table's log refers to outside its own folder or behind entrances; read up to the commit ``newest``."""

    newest: LogEntry | None = None
    files: NeededFiles = field(default_factory=NeededFiles)


class References:
    """The references of all tables asked for so far; shared by the workers of a run."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[str, ...]], _Known] = {}
        self._listed: tuple[tuple[TableRef, ...], tuple[TableRef, ...], float] | None = None
        self._lock = threading.Lock()

    def into(
        self, root_uri: str, tables: Iterable[TableRef], locator: Locator
    ) -> tuple[dict[str, NeededFiles], list[str]]:
        """Return the files that other tables refer to, by table, and the problems.

        A table that does not exist refers to nothing. One whose log cannot be read, or whose disk may not be mounted,
        may be a clone: it is named.
        """
        needed: dict[str, NeededFiles] = {}
        problems: list[str] = []
        tables = tuple(tables)
        try:
            tables += self._neighbours(tables, locator)
        except MaintainerError as error:
            problems.append(f"which other tables the catalog has is not known ({error.code}: {error.what})")
        for ref in tables:
            place = path_uri(ref.location) if ref.is_path else ""
            try:
                files, place = locator.place_of(ref)
                if is_one_place(StoragePlaces(), place, root_uri):
                    continue  # a table's own log says which of its own files it needs
                entrances = _entrances(files, place, root_uri)
                with self._lock:
                    references = self._refreshed(ref, locator, TableLog(files, place), entrances)
            except Exception as error:
                problem = as_table_error(error, ref.identifier)
                if not isinstance(problem, (NoTable, NotDelta)):
                    problems.append(_unreadable(ref, problem))
                elif (empty := empty_folder(place)) is not None:
                    problems.append(_unmounted(ref, empty))
                continue
            if len(references.files):
                needed[ref.identifier] = references.files
        return needed, problems

    def _neighbours(self, tables: tuple[TableRef, ...], locator: Locator) -> tuple[TableRef, ...]:
        """Return what stands beside the tables in a catalog, which is asked again after ``CATALOG_SECONDS``."""
        with self._lock:
            if self._listed is None or self._listed[0] != tables or time.monotonic() > self._listed[2]:
                beside = tuple(locator.neighbours_in_catalog(tables))
                self._listed = (tables, beside, time.monotonic() + CATALOG_SECONDS)
            return self._listed[1]

    def _refreshed(self, ref: TableRef, locator: Locator, log: TableLog, entrances: tuple[str, ...]) -> _Known:
        """Return a table's references, with those of its commits since they were read.

        They are read anew unless the newest commit that was read is still there, the same file: the table may have been
        dropped and made again, or commits between then and now cleaned away.
        """
        commits, root_uri = log.commits(), log.root_uri
        references = self._known.get((ref.location, entrances))
        if references is None or references.newest not in commits:
            references = _Known()
            if not commits or commits[0].version > 0:
                # Files that the cleaned-away commits added are in the newest version, or removed by a later commit.
                references.files.add(_live_outside(locator.facts(ref), root_uri, entrances))
        after = -1 if references.newest is None else references.newest.version
        for _, commit in log.bodies(commit for commit in commits if commit.version > after):
            references.files.add(_outside(commit, root_uri, entrances))
        if commits:
            references.newest = commits[-1]
        self._known[ref.location, entrances] = references
        return references


def _entrances(files: FileStore, outer_uri: str, root_uri: str) -> tuple[str, ...]:
    """Return folders in a table's root through which its own relative paths lead into another table's root.

    That is the other root itself, where it lies below, and links beside the table's files that lead to it.
    """
    outer, root = canonical_uri(outer_uri), canonical_uri(root_uri)
    below = [outer_uri + root[len(outer) :]] if root.startswith(outer + "/") else []
    if files.has_links:
        for uri, child in files.children(outer_uri).items():
            target = canonical_uri(uri) if child.is_symlink else ""
            if target and (f"{root}/".startswith(f"{target}/") or target.startswith(f"{root}/")):
                below.append(uri)
    return tuple(below)


def _outside(commit: bytes, root_uri: str, entrances: tuple[str, ...]) -> set[str]:
    """Return the URIs of files outside the root, or behind an entrance, that a commit refers to."""
    if not entrances and _OUTSIDE.search(commit) is None:
        return set()
    uris: set[str] = set()
    for line in commit.decode("utf-8").split("\n"):
        action: dict[str, Any] = json.loads(line) if line.strip() else {}
        for body in (action[kind] for kind in ("add", "remove") if kind in action):
            vector = body.get("deletionVector")
            named = (vector["storageType"], vector["pathOrInlineDv"]) if vector else None
            uris.update(_outside_of(body["path"], named, root_uri, entrances))
    return uris


def _outside_of(path: str, vector: tuple[str, str] | None, root_uri: str, entrances: tuple[str, ...]) -> Iterator[str]:
    """The URIs of a file and of its deletion vector, by storage type and encoded path, that ``_outside`` looks for."""
    uri = log_uri(root_uri, path)
    behind = tuple(f"{entrance}/" for entrance in entrances)
    if is_absolute(path) or not uri.startswith(root_uri + "/") or uri.startswith(behind):
        yield uri
    if vector is not None and vector[0] == "p":
        yield log_uri(root_uri, java_quote(vector[1]) if "%" not in vector[1] else vector[1])


def _live_outside(facts: TableFacts, root_uri: str, entrances: tuple[str, ...]) -> set[str]:
    files = ((file.path, file.deletion_vector) for file in facts.files)
    named = ((path, None if vector is None else vector_of_id(vector.unique_id)) for path, vector in files)
    return {uri for path, vector in named for uri in _outside_of(path, vector, root_uri, entrances)}


def _unmounted(ref: TableRef, folder: str) -> str:
    return (
        f"whether {ref.identifier} needs files of this table is not known: {folder} is empty, so its disk may not be "
        "mounted; where there is to be no such table, remove its policy or the folder"
    )


def _unreadable(ref: TableRef, problem: MaintainerError) -> str:
    return (
        f"whether {ref.identifier} needs files of this table is not known, because its log cannot be read "
        f"({problem.code}: {problem.what})"
    )


MAX_SOURCES = 100


class Unreliable(Exception):
    """A checkpoint that cannot be trusted; ``position`` turns it into a problem."""


def position(
    consumer: str, files: FileStore, folder_uri: str, table_id: str, log: LogReplay, head: int, now_ms: int
) -> StreamPosition:
    """Return the oldest version of the table that the stream still needs, and its commit time."""
    try:
        version = _version(files, folder_uri, table_id)
    except Unreliable as error:
        return StreamPosition(consumer, problem=f"{error} ({folder_uri})")
    except Exception as error:
        return StreamPosition(consumer, problem=f"it cannot be read: {_line(error)} ({folder_uri})")
    if version > head:
        # It has read everything; the next version does not exist yet.
        return StreamPosition(consumer, version, now_ms)
    needed_since_ms = log.committed_at_ms(version)
    if needed_since_ms is None:
        text = f"it is at version {version}, and the log begins at {log.first_version} ({folder_uri})"
        return StreamPosition(consumer, problem=text)
    return StreamPosition(consumer, version, needed_since_ms)


def _version(files: FileStore, folder: str, table_id: str) -> int:
    folder_status = files.status(folder)
    if folder_status is None or not folder_status.is_dir:
        raise Unreliable("there is no such folder")
    offsets, commits = _batches(files, f"{folder}/offsets"), _batches(files, f"{folder}/commits")
    if not offsets:
        raise Unreliable("it has no offsets")
    done = max((batch for batch in commits if batch in offsets), default=None)
    if done is None and commits:
        raise Unreliable("the offsets of its last batch are missing")
    batch = min(offsets) if done is None else done
    sources = [source for source in _sources(files.read(offsets[batch])) if source.get("reservoirId") == table_id]
    if not sources:
        raise Unreliable(f"batch {batch} does not read this table")
    # An offset is where a batch ends. Only one within the first snapshot names the version where the batch began, too.
    if done is None and not all(source.get("isStartingVersion") is True for source in sources):
        raise Unreliable("its first batch is not done, and where it began is not recorded")
    return min(int(source["reservoirVersion"]) for source in sources)


def _batches(files: FileStore, folder: str) -> dict[int, str]:
    """Batch number to URI; other names, such as checksums, are left out."""
    return {int(child.name): uri for uri, child in files.children(folder).items() if child.name.isdigit()}


def _sources(data: bytes) -> list[dict[str, Any]]:
    """The offsets of a batch's sources that are JSON objects."""
    lines = data.decode("utf-8").splitlines()
    if not lines or not lines[0].startswith("v") or len(lines) < 2:
        raise Unreliable("its offsets are not of a form known here")
    offsets = []
    for line in lines[2 : 2 + MAX_SOURCES]:
        value = None if line.strip() in ("", "-") else json.loads(line)
        if isinstance(value, dict):
            offsets.append(value)
    return offsets


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__
