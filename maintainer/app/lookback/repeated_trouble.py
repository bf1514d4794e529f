"""Warn about tables that failed or lost a conflict in several runs in a row."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import RunOutcome
from maintainer.report.text_layout import count

NAMED_AFTER_RUNS = 3
MAX_NAMED = 50
CODE = "C717"
HOT_HELP = (
    "run it when its writers rest (`window:`), or partition it and name the partition in their predicates: "
    "`optimize.where:` and `skipNewestPartitions:` leave theirs out"
)


def in_a_row(runs_dir: Path, outcome: RunOutcome) -> list[Problem]:
    """Return what to say about those tables of a run that failed, lost to other writers or were hot in three runs.

    Called when the run is over. At most fifty tables are named one by one.

    Raises:
        OSError: The runs cannot be read.
    """
    records = remembered(runs_dir)
    problems: list[Problem] = []
    for table in outcome.tables:
        name = table.ref.identifier
        streak = records.streak_of(name)
        if streak.failed >= NAMED_AFTER_RUNS:
            since = datetime.fromtimestamp((streak.failing_since_ms or 0) / 1000, tz=timezone.utc)
            what = f"failed in {count(streak.failed, 'run')} in a row, since {since:%Y-%m-%d %H:%M} UTC"
            help_text = "`maintainer history --failed` shows why; `suspend:` keeps a table out until it is fixed"
            problems.append(Problem(CODE, what, name, help_text))
        if streak.lost >= NAMED_AFTER_RUNS:
            what = f"another writer won in {count(streak.lost, 'run')} in a row"
            problems.append(
                Problem(CODE, what, name, "give the table a `window:`, `quietFor:` or `skipNewestPartitions:`")
            )
        if streak.hot >= NAMED_AFTER_RUNS:
            since = datetime.fromtimestamp((streak.hot_since_ms or 0) / 1000, tz=timezone.utc)
            what = f"waiting: hot in {count(streak.hot, 'run')} in a row, since {since:%Y-%m-%d %H:%M} UTC"
            problems.append(Problem(CODE, what, name, HOT_HELP))
    if len(problems) > MAX_NAMED:
        num_more = len(problems) - MAX_NAMED
        help_text = "`maintainer history --failed` shows them all"
        problems[MAX_NAMED:] = [
            Problem(CODE, f"{num_more:,} more that are in trouble for runs in a row", help=help_text)
        ]
    return problems
