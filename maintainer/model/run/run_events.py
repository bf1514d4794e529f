"""All events of a run: one closed set of frozen values, which is the record of the run.

``events.jsonl`` keeps all but heartbeats, and recovery reads them; ``progress`` has the part that is shown meanwhile.
An event that concerns one table names it, with its id and location where it was read.

What a line leaves out stands in lines before it: the end of a step is kept without its commits and checks, that of a
table without its steps, that of a run without its tables. A field may be added with a default. A line of an unknown
type, or one that lacks a field without a default, was written by another version and is never passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeGuard, get_args

from maintainer.model.codec import DecodeError, decode, encode
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.zorder_turn import TurnOutcome
from maintainer.model.run.progress import OfTable, ProgressEvent, RunFinished, StepFinished, TableFinished, Verified
from maintainer.model.run.receipts import CommitReceipt, Proof, VacuumReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import PartitionValues, TableFacts

MAX_PATHS = 100
"""Files and findings that an event names, of those that a deletion left or a proof has."""


class CommitEnd(StrEnum):
    """How a commit or deletion that was tried ended."""

    LANDED = "landed"
    NO_COMMIT = "no_commit"  # a deletion that took files and left no commit: from the trash, or before it was stopped
    NOT_LANDED = "not_landed"
    UNKNOWN = "unknown"


DELETED = frozenset({CommitEnd.LANDED, CommitEnd.NO_COMMIT})
"""How a deletion can have ended that did anything."""


@dataclass(frozen=True, slots=True)
class RecordOpened:
    """First event of a record; the rest identifies the run for people."""

    at_ms: int
    run_id: str
    pid: int
    version: str | None = None
    host: str | None = None
    git_commit: str | None = None


@dataclass(frozen=True, slots=True)
class Reopened:
    """Another run goes on with a file whose last line is torn."""

    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """Something that nothing else depends on; ``of_run`` is an earlier run that it concerns."""

    at_ms: int
    about: str
    table: str | None = None
    what: str | None = None
    code: str | None = None
    of_run: str | None = None


@dataclass(frozen=True, slots=True)
class Turned:
    """A turn of an incremental Z-order, whose commit has landed."""

    at_ms: int
    table: str
    step_id: str
    outcome: TurnOutcome = field(metadata={"alias": "turn"})


@dataclass(frozen=True, slots=True)
class LedgerRows:
    """The rows that follow from the events so far are in the folder, or in the ledger; with ``anew`` none was in it."""

    at_ms: int
    num_rows: int
    anew: bool = False


def named(facts: TableFacts) -> tuple[str, str, str]:
    """Return name, id and location of a table, for its events."""
    return facts.ref.identifier, facts.table_id, facts.location


@dataclass(frozen=True, slots=True)
class TableEvent(OfTable):
    """An event of a table that was read."""

    at_ms: int
    table: str
    table_id: str
    location: str


@dataclass(frozen=True, slots=True)
class Writing(TableEvent):
    """A rewrite begins to write the files of a batch, into these partitions. Recorded before the first one.

    With ``paths`` it has ended, and attempts that do not count may have written these and no others.
    """

    run_id: str
    step_id: str
    batch: int
    partitions: tuple[PartitionValues, ...]
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenOff(TableEvent):
    """What was written is gone: ``paths``, or all that the batch wrote; ``by`` is the later run that removed it."""

    run_id: str
    step_id: str
    batch: int
    paths: tuple[str, ...] = ()
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Intent(TableEvent):
    """A commit or deletion is about to be tried; on the disk before it is.

    ``proven`` says that the rows written were shown equal to the rows read: always for a rewrite of our own.
    """

    stamp: CommitStamp
    kind: str
    read_version: int
    proven: bool
    num_files: int = 0
    size_bytes: int = 0
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Result(TableEvent):
    """How the commit or deletion ended, on the disk when it is known. ``UNKNOWN`` leaves its intent open.

    ``UNKNOWN`` with a receipt ends it: nobody can find out any more, and the receipt has what it may have become.
    """

    stamp: CommitStamp
    kind: str
    end: CommitEnd = field(metadata={"alias": "fate"})
    receipt: CommitReceipt | VacuumReceipt | None = None
    error: Problem | None = None

    @property
    def is_open(self) -> bool:
        """Whether somebody has to look yet how it ended."""
        return self.end is CommitEnd.UNKNOWN and self.receipt is None

    def replaces(self, earlier: Result | None) -> bool:
        """Whether it says more than what was recorded of the same try before.

        What landed stays landed: who found no commit may have looked while the other run slept right before it.
        """
        if earlier is None:
            return True
        return not self.is_open and not (self.end is CommitEnd.NOT_LANDED and earlier.end in DELETED)

    @property
    def version(self) -> int | None:
        """The version that it became, or may have become."""
        match self.receipt:
            case CommitReceipt(version=version) | VacuumReceipt(version_after=version):
                return version
        return None


@dataclass(frozen=True, slots=True)
class Settled(Result):
    """The run ``by`` found out, and wrote into the record of the run that tried, how an intent ended."""

    detail: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class SettledEarlier(TableEvent):
    """This run settled an intent of an earlier one."""

    of_run: str
    of_step: str
    of_batch: int
    end: CommitEnd = field(metadata={"alias": "fate"})
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Quarantined(TableEvent):
    """The table must not be rewritten or vacuumed until a person has looked. ``quarantine_id`` is what lifts it.

    ``version`` is the version that is wrong; None where it is not one.
    """

    quarantine_id: str
    reason: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted(TableEvent):
    """A person accepts the table as it is: ``versions`` count as proven, ``quarantines`` are lifted, each by its id.

    ``alone`` says that the table was known at no other place.
    """

    versions: tuple[int, ...]
    quarantines: tuple[str, ...]
    alone: bool
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Deleting(TableEvent):
    """How far a deletion has come: at least ``num_deleted`` of ``num_files`` files are gone.

    ``markers`` are paths of files that a bucket hides since the event before, each with its delete marker's version id.
    """

    step_id: str
    num_deleted: int
    num_files: int
    markers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Listed(TableEvent):
    """The table's folder was listed for the plan that is applied: it need not be soon again."""

    listed_at_ms: int


