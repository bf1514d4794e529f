"""A plan: what will be done to which files, why, and what is left alone. Data, nothing else.

``plan(policy, facts, now)`` makes one; it can be printed, saved, compared with ``==``, reviewed and applied.
Totals are properties: nothing is stored that can be counted. Words as in Delta: a *bin* is one Spark job that
writes one output file (or, for Z-order, one partition), a *batch* is one commit.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from maintainer.model.table import DataFile, PartitionValues, Protocol, RemovedFile, TableRef


class ReasonCode(str, enum.Enum):
    """Why a step is taken, or why something is left alone. A closed set; each has a heading in docs/reasons.md."""

    # Why a step is taken.
    PROPERTY_DRIFT = "property_drift"
    SMALL_FILES = "small_files"
    DELETED_ROWS = "deleted_rows"
    ZORDER_DUE = "zorder_due"
    REMOVED_FILES_EXPIRED = "removed_files_expired"
    RETENTION_TOO_SHORT_ON_TABLE = "retention_too_short_on_table"
    # Why files, partitions, steps or tables are left alone.
    AT_TARGET = "at_target"
    NO_PARTNER = "no_partner"
    OUTSIDE_WHERE = "outside_where"
    HOT_PARTITION = "hot_partition"
    NEWEST_PARTITION = "newest_partition"
    NOT_DUE = "not_due"
    NOT_WORTH_IT = "not_worth_it"
    NOTHING_EXPIRED = "nothing_expired"
    UNPROVEN_REWRITE = "unproven_rewrite"
    SAME_ZORDER = "same_zorder"
    OUTSIDE_WINDOW = "outside_window"
    SUSPENDED = "suspended"
    QUARANTINED = "quarantined"
    OVER_LIMIT = "over_limit"
    NO_LONGER_LIVE = "no_longer_live"
    LIVE_AGAIN = "live_again"


PACKED_TAG = "maintainer.packed"
"""Tag of every file that a rewrite wrote: the step's ``max_file_size_bytes``. Such files are not packed again
among themselves, however small they came out, so that a second run with nothing new commits nothing."""

ZORDER_TAG = "maintainer.zorder"
"""Tag of every file that a Z-order wrote: its columns as a JSON list, in order of weight."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, in a code for machines and a sentence for people, and the policy line behind it (``file:line``)."""

    code: ReasonCode
    text: str
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Files, or a step, or the whole table, that the plan does not touch, and why."""

    reason: Reason
    num_files: int = 0
    size_bytes: int = 0
    partition_values: PartitionValues | None = None


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that are rewritten by one job. Never empty, never two partitions."""

    files: tuple[DataFile, ...]

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("a bin holds at least one file")
        if any(file.partition_values != self.files[0].partition_values for file in self.files):
            raise ValueError("a bin holds files of one partition")

    @property
    def partition_values(self) -> PartitionValues:
        """The partition all its files belong to."""
        return self.files[0].partition_values

    @property
    def size_bytes(self) -> int:
        """Bytes to read, as recorded in the log."""
        return sum(file.size_bytes for file in self.files)

    @property
    def live_records(self) -> int | None:
        """Rows to write, None where the log cannot say for each file."""
        counts = [file.live_records for file in self.files]
        return None if any(count is None for count in counts) else sum(c for c in counts if c is not None)


@dataclass(frozen=True, slots=True)
class Batch:
    """Bins that are committed together: what a failure or a conflict can cost."""

    bins: tuple[Bin, ...]

    def __post_init__(self) -> None:
        if not self.bins:
            raise ValueError("a batch holds at least one bin")

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files of all bins."""
        return tuple(file for one in self.bins for file in one.files)

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return sum(one.size_bytes for one in self.bins)


@dataclass(frozen=True, slots=True)
class SetPropertiesStep:
    """Make table properties what the policy says. ``before`` has None for a property that was not set."""

    before: tuple[tuple[str, str | None], ...]
    after: tuple[tuple[str, str], ...]
    reasons: tuple[Reason, ...]
    kind: str = field(default="set_properties", init=False)


@dataclass(frozen=True, slots=True)
class CompactStep:
    """Write the files of each bin as one file."""

    batches: tuple[Batch, ...]
    max_file_size_bytes: int
    max_threads: int
    reasons: tuple[Reason, ...]
    kind: str = field(default="compact", init=False)

    @property
    def num_files_added(self) -> int:
        """Files the step is expected to write: one a bin."""
        return sum(len(batch.bins) for batch in self.batches)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags that every file written by the step must carry."""
        return ((PACKED_TAG, str(self.max_file_size_bytes)),)


