"""What is shown while a run goes on: a closed union of frozen values, the part of a run's events that progress gets.

`maintainer.execution` records and sends them, `maintainer.report` renders them, and the run folder keeps all but
heartbeats among the others of ``run_events``. An event carries its own time in milliseconds since 1970 UTC, so that a
renderer needs no clock. The emitter passes events on one at a time (a lock or a queue); a receiver must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from maintainer.model.run.outcome import Assertion, Preparation, RunOutcome, StepOutcome, TableOutcome


class Phase(StrEnum):
    """What a step is doing, in words that follow `it is`."""

    READING_LOG = "reading the log"
    READING = "reading"
    WRITING = "writing"
    PROVING = "proving"
    COMMITTING = "committing"
    CHECKPOINT = "writing a checkpoint"
    CHECKING = "checking the new version"
    LOOKING = "looking at the files"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class StepProgress:
    """How far a step's current batch, or its deletion, is. A total of 0 is not known.

    ``bytes_done`` are those of the files that are rewritten: read while they are read, else written or proven.
    ``num_tasks`` are those of the Spark jobs that run now, ``num_files`` those that are looked at, or deleted.
    """

    phase: Phase = Phase.READING_LOG
    bytes_done: int = 0
    bytes_total: int = 0
    num_tasks_done: int = 0
    num_tasks: int = 0
    num_files_done: int = 0
    num_files: int = 0

    @property
    def bytes_rewritten(self) -> int:
        """Bytes of the batch that are written again; all of them once they are proven."""
        if self.phase is Phase.WRITING:
            return self.bytes_done
        return self.bytes_total if self.phase in (Phase.PROVING, Phase.COMMITTING, Phase.CHECKPOINT) else 0


PlacedTable = tuple[str, str]
"""A table's id, and the location where a run read it."""


class OfTable:
    """An event of one table; its id and location are None where it was not read."""

    __slots__ = ()
    table_id: str | None
    location: str | None

    @property
    def place(self) -> PlacedTable | None:
        """Id and location, as records are kept by."""
        if self.table_id is None or self.location is None:
            return None
        return self.table_id, self.location.rstrip("/")


@dataclass(frozen=True, slots=True)
class RunStarted:
    """First event of a run. ``num_workers`` tables run at once.

    ``num_tables``, ``num_steps`` and ``planned_bytes``, which the plan's rewrites read, leave our own ledger out.
    ``timeout_seconds`` bounds the whole run, None does not; ``preparation`` came before it.
    """

    at_ms: int
    run_id: str
    num_tables: int
    num_steps: int
    num_workers: int
    run_folder: str
    planned_bytes: int = 0
    timeout_seconds: float | None = None
    preparation: Preparation = Preparation()  # noqa: RUF009 (frozen)


@dataclass(frozen=True, slots=True)
class BatchStarted:
    """A batch is opened: the ``number``-th of ``total``, from 1. Not sent for a single one.

    ``num_tables`` leaves our own ledger out, which goes with the last.
    """

    at_ms: int
    number: int
    total: int
    num_tables: int


@dataclass(frozen=True, slots=True)
class TableStarted:
    """A worker takes a table. ``num_steps`` are the table's own planned steps; ``is_ledger`` is our own ledger."""

    at_ms: int
    table: str
    num_steps: int
    is_ledger: bool = False


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step begins. ``number`` is its place in the whole plan, from 1, the same in each of its events.

    It is 0 for a step of our own ledger.
    """

    at_ms: int
    table: str
    step_id: str
    kind: str
    number: int
    num_batches: int = 1


@dataclass(frozen=True, slots=True)
class StepHeartbeat:
    """A step still runs. May come as often as wanted; text for pipelines shows one each 30 s and step.

    ``bytes_committed`` are those of the files that the step's earlier batches replaced.
    """

    at_ms: int
    table: str
    step_id: str
    kind: str
    number: int
    elapsed_seconds: float
    num_batches_done: int = 0
    num_batches: int = 1
    bytes_committed: int = 0
    progress: StepProgress = StepProgress()


@dataclass(frozen=True, slots=True)
class StepFinished(OfTable):
    """A step ended, however. Also sent, without a `StepStarted`, for steps that are skipped."""

    at_ms: int
    table: str
    number: int
    outcome: StepOutcome
    table_id: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Verified(OfTable):
    """A check after a commit ended. ``result`` is ``pass``, ``fail`` (checked, wrong) or ``error`` (could not check).

    ``version`` is the commit that was checked, None for a deletion; ``by`` is the later run that checked it. Rows are
    None where they were not counted, ``content_equal`` where content was not compared, ``num_files_checked`` where
    files were not looked for. ``detail`` is a sentence for people, or None.
    """

    at_ms: int
    table: str
    step_id: str
    result: str
    duration_seconds: float = 0.0
    version_before: int | None = None
    version_after: int | None = None
    rows_before: int | None = None
    rows_after: int | None = None
    content_equal: bool | None = None
    num_files_checked: int | None = None
    assertions: tuple[Assertion, ...] = ()
    detail: str | None = None
    version: int | None = None
    table_id: str | None = None
    location: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class TableFinished(OfTable):
    """A table ended; sent once for every selected table, also for those that were never started.

    ``lost`` says that another writer was there before a rewrite, ``hot`` that rewrites were left to quieter hours,
    ``rewritten`` that one landed.
    """

    at_ms: int
    outcome: TableOutcome
    table_id: str | None = None
    location: str | None = None
    lost: bool = False
    hot: bool = False
    rewritten: bool = False


@dataclass(frozen=True, slots=True)
class RunStopping:
    """Somebody asked for the end: no table is begun, and what runs has ``grace_seconds`` to come to its next commit.

    ``at_most_seconds`` is how long the run takes to end at the latest. Said again, without grace, when asked twice.
    """

    at_ms: int
    reason: str
    grace_seconds: float
    at_most_seconds: float


@dataclass(frozen=True, slots=True)
class LedgerAppending:
    """All tables ended, and the run's rows are appended to the ledger, for ``limit_seconds`` at most."""

    at_ms: int
    num_rows: int
    limit_seconds: float


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Last event of a run that closes its record, also of an interrupted one.

    ``rows_known`` says that its rows are in the ledger or wait for it; else the next run makes them again.
    """

    at_ms: int
    outcome: RunOutcome
    rows_known: bool = True


ProgressEvent = (
    RunStarted
    | BatchStarted
    | TableStarted
    | StepStarted
    | StepHeartbeat
    | StepFinished
    | Verified
    | TableFinished
    | RunStopping
    | LedgerAppending
    | RunFinished
)
"""Closed: every renderer matches over it and ends in ``assert_never``."""

ProgressSink = Callable[["ProgressEvent"], None]
"""Receives events in order, one at a time."""
