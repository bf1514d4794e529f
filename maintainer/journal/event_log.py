"""``events.jsonl``: the append-only record of a run, one JSON object a line, each with its own checksum.

A line is ``{"at_ms": ..., "type": ..., ..., "crc": "1f2e3d4c"}``; ``crc`` is the CRC-32 of the same object without
that key, as canonical JSON. A process killed during a write leaves a torn last line: it fails the check and counts as
never written. A damaged line elsewhere is counted and skipped; until the record is whole nothing is deleted.

In a state that is copied to and from an object store each file has one writer: what a later run finds out stands beside
the record, in ``events.<that run>.jsonl``, and is read with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from maintainer.errors.foreign_text import without_secrets
from maintainer.journal.folder.atomic_files import PRIVATE_FILE, FolderUnwritable, recording, try_lock, unreadable_state
from maintainer.model.codec import DecodeError
from maintainer.model.run.run_events import RunEvent, event_of, line_of

EVENTS_FILE = "events.jsonl"
ONE_WRITER = ".one_writer"
"""A file in a state of which each file may be written by one run only."""

ELSEWHERE = ".elsewhere"
"""A file in the folder of a run that goes on on another machine, where its lock cannot be seen."""

HERE = ".here"
"""A file in the folder of a run that went on on this machine, where its lock can be seen, of a state on a store."""

REOPENED = "reopened"
"""Type of the event that follows a torn line when another run goes on with the file."""

OLD_RECORD_HELP = (
    "let `maintainer apply` of the version that wrote it end well first: it settles what that run left open and takes "
    "it into state.json, and its lines are not read again"
)

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A line longer than this is damage, not an event: the longest we write names a few files and one error."""

LAST_BYTES = 64 * 1024
"""So much of a record's end is read for its last event; a longer last line counts as unknown."""

LOOK_SECONDS = 1.0
"""Longer than anybody looks whether a record is locked."""

_WORDS = frozenset({"detail", "reason", "note", "stopped", "interrupted_by", "by", "what"})
"""Fields in sentences; every other text is a name or a place, by which it is looked up again."""

_EVENT_FILE = re.compile(r"events(\.\d{8}T\d{6}Z-[0-9a-z]{4})?\.jsonl")

Event = Mapping[str, Any]


def encode(event: Event) -> bytes:
    """Return one line, checksum and newline included."""
    event = {key: _clean(key, value) for key, value in event.items()}
    body = _canonical(event)
    return _canonical({**event, "crc": f"{zlib.crc32(body):08x}"}) + b"\n"


def decode(line: bytes) -> Event | None:
    """Return the event of a line, or None when the line is torn or damaged."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    crc = event.pop("crc", None)
    if crc != f"{zlib.crc32(_canonical(event)):08x}" or not isinstance(event.get("type"), str):
        return None
    return event


def _clean(key: str, value: Any) -> Any:  # noqa: ANN401 (a JSON value)
    match value:
        case str() if key in _WORDS:
            return without_secrets(value)
        case dict():
            return {name: _clean(name, part) for name, part in value.items()}
    return value


def run_events(path: Path, lines: Iterable[Event]) -> Iterator[RunEvent]:
    """Yield the events of a record's lines.

    Args:
        path: The record, for the error.
        lines: What was read of it.

    Raises:
        EnvironmentUnfit: E641, another version wrote it. It may hold a quarantine, or a version that is not proven.
    """
    try:
        yield from map(event_of, lines)
    except DecodeError as error:
        raise unreadable_state(path, str(error), OLD_RECORD_HELP) from error


def _canonical(event: Event) -> bytes:
    text = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # A path that is not text in any encoding arrives with surrogates; they must not stop a record.
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class FileExtent:
    """How far a file of events was read."""

    num_events: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EventsRead:
    """What a run recorded, in order. ``damaged`` counts lines that are no events, without a torn last one.

    ``lines`` have an event each, which takes many times their room. ``by_file`` are the same by the name of their file,
    in which they only become more, and ``sizes`` the bytes that were read of each.
    """

    lines: tuple[bytes, ...] = ()
    damaged: int = 0
    by_file: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def events(self) -> Iterator[Event]:
        """The event of each line, made when it is asked for."""
        return filter(None, map(decode, self.lines))

    @property
    def extent(self) -> dict[str, FileExtent]:
        """How far each file was read."""
        return {name: FileExtent(len(lines), self.sizes[name]) for name, lines in self.by_file.items()}

    def after(self, extent: Mapping[str, FileExtent]) -> EventsRead:
        """Return what is behind that which was read of each file before."""
        read = (lines[extent[name].num_events if name in extent else 0 :] for name, lines in self.by_file.items())
        return EventsRead(tuple(chain.from_iterable(read)))

    @property
    def is_whole(self) -> bool:
        """Whether no line in the middle was lost. A torn last line loses nothing that was acted on."""
        return self.damaged == 0


def is_event_file(name: str) -> bool:
    """Return whether a file holds events: those of a run, or those that another run added to it."""
    return _EVENT_FILE.fullmatch(name) is not None


def _additions(path: Path) -> list[Path]:
    """What other runs added to a run's record, in files of their own."""
    return sorted(other for other in path.parent.glob("events.*.jsonl") if is_event_file(other.name))


def read_events(path: Path) -> EventsRead:
    """Read a run's events, and what other runs added to them; a missing file has none.

    Raises:
        OSError: A file exists and cannot be read.
    """
    own = _read_file(path)
    added = [_read_file(other) for other in _additions(path)]
    if not added:
        return own
    later = sorted((line for read in added for line in read.lines), key=lambda line: _time_of(decode(line) or {}))
    by_file = {name: lines for read in (own, *added) for name, lines in read.by_file.items()}
    sizes = {name: size_bytes for read in (own, *added) for name, size_bytes in read.sizes.items()}
    return EventsRead((*own.lines, *later), own.damaged + sum(read.damaged for read in added), by_file, sizes)


