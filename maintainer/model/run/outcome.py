"""The outcome of a run: how every step and table ended, with its checks and receipts. Frozen values, no I/O.

``results.json`` is the document of it, rewritten after every step and read by later commands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from maintainer.errors.foreign_text import without_secrets
from maintainer.model.codec import DecodeError, canonical_json, decode, encode
from maintainer.model.plan.plan import FromPolicyFile, Problem, TablePlan, is_place
from maintainer.model.plan.steps import StepKind
from maintainer.model.plan.zorder_turn import LayoutChange, TurnOutcome
from maintainer.model.run.optimize_metrics import OptimizeMetrics
from maintainer.model.run.receipts import Amounts, CommitReceipt, Proof, VacuumReceipt, Verdict
from maintainer.model.table.store_requests import RunRequests
from maintainer.model.table.table_facts import FilesSeen, LayoutBoxes, TableRef

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


class StepStatus(StrEnum):
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


ENDED_STEPS = frozenset({StepStatus.SUCCEEDED, StepStatus.NOTHING_LEFT})
"""Ends of a step after which the next one begins."""

FAILED_STEPS = frozenset({StepStatus.FAILED, StepStatus.VERIFY_FAILED, StepStatus.UNKNOWN, StepStatus.INCOMPLETE})
"""Ends of a step that a person should know of even when nothing is left to do; what was only stopped is made up for."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """One step's end. ``commits`` are the batches that landed, also when a later one failed.

    ``metrics`` are a rewrite's figures as OPTIMIZE would return them; None for other kinds, and where the step ended
    before the table was read. ``turns`` are those of an incremental Z-order, one for each commit that rewrote files.
    ``files_after`` (``left`` in documents) are those of the table as the step left it, None where it was not read;
    ``boxes`` is the layout before and after a Z-order, ``layout`` the figures of a full one: those of an incremental
    one are in its turns.
    ``goes_on`` says that a bound left work to the next run, which `every` does not put off.
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
    files_after: FilesSeen | None = field(default=None, metadata={"alias": "left"})
    boxes: LayoutBoxes | None = None
    layout: LayoutChange | None = None
    goes_on: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "note", self.note and without_secrets(self.note))

    @property
    def changed_table(self) -> bool:
        """Whether the step did anything that stays, however it ended."""
        return bool(self.commits) or (self.vacuum is not None and self.vacuum.changed_table)

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """The proofs of its commits; not every commit has one."""
        return tuple(commit.proof for commit in self.commits if commit.proof is not None)

    @property
    def amounts(self) -> Amounts:
        """What its commits come to, and what it deleted, which includes what it moved to the trash."""
        deleted = self.vacuum
        return Amounts.of(self.commits) + (
            Amounts(deleted.num_files_deleted, bytes_removed=deleted.bytes_deleted) if deleted else Amounts()
        )

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


class TableStatus(StrEnum):
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


ENDED_WELL = frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE, TableStatus.WAITING})
"""What waits is meant to wait."""

NOT_AGAIN = ENDED_WELL | {TableStatus.UNSUPPORTED}
"""Not for ``retry``: a table that is not supported stays so."""

FAILED_TABLES = frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED})

ENDS_BY_RESULT: Mapping[str, frozenset[TableStatus]] = {
    "success": frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE}),
    "failed": FAILED_TABLES,
    "verify_failed": frozenset({TableStatus.VERIFY_FAILED}),
    "skipped": frozenset({TableStatus.NOT_REACHED, TableStatus.YIELDED}),
    "waiting": frozenset({TableStatus.WAITING}),
    "interrupted": frozenset({TableStatus.INTERRUPTED}),
    "refused": frozenset({TableStatus.BLOCKED, TableStatus.UNSUPPORTED}),
}
"""The words of the selector ``result:`` and how a table ended that has them; a failed verification has failed, too."""


@dataclass(frozen=True, slots=True)
class TableOutcome(FromPolicyFile):
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
    def first_problem(self) -> Problem | None:
        """What is wrong with the table, else with its first step that failed."""
        return self.problem or next((step.error for step in self.steps if step.error is not None), None)

    @property
    def changed(self) -> bool:
        """Whether a step changed the table, however it ended."""
        return any(step.changed_table for step in self.steps)

    @property
    def files_after(self) -> FilesSeen | None:
        """The table as the last step that read it left it; None where none did, or a commit's figures are not in it."""
        after = next((step.files_after for step in reversed(self.steps) if step.files_after is not None), None)
        commits = [commit for step in self.steps for commit in step.commits]
        # What a later run found out of a killed one came after the figures were written down.
        if after is None or any(commit.version > after.version for commit in commits):
            return None
        return None if any(commit.num_files_removed and not commit.sizes_removed for commit in commits) else after

    @property
    def files_before(self) -> FilesSeen | None:
        """That table without what this run committed: what its steps began with. None where none read it."""
        if (after := self.files_after) is None:
            return None
        commits = [commit for step in self.steps for commit in step.commits]
        return after.changed(
            [commit.sizes_added for commit in commits],
            [commit.sizes_removed for commit in commits],
            version=min((commit.version - 1 for commit in commits), default=after.version),
            at_ms=self.steps[0].started_at_ms,
        )


class RunEnd(StrEnum):
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


FORMAT_VERSION = 1


def run_to_document(run: RunOutcome) -> dict[str, Any]:
    """Turn a run's outcome into the JSON document, with the tables counted by status."""
    return {"format_version": FORMAT_VERSION, **encode(run), "counts": _counts(run)}


def _counts(run: RunOutcome) -> dict[str, int]:
    return {status.value: run.count(status) for status in TableStatus}


def run_to_json(run: RunOutcome) -> str:
    """Write a run's outcome as JSON text, indented."""
    return json.dumps(run_to_document(run), sort_keys=True, ensure_ascii=False, allow_nan=False, indent=2)


def run_from_fragments(run: RunOutcome, tables: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a run's outcome as its file has it, on one line, from the tables' own texts that `table_to_json` makes."""
    head = {name: value for name, value in run_to_document(replace(run, tables=())).items() if name != "tables"}
    head["counts"] = _counts(run)
    # The name of the tables is the last in order, so they are added to the rest.
    yield f'{canonical_json(head)[:-1]},"tables":['.encode("utf-8", "surrogatepass")
    for number, table in enumerate(tables):
        yield b"," * bool(number) + table
    yield b"]}\n"


def table_to_json(table: TableOutcome) -> bytes:
    """Return one table's outcome as it is in the file of a run."""
    return canonical_json(encode(table)).encode("utf-8", "surrogatepass")


def run_from_json(text: str) -> RunOutcome:
    """Read a run's outcome from JSON text.

    Raises:
        DecodeError: The text is not JSON, or not a document of this format.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError("", f"not JSON: {str(error)[:200]}") from error
    if not isinstance(document, dict) or document.get("format_version") != FORMAT_VERSION:
        raise DecodeError("format_version", f"expected {FORMAT_VERSION}")
    fields = {key: value for key, value in document.items() if key not in ("format_version", "counts")}
    return decode(RunOutcome, fields)
