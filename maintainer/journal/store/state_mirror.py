"""The cache of a state that lies on an object store: former runs are fetched into it, a run is published from it.

A run works in the cache as in any state. Every object has one writer: a run's own files, and for each run that found
something out about an earlier one a record of its own, ``events.<run>.jsonl``. What a run of this machine writes is
published from here and never fetched; all else, which any process of this machine may have fetched, is never published.
So a copy in either direction never meets a conflict. Of rows that wait for the ledger, which more than one may make,
the index (``store_index``) says which were fetched. What several runs change, leases and ``state.json``, is replaced
on the store itself as it was read.

Records grow. On the store they are cut into parts of ``PART_BYTES``, of which only the last is ever written again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import StoredObject, content_tag
from maintainer.journal.event_log import (
    ELSEWHERE,
    EVENTS_FILE,
    HERE,
    ONE_WRITER,
    is_alive,
    is_event_file,
    is_locked,
)
from maintainer.journal.folder.atomic_files import PRIVATE_FOLDER, write_atomically
from maintainer.journal.folder.documents import abreast
from maintainer.journal.folder.run_folder import ASSERTIONS, PLAN_FILE, RESULTS_FILE, is_run_id, run_folders
from maintainer.journal.ledger.ledger_pending import MARK_FILE, PENDING_FILE
from maintainer.journal.memory.table_records import STATE_FILE
from maintainer.journal.store.run_pulse import PULSE_SECONDS, forget_pulses, living_runs
from maintainer.journal.store.store_index import MirroredObject, StoreIndex
from maintainer.journal.store.stored_runs import RUNS, FoldedRuns, objects_of_runs, stored_run_ids

WAITING_ROWS = "waiting_rows"
"""The folder on the store of all rows that wait for the ledger: a file for each run."""

SHARED_FILES = (MARK_FILE, "hook_commits.json", "found_tables.json")
"""Files beside the run folders that only save work: of two runs that write one at once, either may come last."""

PART_BYTES = 64 * 1024
NEWEST_RUNS = 50
"""Of so many runs a new one knows the records and lessons."""

MAX_RUNS = 1000
MAX_FILE_BYTES = 1 << 30
NEVER_FETCHED = frozenset({"spark.log", "report.html", "junit.xml", "traceback.txt"})
"""Files for people; whoever wants those of another machine takes them from the store."""


class StateMirror:
    """Copies between the store and the cache. Used from several threads."""

    def __init__(self, storage: ObjectStorage, cache: Path) -> None:
        self.storage = storage
        self.cache = cache
        self._fetching, self._publishing = threading.Lock(), threading.Lock()
        self._writing: dict[Path, threading.Lock] = {}
        self.runs_dir.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        (cache / ONE_WRITER).touch()
        self._index = StoreIndex(cache)
        self._folded: tuple[str, FoldedRuns] | None = None
        self._ended: set[str] = set()
        self.own_run: str | None = None
        """The run of this process, whose folder is never fetched."""

    @property
    def runs_dir(self) -> Path:
        """The folder of all run folders, in the cache."""
        return self.cache / RUNS

    def fetch(self, now_ms: int, *, everything: bool = False, ended_by: str | None = None) -> None:
        """Bring what former runs recorded into the cache.

        Args:
            now_ms: Milliseconds since 1970 UTC, by the store's clock where it is known.
            everything: All that any command reads of past runs; else what a run must know before it begins.
            ended_by: The run for which this is done: runs that no longer give a sign of life are ended for it, so
                that they commit nothing more. None only looks.

        Raises:
            StoreFailure: The store cannot be read.
            OSError: The cache cannot be written.
        """
        newest = MAX_RUNS if everything else NEWEST_RUNS
        with self._fetching:
            self._index.refresh()
            self._fetch_beside()
            self._fetch_runs(now_ms, ended_by, newest, everything=everything)
            self._fetch_waiting_rows()
            self._index.save()

    def fetch_run(self, run_id: str) -> None:
        """Bring all that one run recorded into the cache, however old it is; see ``fetch``.

        Raises:
            StoreFailure: The store cannot be read.
            OSError: The cache cannot be written.
        """
        with self._fetching:
            self._index.refresh()
            objects, _ = self.storage.children(f"{RUNS}/{run_id}/")
            self._fetch(_wanted(objects, whole=True))
            self._index.save()

    def refresh(self, now_ms: int, *, ended_by: str) -> None:
        """Bring what may hold back work on a table into the cache, where it was recorded since; see ``fetch``.

        Raises:
            StoreFailure: The store cannot be read.
            OSError: The cache cannot be written.
        """
        with self._fetching:
            self._index.refresh()
            self._fetch_runs(now_ms, ended_by, 0)
            self._index.save()

    def publish(self) -> None:
        """Copy to the store what runs of this machine wrote, also what an earlier one could not.

        Raises:
            StoreFailure: The store cannot be written; what is left waits for the next call.
            OSError: A file cannot be read.
        """
        with self._publishing:
            self._index.refresh()
            try:
                for folder in run_folders(self.runs_dir):
                    living = is_alive(folder.path / EVENTS_FILE)
                    for path in self._written_here(folder.path):
                        if not living or self.own_run in (folder.run_id, _writer(path)):
                            self._publish(path)
                    self._delete_appended(folder.path, living=living)
                for name in SHARED_FILES:
                    self._publish(self.cache / name)
            finally:
                self._index.save()

    def publish_record(self, run_id: str) -> None:
        """Copy the record of a run, and its plan, which must be known where a commit may be open.

        It waits for nothing else that is copied.

        Raises:
            StoreFailure: The store cannot be written.
            OSError: A file cannot be read.
        """
        folder = self.runs_dir / run_id
        for name in (PLAN_FILE, RESULTS_FILE):
            if self._index.get(f"{RUNS}/{run_id}/{name}") is None:
                self._publish(folder / name)
        self._publish(folder / EVENTS_FILE)

    def keep_state(self, data: bytes, tag: str) -> None:
        """Write ``state.json`` into the cache, as it is on the store."""
        self._write(self.cache / STATE_FILE, data, STATE_FILE, tag)
        self._folded = tag, FoldedRuns.of(data)

    def _fetch_runs(self, now_ms: int, ended_by: str | None, newest: int, *, everything: bool = False) -> None:
        """Fetch what runs recorded: of those that may have grown all of it, and some or all of the newest."""
        living = self._living(now_ms, ended_by)
        run_ids = stored_run_ids(self.storage)
        # Of those that began meanwhile none is taken for one that is over.
        living |= living_runs(self.storage, now_ms, ended_by=ended_by, but_for=living)
        folded = self._fetch_state()
        for run_id in run_ids:
            (self.runs_dir / run_id).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        others = [run_id for run_id in run_ids if not self._is_at_work_here(run_id)]
        # One that was seen alive is fetched as it ended.
        growing = folded.growing(others, now_ms) | {run_id for run_id in others if self._is_elsewhere(run_id)}
        recent = others[-newest:] if newest else []
        wanted, ended = list[StoredObject](), list[Path]()
        for run_id, objects in objects_of_runs(self.storage, growing, recent).items():
            folder = self.runs_dir / run_id
            wanted += _wanted(objects, whole=everything or run_id in growing)
            # Silence counts once a run had time to say that it lives: it begins with its pulse.
            quiet = max((each.modified_ms for each in objects), default=0) + PULSE_SECONDS * 1000 < now_ms
            elsewhere = living.get(run_id, not quiet and run_id not in folded.run_ids)
            if elsewhere and not (folder / HERE).exists():
                (folder / ELSEWHERE).touch()
            else:
                ended.append(folder)
        self._fetch(wanted)
        for folder in ended:
            (folder / ELSEWHERE).unlink(missing_ok=True)
        if ended_by is not None:
            # Those of runs that never published anything, too.
            over = {each for each in living if not living[each] and (each in folded.run_ids or each not in run_ids)}
            forget_pulses(self.storage, over)
            self._ended = {run_id for run_id, alive in living.items() if not alive} - over

    def _living(self, now_ms: int, ended_by: str | None) -> dict[str, bool]:
        """Return the runs that give signs of life, and those that do not; one that was ended is not asked again."""
        ended = dict.fromkeys(self._ended, False)
        return ended | living_runs(self.storage, now_ms, ended_by=ended_by, but_for=ended)

    def _fetch_beside(self) -> None:
        """Fetch the files beside the run folders."""
        objects, _ = self.storage.children("")
        self._fetch(stored for stored in objects if stored.name in SHARED_FILES)

    def _fetch_state(self) -> FoldedRuns:
        """Fetch the sum of all runs, and return the runs in it."""
        stored, path, entry = self.storage.head(STATE_FILE), self.cache / STATE_FILE, self._index.get(STATE_FILE)
        if stored is None:
            return FoldedRuns()
        tag = content_tag(stored.tag)
        is_here = entry is not None and content_tag(entry.tag) == tag and path.is_file() and entry.is_of(path.stat())
        if not is_here or self._folded is None or content_tag(self._folded[0]) != tag:
            document = self.storage.read(STATE_FILE)
            if document is None:
                return FoldedRuns()
            self.keep_state(document.data, document.tag)
        return FoldedRuns() if self._folded is None else self._folded[1]

    def _fetch_waiting_rows(self) -> None:
        """Fetch rows that wait for the ledger, and delete those here that another machine has appended."""
        listed = self.storage.listed(f"{WAITING_ROWS}/")
        rows = [stored for stored in listed if is_run_id(self._place(stored.name)[0].parent.name)]
        self._fetch(stored for stored in rows if not self._is_at_work_here(self._place(stored.name)[0].parent.name))
        names = {stored.name for stored in rows}
        for name in self._index.names(f"{WAITING_ROWS}/"):
            if name not in names:
                path, _ = self._place(name)
                if not self._waits(path):
                    path.unlink(missing_ok=True)
                self._index.drop(name)

    def _is_at_work_here(self, run_id: str) -> bool:
        return run_id == self.own_run or is_locked(self.runs_dir / run_id / EVENTS_FILE)

    def _is_elsewhere(self, run_id: str) -> bool:
        return (self.runs_dir / run_id / ELSEWHERE).exists()

    def _fetch(self, wanted: Iterable[StoredObject]) -> None:
        changed = [stored for stored in wanted if self._differs(stored)]
        documents = abreast(lambda stored: self.storage.read(stored.name), changed)
        for stored, document in zip(changed, documents, strict=True):
            if document is None:  # deleted since it was listed
                continue
            path, number = self._place(stored.name)
            if number is None:
                path.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
                self._write(path, document.data, stored.name, document.tag)
            else:
                self._write_part(path, number, document.data)
                self._index.put(stored.name, MirroredObject(len(document.data), document.tag))

    def _differs(self, stored: StoredObject) -> bool:
        entry = self._index.get(stored.name)
        path, number = self._place(stored.name)
        if number is not None:
            here = path.stat().st_size if path.is_file() else 0
            if here >= number * PART_BYTES + stored.size_bytes:
                return False  # a record only grows, and the one here has this part
        elif path.is_file() and (self._waits(path) or self._is_own(path)):
            return False
        return entry is None or content_tag(entry.tag) != content_tag(stored.tag) or not path.is_file()

    def _waits(self, path: Path) -> bool:
        """Whether a file was changed here and not yet published."""
        entry = self._index.get(self._name(path))
        if not path.is_file() or entry is None:
            return False
        return not entry.is_of(path.stat())

    def _written_here(self, folder: Path) -> list[Path]:
        """What this machine may have written into the folder of a run."""
        is_own = self._began_here(folder.name)
        return [
            path
            for path in _files_of(folder)
            if path.name == PENDING_FILE or (is_own if (by := _writer(path)) is None else self._began_here(by))
        ]

    def _is_own(self, path: Path) -> bool:
        """Whether only this machine writes a file of a run; another one may make rows that wait for the ledger."""
        return path.name != PENDING_FILE and self._began_here(path.parent.name)

    def _began_here(self, run_id: str) -> bool:
        return (self.runs_dir / run_id / HERE).exists()

    def _write(self, path: Path, data: bytes, name: str, tag: str) -> None:
        write_atomically(path, data)
        status = path.stat()
        self._index.put(name, MirroredObject(len(data), tag, status.st_size, status.st_mtime_ns))

    def _write_part(self, path: Path, number: int, data: bytes) -> None:
        before = path.read_bytes()[: number * PART_BYTES] if path.is_file() else b""
        if len(before) == number * PART_BYTES:
            write_atomically(path, before + data)

    def _publish(self, path: Path) -> None:
        # What one thread has read must not replace what another one has read later.
        with self._writing.setdefault(path, threading.Lock()):
            if is_event_file(path.name):
                self._publish_parts(path)
            else:
                self._publish_document(path)

    def _publish_document(self, path: Path) -> None:
        try:
            status = path.stat()
        except FileNotFoundError:
            return
        name = self._name(path)
        entry = self._index.get(name)
        if (entry is None or not entry.is_of(status)) and status.st_size <= MAX_FILE_BYTES:
            data = path.read_bytes()
            tag = self.storage.write(name, data)
            self._index.put(name, MirroredObject(len(data), tag, status.st_size, status.st_mtime_ns))

    def _publish_parts(self, path: Path) -> None:
        name, data = self._name(path), path.read_bytes()
        data = data[: data.rfind(b"\n") + 1]  # a line that is being written is for the next time
        for number in range(-(-len(data) // PART_BYTES)):
            part = data[number * PART_BYTES : (number + 1) * PART_BYTES]
            entry = self._index.get(f"{name}.{number:05}")
            if entry is None or entry.size_bytes < len(part):
                tag = self.storage.write(f"{name}.{number:05}", part)
                self._index.put(f"{name}.{number:05}", MirroredObject(len(part), tag))

    def _delete_appended(self, folder: Path, *, living: bool) -> None:
        """Delete the rows on the store that were published and are in the ledger now."""
        name = self._name(folder / PENDING_FILE)
        if not living and self._index.get(name) is not None and not (folder / PENDING_FILE).exists():
            self.storage.remove(name)
            self._index.drop(name)

    def _name(self, path: Path) -> str:
        """Return the object that has the content of a file."""
        match path.relative_to(self.cache).parts:
            case (_, run_id, name) if name == PENDING_FILE:
                return f"{WAITING_ROWS}/{run_id}.jsonl"
            case (_, run_id, folder, name) if folder == ASSERTIONS:
                return f"{ASSERTIONS}/{run_id}/{name}"
            case parts:
                return "/".join(parts)

    def _place(self, name: str) -> tuple[Path, int | None]:
        """Return the file that an object belongs to, and the number of its part."""
        folder, _, file = name.rpartition("/")
        if folder == WAITING_ROWS:
            return self.runs_dir / file.removesuffix(".jsonl") / PENDING_FILE, None
        stem, _, number = name.rpartition(".")
        if number.isdigit() and is_event_file(stem.rpartition("/")[2]):
            return self.cache / stem, int(number)
        return self.cache / name, None


def _files_of(folder: Path) -> list[Path]:
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in paths if not path.name.startswith("."))


def _writer(path: Path) -> str | None:
    """The run that wrote a record about another one; None for all other files."""
    return path.name.split(".")[1] if is_event_file(path.name) and path.name != EVENTS_FILE else None


def _wanted(objects: Iterable[StoredObject], *, whole: bool) -> Iterator[StoredObject]:
    """Yield the objects of one run that are read here: all, or its record and what it teaches of run times."""
    for stored in objects:
        file = stored.name.rpartition("/")[2]
        if file in NEVER_FETCHED or ".." in file:
            continue
        if whole or is_event_file(file.rpartition(".")[0]) or file == "lessons.json":
            yield stored