def event_sizes(path: Path) -> dict[str, int]:
    """Return the bytes of each file of a run's record, by name; a missing one has none.

    Raises:
        OSError: A file exists and cannot be looked at.
    """
    sizes: dict[str, int] = {}
    for file in (path, *_additions(path)):
        with contextlib.suppress(FileNotFoundError):
            sizes[file.name] = file.stat().st_size
    return sizes


def _time_of(event: Event) -> int:
    at_ms = event.get("at_ms")
    return at_ms if isinstance(at_ms, int) else 0


def _read_file(path: Path) -> EventsRead:
    lines, damaged, torn_before, size_bytes = list[bytes](), 0, False, 0
    try:
        with path.open("rb") as file:
            for line in file:
                size_bytes += len(line)
                event = decode(line)
                if event is not None:  # also a whole last line without its newline: it is durable all the same
                    if torn_before and event["type"] == REOPENED:
                        damaged -= 1  # the end of a killed process, not damage: nothing is acted on before it is whole
                    lines.append(line)
                elif line.endswith(b"\n") and line != b"\n":
                    damaged += 1
                # Two that find a torn line at once both reopen the file: the second one after an empty line.
                torn_before = event is None and line != b"\n"
    except FileNotFoundError:
        return EventsRead()
    kept = tuple(lines)
    return EventsRead(kept, damaged, {path.name: kept}, {path.name: size_bytes})


def last_event(path: Path) -> Event | None:
    """Return the last event of a run's record, read from its end; None where there is none, or an end is damaged.

    A torn line, which a killed process left, counts as never written.

    Raises:
        OSError: A file is there and cannot be read.
    """
    ends = [end for other in _additions(path) if (end := _last_of(other)) != {}] or [_last_of(path)]
    return None if None in ends else max((end for end in ends if end), key=_time_of, default=None)


def _last_of(path: Path) -> Event | None:
    """The last event of one file; None where its end is damaged, an empty one where no whole line is there."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
            *lines, torn = file.read().split(b"\n")
    except FileNotFoundError:
        return {}
    last = decode(torn) if torn else None  # also a whole last line without its newline
    return last or (decode(lines[-1]) if lines else {})


def add_event(runs_dir: Path, run_id: str, event: RunEvent, *, by: str) -> None:
    """Durably add one event to the record of a run that is over, or that another handle writes.

    Args:
        runs_dir: The folder of all runs.
        run_id: Whose record.
        event: The event.
        by: The run that adds it.

    Raises:
        FolderUnwritable: E650 or E651.
    """
    path = runs_dir / run_id / EVENTS_FILE
    if by != run_id and (runs_dir.parent / ONE_WRITER).exists():
        path = path.with_name(f"events.{by}.jsonl")
    log = EventLog(path, shows_life=False)
    try:
        log.append(line_of(event), durable=True)
    finally:
        log.close()


def is_alive(path: Path) -> bool:
    """Return whether the run that writes this events file still goes on, here or on another machine."""
    return is_locked(path) or (path.parent / ELSEWHERE).exists()


def is_locked(path: Path) -> bool:
    """Return whether a process of this machine writes this events file (it holds the file locked)."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not try_lock(handle, shared=True)
    finally:
        os.close(handle)


class EventLog:
    """Appends events; several threads may share one. Held open and locked while the run is alive.

    After a write failed, every further append fails too: a gap in the record must not be followed by more lines
    that pretend to be complete.
    """

    def __init__(self, path: Path, *, shows_life: bool = True) -> None:
        """Open for appending; on a file with a torn last line, start on a new one.

        Args:
            path: The file.
            shows_life: The run whose record it is goes on. Who adds to the record of a run that is over must not make
                it look alive: meanwhile nobody would settle what it left.

        Raises:
            FolderUnwritable: E650, the file cannot be opened.
        """
        self._path = path
        self._lock = threading.Lock()
        self._failure: str | None = None
        with recording(path, code="E650"):
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
            if shows_life:
                self._show_life()
            size = os.fstat(self._handle).st_size
            if size and os.pread(self._handle, 1, size - 1) != b"\n":
                os.write(self._handle, b"\n" + encode({"type": REOPENED, "at_ms": 0}))

    def _show_life(self) -> None:
        """Hold the file locked, when nobody looks whether it is; the record is written without it, too."""
        until = time.monotonic() + LOOK_SECONDS
        while not try_lock(self._handle) and time.monotonic() < until:
            time.sleep(0.01)

    def append(self, event: Event, *, durable: bool = False) -> None:
        """Write one event; with ``durable`` it is on the disk when this returns.

        Raises:
            FolderUnwritable: E651, this event or an earlier one could not be written.
        """
        line = encode(event)
        with self._lock:
            if self._failure is not None:
                raise FolderUnwritable(
                    "the run folder can no longer be written", code="E651", where=str(self._path),
                    found=f"an earlier record was not written: {self._failure}",
                    help="make the folder writable and give it space, then run apply again",
                )  # fmt: skip
            try:
                if len(line) > MAX_LINE_BYTES:  # whoever reads it would take it for damage
                    raise OSError(0, f"an event of {len(line):,} bytes is too long for a record")
                if os.write(self._handle, line) != len(line):
                    raise OSError("a record was cut short: the disk is full")
                if durable:
                    os.fsync(self._handle)
            except OSError as error:
                self._failure = error.strerror or str(error)
                raise FolderUnwritable.at(self._path, error, code="E651") from error

    def close(self) -> None:
        """Close and unlock. Safe to call twice."""
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1
                self._failure = self._failure or "the record is closed"
