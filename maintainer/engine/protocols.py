"""The protocols of an engine: what planning, execution and verification may ask of it.

``TableReader`` cannot change a table. ``TableWriter`` changes one table by one commit (or one deletion) at a time. It
proves before it commits and reports one of three results: it returns a receipt (landed), raises ``CommitConflict`` or
``CommitNotLanded`` (did not land, what was written is removed), or raises ``CommitUnknown``. ``VersionReader`` serves
checks after the commit. A worker's name is a Spark job group as well, and two runs may share a SparkContext.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from maintainer.engine.step_meter import StepMeter
from maintainer.errors import MaintainerError
from maintainer.model.plan.steps import Batch, RewriteStep, SetPropertiesStep, VacuumStep
from maintainer.model.run.commit_verdict import CommitVerification
from maintainer.model.run.receipts import CommitReceipt, Proof, UndeleteReceipt, VacuumReceipt
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, CommitsWanted
from maintainer.model.table.storage_facts import MarkedFile, MissingFiles, VacuumHistory
from maintainer.model.table.table_facts import (
    ColumnRanges,
    ColumnSample,
    DataFile,
    PartitionValues,
    TableFacts,
    TableRef,
    Update,
)

BeforeCommit = Callable[[int, "Proof | None"], None]
"""Called with (read version, proof) after the proof holds and before each try of the commit.

The first call writes INTENT durably; each one is the last look before that try. An exception from it aborts the commit;
what was written is removed.
"""


class SignOfLife(Protocol):
    """Whether a table's store or metastore is there; it is asked from when this is made."""

    def error(self, others_wait: Callable[[], bool] = lambda: False) -> MaintainerError | None:
        """Wait for it, and return T435 or E647 where there is none.

        Args:
            others_wait: Tells whether other tables wait for the answer; then one try that was silent is enough.
        """


@dataclass(frozen=True, slots=True)
class VacuumQuestion:
    """What is asked of a table's storage before a deletion is planned.

    Files removed before ``removed_before_ms`` are looked for. With ``untracked_before_ms`` the folder is listed, and
    files that the log does not mention and that did not change since are named, too. ``tables`` are all tables of the
    project: what their logs refer to by absolute path is kept. ``now_ms`` decides which trash is past its time.
    """

    removed_before_ms: int
    now_ms: int
    untracked_before_ms: int | None = None
    tables: tuple[TableRef, ...] = ()


@dataclass(frozen=True, slots=True)
class DeletionGuard:
    """What a deletion asks while it runs: whose references to look up again, and whether to stop between two chunks.

    Each commit above ``planned_version`` is looked at again; without one, each above the facts' version.
    ``progress`` is called right before the first file goes, with 0, and then now and again, from any thread, with how
    many are gone at least. With it come the paths that a bucket hides by new delete markers, each with the version id
    of its marker: of each request right after its answer.
    """

    tables: tuple[TableRef, ...] = ()
    stop_reason: Callable[[], str | None] = lambda: None
    progress: Callable[[int, tuple[tuple[str, str], ...]], None] = lambda num_deleted, markers: None
    planned_version: int | None = None


class TableFinder(Protocol):
    """Finds tables; reads none."""

    def in_catalog(
        self,
        wanted: Callable[[str], bool] = lambda database: True,
        meant: Callable[[str], bool] = lambda catalog: True,
    ) -> Iterator[tuple[str, str]]:
        """Name and location of every Delta table of the session's catalogs.

        Args:
            wanted: Tells by its name whether a database is looked into.
            meant: Tells by its name whether a catalog but the session's own is looked into.

        Raises:
            EnvironmentUnfit: E647, the catalog does not answer.
            ProjectError: E644, it has too many tables.
            NotSupportedYet: E620, after the tables of the others: one that is meant cannot be listed.
        """

    def below(self, root: str) -> Iterator[str]:
        """Return the location of every Delta table in the folders below a path or URI; nothing below a table.

        Raises:
            ProjectError: After the tables that could be found: what was left out, and why; see ``find_tables``.
            MaintainerError: The storage does not answer.
        """


class HistoryReader(Protocol):
    """Reads the commits of tables from their logs. Holding one gives no way to change a table."""

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        """Return the newest commits that a table's log still has, newest first.

        Args:
            ref: The table.
            wanted: Which, and what of them.

        Raises:
            TableError: T401 no such table, T402 not a Delta table, T403 its log cannot be read.
        """


