"""Find what past runs left undone: what ``retry`` takes up.

A table is undone if it did not end well in the newest run that had it. So a night that was interrupted is not forgotten
when a later run does other tables, and what a later run finished is not done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from maintainer.app.selection.recorded_tables import CurrentTable, RecordedTable, current_tables, recorded_tables
from maintainer.errors import ProjectError
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.model.run.outcome import NOT_AGAIN, RunEnd, TableStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import name_key


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run, and its tables that did not end well."""

    run_id: str
    tables: tuple[RecordedTable, ...]


@dataclass(frozen=True, slots=True)
class TakenUp:
    """What of a run's rest is taken up: identifiers of policies, and what people must know of the others.

    ``places`` are those that the run could not search, by their identifiers.
    """

    tables: frozenset[str]
    notes: tuple[str, ...]
    places: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RunRest:
    """A run, and the tables of today's policies that it left undone and no later run finished, by identifier."""

    run_id: str
    tables: frozenset[str]


@dataclass(frozen=True, slots=True)
class LeftUndone:
    """What all past runs left undone, the newest run first; each table is in one rest only.

    ``going_on`` are runs that have not ended: what they have not done yet is theirs. ``unreadable`` are folders of runs
    that cannot be read, and may hide a table that is undone. ``doubts`` say of which tables the id is not known.
    """

    runs: tuple[RunRest, ...]
    going_on: tuple[RunRest, ...]
    unreadable: tuple[Path, ...]
    doubts: tuple[str, ...]

    def but(self, run_id: str) -> frozenset[str]:
        """Return the tables of all rests but one run's."""
        return frozenset(name for rest in self.runs if rest.run_id != run_id for name in rest.tables)


def left_undone(refs: Iterable[TableRef], runs_dir: Path) -> LeftUndone:
    """Look through past runs, newest first, until the last end of every table is known.

    Args:
        refs: The tables that have a policy now; others are passed over.
        runs_dir: The folder of all runs; the newest thousand are looked at.

    Raises:
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    tables = current_tables(refs, runs_dir)
    open_tables = dict(tables)
    by_name = {name_key(table.ref): table for table in tables.values()}
    rests: list[RunRest] = []
    going_on: list[RunRest] = []
    unreadable: list[Path] = []
    for run in past_runs(runs_dir):
        if not open_tables:
            break
        if not isinstance(run, PastRun):
            unreadable.append(run[0])
            continue
        undone: set[str] = set()
        for recorded, status in _ends(run):
            for table in _same(recorded, by_name, open_tables):
                if open_tables.pop(table.ref.identifier, None) is not None and status not in NOT_AGAIN:
                    undone.add(table.ref.identifier)
        if undone:
            still = run.outcome.end is RunEnd.RUNNING
            (going_on if still else rests).append(RunRest(run.folder.name, frozenset(undone)))
    doubts = (tables[name].doubt for rest in rests for name in sorted(rest.tables))
    return LeftUndone(
        tuple(rests), tuple(going_on), tuple(unreadable), tuple(doubt for doubt in doubts if doubt is not None)
    )


def _same(
    recorded: RecordedTable, by_name: Mapping[str, CurrentTable], open_tables: Mapping[str, CurrentTable]
) -> tuple[CurrentTable, ...]:
    """Return the tables of today that a record is of: nearly always the one of its name, which is asked first."""
    named = by_name.get(name_key(recorded.ref))
    if named is not None and named.was(recorded):
        return (named,)
    return tuple(table for table in open_tables.values() if table.was(recorded))


def _ends(run: PastRun) -> tuple[tuple[RecordedTable, TableStatus | None], ...]:
    """Return each table of a run's plan, and how it ended; None where its run was killed before it was taken."""
    ended = {table.ref.identifier: table.status for table in run.outcome.tables}
    return tuple((table, ended.get(table.ref.identifier)) for table in recorded_tables(run.plan).values())


def taken_up(rest: Unfinished, refs: Iterable[TableRef], runs_dir: Path, places: Iterable[TableRef] = ()) -> TakenUp:
    """Find the tables of a run's rest among those that have a policy now.

    Raises:
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    tables = current_tables(refs, runs_dir) if rest.tables else {}
    names = {name_key(table.ref) for table in tables.values()}
    # By its name, too: a project that is checked out elsewhere means the same folder of its own.
    searched = frozenset(key for place in places for key in (name_key(place), place.identifier))
    chosen: dict[str, CurrentTable] = {}
    notes: list[str] = []
    unsearched: set[str] = set()
    for recorded in rest.tables:
        if name_key(recorded.ref) in searched or recorded.ref.identifier in searched:
            unsearched.add(recorded.ref.identifier)
            continue
        same = {name: table for name, table in tables.items() if table.was(recorded)}
        chosen |= same
        if not same:
            name = recorded.ref.identifier
            reused = name_key(recorded.ref) in names
            why = "is another table now, with another id," if reused else "has no policy any more"
            notes.append(f"{name} {why} and is left out")
    notes += [table.doubt for table in chosen.values() if table.doubt is not None]
    return TakenUp(frozenset(chosen), tuple(sorted(notes)), frozenset(unsearched))


def unfinished_tables(runs_dir: Path, run_id: str | None) -> Unfinished:
    """Return what a run left undone: tables that failed, yielded, were blocked, interrupted or not reached.

    A run that was killed has no end for the tables it did not come to: those count, too.

    Args:
        runs_dir: The folder of all runs.
        run_id: Which run; the newest that came to a plan if None.

    Raises:
        ProjectError: E643 there is no such run, or it cannot be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    for run in past_runs(runs_dir):
        folder = run.folder if isinstance(run, PastRun) else run[0]
        if run_id is not None and folder.name != Path(run_id).name:
            continue
        if isinstance(run, PastRun):
            return Unfinished(folder.name, tuple(table for table, status in _ends(run) if status not in NOT_AGAIN))
        help = "run `maintainer apply`: what is already done is not done twice"
        raise ProjectError(f"the run cannot be read: {run[1]}", code="E643", where=str(folder), help=help)
    what = "there is no such run" if run_id else "there is no run yet"
    raise ProjectError(what, code="E643", where=str(runs_dir), help="`maintainer history` lists the runs")
