"""Read the outcome of a run from its record: its results and its events.

``results.json`` is complete when a run closes its record. A killed run leaves that of the step before; what happened
since is in ``events.jsonl``: each INTENT before its commit, each RESULT after it, and what later runs found out. A
commit that nobody has looked up yet is *unknown*, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from maintainer.journal.events.event_log import Event
from maintainer.journal.events.intents import DELETED, Fate
from maintainer.model.codec import DecodeError, decode
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.steps import Step
from maintainer.model.plan.zorder_turn import TurnOutcome
from maintainer.model.run.outcome import (
    CommitReceipt,
    Fingerprint,
    Proof,
    RunEnd,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    VacuumReceipt,
    Verdict,
)

DIED_CODE = "C712"
DIED_HELP = "run `maintainer apply`: it finds out what is not known yet, and goes on"

_ENDED = frozenset({TableStatus.INTERRUPTED, TableStatus.NOT_REACHED})
"""What ``results.json`` says of tables while a run goes on: their events know better."""


@dataclass(slots=True)
class _StepRecord:
    """The events of one step, in order."""

    kind: str
    started_at_ms: int
    last_at_ms: int
    intents: dict[int, Event] = field(default_factory=dict)
    fates: dict[int, Event] = field(default_factory=dict)
    num_deleted: int | None = None
    turns: list[TurnOutcome] = field(default_factory=list)
    checks: dict[int | None, Event] = field(default_factory=dict)
    finished: Event | None = None

    def take(self, event: Event) -> None:
        kind = event["type"]
        if "by" not in event:  # what a later run found out took none of this step's time
            self.last_at_ms = max(self.last_at_ms, int(event.get("at_ms", 0)))
        if kind == "intent":
            self.intents[int(event["batch"])] = event
            self.fates.pop(int(event["batch"]), None)
        elif kind in ("result", "settled"):
            self.fates[int(event["batch"])] = event
        elif kind == "deleting":
            self.num_deleted = max(self.num_deleted or 0, int(event["num_deleted"]))
        elif kind == "turn":
            self.turns.append(decode(TurnOutcome, event["turn"]))
        elif kind == "verified":
            self.checks[event.get("version")] = event
        elif kind == "step_finished":
            self.finished = event

    @property
    def unsettled(self) -> bool:
        """Whether something was tried of which nobody knows how it ended."""
        settled = {batch for batch, fate in self.fates.items() if fate.get("fate") != Fate.UNKNOWN.value}
        return bool(self.intents.keys() - settled)

    def judged(self, step: StepOutcome) -> StepOutcome:
        """Add to each commit what the newest check of its version said, by its run or by a later one."""

        def verdict(receipt: CommitReceipt) -> Verdict | None:
            check = self.checks.get(receipt.version)
            return receipt.verdict if check is None else Verdict(check["result"])

        return replace(step, commits=tuple(replace(receipt, verdict=verdict(receipt)) for receipt in step.commits))

    @property
    def landed(self) -> list[tuple[Event, Event]]:
        """(intent, result or settlement) of what landed or was deleted, in the order of the batches."""
        return [
            (self.intents.get(batch, {}), fate)
            for batch, fate in sorted(self.fates.items())
            if fate.get("fate") in DELETED
        ]


@dataclass(slots=True)
class _Record:
    """The events of a run about its steps and tables."""

    steps: dict[str, _StepRecord] = field(default_factory=dict)
    tables: dict[str, Event] = field(default_factory=dict)
    last_at_ms: int = 0

    @staticmethod
    def of(events: Iterable[Event]) -> _Record:
        record = _Record()
        for event in events:
            try:
                record._take(event)
            except (KeyError, TypeError, ValueError, DecodeError):
                continue  # an event of another version: the rest still counts
        return record

    def _take(self, event: Event) -> None:
        kind, step_id, table = event["type"], event.get("step"), event.get("table")
        if "by" not in event:
            self.last_at_ms = max(self.last_at_ms, int(event.get("at_ms", 0)))
        if kind == "table_finished":
            self.tables[str(table)] = event
        elif isinstance(step_id, str):
            at_ms = int(event.get("at_ms", 0))
            self.steps.setdefault(step_id, _StepRecord(str(event.get("kind")), at_ms, at_ms)).take(event)


def recorded_outcome(plan: Plan, results: RunOutcome, events: Iterable[Event], end: RunEnd) -> RunOutcome:
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
        status, problem = TableStatus(finished["status"]), _problem(finished)
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
    later = [(intent, fate) for intent, fate in record.landed if fate["type"] == "settled"]
    if not later:
        settled = any(fate["type"] == "settled" for fate in record.fates.values())
        if step.status is StepStatus.UNKNOWN and settled and not record.unsettled:
            note = "a later run found that the commit did not land"
            return replace(step, status=StepStatus.FAILED, note=_joined(step.note, note))
        return step
    status = StepStatus.INTERRUPTED if step.status is StepStatus.UNKNOWN else step.status
    if step.kind == "vacuum":
        _, fate = later[-1]
        return replace(step, status=status, vacuum=_vacuum_receipt(fate), note=_joined(step.note, fate.get("detail")))
    versions = {receipt.version for receipt in step.commits}
    receipts = tuple(_commit_receipt(*pair) for pair in later if pair[1].get("version") not in versions)
    note = "; ".join(f"a later run found that version {receipt.version} landed" for receipt in receipts)
    return replace(step, status=status, commits=(*step.commits, *receipts), note=_joined(step.note, note or None))


def _of_record(step_id: str, planned: Step, record: _StepRecord) -> StepOutcome:
    """Make the outcome of a step without results: its run died before it ended, or before they were written."""
    landed = record.landed
    status, error = StepStatus.INTERRUPTED, None
    note: str | None = None
    vacuum: VacuumReceipt | None = None
    commits: tuple[CommitReceipt, ...] = ()
    if planned.kind == "vacuum":
        vacuum = _vacuum_receipt(landed[-1][1]) if landed else None
        what = _of_deletion(record)
    else:
        commits = tuple(_commit_receipt(intent, fate) for intent, fate in landed)
        what = "the run was killed, or its machine went down, in the middle of this step"
        if record.unsettled:
            status = StepStatus.UNKNOWN
            what += "; whether its last commit landed is not known yet"
    if record.finished is not None:
        status, error = StepStatus(record.finished["status"]), _problem(record.finished)
        note = record.finished.get("note")
    elif any(check.get("result") == "fail" for check in record.checks.values()):
        status, error = StepStatus.VERIFY_FAILED, _failed_check(record)
    else:
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
        note=note,
        turns=_turns(record, commits),
    )


def _turns(record: _StepRecord, commits: tuple[CommitReceipt, ...]) -> tuple[TurnOutcome, ...]:
    """Turns whose commits landed; what was measured before one is how the one before it left the table."""
    versions = {receipt.version for receipt in commits}
    turns = [turn for turn in record.turns if turn.version in versions]
    after = [*(turn.before for turn in turns[1:]), None][: len(turns)]
    return tuple(replace(turn, after=later) for turn, later in zip(turns, after, strict=True))


def _failed_check(record: _StepRecord) -> Problem:
    check = next(check for check in record.checks.values() if check.get("result") == "fail")
    where = f"version {check.get('version')}"
    what = f"a check after the change failed: {check.get('detail') or where}"
    return Problem("V503", what, where, "look at the table; then `maintainer verify TABLE --accept REASON`")


def _of_deletion(record: _StepRecord) -> str:
    """Describe how far a deletion came: by what a later run saw on storage, or else by its own records."""
    settled = next((fate for fate in record.fates.values() if fate["type"] == "settled"), None)
    intent = next(iter(record.intents.values()), {})
    planned = int(intent.get("num_files", 0))
    if settled is not None:
        num_deleted = int(settled.get("num_files_deleted") or 0)
        text = f"interrupted, {num_deleted:,} of {planned:,} files were deleted"
        return "; ".join(part for part in (text, settled.get("detail")) if part)
    if record.num_deleted is None:
        return f"interrupted before the first of {planned:,} files was deleted, as far as is known"
    return (
        f"interrupted, at least {record.num_deleted:,} of {planned:,} files were deleted; "
        "the next apply finds out how many"
    )


def _commit_receipt(intent: Event, fate: Event) -> CommitReceipt:
    def whole(name: str) -> int:
        return int(fate.get(name) or 0)

    return CommitReceipt(
        version=int(fate["version"]),
        read_version=int(fate.get("read_version") or intent.get("read_version") or int(fate["version"]) - 1),
        num_files_removed=whole("num_files_removed"),
        num_files_added=whole("num_files_added"),
        bytes_removed=whole("bytes_removed"),
        bytes_added=whole("bytes_added"),
        proof=_proof(intent.get("proof")),
        attempts=int(fate.get("attempts") or 1),
        duration_seconds=max(0, int(fate.get("at_ms", 0)) - int(intent.get("at_ms", 0))) / 1000
        if fate["type"] == "result" and intent
        else 0.0,
    )


def _vacuum_receipt(fate: Event) -> VacuumReceipt:
    return VacuumReceipt(
        num_files_deleted=int(fate.get("num_files_deleted") or 0),
        bytes_deleted=int(fate.get("bytes_deleted") or 0),
        version_before=fate.get("read_version"),
        version_after=fate.get("version"),
        stopped=fate.get("stopped"),
        trash=fate.get("trash"),
        num_files_emptied=int(fate.get("num_files_emptied") or 0),
        bytes_emptied=int(fate.get("bytes_emptied") or 0),
    )


def _proof(value: Mapping[str, Any] | None) -> Proof | None:
    """The proof as INTENT has it."""
    if not isinstance(value, Mapping):
        return None
    read = Fingerprint(int(value["rows_read"]), tuple(int(figure) for figure in value["sums_read"]))
    written = Fingerprint(int(value["rows_written"]), tuple(int(figure) for figure in value["sums_written"]))
    return Proof(read, written, value.get("rows_in_log"), tuple(value.get("uncovered_columns") or ()))


def _problem(event: Event) -> Problem | None:
    error = event.get("error")
    if not isinstance(error, Mapping):
        return None
    return Problem(str(error.get("code")), str(error.get("what")), error.get("where"), error.get("help"))


def _joined(first: str | None, second: str | None) -> str | None:
    return "; ".join(part for part in (first, second) if part) or None
