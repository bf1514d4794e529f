"""Steps of past runs, by the table that they changed: a table that was made anew under an old name has none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from maintainer.app.lookback.run_history import HistoryQuery, history_row, recorded_rows
from maintainer.app.planning.make_plan import TableLook
from maintainer.app.project_folders import Project
from maintainer.app.selection.recorded_tables import CurrentTable, FoundBy, RecordedTable, current_table
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Problem
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.progress import PlacedTable
from maintainer.policy.table_names import identity

MAX_PAST_STEPS = 10_000


class PastSteps:
    """The newest steps of a project, as ``history TABLE`` tells them apart.

    Args:
        root: The project's folder.
        rows: The steps, newest first.
        keys: Id and place that the newest run met, by a table's name.
    """

    def __init__(self, root: Path, rows: Sequence[LedgerRow], keys: Mapping[str, PlacedTable]) -> None:
        self._keys = keys
        self._steps: list[tuple[RecordedTable, HistoryRow]] = []
        self._by_id: dict[str, list[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        recorded: dict[tuple[str, str | None, str | None], RecordedTable] = {}
        for number, row in enumerate(rows):
            key = (row.table, row.table_id, row.location)
            table = recorded.get(key) or recorded.setdefault(key, RecordedTable.of_row(row, root))
            self._steps.append((table, history_row(row)))
            self._by_name.setdefault(identity(table.ref), []).append(number)
            if table.table_id is not None:
                self._by_id.setdefault(table.table_id, []).append(number)

    @staticmethod
    def read(project: Project) -> tuple[PastSteps, list[Problem]]:
        """Return the steps of a project's runs, and what could not be read.

        Raises:
            EnvironmentUnfit: E641, the folder of runs cannot be listed.
        """
        rows, unread = recorded_rows(project.past_runs_dir, HistoryQuery(limit=MAX_PAST_STEPS))
        with reading_runs(project.past_runs_dir):
            keys = remembered(project.past_runs_dir).keys
        return PastSteps(project.root, rows, keys), unread

    def of(self, look: TableLook) -> list[HistoryRow]:
        """Return the steps of a table as planning sees it now, newest first."""
        table = self._current(look)
        same_id = self._by_id.get(table.table_id, []) if table.table_id is not None else []
        chosen = sorted({*same_id, *self._by_name.get(identity(table.ref), [])})
        return [row for recorded, row in map(self._steps.__getitem__, chosen) if table.was(recorded)]

    def _current(self, look: TableLook) -> CurrentTable:
        ref, facts = look.policy.table, look.facts
        if facts is None:
            return current_table(ref, self._keys.get(ref.identifier))
        return CurrentTable(ref, facts.location, facts.table_id, FoundBy.ID, StoragePlaces())
