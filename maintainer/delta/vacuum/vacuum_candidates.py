"""Find the files that may be deleted: for the plan, and again right before the deletion."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from maintainer.delta.log.replay.log_replay import LogReplay, replay
from maintainer.delta.storage.file_identity import Claim, NeededFiles
from maintainer.delta.storage.file_store import FileStore, StoredFile
from maintainer.delta.storage.table_log import commits_among
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.vacuum.shallow_clones import Locator, References
from maintainer.delta.vacuum.stream_checkpoint import position
from maintainer.delta.vacuum.tombstones import as_removed_files, expired, nothing_left, protected_uris
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
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRef
from maintainer.planning.vacuum.deletion_limits import rename_is_cheap
from maintainer.units import format_duration, format_size

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
        gone_before_ms = removed_before_ms
        return None, VacuumHistory(None, None, positions, gone_before_ms, first_version)
    return log, VacuumHistory(
        log.longest_write_ms or None, log.longest_write_version, positions, first_version=first_version
    )


def look(
    storage: TableStorage,
    facts: TableFacts,
    question: VacuumQuestion,
    references: References,
    locator: Locator,
    log: LogReplay | None = None,
) -> TableFacts:
    """Find what may be deleted; see ``TableReader.vacuum_look``. ``log`` is given where it was just read."""
    trash = expired_trash(storage, question.now_ms)
    if question.untracked_before_ms is None and not trash and _known_to_be_gone(facts, question):
        return replace(facts, removed_files=(), storage=StorageLook())
    if log is None or log.head < facts.version:
        log = replay(storage, facts.version)
    protected = protected_uris(storage, facts, log, question.removed_before_ms)
    old = expired(storage, log, protected, removed_before_ms=question.removed_before_ms)
    listed = ListedFolders(storage.files)
    present = listed.look_many(old)
    protections: list[Protection] = []
    untracked: list[StoredFile] = []
    listing: Listing | None = None
    if question.untracked_before_ms is not None:
        untracked, listing = _untracked(storage, facts, question, log, protected, protections)
    if present or untracked or trash:
        protections.extend(clocks_apart(storage, log))
    if not present and not untracked:
        return replace(facts, removed_files=(), storage=StorageLook(tuple(protections), listing, trash))
    own = NeededFiles()
    own.add(protected, root_uri=storage.root_uri)
    free = unclaimed(_fenced_off(storage, listed, present, protections), own, protections)
    needed, problems = references.into(storage.root_uri, question.tables, locator)
    protections.extend(Protection(ProtectionReason.UNKNOWN_REFERENCE, problem, 0) for problem in problems)
    free = _unneeded(free, needed, protections)
    fresh = _unneeded({file.uri: file for file in untracked}, needed, protections)
    removed = (*as_removed_files(old, free), *_as_untracked(storage, fresh.values()))
    after = _after_deletion(storage, (*free.values(), *fresh.values()))
    return replace(facts, removed_files=removed, storage=StorageLook(tuple(protections), listing, trash, after))


def _after_deletion(storage: TableStorage, files: Collection[StoredFile]) -> AfterDeletion | None:
    """Ask the store about the file that was written first: S3 says with each object which version of it this is.

    It says none in a bucket that never kept versions, and ``null`` of what was written while it kept none.
    """
    if rename_is_cheap(storage.root_uri) or not files:
        return None
    asked = storage.status(min(files, key=lambda file: file.modification_time_ms).uri)
    if asked is None or not asked.tag or store_kind(storage.root_uri).connector != "s3":
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


def still_free(
    listed: ListedFolders,
    storage: TableStorage,
    present: dict[str, StoredFile],
    own: NeededFiles,
    tables: tuple[TableRef, ...],
    references: References,
    locator: Locator,
) -> tuple[dict[str, StoredFile], tuple[Protection, ...]]:
    """Return which of the planned files that are there may still be deleted, and why others must stay."""
    protections: list[Protection] = []
    free = unclaimed(_fenced_off(storage, listed, present, protections), own, protections)
    needed, problems = references.into(storage.root_uri, tables, locator)
    protections.extend(Protection(ProtectionReason.UNKNOWN_REFERENCE, problem, 0) for problem in problems)
    return _unneeded(free, needed, protections), tuple(protections)


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
    named = log.named_uris | protected
    untracked = list_untracked(
        storage, named, partition_columns=facts.partition_columns, changed_before_ms=question.untracked_before_ms
    )
    protections.extend(untracked.protections)
    known_files = NeededFiles()
    known_files.add(named, root_uri=storage.root_uri)
    # The log may name a file under another spelling: then it is known.
    files = [file for file in untracked.files if known_files.claim_on(file) is None]
    first = log.times[0] if log.times else (facts.version + 1, question.now_ms)
    if first[0] == 0 or first[1] <= question.removed_before_ms:
        return files, untracked.listing
    stopped = f"the log begins at version {first[0]}, later than what must be kept" + (
        f"; {_count_text(files)} that it does not mention may still be needed" if files else ""
    )
    return [], replace(untracked.listing, stopped=untracked.listing.stopped or stopped)


def _as_untracked(storage: TableStorage, files: Iterable[StoredFile]) -> list[RemovedFile]:
    start = len(storage.root_uri) + 1
    removed = [RemovedFile(file.uri[start:], file.size_bytes, file.modification_time_ms, "untracked") for file in files]
    return sorted(removed, key=lambda file: (file.removed_at_ms, file.path))


def _fenced_off(
    storage: TableStorage, listed: ListedFolders, present: dict[str, StoredFile], protections: list[Protection]
) -> dict[str, StoredFile]:
    """Leave out links, what lies behind one, and what lies in another table's folder."""
    fences = Fences(storage, listed)
    fences.look_at({uri.rpartition("/")[0] for uri in present})
    behind: dict[tuple[ProtectionReason, str], list[StoredFile]] = defaultdict(list)
    free: dict[str, StoredFile] = {}
    for uri, file in present.items():
        why = (ProtectionReason.SYMLINK, uri) if file.is_symlink else fences.why(uri.rpartition("/")[0])
        if why is not None:
            behind[why].append(file)
        elif not file.is_dir:
            free[uri] = file
    for (why_code, place), files in sorted(behind.items()):
        words = (
            "reached through the link" if why_code is ProtectionReason.SYMLINK else "in the folder of another table,"
        )
        protections.append(_protection(why_code, files, f"{words} {place[len(storage.root_uri) + 1 :]}"))
    return free


