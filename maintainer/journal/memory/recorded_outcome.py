"""Read the outcome of a run from its record: its results and its events.

``results.json`` is complete when a run closes its record. A killed run leaves that of the step before; what happened
since is in ``events.jsonl``: each INTENT before its commit, each RESULT after it, and what later runs found out. A
commit that nobody has looked up yet is *unknown*, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.steps import Step, StepKind
from maintainer.model.plan.zorder_turn import TurnOutcome
from maintainer.model.run.outcome import (
    CommitReceipt,
    RunEnd,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    VacuumReceipt,
    Verdict,
)
from maintainer.model.run.progress import StepFinished, TableFinished, Verified
from maintainer.model.run.run_events import (
    DELETED,
    Deleting,
    Fate,
    Intent,
    Result,
    RunEvent,
    Settled,
    Turned,
    step_of,
)

DIED_CODE = "C712"
DIED_HELP = "run `maintainer apply`: it finds out what is not known yet, and goes on"

_ENDED = frozenset({TableStatus.INTERRUPTED, TableStatus.NOT_REACHED})
"""What ``results.json`` says of tables while a run goes on: their events know better."""


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
    finished: StepFinished | None = None

    def take(self, event: RunEvent) -> None:
        if getattr(event, "by", None) is None:  # what a later run found out took none of this step's time
            self.last_at_ms = max(self.last_at_ms, event.at_ms)
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
            case StepFinished():
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

    def landed(self, *kinds: type[Result]) -> list[Result]:
        """Results and settlements of what landed or was deleted, in the order of the batches."""
        return [
            result
            for _, result in sorted(self.fates.items())
            if isinstance(result, kinds or Result) and result.fate in DELETED
        ]

    def commits(self, results: list[Result]) -> tuple[CommitReceipt, ...]:
        """Receipts of commits, with the proof that their INTENT has."""
        return tuple(
            replace(receipt, proof=receipt.proof or (intent.proof if intent else None))
            for result in results
            if isinstance(receipt := result.receipt, CommitReceipt)
            for intent in [self.intents.get(result.stamp.batch)]
        )


@dataclass(slots=True)
class _Record:
    """The events of a run about its steps and tables."""

    steps: dict[str, _StepRecord] = field(default_factory=dict)
    tables: dict[str, TableOutcome] = field(default_factory=dict)
    last_at_ms: int = 0

    @staticmethod
    def of(events: Iterable[RunEvent]) -> _Record:
        record = _Record()
        for event in events:
            record._take(event)
        return record

    def _take(self, event: RunEvent) -> None:
        if getattr(event, "by", None) is None:
            self.last_at_ms = max(self.last_at_ms, event.at_ms)
        step_id = step_of(event)
        if isinstance(event, TableFinished):
            self.tables[event.outcome.ref.identifier] = event.outcome
        elif step_id is not None:
            self.steps.setdefault(step_id, _StepRecord(event.at_ms, event.at_ms)).take(event)


def recorded_outcome(plan: Plan, results: RunOutcome, events: Iterable[RunEvent], end: RunEnd) -> RunOutcome:
    """Return what came of a run.

    Args:
        plan: As it was applied.
        results: As ``results.json`` has them, which may be of an earlier moment.
        events: The run's record.
        end: Whether the run closed its record, still goes on, or died.
    """
    record = _Record.of(events)
    stored = {table.ref: table for table in results.tables}
    tables = tuple(
        _table(table, stored.get(table.ref), record, end) for table in plan.tables if table.ref in stored or table.steps
    )
    duration = results.duration_seconds
    if end is RunEnd.DIED:
        duration = max(duration, (record.last_at_ms - results.started_at_ms) / 1000)
    return replace(results, tables=tables, end=end, duration_seconds=duration)


def _table(plan: TablePlan, stored: TableOutcome | None, record: _Record, end: RunEnd) -> TableOutcome:
    stored_steps = {step.step_id: step for step in stored.steps} if stored else {}
    steps: list[StepOutcome] = []
    began = False
    for planned in plan.steps:
        step_id = plan.step_id(planned)
        before, record_of_step = stored_steps.get(step_id), record.steps.get(step_id)
        if before is not None:
            steps.append(before if record_of_step is None else record_of_step.judged(_amended(before, record_of_step)))
        elif record_of_step is not None and (record_of_step.intents or record_of_step.finished):
            steps.append(record_of_step.judged(_of_record(step_id, planned, record_of_step)))
        began = began or record_of_step is not None
    if stored is not None and (end is RunEnd.FINISHED or stored.status not in _ENDED):
        return replace(stored, steps=tuple(steps))
    finished = record.tables.get(plan.ref.identifier)
    if finished is not None:
        status, problem = finished.status, finished.problem
    elif began:
        status, problem = TableStatus.INTERRUPTED, _why(end, "while this table was worked on")
    else:
        status, problem = TableStatus.NOT_REACHED, _why(end, "before this table was started")
    if any(step.status is StepStatus.VERIFY_FAILED for step in steps):
        status = TableStatus.VERIFY_FAILED
    return TableOutcome(plan.ref, status, tuple(steps), problem, plan.policy_file, plan.owner)


def _why(end: RunEnd, when: str) -> Problem:
    code = DIED_CODE if when.startswith("while") else "C713"
    if end is RunEnd.RUNNING:
        return Problem(code, "the run is still going on", help="look again when it is over")
    return Problem(code, f"the run was killed, or its machine went down, {when}", help=DIED_HELP)


def _amended(step: StepOutcome, record: _StepRecord) -> StepOutcome:
    """Add what later runs found out to a step as its run recorded it."""
    later = record.landed(Settled)
    settled = [result for result in record.fates.values() if isinstance(result, Settled)]
    if not later:
        if step.status is StepStatus.UNKNOWN and settled and not record.unsettled:
            note = "a later run found that the commit did not land"
            return replace(step, status=StepStatus.FAILED, note=_joined(step.note, note))
        return step
    status = StepStatus.INTERRUPTED if step.status is StepStatus.UNKNOWN else step.status
    last = later[-1]
    if isinstance(last.receipt, VacuumReceipt):
        detail = last.detail if isinstance(last, Settled) else None
        return replace(step, status=status, vacuum=last.receipt, note=_joined(step.note, detail))
    versions = {receipt.version for receipt in step.commits}
    receipts = tuple(receipt for receipt in record.commits(later) if receipt.version not in versions)
    note = "; ".join(f"a later run found that version {receipt.version} landed" for receipt in receipts)
    return replace(step, status=status, commits=(*step.commits, *receipts), note=_joined(step.note, note or None))


def _of_record(step_id: str, planned: Step, record: _StepRecord) -> StepOutcome:
    """Make the outcome of a step without results: its run died before it ended, or before they were written."""
    landed = record.landed()
    commits = record.commits(landed)
    vacuum = next((result.receipt for result in reversed(landed) if isinstance(result.receipt, VacuumReceipt)), None)
    turns = _turns(record, commits)
    if record.finished is not None:
        assertions = tuple(assertion for check in record.checks.values() for assertion in check.assertions)
        return replace(record.finished.outcome, commits=commits, vacuum=vacuum, assertions=assertions, turns=turns)
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
    return StepOutcome(
        step_id=step_id,
        kind=planned.kind,
        status=status,
        started_at_ms=record.started_at_ms,
        duration_seconds=(record.last_at_ms - record.started_at_ms) / 1000,
        commits=commits,
        vacuum=vacuum,
        error=error,
        turns=turns,
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