RunEvent = (
    ProgressEvent
    | RecordOpened
    | Reopened
    | Note
    | Listed
    | Writing
    | WrittenOff
    | Intent
    | Result
    | Settled
    | SettledEarlier
    | Turned
    | Deleting
    | Quarantined
    | Accepted
    | LedgerRows
)
"""All events of a run. Closed."""

DURABLE = (RecordOpened, Intent, Result, Settled, Verified, Quarantined, Accepted, Deleting, RunFinished)
"""Events that are on the disk before anything else is done."""

MAX_PARTITIONS = 1_000
"""So many partitions of a batch are remembered."""

_CLASSES: Mapping[str, type[Any]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", event_class.__name__).lower(): event_class for event_class in get_args(RunEvent)
}
_TYPES = {event_class: name for name, event_class in _CLASSES.items()}


def is_shown(event: RunEvent) -> TypeGuard[ProgressEvent]:
    """Return whether an event is one of those that progress shows."""
    return isinstance(event, get_args(ProgressEvent))


def step_of(event: RunEvent) -> str | None:
    """Return the id of the step that an event concerns; None where it is one of a table or of the run."""
    match event:
        case Intent(stamp=stamp) | Result(stamp=stamp):
            return stamp.step_id
        case StepFinished(outcome=step):
            return step.step_id
    step_id: str | None = getattr(event, "step_id", None)
    return step_id


def type_of(event: RunEvent) -> str:
    """Return the name of an event's type, as lines have it."""
    return _TYPES[type(event)]


def line_of(event: RunEvent) -> dict[str, Any]:
    """Return an event as the JSON object of its line, without what lines before it hold."""
    return {"type": type_of(event), **encode(_kept(event))}


def event_of(line: Mapping[str, Any]) -> Any:  # noqa: ANN401 (a `RunEvent`, which callers match)
    """Return the event of a line.

    Raises:
        DecodeError: Another version wrote it, and it does not say what it must.
    """
    event_class = _CLASSES.get(line["type"])
    if event_class is None:
        raise DecodeError("type", f"no event of this version: {line['type']}")
    return decode(event_class, line, ignore_unknown=True)


def _kept(event: RunEvent) -> RunEvent:
    match event:
        case StepFinished(outcome=step):
            vacuum = step.vacuum and replace(step.vacuum, remaining=step.vacuum.remaining[:MAX_PATHS])
            return replace(event, outcome=replace(step, commits=(), vacuum=vacuum, assertions=()))
        case TableFinished(outcome=table):
            return replace(event, outcome=replace(table, steps=()))
        case RunFinished(outcome=run):
            return replace(event, outcome=replace(run, tables=()))
        case Result(receipt=VacuumReceipt() as receipt):
            return replace(event, receipt=replace(receipt, remaining=receipt.remaining[:MAX_PATHS]))
        case Result(receipt=CommitReceipt(proof=Proof() as proof) as receipt):
            return replace(event, receipt=replace(receipt, proof=replace(proof, findings=proof.findings[:MAX_PATHS])))
        case Writing(partitions=partitions):
            return replace(event, partitions=partitions[:MAX_PARTITIONS])
    return event
