"""Fold the events of a run into what came of it.

The same events give the outcome of a run that closed its record, that goes on, and that was killed: each INTENT is
recorded before its commit, each RESULT after it, and beside them what later runs found out. A commit that nobody has
looked up yet is *unknown*, never guessed. ``results.json`` is this fold, written down while the run goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.steps import Step, VacuumStep
from maintainer.model.plan.zorder_turn import TurnOutcome
from maintainer.model.run.outcome import (
    Assertion,
    Preparation,
    RunEnd,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
)
from maintainer.model.run.progress import (
    RunFinished,
    RunStarted,
    RunStopping,
    StepFinished,
    TableFinished,
    TableStarted,
    Verified,
)
from maintainer.model.run.receipts import CommitReceipt, Proof, VacuumReceipt, Verdict
from maintainer.model.run.run_events import (
    DELETED,
    CommitEnd,
    Deleting,
    Intent,
    RecordOpened,
    Result,
    RunEvent,
    Settled,
    Turned,
    Writing,
    WrittenOff,
    step_of,
)
from maintainer.model.table.table_facts import TableRef

DIED_CODE = "C712"
DIED_HELP = "run `maintainer apply`: it finds out what is not known yet, and goes on"
_GOES_ON = Problem(DIED_CODE, "the run is still going on", help="look again when it is over")


def _found_none(result: Result) -> bool:
    return isinstance(result, Settled) and result.end is CommitEnd.NOT_LANDED


@dataclass(slots=True)
class StepRecord:
    """The events of one step.

    WRITING is recorded before a rewrite writes its first file, INTENT before a commit is tried. Of a killed run the
    next one finds WRITING without INTENT or WRITTEN_OFF, and removes the files by their names, which tell run, step and
    batch. After INTENT nothing is removed, because the commit may have landed or may still land.
    """

    started_at_ms: int
    last_at_ms: int
    writings: dict[tuple[int, tuple[str, ...]], Writing] = field(default_factory=dict)
    """By batch and names: what it began to write, and neither tried to commit nor removed; and what may come late."""
    intents: dict[int, Intent] = field(default_factory=dict)
    results: dict[int, Result] = field(default_factory=dict)
    num_deleted: int | None = None
    turns: list[TurnOutcome] = field(default_factory=list)
    checks: dict[int | None, Verified] = field(default_factory=dict)
    assertions: list[Assertion] = field(default_factory=list)
    finished: StepFinished | None = None

    def take(self, event: RunEvent) -> None:
        """Take in the step's next event."""
        if getattr(event, "by", None) is None:  # what a later run found out took none of this step's time
            self.last_at_ms = max(self.last_at_ms, event.at_ms)
            if isinstance(event, Verified):
                self.assertions.extend(event.assertions)
        match event:
            case (
                Intent(proof=Proof(late_paths=(_, *_) as paths))
                | Result(receipt=CommitReceipt(late_paths=(_, *_) as paths))
            ):
                place, stamp = (event.at_ms, event.table, event.table_id, event.location), event.stamp
                of_batch = (stamp.run_id, stamp.step_id, stamp.batch)
                self.writings[stamp.batch, paths] = Writing(*place, *of_batch, (), paths)
        match event:
            case Writing(batch=batch, paths=paths):
                self.writings[batch, paths] = event
            case WrittenOff(batch=batch, paths=paths):
                self.writings.pop((batch, paths), None)
            case Intent(stamp=stamp):
                self.writings.pop((stamp.batch, ()), None)
                self.intents[stamp.batch] = event
                self.results.pop(stamp.batch, None)
            case Result(stamp=stamp) if event.replaces(self.results.get(stamp.batch)):
                self.results[stamp.batch] = event
            case Deleting(num_deleted=num_deleted):
                self.num_deleted = max(self.num_deleted or 0, num_deleted)
            case Turned(outcome=turn):
                self.turns.append(turn)
            case Verified(version=version):
                self.checks[version] = event
            case StepFinished() if self.finished is None:  # a worker that was given up may come back with another end
                self.finished = event

    def forget_the_settled(self) -> None:
        """Keep what is open or may yet land, and when the step began and ended."""
        for batch in [batch for batch, result in self.results.items() if not (result.is_open or _found_none(result))]:
            self.intents.pop(batch, None)
            del self.results[batch]
        for kept in (self.turns, self.checks, self.assertions):
            kept.clear()
        self.finished = None

    @property
    def open_intents(self) -> list[Intent]:
        """What was tried of which nobody knows how it ended."""
        settled = {batch for batch, result in self.results.items() if not result.is_open}
        return [intent for batch, intent in self.intents.items() if batch not in settled]

    def judged(self, step: StepOutcome) -> StepOutcome:
        """Add to each commit what the newest check of its version said, by its run or by a later one."""

        def verdict(receipt: CommitReceipt) -> Verdict | None:
            check = self.checks.get(receipt.version)
            return receipt.verdict if check is None else Verdict(check.result)

        return replace(step, commits=tuple(replace(receipt, verdict=verdict(receipt)) for receipt in step.commits))

    @property
    def landed(self) -> list[Result]:
        """Results and settlements of what landed or was deleted, in the order of the batches."""
        return [result for _, result in sorted(self.results.items()) if result.end in DELETED]

    def commits(self, results: Iterable[Result]) -> tuple[CommitReceipt, ...]:
        """Receipts of commits, with the proof that their INTENT has."""
        tried = ((result.receipt, self.intents.get(result.stamp.batch)) for result in results)
        return tuple(
            replace(receipt, proof=receipt.proof or (intent.proof if intent else None))
            for receipt, intent in tried
            if isinstance(receipt, CommitReceipt)
        )