class TableReader(HistoryReader, Protocol):
    """Reads what planning needs. Holding one gives no way to change a table."""

    def facts(self, ref: TableRef) -> TableFacts:
        """Read the table's newest version.

        Raises:
            TableError: T401 no such table, T402 not a Delta table, T403 its log cannot be read,
                T404 a feature this version of Delta does not know, T405 permission denied.
        """

    def location_of(self, ref: TableRef) -> str:
        """Return the canonical URI of a table's root, without reading its log.

        Raises:
            TableError: T401 no such table; or the catalog cannot be asked.
        """

    def updates(
        self, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
    ) -> tuple[Update, ...]:
        """Return what others updated since a moment or above a version, newest first; a bounded number.

        Appends, commits of ours and commits that remove no file are none. ``until_version`` as in ``CommitsWanted``.

        Raises:
            TableError: The log cannot be read.
        """

    def vacuum_history(
        self, facts: TableFacts, checkpoints: tuple[tuple[str, str], ...], *, removed_before_ms: int | None
    ) -> VacuumHistory:
        """Read what the log says about how long files must be kept.

        Args:
            facts: The table.
            checkpoints: (consumer, folder) of streaming readers whose position is read. A checkpoint that cannot be
                relied on gives a position with a ``problem``, never an error.
            removed_before_ms: The least that is kept. Where nothing removed before it is left on storage, the log is
                not read further, and ``nothing_left_before_ms`` says so. None where more than removed files is looked
                for: then the log is read in any case.
        """

    def vacuum_look(self, facts: TableFacts, question: VacuumQuestion) -> TableFacts:
        """Return the facts with ``removed_files`` and ``storage``: what may be deleted and is still on storage.

        Never includes a file or deletion vector that the version in ``facts`` or any version that was
        current at or after ``removed_before_ms`` refers to; nothing that another table's log refers to; nothing
        behind a symlink or in a table that lies inside this one's folder.
        """

    def zordered_paths(self, facts: TableFacts, columns: tuple[str, ...]) -> frozenset[str]:
        """Return paths of files that a Z-order by just these columns added, as the newest commits of the log say.

        Empty where the log says nothing any more: then files are put in order again, which costs work and no rows.
        """

    def rewritten_paths(self, facts: TableFacts, *, since_ms: int) -> frozenset[str]:
        """Return paths of files that rewrites without new data added since a moment, ours and others'.

        Empty where the log says nothing any more: then a file counts as written when it was.
        """

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        """Read smallest and largest values of the columns in each live file, from the log's statistics.

        Args:
            facts: The table; its version is the one looked at.
            columns: As ``planning.selection.schema_columns.FoundColumn.quoted`` spells them.
        """

    def column_sample(self, facts: TableFacts, columns: tuple[str, ...], *, max_rows: int) -> ColumnSample:
        """Draw about ``max_rows`` rows from some of the live files; the same ones for the same version."""

    def files_with_dropped_columns(self, facts: TableFacts, files: Sequence[DataFile]) -> frozenset[tuple[str, str]]:
        """Return the keys of files with columns that the schema no longer has; opens files where the log is silent."""

    def find_commit(self, facts: TableFacts, stamp: CommitStamp, *, after_version: int) -> int | None:
        """Return the version above ``after_version`` whose ``userMetadata`` is the stamp, or None."""

    def stamp_of(self, facts: TableFacts, version: int) -> CommitStamp | None:
        """Return the stamp of a version's commit; None where it is not ours, or the log has it no more."""

    def has_commit(self, facts: TableFacts, version: int) -> bool:
        """Return whether the log still has a version's commit."""


