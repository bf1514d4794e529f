"""Learn from past runs: seconds for each byte, how often tables yielded, and how long each has waited.

A run writes these figures beside its results, because reading the plan of a large fleet takes a second, and sixty
plans a minute. A run without that file (of an earlier version, or killed) is read as a whole.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from maintainer.errors import MaintainerError
from maintainer.journal.folder.atomic_files import read_document, reading_runs, write_atomically
from maintainer.journal.folder.run_folder import run_folders
from maintainer.model.codec import decode
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import from_json
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.run.outcome import RunOutcome, StepStatus
from maintainer.model.run.results_document import run_from_json
from maintainer.planning.budget.ranking import Timed, pace_of
from maintainer.planning.budget.run_budget import Learned

MAX_RUNS_LEARNED_FROM = 60
LESSONS_FILE = "lessons.json"


@dataclass(frozen=True, slots=True)
class Lessons:
    """What one run teaches. Times are milliseconds since 1970 UTC.

    Args:
        created_at_ms: When its plan was made.
        timed: Steps that succeeded, by kind.
        tried: Rewrites tried and lost against other writers, by table.
        waiting: Tables that a budget left out altogether.
        settled: The other tables of the plan.
    """

    created_at_ms: int
    timed: dict[str, Timed]
    tried: dict[str, tuple[int, int]]
    waiting: tuple[str, ...]
    settled: tuple[str, ...]


def lessons_of(plan: Plan, outcome: RunOutcome) -> Lessons:
    """Return the lessons of a run."""
    timed: dict[str, Timed] = {}
    tried: dict[str, tuple[int, int]] = {}
    for table in outcome.tables:
        for step in table.steps:
            size = sum(commit.bytes_removed for commit in step.commits)
            if size and step.status is StepStatus.SUCCEEDED:
                timing = Timed.of_step(len(step.commits), size, step.duration_seconds)
                timed[step.kind] = timed.get(step.kind, Timed()) + timing
            if step.kind not in ("set_properties", "vacuum"):
                tries, lost = tried.get(table.ref.identifier, (0, 0))
                tried[table.ref.identifier] = (tries + 1, lost + (step.status is StepStatus.YIELDED))
    waiting: list[str] = []
    settled: list[str] = []
    for planned in plan.tables:
        # A table whose own budget cut its rewrites short is worked on every night: it does not wait.
        left_out = any(entry.reason.code is ReasonCode.OVER_BUDGET for entry in planned.left_alone)
        waits = left_out and not planned.rewrites
        (waiting if waits else settled).append(planned.ref.identifier)
    return Lessons(plan.created_at_ms, timed, tried, tuple(waiting), tuple(settled))


def keep_lessons(folder: Path, plan: Plan, outcome: RunOutcome) -> None:
    """Put a run's lessons beside its results. One that cannot be written is drawn anew when it is needed."""
    text = json.dumps(asdict(lessons_of(plan, outcome)), ensure_ascii=False, separators=(",", ":"))
    with contextlib.suppress(OSError):
        write_atomically(folder / LESSONS_FILE, text.encode("utf-8", "surrogatepass"), durable=False)


def past_lessons(runs_dir: Path) -> Iterator[Lessons]:
    """Read the lessons of the newest sixty runs with a plan, newest first; what cannot be read is left out.

    Raises:
        EnvironmentUnfit: E641, the folder of runs cannot be listed.
    """
    with reading_runs(runs_dir):
        folders = run_folders(runs_dir)
    for folder in reversed(folders[-MAX_RUNS_LEARNED_FROM:]):
        lessons = _read(folder.path)
        if lessons is not None:
            yield lessons


def _read(folder: Path) -> Lessons | None:
    with contextlib.suppress(OSError, ValueError):
        return decode(Lessons, json.loads(read_document(folder / LESSONS_FILE)))
    try:
        outcome = run_from_json(read_document(folder / "results.json"))
        return lessons_of(from_json(read_document(folder / "plan.json"), where=str(folder)), outcome)
    except (OSError, ValueError, MaintainerError):
        return None


def learn(runs: Iterable[Lessons]) -> Learned:
    """Put the lessons of past runs together; the newest comes first."""
    learned = Learned()
    timed: dict[str, Timed] = {}
    settled: set[str] = set()
    for run in runs:
        for kind, timing in run.timed.items():
            timed[kind] = timed.get(kind, Timed()) + timing
        for name, (tries, lost) in run.tried.items():
            so_far = learned.yielded.get(name, (0, 0))
            learned.yielded[name] = (so_far[0] + tries, so_far[1] + lost)
        for name in run.waiting:
            if name not in settled:
                learned.waiting_since_ms[name] = run.created_at_ms
        settled.update(run.settled)
    for kind, timing in timed.items():
        if timing.seconds > 0:
            pace = pace_of(timing)
            learned.bytes_per_second[kind] = pace.bytes_per_second
            learned.commit_seconds[kind] = pace.commit_seconds
    return learned
