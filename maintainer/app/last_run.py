"""How each table ended in the last run: what ``result:`` selects by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from maintainer.app.insight import PastRun, past_runs
from maintainer.errors import ProjectError
from maintainer.model.outcome import TableStatus

_STATUSES: Mapping[str, frozenset[TableStatus]] = {
    "success": frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE}),
    "failed": frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED}),
    "verify_failed": frozenset({TableStatus.VERIFY_FAILED}),
    "skipped": frozenset({TableStatus.NOT_REACHED, TableStatus.YIELDED}),
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
