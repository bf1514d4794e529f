"""Fold the events of a run into what came of it.

The same events give the outcome of a run that closed its record, that goes on, and that was killed: each INTENT is
recorded before its commit, each RESULT after it, and beside them what later runs found out. A commit that nobody has
looked up yet is *unknown*, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.steps import Step, StepKind
from maintainer.model.plan.zorder_turn import TurnOutcome
from maintainer.model.run.outcome import (
    Assertion,
    CommitReceipt,
    Preparation,
    RunEnd,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    VacuumReceipt,
    Verdict,
)
from maintainer.model.run.progress import RunFinished, RunStarted, RunStopping, StepFinished, TableFinished, Verified
from maintainer.model.run.run_events import (
    DELETED,
    Deleting,
    Fate,
    Intent,
    RecordOpened,
    Result,
    RunEvent,
    Settled,
    Turned,
    step_of,
)
from maintainer.model.table.table_facts import TableRef

DIED_CODE = "C712"
DIED_HELP = "run `maintainer apply`: it finds out what is not known yet, and goes on"


@dataclass(slots=True)
class _StepRecord:
    """The events of one step, in order."""

    started_at_ms: int
    last_at_ms: int
    intents: dict[int, Intent] = field(default_factory=dict)
    fates: dict[int, Result] = field(default_factory=dict)
    num_deleted: int | None = None
    turns: list[TurnOutcome] = field(default_factory=list)
    checks: dict[int | None, Verified] = field(default_factory=dict)
    assertions: list[Assertion] = field(default_factory=list)
    finished: StepFinished | None = None

    def take(self, event: RunEvent) -> None:
        if getattr(event, "by", None) is None:  # what a later run found out took none of this step's time
            self.last_at_ms = max(self.last_at_ms, event.at_ms)
            if isinstance(event, Verified):
                self.assertions.extend(event.assertions)
        match event:
            case Intent(stamp=stamp):
                self.intents[stamp.batch] = event
                self.fates.pop(stamp.batch, None)
            case Result(stamp=stamp):
                self.fates[stamp.batch] = event
            case Deleting(num_deleted=num_deleted):
                self.num_deleted = max(self.num_deleted or 0, num_deleted)
            case Turned(turn=turn):
                self.turns.append(turn)
            case Verified(version=version):
                self.checks[version] = event
            case StepFinished() if self.finished is None:  # a worker that was given up may come back with another end
                self.finished = event

    @property
    def unsettled(self) -> bool:
        """Whether something was tried of which nobody knows how it ended."""
        settled = {batch for batch, result in self.fates.items() if result.fate is not Fate.UNKNOWN}
        return bool(self.intents.keys() - settled)

    def judged(self, step: StepOutcome) -> StepOutcome:
        """Add to each commit what the newest check of its version said, by its run or by a later one."""

        def verdict(receipt: CommitReceipt) -> Verdict | None:
            check = self.checks.get(receipt.version)
            return receipt.verdict if check is None else Verdict(check.result)

        return replace(step, commits=tuple(replace(receipt, verdict=verdict(receipt)) for receipt in step.commits))

    @property
    def landed(self) -> list[Result]:
        """Results and settlements of what landed or was deleted, in the order of the batches."""
        return [result for _, result in sorted(self.fates.items()) if result.fate in DELETED]

    def commits(self, results: Iterable[Result]) -> tuple[CommitReceipt, ...]:
        """Receipts of commits, with the proof that their INTENT has."""
        return tuple(
            replace(receipt, proof=receipt.proof or (intent.proof if intent else None))
            for result in results
            if isinstance(receipt := result.receipt, CommitReceipt)
            for intent in [self.intents.get(result.stamp.batch)]
        )


@dataclass(slots=True)
class _Record:
    """The events of a run about its steps and tables, and about itself."""

    run_id: str = ""
    started_at_ms: int = 0
    last_at_ms: int = 0
    preparation: Preparation = Preparation()  # noqa: RUF009 (frozen)
    stopped_by: str | None = None
    finished: RunOutcome | None = None
    steps: dict[str, _StepRecord] = field(default_factory=dict)
    tables: dict[TableRef, TableOutcome] = field(default_factory=dict)

    def take(self, event: RunEvent) -> None:
        if getattr(event, "by", None) is None:
            self.last_at_ms = max(self.last_at_ms, event.at_ms)
        match event:
            case RecordOpened(at_ms=at_ms, run_id=run_id):
                self.run_id, self.started_at_ms = run_id, at_ms
            case RunStarted(at_ms=at_ms, preparation=preparation):
                self.started_at_ms, self.preparation = at_ms, preparation
            case RunStopping(reason=reason):
                self.stopped_by = reason
            case TableFinished(outcome=table):
                self.tables[table.ref] = table
            case RunFinished(outcome=run):
                self.finished = run
            case _ if (step_id := step_of(event)) is not None:
                self.steps.setdefault(step_id, _StepRecord(event.at_ms, event.at_ms)).take(event)

    def run(self, end: RunEnd) -> RunOutcome:
        """The run without its tables."""
        if self.finished is not None:
            return replace(self.finished, end=end)
        seconds = (self.last_at_ms - self.started_at_ms) / 1000
        return RunOutcome(
            self.run_id, self.started_at_ms, seconds, (), self.stopped_by, end, preparation=self.preparation
        )


def recorded_outcome(plan: Plan, events: Iterable[RunEvent], end: RunEnd) -> RunOutcome:
    """Return what came of a run.

    Args:
        plan: As it was applied.
        events: The run's record, or its beginning.
        end: Whether the run closed its record, still goes on, or died.
    """
    record = _Record()
    for event in events:
        record.take(event)
    return replace(record.run(end), tables=tuple(_table(table, record, end) for table in plan.tables))


def _table(plan: TablePlan, record: _Record, end: RunEnd) -> TableOutcome:
    steps: list[StepOutcome] = []
    began = False
    for planned in plan.steps:
        step_id = plan.step_id(planned)
        step = record.steps.get(step_id)
        began = began or step is not None
        if step is not None and (step.intents or step.finished):
            steps.append(step.judged(_step(step_id, planned, step)))
    finished = record.tables.get(plan.ref)
    if finished is not None:
        table = replace(finished, steps=tuple(steps))
    else:
        status = TableStatus.INTERRUPTED if began else TableStatus.NOT_REACHED
        problem = _why(end, "while this table was worked on" if began else "before this table was started")
        table = TableOutcome.of(plan, status, steps, problem)
    if any(step.status is StepStatus.VERIFY_FAILED for step in steps):
        return replace(table, status=TableStatus.VERIFY_FAILED)
    return table


def _why(end: RunEnd, when: str) -> Problem:
    code = DIED_CODE if when.startswith("while") else "C713"
    if end is RunEnd.RUNNING:
        return Problem(code, "the run is still going on", help="look again when it is over")
    return Problem(code, f"the run was killed, or its machine went down, {when}", help=DIED_HELP)


def _step(step_id: str, planned: Step, record: _StepRecord) -> StepOutcome:
    """Make the outcome of a step: as its run saw it end, and what later runs found out; or as it was broken off."""
    if record.finished is None:
        return _broken_off(step_id, planned, record)
    own = [result for result in record.landed if not isinstance(result, Settled)]
    assertions, commits = tuple(record.assertions), record.commits(own)
    step = replace(record.finished.outcome, commits=commits, assertions=assertions)
    settled = [result for result in record.fates.values() if isinstance(result, Settled)]
    later = [result for result in record.landed if isinstance(result, Settled)]
    if not later:
        if step.status is StepStatus.UNKNOWN and settled and not record.unsettled:
            note = "a later run found that the commit did not land"
            return replace(step, status=StepStatus.FAILED, note=_joined(step.note, note))
        return step
    status = StepStatus.INTERRUPTED if step.status is StepStatus.UNKNOWN else step.status
    if isinstance(later[-1].receipt, VacuumReceipt):
        return replace(step, status=status, vacuum=later[-1].receipt, note=_joined(step.note, later[-1].detail))
    versions = {receipt.version for receipt in step.commits}
    receipts = tuple(receipt for receipt in record.commits(later) if receipt.version not in versions)
    note = "; ".join(f"a later run found that version {receipt.version} landed" for receipt in receipts)
    return replace(step, status=status, commits=(*step.commits, *receipts), note=_joined(step.note, note or None))


def _broken_off(step_id: str, planned: Step, record: _StepRecord) -> StepOutcome:
    """Make the outcome of a step in which its run died, or goes on."""
    status = StepStatus.INTERRUPTED
    failed = next((check for check in record.checks.values() if check.result == Verdict.FAIL), None)
    if failed is not None:
        status, error = StepStatus.VERIFY_FAILED, _failed_check(failed)
    elif planned.kind is StepKind.VACUUM:
        error = Problem(DIED_CODE, _of_deletion(record), help=DIED_HELP)
    else:
        what = "the run was killed, or its machine went down, in the middle of this step"
        if record.unsettled:
            status = StepStatus.UNKNOWN
            what += "; whether its last commit landed is not known yet"
        error = Problem(DIED_CODE, what, help=DIED_HELP)
    commits = record.commits(record.landed)
    receipts = (result.receipt for result in reversed(record.landed))
    return StepOutcome(
        step_id=step_id,
        kind=planned.kind,
        status=status,
        started_at_ms=record.started_at_ms,
        duration_seconds=(record.last_at_ms - record.started_at_ms) / 1000,
        commits=commits,
        vacuum=next((receipt for receipt in receipts if isinstance(receipt, VacuumReceipt)), None),
        error=error,
        turns=_turns(record, commits),
    )


def _turns(record: _StepRecord, commits: tuple[CommitReceipt, ...]) -> tuple[TurnOutcome, ...]:
    """Turns whose commits landed; what was measured before one is how the one before it left the table."""
    versions = {receipt.version for receipt in commits}
    turns = [turn for turn in record.turns if turn.version in versions]
    after = [*(turn.before for turn in turns[1:]), None][: len(turns)]
    return tuple(replace(turn, after=later) for turn, later in zip(turns, after, strict=True))


def _failed_check(check: Verified) -> Problem:
    where = f"version {check.version}"
    what = f"a check after the change failed: {check.detail or where}"
    return Problem("V503", what, where, "look at the table; then `maintainer verify TABLE --accept REASON`")


def _of_deletion(record: _StepRecord) -> str:
    """Describe how far a deletion came: by what a later run saw on storage, or else by its own records."""
    settled = next((result for result in record.fates.values() if isinstance(result, Settled)), None)
    intent = next(iter(record.intents.values()), None)
    planned = 0 if intent is None else intent.num_files
    if settled is not None:
        num_deleted = settled.receipt.num_files_deleted if isinstance(settled.receipt, VacuumReceipt) else 0
        text = f"interrupted, {num_deleted:,} of {planned:,} files were deleted"
        return "; ".join(part for part in (text, settled.detail) if part)
    if record.num_deleted is None:
        return f"interrupted before the first of {planned:,} files was deleted, as far as is known"
    return (
        f"interrupted, at least {record.num_deleted:,} of {planned:,} files were deleted; "
        "the next apply finds out how many"
    )


def _joined(first: str | None, second: str | None) -> str | None:
    return "; ".join(part for part in (first, second) if part) or None