@dataclass(frozen=True, slots=True)
class ZOrderStep:
    """Write the files of each bin (one partition) in Z-order, as files of about ``max_file_size_bytes``."""

    batches: tuple[Batch, ...]
    columns: tuple[str, ...]
    max_file_size_bytes: int
    max_threads: int
    reasons: tuple[Reason, ...]
    kind: str = field(default="zorder", init=False)

    @property
    def num_files_added(self) -> int:
        """Files the step is expected to write: max(1, floor(bytes / max)) a bin, as OPTIMIZE does."""
        return sum(max(1, one.size_bytes // self.max_file_size_bytes) for batch in self.batches for one in batch.bins)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags that every file written by the step must carry: how a later plan sees that it is in order."""
        return ((PACKED_TAG, str(self.max_file_size_bytes)), (ZORDER_TAG, zorder_tag_value(self.columns)))


def zorder_tag_value(columns: tuple[str, ...]) -> str:
    """Spell Z-order columns as the value of ``ZORDER_TAG``."""
    return json.dumps(list(columns), ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class VacuumStep:
    """Delete files that the log removed before ``removed_before_ms`` and that nothing protects."""

    files: tuple[RemovedFile, ...]
    removed_before_ms: int
    retention_seconds: int
    decided_by: str
    reasons: tuple[Reason, ...]
    kind: str = field(default="vacuum", init=False)

    @property
    def size_bytes(self) -> int:
        """Bytes that deletion frees."""
        return sum(file.size_bytes for file in self.files)


RewriteStep = CompactStep | ZOrderStep
Step = SetPropertiesStep | CompactStep | ZOrderStep | VacuumStep
"""Closed: every walker matches over it and ends in ``assert_never``."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the plan was made from; re-checked before anything runs.

    ``managed_properties`` are the table properties that the policy has a say in, as they were (None: not set).
    """

    location: str
    table_id: str
    version: int
    schema_digest: str
    partition_columns: tuple[str, ...]
    protocol: Protocol
    num_files: int
    size_bytes: int
    managed_properties: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedExpectation:
    """A Great Expectations expectation: registered name and keyword arguments as canonical JSON."""

    type: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class Checks:
    """What is asserted after each rewrite commit. Words as in the policy's ``verify``."""

    row_count: str = "scan"
    content: str = "fingerprint"
    files: bool = True
    expectations: tuple[CheckedExpectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a table could not be planned: an error as data, so that one bad table never stops the others."""

    code: str
    what: str
    where: str | None = None
    help: str | None = None


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Everything planned for one table, in the order in which it runs.

    Exactly one of these holds: ``problem`` is set (the table could not be planned), ``blocked`` is not empty
    (a limit or a rule forbids it: no steps), there are steps, or there is nothing to do (``left_alone`` says why).
    """

    ref: TableRef
    policy_file: str
    policy_digest: str
    observed: Observed | None = None
    steps: tuple[Step, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    blocked: tuple[Reason, ...] = ()
    problem: Problem | None = None
    checks: Checks = Checks()
    timeout_seconds: int = 3 * 3600
    owner: str | None = None

    def __post_init__(self) -> None:
        if self.steps and (self.blocked or self.problem):
            raise ValueError("a blocked or unplannable table has no steps")

    @property
    def state(self) -> str:
        """``problem``, ``blocked``, ``changes`` or ``up_to_date``."""
        if self.problem:
            return "problem"
        if self.blocked:
            return "blocked"
        return "changes" if self.steps else "up_to_date"

    def step_id(self, step: Step) -> str:
        """Name a step for journal and commit: the table and the kind, of which a plan has one each."""
        return f"{self.ref.identifier}/{step.kind}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Plans of all selected tables, in the order of their identifiers, and what the plan is pinned to."""

    created_at_ms: int
    expires_at_ms: int
    tables: tuple[TablePlan, ...]
    environment: str | None = None
    selection: tuple[str, ...] = ()
    git_commit: str | None = None
    maintainer_version: str = ""

    @property
    def has_changes(self) -> bool:
        """Whether applying the plan would do anything."""
        return any(table.steps for table in self.tables)

    def steps(self) -> Iterator[tuple[TablePlan, Step]]:
        """All steps of all tables, in order."""
        for table in self.tables:
            for step in table.steps:
                yield table, step
