"""Delete exactly the files that a plan names, and report for each whether it is gone.

Not by VACUUM. In Delta 4.4.0 ``VACUUM ... USING INVENTORY`` also tries to delete the folders of the files named,
decides by a file's own age, overwrites ``_last_vacuum_info`` (after which LITE fails on tables whose first commits
are cleaned away) and swallows every error; for 20 files it took 7 s where this takes 0.9 s. So files are deleted
one by one, between the same two commits that Delta writes, VACUUM START and VACUUM END. No Spark job is run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.actions import removed_key
from maintainer.delta.log.commit_history import commit_of, info_of
from maintainer.delta.log.replay.log_replay import LogReplay, uris_of
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.file_identity import NeededFiles, is_really_below
from maintainer.delta.storage.file_store import StoredFile, seen_of
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.requirements import check_same_table
from maintainer.delta.vacuum.file_deletion import (
    DeletionEnd,
    NamesSeen,
    PlannedFiles,
    PresentFiles,
    check_unchanged,
    is_as_planned,
    take_away,
)
from maintainer.delta.vacuum.log_watch import LogWatch
from maintainer.delta.vacuum.needed_elsewhere import Locator, References
from maintainer.delta.vacuum.second_reader import Going, LiveFile, LiveVersion, SecondReader, check_second_reading
from maintainer.delta.vacuum.tombstones import Expired, protected_uris
from maintainer.delta.vacuum.trash import Manifest, TrashedFile, empty, only_in_trash, trash_target, write_manifest
from maintainer.delta.vacuum.untracked_files import ListedFolders
from maintainer.delta.vacuum.vacuum_candidates import MAX_CLOCK_SKEW_MS, Sieve, clocks_apart, now_ms
from maintainer.delta.vacuum.vacuum_commits import VacuumCommits
from maintainer.engine.protocols import BeforeCommit, DeletionGuard
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import CommitConflict, Refused, VerificationFailed
from maintainer.errors.missing_files import files_gone_help
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.progress import Phase
from maintainer.model.run.receipts import VacuumReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.vacuum.deletion_limits import refuse_trash

MAX_NAMED = 5
_REVIVING = ("RESTORE", "CLONE")


@dataclass(frozen=True, slots=True)
class VacuumTools:
    """What a deletion needs besides the table: the fleet's references, second readers of the log, and a clock.

    ``forget`` drops what is kept of a table's log: it may be another one now. ``listed`` is what lay in the log's
    folder when the deletion began; None lists it. ``meter`` shows what the last look is at. ``planned_log`` is what the
    plan read of the log; None reads all.
    """

    references: References
    locator: Locator
    second_readers: Sequence[SecondReader]
    clock: Callable[[], int] = now_ms
    forget: Callable[[str], None] = lambda location: None
    listed: Mapping[str, StoredFile] | None = None
    meter: StepMeter = field(default_factory=StepMeter)
    planned_log: LogReplay | None = None


def vacuum(
    jvm: DeltaJvm,
    facts: TableFacts,
    step: VacuumStep,
    stamp: CommitStamp,
    before_delete: BeforeCommit,
    guard: DeletionGuard,
    tools: VacuumTools,
) -> VacuumReceipt:
    """Delete the step's files after a last look at the head of the log.

    Raises:
        CommitConflict: C701, the table was replaced, restored or cloned over, or a file is needed again.
        Refused: A430, a file is younger than the retention allows; A431, it lies outside the table; A450, another
            table needs it or may need it; A451, this machine's clock is not the storage's; A452, a second reader of
            the log finds other live files, or needs one that would go.
        TableError: T431, a trash on an object store; T432, the trash cannot be written.
        VerificationFailed: V505, a file that had to stay and was there before is gone after.
        CommitNotLanded: C702, VACUUM START could not be committed; nothing was deleted.
        CommitUnknown: C703.
    """
    with table_errors(facts.ref.identifier):
        log = jvm.log_at(facts.location)
        snapshot = jvm.update(log)
        storage = TableStorage(jvm, log)
        check_same_table(jvm, storage, facts, snapshot)
        commits = VacuumCommits(jvm, storage, stamp, facts.ref.identifier, len(facts.files))
        retention_ms = jvm.table_retention_ms(snapshot)
        read_version = int(snapshot.version())
    deletion = Deletion(storage, commits, facts, step, guard, tools, retention_ms, read_version)
    try:
        return deletion.run(stamp.run_id, before_delete)
    except (CommitConflict, Refused):
        tools.forget(facts.location)
        raise


@dataclass
class Deletion:
    """One deletion, from the last look before it to the first look after it."""

    _storage: TableStorage
    _commits: VacuumCommits
    _facts: TableFacts
    _step: VacuumStep
    _guard: DeletionGuard
    _tools: VacuumTools
    _table_retention_ms: int
    _read_version: int

    def __post_init__(self) -> None:
        self._planned = PlannedFiles(self._storage, self._step.files)
        self._started = time.monotonic()
        planned, read = self._guard.planned_version, self._facts.version
        self._since = read if planned is None else min(read, planned)
        self._newer: dict[tuple[str, str], int | None] = {}  # bytes of what newer commits add, None for removals
        self._present = PresentFiles(self._planned)
        self._watch: LogWatch | None = None
        self._look = ListedFolders(self._storage.files)
        self._meter = self._tools.meter
        self._run_id = ""
        self._is_begun = False

    def run(self, run_id: str, before_delete: BeforeCommit) -> VacuumReceipt:
        """Look, delete, look again; see ``vacuum``."""
        step, where, self._run_id = self._step, self._facts.ref.identifier, run_id
        with table_errors(where):
            if step.trash_seconds:
                refuse_trash(self._storage.root_uri, where)
            self._check_retention()
            self._check_places()
            listed = self._storage.log_files() if self._tools.listed is None else self._tools.listed
            self._meter.begin(Phase.READING_LOG)
            watch = self._watch = LogWatch(self._storage, where, listed, self._tools.planned_log)
            log = watch.replay(self._since, self._planned, step.removed_before_ms)
            if log.head < self._facts.version:
                raise self._conflict("the log no longer has the version that was read", f"it ends at {log.head}")
            self._check_commits([entry for entry in watch.entries if entry.version > self._since])
            needed = NeededFiles()
            protected = protected_uris(self._storage, self._facts, log, step.removed_before_ms)
            needed.add(protected, root_uri=self._storage.root_uri)
            self._last_look(log, protected, needed)
            going = Going(self._present, step.removed_before_ms, only_in_trash(self._storage, step.emptied))
            if going.files or going.copies:
                self._meter.begin(Phase.READING_LOG)
                ours = LiveVersion(where, self._facts.table_id, log.head, self._live_files)
                check_second_reading(self._tools.second_readers, self._storage, ours, going)
        if not self._planned and not step.emptied:
            return VacuumReceipt(0, 0, version_before=self._read_version)
        before_delete(self._read_version, None)  # the caller's: what it raises says nothing about the table
        with table_errors(where):
            return self._delete(log, needed)

    def _delete(self, log: LogReplay, needed: NeededFiles) -> VacuumReceipt:
        if not self._planned:
            for apart in clocks_apart(self._storage, log):  # as far as is known without a commit
                raise self._clocks_apart(apart.text)
            return self._with_trash_emptied(VacuumReceipt(0, 0, version_before=self._read_version))
        folders = sorted({uri.rpartition("/")[0] for uri in self._planned})
        before = self._planned.among(self._look.take_names(folders))
        trash = self._make_trash(self._run_id)
        self._meter.begin(Phase.COMMITTING)
        first = self._commits.start(self._step, self._table_retention_ms, after_version=self._read_version)
        attempt = self._take(first, trash)
        after = self._planned.among(self._storage.files.names_in(folders))
        # Last: what earlier runs moved away must not go where this deletion does not land, or takes what had to stay.
        return self._with_trash_emptied(self._finish(first, needed, before, after, attempt, trash, log))

    def _with_trash_emptied(self, receipt: VacuumReceipt) -> VacuumReceipt:
        """Delete the expired files of the trash, unless the run deletes nothing more; no commit is made for it."""
        expired = self._step.emptied if receipt.stopped is None else ()
        emptied = empty(self._storage, expired, self._tools.clock(), self._guard.stop_reason)
        return replace(
            receipt,
            remaining=(*receipt.remaining, *emptied.problems),
            stopped=receipt.stopped or emptied.stopped,
            num_files_emptied=emptied.num_files,
            bytes_emptied=emptied.size_bytes,
            duration_seconds=time.monotonic() - self._started,
        )

    def _check_retention(self) -> None:
        """Enforce the step's retention and the table's property, whatever the plan says."""
        step, moment = self._step, self._tools.clock() + MAX_CLOCK_SKEW_MS
        longest_ms = max(step.retention_seconds * 1000, self._table_retention_ms)
        young = any(
            file.removed_at_ms
            >= (step.untracked_before_ms or 0 if file.kind == "untracked" else step.removed_before_ms)
            for file in step.files
        )
        newest_ms = max(step.removed_before_ms, step.untracked_before_ms or 0)
        if newest_ms > moment - longest_ms or young:
            raise self._refused(
                "the plan would delete files that the retention protects", "A430", f"removed before {newest_ms}",
                f"removed before {moment - longest_ms} (longest of {step.decided_by} and the table's property)",
                "plan again",
            )  # fmt: skip

    def _check_places(self) -> None:
        """Refuse files outside the table, files of its log, and files behind a symlink."""
        storage = self._storage
        folders = {uri.rpartition("/")[0] for uri in self._planned}
        outside = {folder for folder in folders if not is_really_below(storage.root_uri, folder)}
        for uri in self._planned:
            inside = storage.is_below_root(uri) and not storage.is_in_log(uri)
            if not inside or uri.rpartition("/")[0] in outside:
                raise self._refused(
                    "the plan would delete something that is not a data file of the table", "A431", uri,
                    f"files below {storage.root_uri}, no symlinks",
                    "plan again; if it happens again, find out who writes to the table's folder and its log",
                )  # fmt: skip

    def _refused(self, what: str, code: str, found: str, allowed: str | None, help: str) -> Refused:
        return Refused(what, code=code, where=self._facts.ref.identifier, found=found, allowed=allowed, help=help)

    def _check_commits(self, entries: list[LogEntry]) -> None:
        """Check commits since the plan: a RESTORE or CLONE, or a commit that names a planned file, stops us."""
        for entry in entries:
            actions = list(self._storage.actions(entry, with_adds=True))
            other_commit = commit_of(entry, info_of(actions))
            if other_commit.operation.upper().startswith(_REVIVING):
                raise self._conflict(f"the table was restored or cloned over ({other_commit})")
            # The settings are those of Delta's snapshot; whether the protocol is known was looked at in the facts.
            read = {"metaData": self._read_version, "protocol": self._facts.version}
            if any(entry.version > read.get(kind, entry.version) for action in actions for kind in action):
                raise self._conflict(f"the table's settings or protocol changed meanwhile ({other_commit})")
            named = NeededFiles()
            for action in actions:
                if "add" in action or "remove" in action:
                    named.add(uris_of(self._storage, action), root_uri=self._storage.root_uri)
            if len(named) and (again := [uri for uri in self._planned if self._is_among(named, uri)]):
                raise self._conflict(f"a planned file is in use again ({other_commit})", again[0])
            if entry.version > self._facts.version:
                self._newer.update((removed_key(action["remove"]), None) for action in actions if "remove" in action)
                self._newer.update((removed_key(act["add"]), act["add"]["size"]) for act in actions if "add" in act)

    def _live_files(self) -> Iterator[LiveFile]:
        """The live files that this deletion goes by: those of the facts, and what newer commits say."""
        for file in self._facts.files:
            if file.key not in self._newer:
                yield (*file.key, file.size_bytes)
        yield from ((*key, size_bytes) for key, size_bytes in self._newer.items() if size_bytes is not None)

    def _is_among(self, named: NeededFiles, uri: str) -> bool:
        """Whether files that a commit names include a planned file, by identity; by place if it does not exist."""
        file = self._present.get(uri)
        return named.is_known_as(uri) if file is None else named.need_of(file) is not None

    def _conflict(self, what: str, found: str | None = None) -> CommitConflict:
        way_out = "nothing needed was deleted; plan again"
        return CommitConflict(what, where=self._facts.ref.identifier, found=found, help=way_out)

    def _last_look(self, log: LogReplay, protected: set[str], needed: NeededFiles) -> None:
        """Check the planned files again at the head of the log; keep how those are that exist and may be deleted.

        Raises:
            CommitConflict: A planned file is live, needed by a promised version, or not what the plan says.
            Refused: A450.
        """
        if again := sorted(uri for uri in self._planned if needed.is_known_as(uri)):
            raise self._conflict(f"{len(again)} planned files are live again, or a version still needs them", again[0])
        old = Expired(self._storage, log, protected, self._step.removed_before_ms)
        for uri, file in self._planned.items():
            if log.is_named(uri) if file.kind == "untracked" else uri not in old:
                raise self._conflict("a planned file is not what the plan says", uri)
        sieve = Sieve(
            self._storage, self._look, lambda: needed,
            lambda: self._tools.references.into(self._storage.root_uri, self._guard.tables, self._tools.locator),
        )  # fmt: skip
        self._meter.begin(Phase.LOOKING)
        for part in self._look.parts_there(self._planned, seen_of(self._planned, self._meter.files)):
            for uri, file_now in sieve.free(part).items():
                if is_as_planned(self._planned[uri], file_now):
                    self._present.add(file_now)
        if protections := tuple(sieve.protections()):
            raise self._refused(
                "nothing was deleted: something else needs these files, or may need them", "A450",
                "\n".join(protection.text for protection in protections), None,
                "plan again: the next plan leaves them alone",
            )  # fmt: skip

    def _make_trash(self, run_id: str) -> str | None:
        """Write the manifest of the files to move; return the folder in the trash, None if files are deleted."""
        if not self._step.trash_seconds:
            return None
        start = len(self._storage.root_uri) + 1
        files = (
            TrashedFile(uri[start:], file.size_bytes, file.modification_time_ms) for uri, file in self._present.items()
        )
        keep_until_ms = self._tools.clock() + self._step.trash_seconds * 1000
        manifest = Manifest(run_id, self._storage.root_uri, self._facts.table_id, keep_until_ms, files)
        return write_manifest(self._storage, manifest, self._facts.ref.identifier)

    def _take(self, first: int, trash: str | None) -> DeletionEnd:
        """Delete or move the files, unless the clock is wrong or another commit forbids it."""
        start = len(self._storage.root_uri) + 1

        def take(uri: str) -> None:
            check_unchanged(self._storage, self._present[uri])
            if trash is None:
                self._storage.delete(uri)
            else:
                self._storage.files.move(uri, trash_target(trash, uri[start:]))

        def progress(num_deleted: int, markers: Mapping[str, str]) -> None:
            self._guard.progress(num_deleted, tuple((self._planned[uri].path, name) for uri, name in markers.items()))

        return take_away(
            self._present, take, stop_reason=self._guard.stop_reason, check=lambda: self._check_newer_commits(first),
            progress=progress, remove_many=self._storage.files.delete_many if trash is None else lambda uris: None,
        )  # fmt: skip

    def _check_newer_commits(self, first: int) -> None:
        """A log that cannot be read ends the deletion with its cause, as other errors do."""
        with table_errors(self._facts.ref.identifier):
            assert self._watch is not None
            entries = self._watch.newer()
            if not self._is_begun:
                if not (begun := [entry for entry in entries if entry.version == first]):
                    raise self._conflict("the log as it is listed lacks the deletion's own commit", f"version {first}")
                self._check_clock(begun[0])
                self._is_begun = True
            self._check_commits(entries)

    def _check_clock(self, entry: LogEntry) -> None:
        """Compare this machine's clock with the storage's: the time of the commit file that was just written.

        Raises:
            Refused: A451.
        """
        moment = self._tools.clock()
        if abs(moment - entry.modification_time_ms) > MAX_CLOCK_SKEW_MS:
            away = (moment - entry.modification_time_ms) // 1000
            raise self._clocks_apart(f"this machine is {abs(away)} s {'ahead' if away > 0 else 'behind'}")

    def _clocks_apart(self, found: str) -> Refused:
        return self._refused(
            "nothing was deleted: this machine's clock and the storage's are too far apart", "A451", found,
            f"{MAX_CLOCK_SKEW_MS // 1000} s",
            "set the clock of this machine; file ages are wrong while a clock is wrong",
        )  # fmt: skip

    def _finish(
        self,
        first: int,
        needed: NeededFiles,
        before: NamesSeen,
        after: NamesSeen,
        attempt: DeletionEnd,
        trash: str | None,
        log: LogReplay,
    ) -> VacuumReceipt:
        tried = partial(islice, self._present, attempt.num_tried)
        remaining = [uri for uri in tried() if uri in after]
        deleted = [self._planned[uri] for uri in tried() if uri in before and uri not in after]
        missing_files = needed.gone_since(before.others, after.others)
        completed = not missing_files and not remaining and attempt.error is None and attempt.stopped is None
        receipt = VacuumReceipt(
            num_files_deleted=len(deleted),
            bytes_deleted=sum(file.size_bytes for file in deleted),
            remaining=tuple(attempt.text_of(uri, self._planned[uri].path) for uri in sorted(remaining)),
            version_before=self._read_version,
            version_after=self._commits.end(completed=completed, num_deleted=len(deleted), after_version=first),
            stopped=attempt.error.what if attempt.error is not None else attempt.stopped,
            trash=trash,
            oldest_version=log.oldest_promised(self._step.removed_before_ms),
            num_vanished=len(before.others - after.others),
            num_marked=attempt.num_marked,
        )
        identifier, error = self._facts.ref.identifier, attempt.error
        if missing_files:
            error = VerificationFailed(
                f"{len(missing_files)} files that had to stay are gone from storage after the deletion",
                code="V505", where=f"{identifier}@{self._read_version}", found="\n".join(missing_files[:MAX_NAMED]),
                help=files_gone_help(len(deleted), trash, identifier, self._run_id, num_marked=attempt.num_marked),
            )  # fmt: skip
        elif error is not None and deleted:
            error.what += f"; {len(deleted)} files had been deleted before"
            error.help = error.help and error.help.removeprefix("nothing was changed; ")
        if error is not None:
            error.receipt = receipt
            raise error
        return receipt
