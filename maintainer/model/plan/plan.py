"""A plan as data: what will be done to which files, why, and what is left alone.

``planner.plan_table`` makes it; it can be printed, saved, compared with ``==``, reviewed and applied. Totals are
properties: nothing is stored that can be counted. The steps are in ``steps``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from maintainer.errors import MaintainerError
from maintainer.errors.foreign_text import without_secrets
from maintainer.model.codec import ClosedUnion, document_once, once
from maintainer.model.plan.lanes import Lane
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import BatchedStep, RewriteStep, Step, VacuumStep
from maintainer.model.table.commit_records import WriterRhythm
from maintainer.model.table.log_names import DEFAULT_CHECKPOINT_INTERVAL
from maintainer.model.table.storage_facts import FileSizes
from maintainer.model.table.store_requests import StoreRequests
from maintainer.model.table.table_facts import FilesSeen, PartitionValues, Protocol, TableRef

DIRTY = "+dirty"
"""What stands behind a plan's ``git_commit`` if files of policies had changes that were not committed."""

BUILT_IN_POLICY = "built-in"
"""What stands where other tables have the name of their policy file: only the ledger is kept by such a policy."""

PLACES_FILE = "maintainer.yml"
"""What stands there for a place that could not be searched: it is declared in this file, and it is no table."""


class FromPolicyFile:
    """What plans, outcomes and rows have for each table: the file that names it, or the rule that manages it."""

    __slots__ = ()
    policy_file: str | None

    @property
    def is_ledger(self) -> bool:
        """Whether this is our own ledger, which no file names; it is never counted among the user's tables."""
        return self.policy_file == BUILT_IN_POLICY


