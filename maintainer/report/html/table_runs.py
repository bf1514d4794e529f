"""Which outcomes of several runs are of one table, also where its policy gave it another name meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.model.plan.plan import Plan
from maintainer.model.run.outcome import RunOutcome, TableOutcome
from maintainer.report.html.table_past import TableKey


@dataclass(frozen=True, slots=True)
class TableRuns:
    """A table under its newest name, and how each run ended for it, the oldest first; at least one."""

    name: str
    ends: tuple[tuple[RunOutcome, TableOutcome], ...]

    @property
    def newest(self) -> TableOutcome:
        """How the table ended when it was last in a run."""
        return self.ends[-1][1]


def table_runs(runs: Sequence[tuple[Plan, RunOutcome]], key_of: TableKey) -> tuple[TableRuns, ...]:
    """Return every table of some runs once, in the order in which they were first met.

    A table that no run could read is told by its name. A table that was dropped, and whose name another one has now, is
    left out: the list is of tables that may be there.

    Args:
        runs: The oldest first.
        key_of: Which tables of two plans are one.
    """
    keys: dict[str, object] = {}
    ends: dict[object, list[tuple[RunOutcome, TableOutcome]]] = {}
    unread: list[tuple[RunOutcome, TableOutcome]] = []
    for plan, outcome in runs:
        planned = {table.ref: table for table in plan.tables}
        met: set[object] = set()
        for table in outcome.tables:
            in_plan = planned.get(table.ref)
            key = None if in_plan is None else key_of(in_plan)
            if key is None:
                unread.append((outcome, table))
                continue
            keys[table.ref.identifier] = key
            if key not in met:  # two policies of one table: a run touches it for neither
                met.add(key)
                ends.setdefault(key, []).append((outcome, table))
    # What could not be read is of the table that has had the name last.
    for end in unread:
        ends.setdefault(keys.get(end[1].ref.identifier, end[1].ref), []).append(end)
    order = {id(outcome): number for number, (_, outcome) in enumerate(runs)}
    tables = []
    for key, of_table in ends.items():
        of_table.sort(key=lambda end: order[id(end[0])])
        name = of_table[-1][1].ref.identifier
        if keys.get(name, key) == key:
            tables.append(TableRuns(name, tuple(of_table)))
    return tuple(tables)
