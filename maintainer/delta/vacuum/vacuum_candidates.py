"""Find the files that may be deleted: for the plan, and again right before the deletion."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice

from maintainer.delta.log.replay.log_replay import LogReplay, replay
from maintainer.delta.storage.file_identity import FileNeed, NeededFiles
from maintainer.delta.storage.file_store import FileStore, StoredFile
from maintainer.delta.storage.log_paths import short_uri
from maintainer.delta.storage.table_log import commits_among
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.vacuum.needed_elsewhere import Locator, References, position
from maintainer.delta.vacuum.tombstones import Expired, as_removed_file, nothing_left, protected_uris
from maintainer.delta.vacuum.trash import expired_trash
from maintainer.delta.vacuum.untracked_files import Fences, ListedFolders, list_untracked
from maintainer.engine.protocols import VacuumQuestion
from maintainer.model.table.storage_facts import (
    AfterDeletion,
    Listing,
    Protection,
    ProtectionReason,
    StorageLook,
    VacuumHistory,
)
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.table_facts import RemovedFile, TableFacts
from maintainer.units import count_of, format_duration, format_size

MAX_CLOCK_SKEW_MS = 5 * 60_000
"""Allowed difference of this machine's clock and the storage's; ages of files depend on both."""

_SHOWN = 3


def now_ms() -> int:
    """Return this machine's time; tests replace it."""
    return int(time.time() * 1000)


def history(
    storage: TableStorage,
    facts: TableFacts,
    checkpoints: tuple[tuple[str, str], ...],
    open_files: Callable[[str], tuple[FileStore, str]],
    *,
    removed_before_ms: int | None,
    now_ms: int,
) -> tuple[LogReplay | None, VacuumHistory]:
    """Find how long files must be kept; see ``TableReader.vacuum_history``. The log is None where it was not read."""
    entries, log = commits_among(storage.listed_with(facts.version).values()), None
    if removed_before_ms is None or not nothing_left(storage, facts, removed_before_ms, entries):
        log = replay(storage, facts.version, entries)
    # Commit files alone are enough to place a stream where nothing is deleted.
    replayed = log or LogReplay(times=[(entry.version, entry.modification_time_ms) for entry in entries])
    first_version = facts.version + 1 if replayed.first_version is None else replayed.first_version
    positions = tuple(
        position(name, *open_files(folder), facts.table_id, replayed, facts.version, now_ms)
        for name, folder in checkpoints
    )
    if log is None:
        return None, VacuumHistory(None, None, positions, removed_before_ms, first_version)
    return log, VacuumHistory(
        longest_write_ms=log.longest_write_ms or None,
        longest_write_version=log.longest_write_version,
        positions=positions,
        first_version=first_version,
        maintenance=log.maintenance,
    )


def with_deletable_files(
    storage: TableStorage,
    facts: TableFacts,
    question: VacuumQuestion,
    references: References,
    locator: Locator,
    log: LogReplay | None = None,
    keep: Callable[[LogReplay], None] = lambda log: None,
) -> TableFacts:
    """Return the facts with what may be deleted; see ``TableReader.vacuum_look``.

    ``log`` is given where it was just read. ``keep`` is given what a deletion of just these files looks at again.
    """
    trash = expired_trash(storage, question.now_ms)
    if question.untracked_before_ms is None and not trash and _known_to_be_gone(facts, question):
        return replace(facts, removed_files=(), storage=StorageLook())
    if log is None or log.head < facts.version:
        log = replay(storage, facts.version)
    protected = protected_uris(storage, facts, log, question.removed_before_ms)
    listed = ListedFolders(storage.files)

    def needed_here() -> NeededFiles:
        needed = NeededFiles()
        needed.add(protected, root_uri=storage.root_uri)
        return needed

    sieve = Sieve(storage, listed, needed_here, lambda: references.into(storage.root_uri, question.tables, locator))
    protections: list[Protection] = []
    untracked: list[StoredFile] = []
    listing: Listing | None = None
    if question.untracked_before_ms is not None:
        untracked, listing = _untracked(storage, facts, question, log, protected, protections)
    removed, first, is_any = list[RemovedFile](), list[StoredFile](), bool(untracked)
    for present in listed.parts_there(Expired(storage, log, protected, question.removed_before_ms)):
        is_any = is_any or bool(present)
        free = sieve.free(present)
        removed.extend(as_removed_file(log, file) for file in free.values())
        first = _first_written([*first, *free.values()])
    if is_any or trash:
        protections.extend(clocks_apart(storage, log))
    if not is_any:
        return replace(facts, removed_files=(), storage=StorageLook(tuple(protections), listing, trash))
    fresh = sieve.unneeded({file.uri: file for file in untracked})
    protections.extend(sieve.protections())
    removed.sort(key=lambda file: (file.removed_at_ms, file.path))
    if removed and not fresh:  # that nothing names an untracked file needs all of the log
        log.shorten((storage.uri(file.path) for file in removed), question.removed_before_ms)
        keep(log)
    removed.extend(_as_untracked(storage, fresh.values()))
    after = _after_deletion(storage, _first_written([*first, *fresh.values()]))
    return replace(facts, removed_files=tuple(removed), storage=StorageLook(tuple(protections), listing, trash, after))


