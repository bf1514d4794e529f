"""Learn from past runs: seconds for each byte, how often tables yielded, and how long each has waited.

A run writes these figures beside its results, because reading the plan of a large fleet takes a second, and sixty
plans a minute. A run without that file (of an earlier version, or killed) is read as a whole.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from maintainer.app.selection.recorded_tables import RecordedTable, TableIndex, recorded_tables
from maintainer.errors import MaintainerError
from maintainer.journal.folder.atomic_files import read_document, reading_runs, write_atomically
from maintainer.journal.folder.run_folder import run_folders
from maintainer.journal.memory.past_runs import read_run
from maintainer.model.codec import canonical_json, decode, encode
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import REWRITE_KINDS
from maintainer.model.run.outcome import RunOutcome, StepStatus
from maintainer.model.run.receipts import Amounts
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.ranking import Timed, pace_of
from maintainer.planning.budget.run_budget import Learned, added_up, misses_of, speed_key

MAX_RUNS_LEARNED_FROM = 60
LESSONS_FILE = "lessons.json"


@dataclass(frozen=True, slots=True)
class TableLesson:
    """What one run teaches of a table.

    Args:
        table: The table as the run met it.
        tries: Rewrites that the run tried.
        lost: Those of them that were lost against other writers.
        waits: Whether a budget left the table out altogether.
        waits_since_ms: When the first of the runs in a row was planned that left it out, as far as this run knew;
            None where it is the first.
    """

    table: RecordedTable
    tries: int = 0
    lost: int = 0
    waits: bool = False
    waits_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Lessons:
    """What one run teaches. Times are milliseconds since 1970 UTC.

    Args:
        created_at_ms: When its plan was made.
        timed: Steps that succeeded, by kind and lane (see ``speed_key``).
        tables: All tables of the plan.
    """

    created_at_ms: int
    timed: dict[str, Timed]
    tables: tuple[TableLesson, ...]


def lessons_of(plan: Plan, outcome: RunOutcome) -> Lessons:
    """Return how fast each kind of step was, and which tables lost against others or had to wait."""
    timed: dict[str, Timed] = {}
    tried: dict[TableRef, tuple[int, int]] = {}
    for table in outcome.tables:
        for step in table.steps:
            size = Amounts.of(step.commits).bytes_removed
            if size and step.status is StepStatus.SUCCEEDED:
                timing = Timed.of_step(len(step.commits), size, step.duration_seconds)
                key = speed_key(step.kind, sorted({use.lane.value for proof in step.proofs for use in proof.lanes}))
                timed[key] = timed.get(key, Timed()) + timing
            if step.kind in REWRITE_KINDS:
                tries, lost = tried.get(table.ref, (0, 0))
                tried[table.ref] = (tries + 1, lost + (step.status is StepStatus.YIELDED))
    recorded = recorded_tables(plan)
    return Lessons(
        plan.created_at_ms,
        timed,
        tuple(
            TableLesson(recorded[planned.ref], *tried.get(planned.ref, (0, 0)), waits=_waits(planned))
            for planned in plan.tables
        ),
    )


def _waits(planned: TablePlan) -> bool:
    """Return whether a budget left a table out; one whose own budget cut its rewrites short is worked on each night."""
    return planned.is_cut and not planned.rewrites


def keep_lessons(folder: Path, plan: Plan, outcome: RunOutcome) -> None:
    """Put a run's lessons beside its results. One that cannot be written is drawn anew when it is needed.

    Since when a table waits goes from run to run: it may be longer than there are runs to learn from, as in a watch.
    """
    lessons = lessons_of(plan, outcome)
    if any(lesson.waits for lesson in lessons.tables):
        with contextlib.suppress(MaintainerError):
            since = learn(past_lessons(folder.parent, but=folder.name), plan).waiting_since_ms
            tables = (
                replace(lesson, waits_since_ms=since.get(lesson.table.ref.identifier)) if lesson.waits else lesson
                for lesson in lessons.tables
            )
            lessons = replace(lessons, tables=tuple(tables))
    text = canonical_json(encode(lessons))
    with contextlib.suppress(OSError):
        write_atomically(folder / LESSONS_FILE, text.encode("utf-8", "surrogatepass"), durable=False)


def past_lessons(runs_dir: Path, *, but: str | None = None) -> Iterator[Lessons]:
    """Read the lessons of the newest sixty runs with a plan, newest first; what cannot be read is left out.

    Args:
        runs_dir: The folder of all runs.
        but: A run that is passed over.

    Raises:
        EnvironmentUnfit: E641, the folder of runs cannot be listed.
    """
    with reading_runs(runs_dir):
        folders = run_folders(runs_dir)
    for folder in reversed(folders[-MAX_RUNS_LEARNED_FROM:]):
        lessons = None if folder.run_id == but else _read(folder.path)
        if lessons is not None:
            yield lessons


def _read(folder: Path) -> Lessons | None:
    with contextlib.suppress(OSError, ValueError):
        return decode(Lessons, json.loads(read_document(folder / LESSONS_FILE)))
    try:
        run = read_run(folder)
        return lessons_of(run.plan, run.outcome)
    except (OSError, ValueError, MaintainerError):
        return None


def learn(runs: Iterable[Lessons], plan: Plan) -> Learned:
    """Put the lessons of past runs together for the tables of a plan.

    A table is known by its id: it keeps its past under another policy name, and a copy has a past of its own.

    Args:
        runs: The lessons, the newest first.
        plan: Whose tables are asked about; only what was read of them has a past.
    """
    index = TableIndex([plan])
    timed: list[dict[str, Timed]] = []
    yielded: dict[int, tuple[int, int]] = {}
    waiting_since_ms: dict[int, int] = {}
    settled: set[int] = set()
    for run in runs:
        timed.append(run.timed)
        known = [(key, lesson) for lesson in run.tables if (key := index.key_of(lesson.table)) is not None]
        for key, lesson in known:
            if lesson.tries:
                tries, lost = yielded.get(key, (0, 0))
                yielded[key] = (tries + lesson.tries, lost + lesson.lost)
            if lesson.waits and key not in settled:
                known_ms = (waiting_since_ms.get(key), lesson.waits_since_ms, run.created_at_ms)
                waiting_since_ms[key] = min(at_ms for at_ms in known_ms if at_ms is not None)
        settled.update(key for key, lesson in known if not lesson.waits)
    keys = {ref.identifier: index.key_of(recorded) for ref, recorded in recorded_tables(plan).items()}
    paces = {kind: pace_of(timing) for kind, timing in added_up(timed).items() if timing.seconds > 0}
    return Learned(
        bytes_per_second={kind: pace.bytes_per_second for kind, pace in paces.items()},
        yielded={name: yielded[key] for name, key in keys.items() if key in yielded},
        waiting_since_ms={name: waiting_since_ms[key] for name, key in keys.items() if key in waiting_since_ms},
        commit_seconds={kind: pace.commit_seconds for kind, pace in paces.items()},
        num_commits=sum(timing.num_commits for run in timed for timing in run.values()),
        misses=misses_of(timed),
    )
