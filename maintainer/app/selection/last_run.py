"""Read how each table ended in the last run: what ``result:`` selects by, and what ``retry`` takes up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from maintainer.app.selection.recorded_tables import CurrentTable, RecordedTable, current_tables, recorded_tables
from maintainer.errors import ProjectError
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.model.run.outcome import TableStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import identity

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
    for run in past_runs(runs_dir):
        if isinstance(run, PastRun):
            recorded = recorded_tables(run.plan)
            return tuple(
                (recorded.get(table.ref, RecordedTable(table.ref)), table.status) for table in run.outcome.tables
            )
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


_ENDED_WELL = frozenset({TableStatus.DONE, TableStatus.UP_TO_DATE, TableStatus.WAITING, TableStatus.UNSUPPORTED})
"""Not for another try: a table that is not supported stays so, and what waits is meant to wait."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run, and its tables that did not end well."""

    run_id: str
    tables: tuple[RecordedTable, ...]


@dataclass(frozen=True, slots=True)
class TakenUp:
    """What of a run's rest is taken up: identifiers of policies, and what people must know of the others."""

    tables: frozenset[str]
    notes: tuple[str, ...]


def taken_up(rest: Unfinished, refs: Iterable[TableRef], runs_dir: Path) -> TakenUp:
    """Find the tables of a run's rest among those that have a policy now.

    Raises:
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    tables = current_tables(refs, runs_dir) if rest.tables else {}
    names = {identity(table.ref) for table in tables.values()}
    chosen: dict[str, CurrentTable] = {}
    notes: list[str] = []
    for recorded in rest.tables:
        same = {name: table for name, table in tables.items() if table.was(recorded)}
        chosen |= same
        if not same:
            name = recorded.ref.identifier
            reused = identity(recorded.ref) in names
            why = "is another table now, with another id," if reused else "has no policy any more"
            notes.append(f"{name} {why} and is left out")
    notes += [table.doubt for table in chosen.values() if table.doubt is not None]
    return TakenUp(frozenset(chosen), tuple(sorted(notes)))


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
            planned = recorded_tables(run.plan).values()
            return Unfinished(
                folder.name, tuple(table for table in planned if ended.get(table.ref.identifier) not in _ENDED_WELL)
            )
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