def _first_written(files: list[StoredFile]) -> list[StoredFile]:
    return [min(files, key=lambda file: file.modification_time_ms)] if files else []


def _after_deletion(storage: TableStorage, first: Sequence[StoredFile]) -> AfterDeletion | None:
    """Ask the store about the file that was written first: S3 says with each object which version of it this is.

    It says none in a bucket that never kept versions, and ``null`` of what was written while it kept none.
    """
    if store_kind(storage.root_uri).renames_cheaply or not first:
        return None
    asked = storage.status(first[0].uri)
    if asked is None or not asked.tag or not store_kind(storage.root_uri).names_versions:
        return AfterDeletion.UNKNOWN
    known = {"": AfterDeletion.FINAL, "null": AfterDeletion.UNKNOWN}
    return known.get(asked.tag.partition("\n")[2], AfterDeletion.VERSIONED)


def clocks_apart(storage: TableStorage, log: LogReplay) -> Iterator[Protection]:
    """Report a difference of this machine's clock and the storage's, as far as known before anything is written."""
    storage_ms, moment_ms = storage.files.clock_ms(storage.root_uri), now_ms()
    future_ms = log.newest_file_ms - moment_ms
    if future_ms > MAX_CLOCK_SKEW_MS:
        behind_ms, why = future_ms, ": the newest commit's file is dated in the future"
    else:
        behind_ms, why = 0 if storage_ms is None else storage_ms - moment_ms, ""
    if abs(behind_ms) > MAX_CLOCK_SKEW_MS:
        away = format_duration(round(abs(behind_ms) / 1000))
        which = "behind" if behind_ms > 0 else "ahead of"
        text = f"this machine's clock is {away} {which} the storage's{why}"
        yield Protection(ProtectionReason.CLOCK, f"{text}; file ages are wrong while a clock is wrong", 0)


def _known_to_be_gone(facts: TableFacts, question: VacuumQuestion) -> bool:
    """Whether the history has already shown that no file in question exists."""
    moment = facts.history.nothing_left_before_ms if facts.history is not None else None
    return moment is not None and question.removed_before_ms <= moment


def _untracked(
    storage: TableStorage,
    facts: TableFacts,
    question: VacuumQuestion,
    log: LogReplay,
    protected: set[str],
    protections: list[Protection],
) -> tuple[list[StoredFile], Listing]:
    """Return old files that the log does not mention; none if the log does not reach back far enough."""
    assert question.untracked_before_ms is not None
    untracked = list_untracked(
        storage,
        lambda uri: log.is_named(uri) or uri in protected,
        partition_columns=facts.partition_columns,
        changed_before_ms=question.untracked_before_ms,
    )
    protections.extend(untracked.protections)
    known_files = NeededFiles()
    if untracked.files:
        known_files.add(chain(log.named_uris(), protected), root_uri=storage.root_uri)
    # The log may name a file under another spelling: then it is known.
    files = [file for file in untracked.files if known_files.need_of(file) is None]
    first = log.begins or (facts.version + 1, question.now_ms)
    if first[0] == 0 or first[1] <= question.removed_before_ms:
        return files, untracked.listing
    stopped = f"the log begins at version {first[0]}, later than what must be kept" + (
        f"; {_Held.of(files)} that it does not mention may still be needed" if files else ""
    )
    return [], replace(untracked.listing, stopped=untracked.listing.stopped or stopped)


def _as_untracked(storage: TableStorage, files: Iterable[StoredFile]) -> list[RemovedFile]:
    start = len(storage.root_uri) + 1
    removed = [RemovedFile(file.uri[start:], file.size_bytes, file.modification_time_ms, "untracked") for file in files]
    return sorted(removed, key=lambda file: (file.removed_at_ms, file.path))


