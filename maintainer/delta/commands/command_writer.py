"""Run Delta's commands for the steps of a plan, and prove each commit afterwards.

Delta picks the files, writes and commits in one go; the log tells whether its commit landed, did not, or is unknown.
So a wrong rewrite is found after its commit, not before as with the transaction engine. Its receipt then carries a
failed proof, the table goes into quarantine, and the version before is intact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from maintainer.delta.commands.command_facts import CommandTableReader, deletes_nothing, refuse_shifted_times
from maintainer.delta.commands.command_selection import (
    Selected,
    refuse_other_spelling,
    refuse_part_of_a_partition,
    select,
)
from maintainer.delta.commands.command_session import CommandSession, CommandStorage, set_properties, table_of_path
from maintainer.delta.jvm import changed_settings
from maintainer.delta.log.actions import CommittedFiles, PartitionNames, committed_files, data_file
from maintainer.delta.log.commit_history import files_gone, find_conflicting_commit, find_stamp
from maintainer.delta.proof.row_comparison import MAX_JUDGED_SOURCES
from maintainer.delta.storage.failures.engine_failures import (
    NOT_COMMITTED_HELP,
    commit_failed,
    describe,
    is_cancelled,
    is_conflict,
    message_of,
    table_errors,
)
from maintainer.delta.storage.failures.machine_failures import (
    damaged_file_error,
    is_missing,
    missing_file_error,
    storage_error,
)
from maintainer.delta.transaction.commit_fate import USER_METADATA, rewrite_receipt, settled
from maintainer.delta.transaction.property_commit import check_as_planned, refused_properties
from maintainer.delta.transaction.requirements import (
    LOSES_ROWS,
    refuse_unsafe_log_store,
    refuse_unsafe_reads,
    table_dropped,
    table_replaced,
)
from maintainer.delta.verify.version_proof import prove_version
from maintainer.engine.protocols import BeforeCommit, DeletionGuard
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import (
    CheckImpossible,
    CommitConflict,
    CommitNotLanded,
    FileAbsent,
    Interrupted,
    MaintainerError,
    NoTable,
    NotDelta,
)
from maintainer.model.plan.steps import Batch, RewriteStep, SetPropertiesStep, VacuumStep
from maintainer.model.run.progress import Phase
from maintainer.model.run.receipts import (
    CommitReceipt,
    PlanDifference,
    Proof,
    UndeleteReceipt,
    VacuumReceipt,
)
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.storage_facts import MarkedFile
from maintainer.model.table.table_facts import PartitionValues, TableFacts


@dataclass
class CommandTableWriter:
    """Implements ``TableWriter`` with commands.

    ``_between`` is called between commit and proof: it plants faults in tests, and is None otherwise.
    """

    _session: CommandSession
    _reader: CommandTableReader
    _meter: StepMeter
    _between: Callable[[int], None] | None

    def rewrite(
        self,
        facts: TableFacts,
        step: RewriteStep,
        batch: Batch,
        stamp: CommitStamp,
        before_commit: BeforeCommit,
    ) -> CommitReceipt:
        """Let a command rewrite the batch, and prove what it did; see ``TableWriter.rewrite``.

        Raises:
            CheckImpossible: V504, it landed and the proof could not be made.
            CommitConflict: C701, another writer won, or spells a partition in another way than Delta's command.
            Refused: A441, a Z-order of part of a partition.
        """
        started = time.monotonic()
        with self._checked_session(facts):
            now = self._now(facts)
            missing = [file for file in batch.files if file.key not in now.file_keys]
            if missing:
                raise files_gone(missing, len(batch.files), self._reader.storage(facts), facts)
            self._session.describe(f"{facts.ref.identifier}: {step.kind}")
            refuse_other_spelling(now, batch, facts.ref.identifier)
            refuse_shifted_times(self._session, now)
            selected = select(now, step, batch, table_of_path(self._reader.storage(now).root_text))
            refuse_part_of_a_partition(selected, step, batch, facts.ref.identifier)
            before_commit(now.version, None)
            self._meter.begin(Phase.WRITING, batch.size_bytes)
            version = run_stamped(
                self._session,
                lambda: self._reader.storage(now),
                now,
                selected.statement,
                dict(selected.settings),
                stamp,
            )
        if version is None:
            raise self._nothing_taken(now, batch, selected)
        if self._between is not None:
            self._between(version)
        files = self._committed(now, version)
        self._meter.begin(Phase.PROVING, batch.size_bytes)
        proof = prove_command(self._session, self._reader, now, files)
        receipt = rewrite_receipt(
            version,
            now.version,
            [file.size_bytes for file in files.removed],
            [file.size_bytes for file in files.added],
            [file.deleted_records for file in files.removed if file.deletion_vector is not None],
        )
        return replace(
            receipt,
            proof=proof,
            duration_seconds=time.monotonic() - started,
            total_cluster_parallelism=self._session.cores,
            difference=PlanDifference.of(batch.files, files.removed),
        )

    def set_properties(
        self, facts: TableFacts, step: SetPropertiesStep, stamp: CommitStamp, before_commit: BeforeCommit
    ) -> CommitReceipt:
        """Set table properties in one commit; see ``TableWriter.set_properties``.

        Raises:
            TableError: T418, Delta refuses a property or its value.
        """
        started = time.monotonic()
        with self._checked_session(facts):
            now = self._now(facts)
            check_as_planned(now.property_map, step, facts.ref.identifier)
            before_commit(now.version, None)
            now = self._now(facts)  # another writer may have set one while the caller wrote its intent
            check_as_planned(now.property_map, step, facts.ref.identifier)
            statement = set_properties(table_of_path(self._reader.storage(now).root_text), dict(step.after))
            with refused_properties():
                version = run_stamped(self._session, lambda: self._reader.storage(now), now, statement, {}, stamp)
        if version is None:
            raise CommitNotLanded(
                "the commit is not in the log", where=facts.ref.identifier, help="run `maintainer apply` again"
            )
        return CommitReceipt(version, now.version, duration_seconds=time.monotonic() - started)

    def vacuum(
        self,
        facts: TableFacts,
        step: VacuumStep,
        stamp: CommitStamp,
        before_delete: BeforeCommit,
        guard: DeletionGuard = DeletionGuard(),  # noqa: B008 (frozen)
    ) -> VacuumReceipt:
        """Refused: this engine deletes nothing.

        Raises:
            Refused: A440.
        """
        raise deletes_nothing(facts.ref.identifier)

    def remove_unfinished(
        self, facts: TableFacts, run_id: str, step_id: str, batch: int, partitions: Iterable[PartitionValues]
    ) -> tuple[str, ...]:
        """Remove nothing: Delta's commands name their files at random, so none can be recognized."""
        return ()

    def remove_late(self, facts: TableFacts, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Remove nothing: no executor writes a bin for this engine."""
        return (), ()

    def undelete(self, facts: TableFacts, run_id: str, deleted: Sequence[MarkedFile] = ()) -> UndeleteReceipt:
        """Refused: this engine moves nothing into a trash, and nothing back.

        Raises:
            Refused: A440.
        """
        raise deletes_nothing(facts.ref.identifier)

    # -- before ---------------------------------------------------------------------------------------------

    @contextmanager
    def _checked_session(self, facts: TableFacts) -> Iterator[None]:
        """Commit exclusively within the block, in a session in which a command loses no row and no commit."""
        conf = self._session.spark.conf
        with self._session.exclusive_commits(facts.location) as writer:
            with table_errors(facts.ref.identifier):
                refuse_unsafe_log_store(
                    facts.location, lambda key: conf.get(key, None), facts.ref.identifier, lambda: writer
                )
            refuse_unsafe_reads(lambda key: conf.get(key, None), facts.ref.identifier, LOSES_ROWS)
            yield

    def _now(self, facts: TableFacts) -> TableFacts:
        """Return the facts of the table now, which must be the planned table.

        Raises:
            CommitConflict: C701, it was dropped, or dropped and created again.
        """
        try:
            now = self._reader.facts(facts.ref)
        except (NoTable, NotDelta) as error:
            raise table_dropped(facts) from error
        if now.table_id != facts.table_id or now.location != facts.location:
            raise table_replaced(facts, now.table_id)
        return now

    def _nothing_taken(self, facts: TableFacts, batch: Batch, selected: Selected) -> MaintainerError:
        """Return the error for a command that succeeded and committed nothing."""
        keys = {file.key for file in batch.files}
        other_commit = find_conflicting_commit(self._reader.storage(facts), keys, after_version=facts.version)
        if other_commit is not None:
            return CommitConflict(f"another writer won ({other_commit})", where=facts.ref.identifier, help="plan again")
        return CommitNotLanded(
            "Delta's command committed nothing: it does not accept these files",
            where=facts.ref.identifier,
            found=selected.statement,
            help="OPTIMIZE leaves a file alone in its bin, and files whose rows are all deleted; "
            "--engine transaction rewrites them",
        )

    # -- after ----------------------------------------------------------------------------------------------

    def _committed(self, facts: TableFacts, version: int) -> CommittedFiles:
        """What the commit removed and added, with the statistics of the files as they were just before it."""
        storage: CommandStorage = self._reader.storage(facts)
        names = PartitionNames.of_facts(facts)
        files_before = {file.key: file for file in facts.files}
        try:
            for entry in storage.commits(after_version=facts.version):
                if entry.version == version:
                    return committed_files(version, storage.actions(entry, with_adds=True), names, files_before)
                for action in storage.actions(entry, with_adds=True):
                    if "add" in action:
                        file = data_file(action["add"], names)
                        files_before[file.key] = file
        except Exception as error:
            raise unproven(facts, version, message_of(error)) from error
        raise unproven(facts, version, "its commit is no longer in the log")


def prove_command(
    session: CommandSession, reader: CommandTableReader, facts: TableFacts, files: CommittedFiles
) -> Proof:
    """Compare the rows that a command removed with those that it added.

    Raises:
        CheckImpossible: V504, they cannot be read.
    """
    root = reader.storage(facts).root_text
    session.describe(f"{facts.ref.identifier}: proof of version {files.version}")
    judged = sorted(files.removed, key=lambda file: file.size_bytes)[:MAX_JUDGED_SOURCES]
    statistics: Mapping[str, str] = {}
    with suppress(Exception):  # the version cannot be read any more: nothing is known of them then
        statistics = reader.statistics_of(facts, files.version - 1, {file.path for file in judged})
    try:
        version_proof = prove_version(session.spark, root, facts, files, statistics)
    except Exception as error:
        raise unproven(facts, files.version, message_of(error)) from error
    wrong = list(version_proof.findings)
    if files.data_changed:
        wrong.append("the commit says that it changed data")
    return replace(version_proof.proof, findings=tuple(wrong), after_commit=True)


def unproven(facts: TableFacts, version: int, why: str) -> CheckImpossible:
    """Return the error for a commit whose proof could not be made."""
    return CheckImpossible(
        "committed without a proof: the one after the commit could not be made",
        where=f"{facts.ref.identifier}@{version}",
        found=why,
        help="the files that it replaced are not deleted until it is proven; the next apply tries that first",
    )


LEFT_BEHIND = "files that the command wrote may be left in the table's folder; they are not part of the table"


def run_stamped(
    session: CommandSession,
    storage: Callable[[], CommandStorage],
    facts: TableFacts,
    statement: str,
    settings: Mapping[str, str | None],
    stamp: CommitStamp,
) -> int | None:
    """Run a statement with the stamp in its commits; return the first version that carries it.

    Args:
        session: The worker's.
        storage: Opens the table's storage afresh.
        facts: The table right before; the stamp is looked for above its version.
        statement: The command.
        settings: What it runs with; put back afterwards.
        stamp: Ours.

    Returns:
        The version, or None if the command succeeded and committed nothing.

    Raises:
        CommitConflict: C701, another writer won.
        CommitNotLanded: C702, it failed and nothing of it is in the log.
        TableError: T405, permission denied.
        EnvironmentUnfit: E631, storage is full.
        CommitUnknown: C703, the answer was lost and the log could not settle it.
        Interrupted: C710, cancelled, and nothing of it is in the log.
    """
    where = facts.ref.identifier

    def find() -> int | None:
        return find_stamp(storage(), stamp, after_version=facts.version)

    def attempt() -> int | None:
        with changed_settings(session.spark, {**settings, USER_METADATA: stamp.to_json()}):
            session.rows(statement)
        return find()

    return settled(attempt, find, lambda error: _not_landed(error, where), where=where)


def _not_landed(error: Exception, where: str) -> MaintainerError:
    chain = describe(error)
    if is_conflict(chain):
        return CommitConflict(
            "another writer won", where=where, found=message_of(error), help=f"plan again; {LEFT_BEHIND}"
        )
    if is_cancelled(chain):
        return Interrupted(
            "cancelled before anything was committed", where=where, help=f"run `maintainer apply` again; {LEFT_BEHIND}"
        )
    failure = storage_error(chain, where) or damaged_file_error(chain, where) or missing_file_error(chain, where)
    if failure is not None:
        failure.help = f"{failure.help}; {LEFT_BEHIND}"
        return failure
    if is_missing(chain):
        return FileAbsent(
            "a file was missing while the command ran; nothing was committed",
            where=where,
            found=message_of(error),
            help="if it is a file of the table, the table was damaged before: see `maintainer explain T408`",
        )
    what = "Delta's command failed; nothing was committed"
    return commit_failed(what, where, chain, f"{NOT_COMMITTED_HELP}; {LEFT_BEHIND}")
