"""Make the rows of the ledger: one a step, for people and for any engine that reads Delta. Pure.

A ``LedgerSink`` (``maintainer.delta.engine.ledger_table``) appends them once a run, because an append a step would cost
more than the step. Until then they lie in the run folder (``ledger_pending``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol, assert_never

from maintainer.errors import LedgerUnfit
from maintainer.model.codec import decode
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import (
    BatchedStep,
    SetPropertiesStep,
    Step,
    StepKind,
    VacuumStep,
)
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome
from maintainer.model.run.receipts import Amounts, CommitReceipt, Verdict


@dataclass(frozen=True, slots=True)
class LedgerMark:
    """A ledger as it was once seen: where, the table's own id, and its version."""

    location: str
    table_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One step of one run. Its fields are the columns of the ledger, in their order; columns are only ever added.

    Sizes are bytes, ``started_at_ms`` is milliseconds since 1970 UTC (a timestamp in the table). ``proof_level`` is how
    the rewritten rows were compared (``none``, ``rows``, ``fingerprint``), ``proof_result`` ``pass``, ``fail``,
    ``error`` (was not or could not be checked) or ``none``. ``strategy`` and what follows it are a turn's of
    incremental Z-order (``layout_figures`` says what ``files_read`` and ``overlap_depth`` are), None elsewhere.
    ``source`` is None for a row that its run appended; a rebuilt one names where it is from (``ledger_rebuild``), and
    its ``predicted_*`` are None where only the table's history knew of it, and in further rows of a step.
    """

    run_id: str
    table: str
    table_id: str | None = None
    location: str | None = None
    step_id: str
    kind: str
    status: str
    reason: str
    version_before: int | None = None
    version_after: int | None = None
    num_files_removed: int = 0
    num_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    predicted_files_removed: int | None = None
    predicted_files_added: int | None = None
    predicted_bytes_removed: int | None = None
    predicted_bytes_added: int | None = None
    started_at_ms: int = 0
    duration_seconds: float = 0.0
    proof_level: str = "none"
    proof_result: str = "none"
    policy_file: str = ""
    policy_digest: str = ""
    git_commit: str | None = None
    environment: str | None = None
    owner: str | None = None
    error_code: str | None = None
    error: str | None = None
    strategy: str | None = None
    revision: int | None = None
    level: int | None = None
    cube: str | None = None
    elements: int | None = None
    files_read_before: float | None = None
    files_read_after: float | None = None
    overlap_depth_before: float | None = None
    overlap_depth_after: float | None = None
    source: str | None = None
    lanes: str | None = None
    wrong_statistics: int | None = None

    def to_json(self) -> str:
        """Return the row as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @staticmethod
    def from_document(document: object) -> LedgerRow:
        """Read a row back; unknown keys of a newer version are left out.

        Raises:
            DecodeError: Not a row.
        """
        return decode(LedgerRow, document, ignore_unknown=True)


STARTED_AT = "started_at"
_SQL_TYPES = {"str": "string", "int": "bigint", "float": "double"}
LEDGER_COLUMNS = tuple(
    (STARTED_AT, "timestamp") if field.name == "started_at_ms" else (field.name, _SQL_TYPES[str(field.type).split()[0]])
    for field in fields(LedgerRow)
)
"""Name and SQL type of each column."""


class LedgerSink(Protocol):
    """The place where ledger rows end up."""

    @property
    def location(self) -> str: ...

    def mark(self) -> LedgerMark | None:
        """Return the ledger as it is now; None where there is none, or only the beginning of its first append.

        Raises:
            MaintainerError: E656, it is damaged; or it cannot be read.
        """

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        """Append rows of a run, once: doing it again with the same rows changes nothing.

        Raises:
            MaintainerError: They could not be appended.
        """

    def steps_of(self, run_id: str) -> frozenset[str]:
        """Return the ids of the steps of a run that have rows.

        Raises:
            MaintainerError: The ledger is there and cannot be read.
        """


