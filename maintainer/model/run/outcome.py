"""The outcome of a run: proofs, receipts, and the status of every step and table. Frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from maintainer.errors.foreign_text import without_secrets
from maintainer.model.closed_types import TextEnum
from maintainer.model.codec import DecimalText
from maintainer.model.plan.plan import BUILT_IN_POLICY, Problem, TablePlan, is_place
from maintainer.model.plan.step_parts import NOTHING_JUDGED, LaneUse, LayoutChange, SourceStatistics, TurnOutcome
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.optimize_metrics import NO_FILES, FileSizeMetrics, OptimizeMetrics
from maintainer.model.run.store_requests import RunRequests
from maintainer.model.table.storage_facts import FileSizes
from maintainer.model.table.table_facts import DataFile, FilesSeen, LayoutBoxes, TableRef


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """An order-free digest of rows: their number and sums of hashes (plain integers, added over bins)."""

    rows: int
    sums: tuple[Annotated[int, DecimalText()], ...]

    def __add__(self, other: Fingerprint) -> Fingerprint:
        if len(self.sums) != len(other.sums):
            raise ValueError("fingerprints of different kinds")
        return Fingerprint(self.rows + other.rows, tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)))


@dataclass(frozen=True, slots=True)
class Proof:
    """What was read against what was written, measured before the commit unless ``after_commit``.

    ``rows_in_log`` is what the log said the read files hold (deletion vectors taken off), None where it could not say.
    ``uncovered_columns`` are columns the fingerprint cannot cover (named in every report). ``findings`` are other
    things that are wrong, each in a sentence. ``lanes`` are those in which the bins were written. ``carried_versions``
    are commits of others that deleted rows of the read files before ours: the new files have these rows soft-deleted,
    and all figures are without them. ``source_statistics`` are of the files whose rows were read one file by one.
    """

    read: Fingerprint
    written: Fingerprint
    rows_in_log: int | None
    uncovered_columns: tuple[str, ...] = ()
    duration_seconds: float = 0.0
    findings: tuple[str, ...] = ()
    lanes: tuple[LaneUse, ...] = ()
    carried_versions: tuple[int, ...] = ()
    after_commit: bool = False
    source_statistics: SourceStatistics = NOTHING_JUDGED

    @property
    def holds(self) -> bool:
        """Whether every measured figure is equal."""
        return self.read == self.written and self.rows_in_log in (None, self.read.rows) and not self.findings


@dataclass(frozen=True, slots=True)
class FileFigures:
    """What some files come to; ``live_records`` is None where the log cannot say for each."""

    num_files: int = 0
    size_bytes: int = 0
    num_deletion_vectors: int = 0
    live_records: int | None = 0

    @staticmethod
    def of(files: Iterable[DataFile]) -> FileFigures:
        """Add them up."""
        listed = tuple(files)
        unknown = any(file.live_records is None for file in listed)
        return FileFigures(
            len(listed),
            sum(file.size_bytes for file in listed),
            sum(file.deletion_vector is not None for file in listed),
            None if unknown else sum(file.live_records or 0 for file in listed),
        )


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """What a commit took beside the plan, and what it left of it.

    A command of Delta's decides for itself. A rewrite of ours takes planned files with the deletion vectors that others
    gave them meanwhile, and leaves files that others removed.
    """

    beyond: FileFigures = FileFigures()
    left: FileFigures = FileFigures()

    def __str__(self) -> str:
        return f"it took {self.beyond.num_files} files beside the plan and left {self.left.num_files} of it"


class Verdict(TextEnum):
    """How a check ended. ``FAIL`` is *checked, wrong*; ``ERROR`` is *could not check*. They are never mixed up."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class CommitReceipt:
    """A commit that landed. Figures are counted from its actions, and sums of sizes are in bytes.

    ``difference`` is set where other files were taken than planned, ``verdict`` where the new version was checked:
    ``proof`` was before it. An attempt that does not count may yet write ``late_paths``, which no version has.
    """

    version: int
    read_version: int
    num_files_removed: int = 0
    num_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    num_deletion_vectors_removed: int = 0
    proof: Proof | None = None
    attempts: int = 1
    duration_seconds: float = 0.0
    sizes_removed: FileSizes = ()
    sizes_added: FileSizes = ()
    num_deletion_vector_rows_removed: int = 0
    files_removed: FileSizeMetrics = NO_FILES
    files_added: FileSizeMetrics = NO_FILES
    total_cluster_parallelism: int = 0
    difference: PlanDifference | None = None
    verdict: Verdict | None = None
    late_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VacuumReceipt:
    """What deletion did. ``remaining`` are planned files that are still there: then it is incomplete.

    ``stopped`` says why not all files were tried. ``trash`` is the folder that the files were moved to, None where they
    were deleted. ``num_files_emptied`` files of earlier runs went from the trash. ``version_before`` was read,
    ``version_after`` is its last commit, None without one. All files of ``oldest_version`` and newer were there after
    it. ``num_vanished`` others were deleted by somebody else. The events name delete markers of ``num_marked`` files.
    """

    num_files_deleted: int
    bytes_deleted: int
    remaining: tuple[str, ...] = ()
    version_before: int | None = None
    version_after: int | None = None
    duration_seconds: float = 0.0
    stopped: str | None = None
    trash: str | None = None
    num_files_emptied: int = 0
    bytes_emptied: int = 0
    oldest_version: int | None = None
    num_vanished: int = 0
    num_marked: int = 0

    @property
    def num_files_freed(self) -> int:
        """Files that left the storage: those of the trash do so when it is emptied."""
        return self.num_files_emptied + (self.num_files_deleted if self.trash is None else 0)

    @property
    def bytes_freed(self) -> int:
        """The bytes of ``num_files_freed``."""
        return self.bytes_emptied + (self.bytes_deleted if self.trash is None else 0)

    @property
    def changed_table(self) -> bool:
        """Whether a file went, from the table or from its trash, or the log has a commit of the deletion."""
        return self.num_files_deleted + self.num_files_emptied > 0 or self.version_after is not None