def is_place(entry: FromPolicyFile) -> bool:
    """Tell whether this is a place that could not be searched: a problem, and never counted as a table."""
    return entry.policy_file == PLACES_FILE


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Files, or a step, or the whole table, that the plan does not touch, and why."""

    reason: Reason
    num_files: int = 0
    size_bytes: int = 0
    partition_values: PartitionValues | None = None


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """A column as it was when the plan was made, or a field within one: ``address.city``, ``items.element.price``.

    ``type`` is Spark's name; that of a nested one says no more than ``struct``, its fields follow it. ``metadata`` is
    the column's in the schema (comment, default, column mapping, ...), each value as JSON.
    """

    name: str
    type: str
    nullable: bool = True
    metadata: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What the plan was made from; re-checked before anything runs.

    ``columns`` is the schema, in its order; none for a table of which nothing is carried out.
    ``managed_properties`` are the table properties that the policy has a say in, as they were (None: not set).
    ``file_sizes`` counts the live files by size; it is for people and is not checked.
    ``small_files`` are those under the policy's ``minFileSize``, for a curve over time; None in a plan of a version
    that did not count them.
    ``listed`` says that the folder was listed for files that the log does not mention.
    Commits from ``first_commit_read`` on were read for the files, and the log has them from ``oldest_commit`` on; None
    where nobody looked. A checkpoint is due each ``checkpoint_interval`` commits; 0 where that is not known.
    """

    location: str
    table_id: str
    version: int
    columns: tuple[PlannedColumn, ...]
    partition_columns: tuple[str, ...]
    protocol: Protocol
    num_files: int
    size_bytes: int
    managed_properties: tuple[tuple[str, str | None], ...] = ()
    file_sizes: FileSizes = ()
    listed: bool = False
    small_files: int | None = None
    first_commit_read: int | None = None
    oldest_commit: int | None = None
    checkpoint_interval: int = DEFAULT_CHECKPOINT_INTERVAL

    def __post_init__(self) -> None:
        for name in ("columns", "partition_columns", "protocol", "managed_properties"):
            object.__setattr__(self, name, once(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class CheckedExpectation:
    """A Great Expectations expectation: registered name and keyword arguments as canonical JSON."""

    type: str
    arguments_json: str


class RowCountCheck(StrEnum):
    """``log`` trusts the counts in the log; ``scan`` reads the files."""

    LOG = "log"
    SCAN = "scan"
    OFF = "off"


class ContentCheck(StrEnum):
    """``fingerprint`` sums hashes of rows in one pass; ``exact`` compares the rows as multisets."""

    OFF = "off"
    FINGERPRINT = "fingerprint"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Checks:
    """What is asserted after each rewrite commit. Words as in the policy's ``verify``."""

    row_count: RowCountCheck = RowCountCheck.SCAN
    content: ContentCheck = ContentCheck.FINGERPRINT
    files: bool = True
    expectations: tuple[CheckedExpectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a table could not be planned: an error as data, so that one bad table never stops the others."""

    code: str
    what: str
    where: str | None = None
    help: str | None = None

    def __post_init__(self) -> None:
        # It goes into every record and report, and quotes what storage and engines said.
        object.__setattr__(self, "what", without_secrets(self.what))
        object.__setattr__(self, "where", self.where and without_secrets(self.where))
        object.__setattr__(self, "help", self.help and without_secrets(self.help))


def as_problem(error: MaintainerError) -> Problem:
    """Return an error as plans and results keep it, with what was found and what is allowed."""
    named = (("found", error.found), ("allowed", error.allowed))
    # A list has a line for each of its items; a sentence would show the ends of lines as signs.
    details = [f"{label}: {', '.join(value.strip().splitlines())}" for label, value in named if value]
    what = error.what + (f" ({'; '.join(details)})" if details else "")
    return Problem(error.code, what, error.where, error.help)


HELD_BACK = frozenset(
    {
        ReasonCode.OVER_BUDGET,
        ReasonCode.OUTSIDE_WINDOW,
        ReasonCode.SUSPENDED,
        ReasonCode.BELOW_MIN_SIZE,
        ReasonCode.HOT,
        ReasonCode.RESTING,
        ReasonCode.NO_TABLE_YET,
        ReasonCode.NO_LONGER_LIVE,
    }
)
"""Why nothing is done now whatever the table may need; every other reason is about the table itself."""

LEFT_TO_WRITERS = frozenset({ReasonCode.HOT, ReasonCode.RESTING})
"""Why no file of a table is rewritten now: others update it, or one who lost to us is to have the time to finish."""


class TableState(StrEnum):
    """What a plan comes to for a table; ``waiting`` is held back for now, with no step left."""

    PROBLEM = "problem"
    UNSUPPORTED = "unsupported"
    BLOCKED = "blocked"
    CHANGES = "changes"
    WAITING = "waiting"
    UP_TO_DATE = "up_to_date"


@dataclass(frozen=True, slots=True, repr=False)
class TablePlan(FromPolicyFile):
    """Everything planned for one table, in the order in which it runs.

    Exactly one of these holds: ``problem`` is set (the table could not be planned), ``blocked`` is not empty
    (a limit or a rule forbids it: no steps), there are steps, or there is nothing to do (``left_alone`` says why).
    ``window_closes_ms`` is when the window closes in which the table was planned; no step is begun from then on.
    ``writers`` is when others commit; None where nothing is rewritten, or the log does not say. No rewrite is committed
    within ``quiet_after_updates_seconds`` after an update by others of the same partitions; 0 never holds one back.
    ``policy_values`` is what the policy says, key by key in words, so that a change of it can be named; ``policy`` is
    the same for scripts: keys as in a policy file, sizes in bytes, durations in seconds. Both are empty for a table of
    which nothing is carried out.
    ``checked`` is the table as the check of a saved plan found it, which may be long after it was planned.
    ``rule_line`` is where in ``policy_file`` the rule is that manages a table without a file of its own; ``is_new``
    says that no run before knew such a table. ``is_passed_over`` says that its problem is what the table is, and
    that its rule reaches others: then it is named and counted, and is no error.
    ``notes`` say something about what is rewritten, or who else does so, and change nothing.
    """

    ref: TableRef
    policy_file: str
    policy_digest: str
    observed: Observed | None = None
    steps: tuple[Annotated[Step, ClosedUnion()], ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    blocked: tuple[Reason, ...] = ()
    problem: Problem | None = None
    checks: Checks = Checks()
    timeout_seconds: int = 3 * 3600
    owner: str | None = None
    window_closes_ms: int | None = None
    writers: WriterRhythm | None = None
    quiet_after_updates_seconds: int = 0
    policy_values: tuple[tuple[str, str], ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict, hash=False)
    checked: FilesSeen | None = None
    rule_line: int | None = None
    is_new: bool = False
    is_passed_over: bool = False
    notes: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        if self.steps and (self.blocked or self.problem):
            raise ValueError("a blocked or unplannable table has no steps")
        for name in ("policy_digest", "checks", "policy_values"):
            object.__setattr__(self, name, once(getattr(self, name)))
        object.__setattr__(self, "policy", document_once(self.policy))

    def __repr__(self) -> str:
        kinds = ", ".join(step.kind for step in self.steps)
        return f"<TablePlan {self.ref.identifier}: {self.state.replace('_', ' ')}{f' ({kinds})' if kinds else ''}>"

    @property
    def is_cut(self) -> bool:
        """Whether a budget left a part of it to the next run."""
        return any(entry.reason.code is ReasonCode.OVER_BUDGET for entry in self.left_alone)

    @property
    def hot(self) -> Reason | None:
        """Why rewrites of the whole table are left to quieter hours; None where they are not."""
        return next((entry.reason for entry in self.left_alone if entry.reason.code in LEFT_TO_WRITERS), None)

    @property
    def maintained_twice(self) -> str | None:
        """Who else takes care of the table, in a sentence; None where nobody does."""
        return next((note.text for note in self.notes if note.code is ReasonCode.MAINTAINED_TWICE), None)

    @property
    def state(self) -> TableState:
        """What the plan comes to for this table."""
        if self.problem:
            return TableState.UNSUPPORTED if self.is_passed_over else TableState.PROBLEM
        if self.blocked:
            return TableState.BLOCKED
        if self.steps:
            return TableState.CHANGES
        held_back = any(entry.reason.code in HELD_BACK for entry in self.left_alone)
        return TableState.WAITING if held_back else TableState.UP_TO_DATE

    @property
    def rewrites(self) -> tuple[RewriteStep, ...]:
        """The steps that rewrite files, in order."""
        return tuple(step for step in self.steps if isinstance(step, BatchedStep))

    @property
    def source(self) -> str:
        """Where the table comes from: its own file, or file and line of the rule that manages it."""
        return self.policy_file if self.rule_line is None else f"{self.policy_file}:{self.rule_line}"

    def step_id(self, step: Step) -> str:
        """Name a step for journal and commit: the table and the kind, of which a plan has one each."""
        return f"{self.ref.identifier}/{step.kind}"

    def step_of(self, step_id: str) -> Step | None:
        """Return the step with this name; None where none is planned."""
        return next((step for step in self.steps if self.step_id(step) == step_id), None)


@dataclass(frozen=True, slots=True)
class GoneTable:
    """A table that a rule managed when a run last looked, and that is not there any more."""

    ref: TableRef
    source: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Plans of all selected tables, in the order of their identifiers, and what the plan is pinned to.

    ``requests`` is about what a run of it asks of object stores, as it was when the plan was made.
    """

    created_at_ms: int
    expires_at_ms: int
    tables: tuple[TablePlan, ...]
    environment: str | None = None
    selection: tuple[str, ...] = ()
    git_commit: str | None = None
    maintainer_version: str = ""
    gone: tuple[GoneTable, ...] = ()
    requests: StoreRequests | None = None

    @property
    def has_changes(self) -> bool:
        """Whether applying the plan would do anything."""
        return any(table.steps for table in self.tables)

    @property
    def user_tables(self) -> tuple[TablePlan, ...]:
        """All tables but our own ledger, and the places that could not be searched."""
        return tuple(table for table in self.tables if not table.is_ledger)

    @property
    def num_tables(self) -> int:
        """How many tables of the user's there are."""
        return sum(not is_place(table) for table in self.user_tables)

    @property
    def rewrites(self) -> tuple[RewriteStep, ...]:
        """The steps of the user's tables that rewrite files, in order."""
        return tuple(step for table in self.user_tables for step in table.rewrites)

    @property
    def num_deleted(self) -> int:
        """Files of the user's tables that vacuums delete, those in the trash among them."""
        vacuums = (step for table in self.user_tables for step in table.steps if isinstance(step, VacuumStep))
        return sum(len(step.files) + sum(run.num_files for run in step.emptied) for step in vacuums)

    @property
    def spark_lane_bytes(self) -> int:
        """Bytes that Spark itself will read and write."""
        bins = (bin_ for step in self.rewrites for bin_ in step.bins)
        return sum(bin_.size_bytes for bin_ in bins if bin_.lane.lane is Lane.SPARK)

    def steps(self) -> Iterator[tuple[TablePlan, Step]]:
        """Return all steps of all tables, in order."""
        for table in self.tables:
            for step in table.steps:
                yield table, step