def damaged_ledger(where: str | None, found: str) -> LedgerUnfit:
    """Return the error for a ledger that is there and cannot be read: nobody must take it for a table of the user's."""
    help = (
        "your tables are not affected; move the damaged folder away and keep it, then `maintainer ledger rebuild` adds "
        "what this machine's run folders and the tables' logs have"
    )
    return LedgerUnfit("the ledger is damaged", code="E656", where=where, found=found, help=help)


def predicted(step: Step) -> Amounts:
    """Return the plan's figures of a step. A rewrite is expected to write the bytes it reads."""
    match step:
        case BatchedStep():
            return Amounts(step.num_files, step.num_files_added, step.size_bytes, step.size_bytes)
        case VacuumStep():
            return Amounts(len(step.files), bytes_removed=step.size_bytes)
        case SetPropertiesStep():
            return Amounts()
        case _:
            assert_never(step)


def rows_of(plan: Plan, outcome: RunOutcome) -> tuple[LedgerRow, ...]:
    """Make the ledger rows of a run, in order: one for each ended step, or for each turn of an incremental Z-order."""
    plans = {table.ref: table for table in plan.tables}
    return tuple(
        row
        for table in outcome.tables
        if table.ref in plans
        for step in table.steps
        for row in _rows(plan, plans[table.ref], outcome, table, step)
    )


def step_row(plan: Plan, run: RunOutcome, table: TableOutcome, step: StepOutcome) -> LedgerRow | None:
    """Return one row for a step as a whole, its turns not told apart; None for a table that is not in the plan."""
    planned = next((table_plan for table_plan in plan.tables if table_plan.ref == table.ref), None)
    return None if planned is None else _row(plan, planned, run, table, step)


def _rows(
    plan: Plan, table_plan: TablePlan, run: RunOutcome, table: TableOutcome, step: StepOutcome
) -> Iterator[LedgerRow]:
    """Make a row for each turn, as a step of its own; and one for what the step did besides, if it did or failed.

    The rows follow one another in time and add up to the step: the first has what the plan expected, the last has the
    time that is left, such as that of the looks between turns.
    """
    turned = {turn.version for turn in step.turns}
    rest = tuple(commit for commit in step.commits if commit.version not in turned)
    succeeded = step.status is StepStatus.SUCCEEDED
    has_rest = bool(rest) or not step.turns or not succeeded
    left_seconds = step.duration_seconds
    for number, turn in enumerate(step.turns, start=1):
        commits = tuple(commit for commit in step.commits if commit.version == turn.version)
        is_last = number == len(step.turns) and not has_rest
        seconds = left_seconds if is_last else min(left_seconds, sum(commit.duration_seconds for commit in commits))
        alone = replace(
            _part(step, commits, left_seconds), status=StepStatus.SUCCEEDED, error=None, duration_seconds=seconds
        )
        left_seconds -= seconds
        row = _row(plan, table_plan, run, table, alone)
        yield replace(
            row if number == 1 else without_prediction(row),
            step_id=step.step_id if number == 1 else f"{step.step_id}#{number}",
            strategy=turn.planned.strategy.value,
            revision=int(turn.planned.revision.partition(":")[0]),
            level=turn.planned.level,
            cube=turn.planned.cube,
            elements=turn.planned.elements,
            files_read_before=turn.before.files_read,
            files_read_after=turn.after.files_read if turn.after else None,
            overlap_depth_before=turn.before.overlap_depth,
            overlap_depth_after=turn.after.overlap_depth if turn.after else None,
        )
    if has_rest:
        row = _row(plan, table_plan, run, table, _part(step, rest, left_seconds))
        if step.turns:
            row = replace(without_prediction(row), step_id=f"{step.step_id}#{len(step.turns) + 1}")
        # What a step with turns commits at its end removes the request that it answered.
        yield replace(row, kind=StepKind.SET_PROPERTIES) if step.turns and succeeded else row