class TableWriter(Protocol):
    """Carries out one commit (or one deletion) on one table. ``facts`` pin the table's id and location."""

    def set_properties(
        self, facts: TableFacts, step: SetPropertiesStep, stamp: CommitStamp, before_commit: BeforeCommit
    ) -> CommitReceipt:
        """Set the step's properties in one commit."""

    def rewrite(
        self, facts: TableFacts, step: RewriteStep, batch: Batch, stamp: CommitStamp, before_commit: BeforeCommit
    ) -> CommitReceipt:
        """Rewrite the batch's files, prove, and commit with ``dataChange=false``.

        Raises:
            CommitConflict: A file of the batch is no longer live, or another writer won.
            CommitNotLanded: Writing or committing failed for good.
            CommitUnknown: The answer was lost and the log could not settle it.
            VerificationFailed: The proof failed; nothing was committed.
        """

    def vacuum(
        self,
        facts: TableFacts,
        step: VacuumStep,
        stamp: CommitStamp,
        before_delete: BeforeCommit,
        guard: DeletionGuard = DeletionGuard(),
    ) -> VacuumReceipt:
        """Delete exactly the step's files, after a last look at the head of the log; see ``VacuumReceipt``."""

    def remove_unfinished(
        self, facts: TableFacts, run_id: str, step_id: str, batch: int, partitions: Iterable[PartitionValues]
    ) -> tuple[str, ...]:
        """Remove what a run that is over wrote for a batch and never tried to commit; return what is left.

        Only files of this batch go: those of the run's other batches may be part of a version. ``partitions`` are the
        batch's.

        Raises:
            CheckImpossible: V504, such a file is live; nothing was removed.
            TableError: The folders cannot be read.
        """

    def remove_late(self, facts: TableFacts, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Remove what an attempt wrote that its batch was committed without, by exact name; return what went and stays.

        Raises:
            CheckImpossible: V504, such a file is live; nothing was removed.
            TableError: The storage cannot be read.
        """

    def undelete(self, facts: TableFacts, run_id: str, deleted: Sequence[MarkedFile] = ()) -> UndeleteReceipt:
        """Bring back what a run moved into the trash, or hid by delete markers; nothing that lies there is overwritten.

        Args:
            facts: The table.
            run_id: The run.
            deleted: The files that it was to delete, as its record has them.

        Raises:
            TableError: T430, there is nothing of that run in the trash, or in its record; T431, no delete marker of it
                is known.
        """


class VersionReader(Protocol):
    """Reads a table at a version, for checks after a commit; each method says whether it reads files or the log."""

    def dataframe(self, facts: TableFacts, version: int) -> object:
        """Return the table at the version, as a Spark DataFrame of a session whose counts scan the files."""

    def columns(self, facts: TableFacts, version: int) -> tuple[str, ...]:
        """Return the columns that a reader of the version sees, in order."""

    def row_count(self, facts: TableFacts, version: int, *, scan: bool, beside: int | None = None) -> int:
        """Count the rows at the version: by reading the files, or (``scan=False``) from the log.

        Files that the version ``beside`` has as well may be counted by the log.
        """

    def missing_files(self, facts: TableFacts, version: int) -> MissingFiles:
        """Look for live data files and deletion vectors of the version on storage."""

    def files_there(self, facts: TableFacts, paths: Sequence[str]) -> frozenset[str]:
        """Return those of the paths, as the log writes them, at which a file lies now."""

    def proof(self, facts: TableFacts, version: int) -> Proof:
        """Compare the rows that a rewrite removed with those that it added, in their files.

        Raises:
            MaintainerError: That cannot be done, or not any more.
        """

    def rows_differ(self, facts: TableFacts, version_a: int, version_b: int) -> int:
        """Count the rows in one version and not in the other, as multisets (``content: exact``)."""


class CommitProver(Protocol):
    """Proves commits that are already in a table's log, whoever made them. Changes no table."""

    def newest_maintenance(self, facts: TableFacts) -> int:
        """Return the newest version that maintenance made; the newest of all where there is none in the log."""

    def prove(self, facts: TableFacts, version: int, *, exact: bool = False) -> CommitVerification:
        """Check a commit: its actions, the rows it moved, its statistics, the files of its version.

        Args:
            facts: The table as it is now.
            version: The commit.
            exact: Compare all values of the rows, too, and not only counts and fingerprints.

        Raises:
            TableError: T403, the log has no such version or cannot be read.
        """


class TablePlaces(Protocol):
    """Tells whether two locations are one table. Asks the storage where it can, reads no table."""

    def place_at(self, location: str) -> str | None:
        """Return the physical place of the table at a path or URI: equal for all spellings of it.

        None where no table is there, or the storage does not say.
        """

    def may_hold(self, location: str, table_id: str) -> bool:
        """Return whether the table with this id may still be at a location: False only where that is sure."""


def is_one_place(places: TablePlaces, first: str, second: str) -> bool:
    """Return whether two locations are one physical place."""
    if first.rstrip("/") == second.rstrip("/"):
        return True
    place = places.place_at(first)
    return place is not None and place == places.place_at(second)


class TableEngine(Protocol):
    """One worker's access to the engine: its own session, used from one thread."""

    def begin_table(self) -> None:
        """Begin with another table: a cancel that was for the one before does not concern it."""

    @property
    def reader(self) -> TableReader:
        """Reads for planning and re-checks."""

    @property
    def writer(self) -> TableWriter: ...

    @property
    def versions(self) -> VersionReader:
        """Reads old versions for verification."""

    @property
    def meter(self) -> StepMeter:
        """How far the worker's current step is; the writer says it."""


class Engine(Protocol):
    """Makes workers. Each is entered on the thread that uses it."""

    @property
    def deletes(self) -> bool:
        """Whether its writers carry out a vacuum."""

    @property
    def places(self) -> TablePlaces:
        """Tells which locations are one table."""

    def worker(self, name: str) -> AbstractContextManager[TableEngine]:
        """Enter a worker with a session, scheduler pool and job group of its own named ``name``."""

    def cancel(self, name: str) -> None:
        """Cancel what the worker's current table runs: its Spark jobs, and its rewriting in this process."""


def worker_name(work: str) -> str:
    """Name a worker for this work and for nothing else: cancelling its job group must not reach another run's."""
    return f"{work}-{uuid.uuid4().hex[:8]}"
