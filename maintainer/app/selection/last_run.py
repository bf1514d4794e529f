"""Read how each table ended in the last run: what ``result:`` selects by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from maintainer.app.selection.recorded_tables import RecordedTable, current_tables, recorded_tables
from maintainer.errors import ProjectError
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.model.run.outcome import TableStatus
from maintainer.model.table.table_facts import TableRef

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


def last_results(runs_dir: Path) -> tuple[tuple[RecordedTable, TableStatus], ...]:
    """Return each table of the newest run, and how it ended.

    Raises:
        ProjectError: E624 there is no run, or the newest one cannot be read: an older one would answer wrongly.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    run = next(iter(past_runs(runs_dir)), None)
    if not isinstance(run, PastRun):
        why = "`result:` asks for the last run, and there is none"
        raise ProjectError(
            why if run is None else f"the last run cannot be read: {run[1]}",
            code="E624",
            where=str(runs_dir if run is None else run[0]),
            help="select by name or tag, or run `maintainer apply` for all tables",
        )
    recorded = recorded_tables(run.plan)
    return tuple((recorded.get(table.ref, RecordedTable(table.ref)), table.status) for table in run.outcome.tables)


def ended_as(refs: Iterable[TableRef], runs_dir: Path) -> Callable[[str, str], bool]:
    """Read the newest run, and return the check whether a table of today ended as a value of ``result:`` says.

    A table that was not in the run ended in no way.

    Args:
        refs: All tables that may be asked about, also under other policy names than in the run.
        runs_dir: The folder of all runs.

    Raises:
        ProjectError: E624 there is no run, or the newest one cannot be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    results, tables = last_results(runs_dir), current_tables(refs, runs_dir)
    return lambda identifier, value: any(
        status in _STATUSES[value] and tables[identifier].was(recorded) for recorded, status in results
    )