@dataclass(frozen=True, slots=True)
class UndeleteReceipt:
    """What came back from the trash, or from under delete markers. ``refused`` did not, each with why."""

    run_id: str
    num_files_restored: int
    bytes_restored: int
    refused: tuple[str, ...] = ()


NOT_OURS = "not this commit's: "
"""What the ``error`` of an assertion begins with that did not pass at the version before either."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """One equality or expectation that was asserted after a commit, with what it expected and observed.

    ``carried_from`` is the version at which an expectation was run, where that is not ``version``: the rows of the two
    were proven to be the same in between.
    """

    expectation: str
    outcome: Verdict
    version: int | None = None
    expected: str | None = None
    observed: str | None = None
    error: str | None = None
    column: str | None = None
    carried_from: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "observed", self.observed and without_secrets(self.observed))
        object.__setattr__(self, "error", self.error and without_secrets(self.error))

    @property
    def failed_before(self) -> bool:
        """Whether it did not pass at the version before either, so that it says nothing of the commit."""
        return (self.error or "").startswith(NOT_OURS)


class StepStatus(TextEnum):
    """How a step ended. Every planned step ends with exactly one."""

    SUCCEEDED = "succeeded"
    NOTHING_LEFT = "nothing_left"  # its files were gone or done when it came to run
    YIELDED = "yielded"  # another writer won; nothing of ours was committed (or only earlier batches)
    INCOMPLETE = "incomplete"  # vacuum: some planned files would not go
    FAILED = "failed"
    VERIFY_FAILED = "verify_failed"
    UNKNOWN = "unknown"  # nobody knows whether the commit landed
    SKIPPED = "skipped"  # an earlier step did not succeed; a vacuum: a verification failed elsewhere, so it waits
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """One step's end. ``commits`` are the batches that landed, also when a later one failed.

    ``metrics`` are a rewrite's figures as OPTIMIZE would return them; None for other kinds, and where the step ended
    before the table was read. ``turns`` are those of an incremental Z-order, one for each commit that rewrote files.
    ``left`` is the table as the step left it, None where the table was not read; ``boxes`` is the layout before and
    after a Z-order, ``layout`` the figures of a full one: those of an incremental one are in its turns.
    """

    step_id: str
    kind: StepKind
    status: StepStatus
    started_at_ms: int
    duration_seconds: float
    commits: tuple[CommitReceipt, ...] = ()
    vacuum: VacuumReceipt | None = None
    assertions: tuple[Assertion, ...] = ()
    error: Problem | None = None
    note: str | None = None
    metrics: OptimizeMetrics | None = None
    turns: tuple[TurnOutcome, ...] = ()
    left: FilesSeen | None = None
    boxes: LayoutBoxes | None = None
    layout: LayoutChange | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "note", self.note and without_secrets(self.note))

    @property
    def changed_table(self) -> bool:
        """Whether the step did anything that stays, however it ended."""
        return bool(self.commits) or (self.vacuum is not None and self.vacuum.changed_table)

    @property
    def layout_change(self) -> LayoutChange | None:
        """What queries read before and after a Z-order of either mode; None where nobody measured one of the two."""
        after = next((turn.after for turn in reversed(self.turns) if turn.after is not None), None)
        return self.layout if after is None else LayoutChange(self.turns[0].before, after)

    @property
    def version_before(self) -> int | None:
        """The version just before our first commit, None without one."""
        if self.commits:
            return self.commits[0].version - 1
        return self.vacuum.version_before if self.vacuum and self.vacuum.version_after is not None else None

    @property
    def version_after(self) -> int | None:
        """The version of our last commit, None without one."""
        if self.commits:
            return self.commits[-1].version
        return self.vacuum.version_after if self.vacuum else None


class TableStatus(TextEnum):
    """How a table ended. Every selected table ends with exactly one, and the counts add up."""

    DONE = "done"
    UP_TO_DATE = "up_to_date"
    WAITING = "waiting"
    YIELDED = "yielded"
    FAILED = "failed"
    VERIFY_FAILED = "verify_failed"
    BLOCKED = "blocked"
    UNSUPPORTED = "unsupported"
    NOT_REACHED = "not_reached"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """One table's end: its steps in order, or why there were none."""

    ref: TableRef
    status: TableStatus
    steps: tuple[StepOutcome, ...] = ()
    problem: Problem | None = None
    policy_file: str = ""
    owner: str | None = None

    @staticmethod
    def of(
        plan: TablePlan, status: TableStatus, steps: Iterable[StepOutcome] = (), problem: Problem | None = None
    ) -> TableOutcome:
        """Return the end of a planned table."""
        return TableOutcome(plan.ref, status, tuple(steps), problem, plan.policy_file, plan.owner)

    @property
    def is_ledger(self) -> bool:
        """Whether this is our own ledger, see `TablePlan.is_ledger`."""
        return self.policy_file == BUILT_IN_POLICY

    @property
    def changed(self) -> bool:
        """Whether a step changed the table, however it ended."""
        return any(step.changed_table for step in self.steps)

    @property
    def files_left(self) -> FilesSeen | None:
        """The table as the last step that read it left it; None where none did, or a commit's figures are not in it."""
        left = next((step.left for step in reversed(self.steps) if step.left is not None), None)
        commits = [commit for step in self.steps for commit in step.commits]
        # What a later run found out of a killed one came after the figures were written down.
        if left is None or any(commit.version > left.version for commit in commits):
            return None
        return None if any(commit.num_files_removed and not commit.sizes_removed for commit in commits) else left

    @property
    def files_met(self) -> FilesSeen | None:
        """That table without what this run committed: what its steps began with. None where none read it."""
        if (left := self.files_left) is None:
            return None
        commits = [commit for step in self.steps for commit in step.commits]
        return left.changed(
            [commit.sizes_added for commit in commits],
            [commit.sizes_removed for commit in commits],
            version=min((commit.version - 1 for commit in commits), default=left.version),
            at_ms=self.steps[0].started_at_ms,
        )


