"""Read past runs from their folders: the plan of each, and its outcome.

A run that closed its record is read from ``results.json``, which is the same in less to read. Any other one is read
from its events (``recorded_outcome``), so that a commit that landed right before a kill is reported too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from maintainer.errors import MaintainerError
from maintainer.journal.event_log import EVENTS_FILE, EventsRead, is_alive, last_event, read_events, run_events
from maintainer.journal.folder.atomic_files import open_document, read_document, reading_runs
from maintainer.journal.folder.run_folder import PLAN_FILE, RESULTS_FILE, run_folders
from maintainer.journal.memory.recorded_outcome import RunFold, StepRecord, recorded_outcome
from maintainer.model.cached_property import cached_property
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import from_json
from maintainer.model.run.outcome import RunEnd, RunOutcome, run_from_json
from maintainer.model.run.run_events import RunEvent
from maintainer.model.table.commit_records import CommitStamp

MAX_RUNS_READ = 1000
"""``history`` and ``status`` look at this many runs, newest first: two years of nights."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run folder that could be read whole."""

    folder: Path
    plan: Plan
    outcome: RunOutcome


@dataclass(frozen=True)
class RunRecord:
    """What a run recorded in its folder.

    Attributes:
        is_alive: The run went on when it was read.
        keeps_outcomes: The fold has what came of tables and steps.
    """

    folder: Path
    read: EventsRead
    is_alive: bool
    keeps_outcomes: bool = True

    @property
    def events(self) -> Iterator[RunEvent]:
        """Its events, each made from its line when it is asked for.

        Raises:
            EnvironmentUnfit: E641, another version wrote them.
        """
        return run_events(self.folder / EVENTS_FILE, self.read.events)

    @cached_property
    def plan(self) -> Plan:
        """What it was to do."""
        return read_plan(self.folder / PLAN_FILE)

    @cached_property
    def fold(self) -> RunFold:
        """What the events come to."""
        return RunFold.of(self.events, keeps_outcomes=self.keeps_outcomes)

    @property
    def end(self) -> RunEnd:
        """Whether the run closed its record, still goes on, or died."""
        if self.fold.finished is not None:
            return RunEnd.FINISHED
        return RunEnd.RUNNING if self.is_alive else RunEnd.DIED

    def outcome(self, num_events: int | None = None) -> RunOutcome:
        """Return the outcome of the run by its first ``num_events`` events; None: all of them."""
        return recorded_outcome(self.plan, islice(self.events, num_events), self.end)


def past_runs(
    runs_dir: Path, known: PastRun | None = None, *, since_ms: Callable[[], int] = lambda: 0
) -> Iterator[PastRun | tuple[Path, str]]:
    """Read run folders, newest first; one that cannot be read gives its path and why, and stops nothing.

    A folder without ``results.json`` is a run that never came to a step; it is passed over.

    Args:
        runs_dir: The folder of all runs.
        known: A run that need not be read: its plan may name a million files.
        since_ms: Asked before each run, which is passed over where it recorded nothing since. A run of hours may have
            begun long before one that is over.

    Raises:
        EnvironmentUnfit: E641, the folder of runs cannot be listed.
    """
    with reading_runs(runs_dir):
        folders = run_folders(runs_dir)
    for folder in reversed(folders[-MAX_RUNS_READ:]):
        if not (folder.path / RESULTS_FILE).is_file() or not (folder.path / PLAN_FILE).is_file():
            continue
        try:
            if not _recorded_since(folder.path, since_ms()):
                continue
            yield known if known is not None and known.folder.name == folder.run_id else read_run(folder.path)
        except (OSError, ValueError, MaintainerError) as error:
            yield folder.path, str(error)


def _recorded_since(folder: Path, since_ms: int) -> bool:
    """Whether a run may have recorded anything since a time; the event that follows a torn line has no time."""
    last = last_event(folder / EVENTS_FILE) if since_ms else None
    return last is None or not 0 < last["at_ms"] < since_ms


def read_run(folder: Path) -> PastRun:
    """Read one run's folder.

    Raises:
        OSError: A file cannot be read.
        ValueError: The results are damaged.
        MaintainerError: The plan is damaged.
    """
    path = folder / EVENTS_FILE
    last = last_event(path)
    if not path.is_file() or (last is not None and last["type"] == "run_finished"):
        return PastRun(folder, read_plan(folder / PLAN_FILE), run_from_json(read_document(folder / RESULTS_FILE)))
    record = read_record(folder)
    return PastRun(folder, record.plan, record.outcome())


def read_record(folder: Path, *, with_plan: bool = True, keeps_outcomes: bool = True) -> RunRecord:
    """Read one run's folder with all of its events.

    Args:
        folder: The run's.
        with_plan: The plan is read now, so that it can be asked for later.
        keeps_outcomes: See `RunFold`.

    Raises:
        OSError: A file cannot be read.
        MaintainerError: The plan is damaged, or E641, another version wrote the events.
    """
    path = folder / EVENTS_FILE
    # Asked before the events are read: a run that ends in between has closed its record in what is read.
    alive = is_alive(path)
    record = RunRecord(folder, read_events(path), alive, keeps_outcomes)
    _ = record.fold, record.plan if with_plan else None
    return record


def recorded_step(runs_dir: Path, stamp: CommitStamp) -> StepRecord | None:
    """Return what a run recorded of the step whose stamp a commit has; None where nothing of it is here.

    Raises:
        EnvironmentUnfit: E641, the run's record cannot be read.
    """
    with reading_runs(runs_dir):
        return read_record(runs_dir / stamp.run_id, with_plan=False).fold.steps.get(stamp.step_id)


def read_plan(path: Path) -> Plan:
    """Read a plan from its file.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is something else.
        Refused: A402, it is no plan or was edited.
    """
    with open_document(path) as file:
        return from_json(file, where=str(path))
