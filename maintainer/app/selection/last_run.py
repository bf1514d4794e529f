"""How each table ended in the last run: what ``result:`` selects by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from maintainer.errors import ProjectError
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.model.run.outcome import TableStatus

_STATUSES: Mapping[str, frozenset[TableStatus]] = {
    "success": frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE}),
    "failed": frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED}),
    "verify_failed": frozenset({TableStatus.VERIFY_FAILED}),
    "skipped": frozenset({TableStatus.NOT_REACHED, TableStatus.YIELDED}),
    "waiting": frozenset({TableStatus.WAITING}),
    "interrupted": frozenset({TableStatus.INTERRUPTED}),
    "refused": frozenset({TableStatus.BLOCKED, TableStatus.UNSUPPORTED}),
}
"""The words of the selector to how a table can end; a failed verification has failed, too."""


def last_results(runs_dir: Path) -> Mapping[str, TableStatus]:
    """Return how each table of the newest run ended, by the table's identifier.

    Raises:
        ProjectError: E624 there is no run, or the newest one cannot be read: an older one would answer wrongly.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    for run in past_runs(runs_dir):
        if isinstance(run, PastRun):
            return {table.ref.identifier: table.status for table in run.outcome.tables}
        raise ProjectError(
            f"the last run cannot be read: {run[1]}",
            code="E624",
            where=str(run[0]),
            help="select by name or tag, or run `maintainer apply` for all tables",
        )
    raise ProjectError(
        "`result:` asks for the last run, and there is none",
        code="E624",
        where=str(runs_dir),
        help="run `maintainer apply` first, or select by name or tag",
    )


def ended_as(status: TableStatus | None, value: str) -> bool:
    """Tell whether a table that ended so is meant by a value of ``result:``; None was not in the run."""
    return status in _STATUSES[value]


_ENDED_WELL = frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE, TableStatus.WAITING, TableStatus.UNSUPPORTED})
"""Not for another try: a table that is not supported stays so, and what waits is meant to wait."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run, and the identifiers of its tables that did not end well."""

    run_id: str
    tables: frozenset[str]


def unfinished_tables(runs_dir: Path, run_id: str | None) -> Unfinished:
    """Return what a run left undone: tables that failed, yielded, were blocked, interrupted or not reached.

    A run that was killed has no end for the tables it did not come to: those count, too.

    Args:
        runs_dir: The folder of all runs.
        run_id: Which run; the newest that came to a plan if None.

    Raises:
        ProjectError: E624 there is no such run, or it cannot be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    for run in past_runs(runs_dir):
        folder = run.folder if isinstance(run, PastRun) else run[0]
        if run_id is not None and folder.name != Path(run_id).name:
            continue
        if isinstance(run, PastRun):
            ended = {table.ref.identifier: table.status for table in run.outcome.tables}
            planned = [table.ref.identifier for table in run.plan.tables]
            return Unfinished(folder.name, frozenset(name for name in planned if ended.get(name) not in _ENDED_WELL))
        raise ProjectError(
            f"the run cannot be read: {run[1]}",
            code="E624",
            where=str(folder),
            help="run `maintainer apply`: what is already done is not done twice",
        )
    raise ProjectError(
        "there is no such run" if run_id else "there is no run yet",
        code="E624",
        where=str(runs_dir),
        help="`maintainer history` lists the runs",
    )