def _part(step: StepOutcome, commits: tuple[CommitReceipt, ...], left_seconds: float) -> StepOutcome:
    """The end of a step that took its last ``left_seconds``, with some of its commits."""
    passed_ms = round(1000 * (step.duration_seconds - left_seconds))
    return replace(step, commits=commits, started_at_ms=step.started_at_ms + passed_ms, duration_seconds=left_seconds)


def predicted_columns(expected: Amounts) -> dict[str, Any]:
    """Return the columns of what the plan expected: they are named without ``num``."""
    return {f"predicted_{name.removeprefix('num_')}": figure for name, figure in asdict(expected).items()}


def without_prediction(row: LedgerRow) -> LedgerRow:
    """Return a further row of a step: what the plan expected stands in the step's first row, once."""
    unknown: dict[str, Any] = dict.fromkeys(predicted_columns(Amounts()))
    return replace(row, **unknown)


def _row(plan: Plan, table_plan: TablePlan, run: RunOutcome, table: TableOutcome, step: StepOutcome) -> LedgerRow:
    planned, observed = table_plan.step_of(step.step_id), table_plan.observed
    level, result = proof_of(step)
    return LedgerRow(
        run_id=run.run_id,
        table=table.ref.identifier,
        table_id=observed.table_id if observed else None,
        location=observed.location if observed else None,
        step_id=step.step_id,
        kind=step.kind,
        status=step.status.value,
        reason="; ".join(reason.text for reason in planned.reasons) if planned is not None else "",
        version_before=step.version_before,
        version_after=step.version_after,
        **asdict(step.amounts),
        **predicted_columns(predicted(planned) if planned is not None else Amounts()),
        started_at_ms=step.started_at_ms,
        duration_seconds=step.duration_seconds,
        proof_level=level,
        proof_result=result,
        policy_file=table_plan.source,
        policy_digest=table_plan.policy_digest,
        git_commit=plan.git_commit,
        environment=plan.environment,
        owner=table_plan.owner,
        error_code=step.error.code if step.error else None,
        error=step.error.what if step.error else None,
        lanes=lanes_text(step),
        wrong_statistics=_wrong_statistics(step),
    )


def lanes_text(step: StepOutcome) -> str | None:
    """Name the lanes of a step's bins with their numbers, as ``copy 2, local 14``; None where no bin was rewritten."""
    bins: Counter[str] = Counter()
    for proof in step.proofs:
        for use in proof.lanes:
            bins[use.lane.value] += use.num_bins
    return ", ".join(f"{lane} {number}" for lane, number in sorted(bins.items())) or None


def _wrong_statistics(step: StepOutcome) -> int | None:
    """Count what the log had wrong about the files that were rewritten; None where nothing was judged."""
    judged = [proof.source_statistics for proof in step.proofs if proof.source_statistics.num_computed]
    return sum(statistics.num_wrong for statistics in judged) if judged else None


def proof_of(step: StepOutcome) -> tuple[str, str]:
    """Return how far a step was proven: (level, result).

    ``pass`` needs both, for each commit: a proof before it, and a check of the new version after it.
    """
    proofs = step.proofs
    verdicts = {commit.verdict for commit in step.commits if commit.proof is not None or commit.verdict is not None}
    if not verdicts:  # a deletion, or properties
        verdicts = {assertion.outcome for assertion in step.assertions}
    level = "none"
    if proofs:
        level = "fingerprint" if all(proof.read.sums for proof in proofs) else "rows"
    if step.status is StepStatus.VERIFY_FAILED or Verdict.FAIL in verdicts or any(not proof.holds for proof in proofs):
        return level, "fail"
    if (step.error is not None and step.error.code.startswith("V")) or not verdicts <= {Verdict.PASS}:
        return level, "error"
    return level, "pass" if verdicts else "none"