Unfinished = tuple[Problem, Problem]
"""Why tables have not ended: those that were begun, and those that were not."""


@dataclass(slots=True)
class RunFold:
    """What the events of a run come to so far. The threads of a run share the one of its journal."""

    run_id: str = ""
    started_at_ms: int = 0
    last_at_ms: int = 0
    preparation: Preparation = Preparation()  # noqa: RUF009 (frozen)
    stopped_by: str | None = None
    finished: RunOutcome | None = None
    steps: dict[str, StepRecord] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    ended: dict[TableRef, TableOutcome] = field(default_factory=dict)
    keeps_outcomes: bool = True
    """Without them, it has what is open and when each step ended, in a tenth of the room."""
    _outcomes: dict[str, dict[TableRef, TableOutcome]] = field(default_factory=dict)
    """By the tables' names, until the next event of a table."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of(events: Iterable[RunEvent], *, keeps_outcomes: bool = True) -> RunFold:
        """Take in all events of a record, in order."""
        fold = RunFold(keeps_outcomes=keeps_outcomes)
        for event in events:
            fold.take(event)
        return fold

    @property
    def open_intents(self) -> tuple[Intent, ...]:
        """What no result and no settlement ended, oldest first; a result that is ``UNKNOWN`` does not end it."""
        intents = (intent for step in self.steps.values() for intent in step.open_intents)
        return tuple(sorted(intents, key=lambda intent: intent.at_ms))

    @property
    def open_writings(self) -> tuple[Writing, ...]:
        """What was begun to be written, and neither tried to commit nor removed."""
        return tuple(writing for step in self.steps.values() for writing in step.writings.values())

    @property
    def may_land(self) -> bool:
        """Whether another run found no commit of a try: a thread that was given up may make it yet, and record it."""
        return any(_found_none(result) for step in self.steps.values() for result in step.results.values())

    def take(self, event: RunEvent) -> None:
        """Take in the next event of the run."""
        with self._lock:
            self._take(event)

    def _take(self, event: RunEvent) -> None:
        table = event.outcome.ref.identifier if isinstance(event, TableFinished) else getattr(event, "table", None)
        if table is not None:
            self._outcomes.pop(table, None)
        if getattr(event, "by", None) is None:
            self.last_at_ms = max(self.last_at_ms, event.at_ms)
        match event:
            case RecordOpened(at_ms=at_ms, run_id=run_id):
                self.run_id, self.started_at_ms = run_id, at_ms
            case RunStarted(at_ms=at_ms, preparation=preparation):
                self.started_at_ms, self.preparation = at_ms, preparation
            case RunStopping(reason=reason):
                self.stopped_by = reason
            case TableStarted(table=name):
                self.begun.add(name)
            case TableFinished(outcome=end):
                if self.keeps_outcomes:
                    self.ended.setdefault(end.ref, end)  # a worker that was given up may come back with another end
            case RunFinished(outcome=run):
                self.finished = run
            case _ if (step_id := step_of(event)) is not None:
                step = self.steps.setdefault(step_id, StepRecord(event.at_ms, event.at_ms))
                step.take(event)
                if not self.keeps_outcomes:
                    step.forget_the_settled()

    def run(self, end: RunEnd) -> RunOutcome:
        """The run without its tables."""
        if self.finished is not None:
            return replace(self.finished, end=end)
        seconds = (self.last_at_ms - self.started_at_ms) / 1000
        return RunOutcome(
            self.run_id, self.started_at_ms, seconds, (), self.stopped_by, end, preparation=self.preparation
        )

    def outcome(self, plan: TablePlan, unfinished: Unfinished, end: RunEnd | None = RunEnd.DIED) -> TableOutcome:
        """Return what came of a table.

        Args:
            plan: As it was applied, the same in each call.
            unfinished: What is wrong where it has not ended, the same in each call.
            end: What became of the run, by which a step is shown that has not ended; None shows none.
        """
        with self._lock:
            known = self._outcomes.setdefault(plan.ref.identifier, {})
            if plan.ref not in known:
                known[plan.ref] = self._outcome(plan, unfinished, end)
            return known[plan.ref]

    def _outcome(self, plan: TablePlan, unfinished: Unfinished, end: RunEnd | None) -> TableOutcome:
        records = {plan.step_id(planned): planned for planned in plan.steps}
        steps = tuple(
            record.judged(_step(step_id, planned, record, end))
            for step_id, planned in records.items()
            if (record := self.steps.get(step_id)) is not None
            and (record.finished or (record.intents and end is not None))
        )
        table = self.ended.get(plan.ref)
        if table is not None:
            table = replace(table, steps=steps)
        elif plan.ref.identifier in self.begun or not records.keys().isdisjoint(self.steps):
            table = TableOutcome.of(plan, TableStatus.INTERRUPTED, steps, unfinished[0])
        else:
            table = TableOutcome.of(plan, TableStatus.NOT_REACHED, steps, unfinished[1])
        if any(step.status is StepStatus.VERIFY_FAILED for step in steps):
            return replace(table, status=TableStatus.VERIFY_FAILED)
        return table


def recorded_outcome(plan: Plan, events: Iterable[RunEvent], end: RunEnd) -> RunOutcome:
    """Return what came of a run.

    Args:
        plan: As it was applied.
        events: The run's record, or its beginning.
        end: Whether the run closed its record, still goes on, or died.
    """
    fold, why = RunFold.of(events), "the run was killed, or its machine went down, {}"
    unfinished = (
        Problem(DIED_CODE, why.format("while this table was worked on"), help=DIED_HELP),
        Problem("C713", why.format("before this table was started"), help=DIED_HELP),
    )
    if end is RunEnd.RUNNING:
        unfinished = (_GOES_ON, replace(_GOES_ON, code="C713"))
    return replace(fold.run(end), tables=tuple(fold.outcome(table, unfinished, end) for table in plan.tables))


def _step(step_id: str, planned: Step, record: StepRecord, end: RunEnd | None) -> StepOutcome:
    """Make the outcome of a step: as its run saw it end, and what later runs found out; or as it was broken off."""
    if record.finished is None:
        return _broken_off(step_id, planned, record, end)
    own = [result for result in record.landed if not isinstance(result, Settled)]
    assertions, commits = tuple(record.assertions), record.commits(own)
    step = replace(record.finished.outcome, commits=commits, assertions=assertions)
    settled = [result for result in record.results.values() if isinstance(result, Settled)]
    later = [result for result in record.landed if isinstance(result, Settled)]
    if not later:
        if lost := _settled_as(record, CommitEnd.UNKNOWN):
            return replace(step, note=_joined(step.note, lost))
        if step.status is StepStatus.UNKNOWN and settled and not record.open_intents:
            found = _joined("a later run found that the commit did not land", _settled_as(record, CommitEnd.NOT_LANDED))
            return replace(step, status=StepStatus.FAILED, note=_joined(step.note, found))
        return step
    status = StepStatus.INTERRUPTED if step.status is StepStatus.UNKNOWN else step.status
    if isinstance(later[-1].receipt, VacuumReceipt):
        return replace(step, status=status, vacuum=later[-1].receipt, note=_joined(step.note, later[-1].detail))
    versions = {receipt.version for receipt in step.commits}
    receipts = tuple(receipt for receipt in record.commits(later) if receipt.version not in versions)
    note = "; ".join(f"a later run found that version {receipt.version} landed" for receipt in receipts)
    return replace(step, status=status, commits=(*step.commits, *receipts), note=_joined(step.note, note or None))


def _broken_off(step_id: str, planned: Step, record: StepRecord, end: RunEnd | None) -> StepOutcome:
    """Make the outcome of a step in which its run died, or goes on."""
    status = StepStatus.INTERRUPTED
    failed = next((check for check in record.checks.values() if check.result == Verdict.FAIL), None)
    if failed is not None:
        status, error = StepStatus.VERIFY_FAILED, _failed_check(failed)
    elif end is RunEnd.RUNNING:
        error = _GOES_ON
    elif isinstance(planned, VacuumStep):
        error = Problem(DIED_CODE, _of_deletion(record, planned.done_to_files), help=DIED_HELP)
    else:
        what = "the run was killed, or its machine went down, in the middle of this step"
        if record.open_intents:
            status = StepStatus.UNKNOWN
            what += "; whether its last commit landed is not known yet"
        elif lost := _settled_as(record, CommitEnd.UNKNOWN):
            status = StepStatus.UNKNOWN
            what += f"; {lost}"
        elif stay := _settled_as(record, CommitEnd.NOT_LANDED):
            what += f"; its last commit did not land; {stay}"
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


def _settled_as(record: StepRecord, end: CommitEnd) -> str | None:
    """What a later run recorded of a commit that ended so, such as what may still lie in the table's folder."""
    settled = (result for result in record.results.values() if isinstance(result, Settled))
    return next((result.detail for result in settled if result.end is end and result.detail), None)