@dataclass(slots=True)
class _Held:
    """Files that must stay: how many, and their bytes."""

    num_files: int = 0
    size_bytes: int = 0

    def add(self, file: StoredFile) -> None:
        self.num_files += 1
        self.size_bytes += file.size_bytes

    @staticmethod
    def of(files: Iterable[StoredFile]) -> _Held:
        held = _Held()
        for file in files:
            held.add(file)
        return held

    def protection(self, why: ProtectionReason, text: str) -> Protection:
        return Protection(why, f"{self} {text}", self.num_files, self.size_bytes)

    def __str__(self) -> str:
        return f"{count_of(self.num_files, 'file')} ({format_size(self.size_bytes)})"


class Sieve:
    """Leaves out what must stay of files that lie there, a part of them at a time, and says at the end why it must.

    Args:
        storage: The table's.
        listed: Where folders are looked at.
        needed_here: Gives what the table's own log needs; asked once, if there is anything to leave out.
        needed_elsewhere: Gives what other tables need, by table, and what cannot be known of them; asked once.
    """

    def __init__(
        self,
        storage: TableStorage,
        listed: ListedFolders,
        needed_here: Callable[[], NeededFiles],
        needed_elsewhere: Callable[[], tuple[dict[str, NeededFiles], list[str]]],
    ) -> None:
        self._storage = storage
        self._fences = Fences(storage, listed)
        self._needed_here, self._needed_elsewhere = cache(needed_here), cache(needed_elsewhere)
        self._behind = defaultdict[tuple[ProtectionReason, str], _Held](_Held)
        self._by_need = defaultdict[FileNeed, _Held](_Held)
        self._by_table = defaultdict[tuple[str, bool], _Held](_Held)

    def free(self, present: dict[str, StoredFile]) -> dict[str, StoredFile]:
        """Return the files that nothing needs."""
        return self.unneeded(self._unneeded_here(self._fenced_off(present))) if present else {}

    def _fenced_off(self, present: dict[str, StoredFile]) -> dict[str, StoredFile]:
        """Leave out links, what lies behind one, and what lies in another table's folder."""
        self._fences.look_at({uri.rpartition("/")[0] for uri in present})
        free: dict[str, StoredFile] = {}
        for uri, file in present.items():
            why = (ProtectionReason.SYMLINK, uri) if file.is_symlink else self._fences.why(uri.rpartition("/")[0])
            if why is not None:
                self._behind[why].add(file)
            elif not file.is_dir:
                free[uri] = file
        return free

    def _unneeded_here(self, files: dict[str, StoredFile]) -> dict[str, StoredFile]:
        """Leave out what the table's own log needs under another spelling, or may need."""
        needed, free = self._needed_here(), dict[str, StoredFile]()
        for uri, file in files.items():
            need = needed.need_of(file)
            if need is None:
                free[uri] = file
            else:
                self._by_need[need].add(file)
        return free

    def unneeded(self, files: dict[str, StoredFile]) -> dict[str, StoredFile]:
        """Leave out what another table's log refers to, or may refer to."""
        free = dict(files)
        for table, references in sorted(self._needed_elsewhere()[0].items()):
            for uri, file in files.items():
                need = references.need_of(file) if uri in free else None
                if need is not None:
                    self._by_table[table, need.certain].add(free.pop(uri))
        return free

    def protections(self) -> Iterator[Protection]:
        """Yield why files were left out, or why none may go at all."""
        for (why, place), held in sorted(self._behind.items()):
            is_link = why is ProtectionReason.SYMLINK
            words = "reached through the link" if is_link else "in the folder of another table,"
            yield held.protection(why, f"{words} {short_uri(self._storage.root_uri, place)}")
        for need, held in islice(self._by_need.items(), _SHOWN):
            text = f"may be what the log names as {need.uri}, which cannot be checked from here"
            text = f"removed once and needed again as {need.uri}" if need.certain else text
            yield held.protection(ProtectionReason.NEEDED, text)
        if (num_more := len(self._by_need) - _SHOWN) > 0:
            text = f"{num_more:,} more are needed under another spelling"
            yield Protection(ProtectionReason.NEEDED, text, num_more)
        for problem in self._needed_elsewhere()[1]:
            yield Protection(ProtectionReason.UNKNOWN_REFERENCE, problem, 0)
        for (table, certain), held in sorted(self._by_table.items()):
            words = "may refer to: it names a file of the same name"
            words = "refers to, as a shallow clone does" if certain else words
            yield held.protection(ProtectionReason.CLONE, f"that {table} {words}")