class RunEnd(TextEnum):
    """Whether a run came to its end."""

    FINISHED = "finished"
    RUNNING = "running"
    DIED = "died"  # its process was killed, or its machine went down: it has no exit code that anybody knows


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a command did before its run began: starting Spark, and planning or checking a saved plan."""

    start_seconds: float = 0.0
    planning_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What came of a run, so far or for good.

    ``problems`` is what went wrong beside the tables, such as a ledger not written. The run itself took
    ``duration_seconds`` from ``started_at_ms`` on, the ledger included; ``preparation`` came before that. ``requests``
    is None without an object store, and while the record is not closed.
    """

    run_id: str
    started_at_ms: int
    duration_seconds: float
    tables: tuple[TableOutcome, ...]
    interrupted_by: str | None = None
    end: RunEnd = RunEnd.FINISHED
    problems: tuple[Problem, ...] = ()
    preparation: Preparation = Preparation()
    requests: RunRequests | None = None

    @property
    def total_seconds(self) -> float:
        """What somebody waited for: starting, planning and the run."""
        return self.preparation.start_seconds + self.preparation.planning_seconds + self.duration_seconds

    @property
    def user_tables(self) -> tuple[TableOutcome, ...]:
        """All tables but our own ledger, and the places that could not be searched."""
        return tuple(table for table in self.tables if not table.is_ledger)

    def count(self, status: TableStatus) -> int:
        """Count the user's tables with this status."""
        return sum(table.status is status and not is_place(table) for table in self.user_tables)