def _turns(record: StepRecord, commits: tuple[CommitReceipt, ...]) -> tuple[TurnOutcome, ...]:
    """Turns whose commits landed; what was measured before one is how the one before it left the table."""
    versions = {receipt.version for receipt in commits}
    turns = [turn for turn in record.turns if turn.version in versions]
    after = [*(turn.before for turn in turns[1:]), None][: len(turns)]
    return tuple(replace(turn, after=later) for turn, later in zip(turns, after, strict=True))


def _failed_check(check: Verified) -> Problem:
    where = f"version {check.version}"
    what = f"a check after the change failed: {check.detail or where}"
    return Problem("V503", what, where, "look at the table; then `maintainer verify TABLE --accept REASON`")


def _of_deletion(record: StepRecord, done: str) -> str:
    """Describe how far a deletion came: by what a later run saw on storage, or else by its own records."""
    settled = next((result for result in record.results.values() if isinstance(result, Settled)), None)
    intent = next(iter(record.intents.values()), None)
    planned = 0 if intent is None else intent.num_files
    if settled is not None:
        num_deleted = settled.receipt.num_files_deleted if isinstance(settled.receipt, VacuumReceipt) else 0
        text = f"interrupted, {num_deleted:,} of {planned:,} files were {done}"
        return "; ".join(part for part in (text, settled.detail) if part)
    if record.num_deleted is None:
        return f"interrupted before the first of {planned:,} files was {done}, as far as is known"
    return (
        f"interrupted, at least {record.num_deleted:,} of {planned:,} files were {done}; "
        "the next apply finds out how many"
    )


def _joined(first: str | None, second: str | None) -> str | None:
    return "; ".join(part for part in (first, second) if part) or None