def unclaimed(files: dict[str, StoredFile], own: NeededFiles, protections: list[Protection]) -> dict[str, StoredFile]:
    """Leave out what the table's own log needs under another spelling, or may need."""
    files_by_claim: dict[Claim, list[StoredFile]] = defaultdict(list)
    free: dict[str, StoredFile] = {}
    for uri, file in files.items():
        claim = own.claim_on(file)
        if claim is None:
            free[uri] = file
        else:
            files_by_claim[claim].append(file)
    for claim, files_held in islice(files_by_claim.items(), _SHOWN):
        text = f"may be what the log names as {claim.uri}, which cannot be checked from here"
        text = f"removed once and needed again as {claim.uri}" if claim.certain else text
        protections.append(_protection(ProtectionReason.NEEDED, files_held, text))
    if (num_more := len(files_by_claim) - _SHOWN) > 0:
        text = f"{num_more:,} more are needed under another spelling"
        protections.append(Protection(ProtectionReason.NEEDED, text, num_more))
    return free


def _unneeded(
    files: dict[str, StoredFile], needed: dict[str, NeededFiles], protections: list[Protection]
) -> dict[str, StoredFile]:
    """Leave out what another table's log refers to, or may refer to."""
    files_by_claim: dict[tuple[str, bool], list[StoredFile]] = defaultdict(list)
    free = dict(files)
    for table, references in sorted(needed.items()):
        for uri, file in files.items():
            claim = references.claim_on(file) if uri in free else None
            if claim is not None:
                files_by_claim[table, claim.certain].append(free.pop(uri))
    for (table, certain), files_held in sorted(files_by_claim.items()):
        words = "refers to, as a shallow clone does" if certain else "may refer to: it names a file of the same name"
        protections.append(_protection(ProtectionReason.CLONE, files_held, f"that {table} {words}"))
    return free


def _protection(why: ProtectionReason, files: list[StoredFile], text: str) -> Protection:
    return Protection(why, f"{_count_text(files)} {text}", len(files), sum(file.size_bytes for file in files))


def _count_text(files: list[StoredFile]) -> str:
    noun = "file" if len(files) == 1 else "files"
    return f"{len(files):,} {noun} ({format_size(sum(file.size_bytes for file in files))})"
