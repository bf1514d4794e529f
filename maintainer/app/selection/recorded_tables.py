"""Match today's tables with those that past runs recorded, even under another policy name. Starts no Spark.

Records name a table, with its id and place where their run could read it. A table of today is known by the id in its
log, if that lies on this machine; else by the id that the newest run recorded under its name. The tables are the same
if the ids are equal and the recorded place does not hold a copy. Where an id is not known, places are compared, and
names when there is no known place.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from maintainer.delta.log.table_place import StoragePlaces, location_of, place_key, table_id_at
from maintainer.delta.storage.table_log import local_folder
from maintainer.engine.protocols import TablePlaces
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.run.progress import PlacedTable
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import name_key, table_ref


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """A table as a past run recorded it; id and location are None where the run could not read it."""

    ref: TableRef
    table_id: str | None = None
    location: str | None = None

    @property
    def known_location(self) -> str | None:
        """Where it was; None for a catalog's table that was not read."""
        return self.location or (location_of(self.ref) if self.ref.is_path else None)

    @staticmethod
    def of_plan(table: TablePlan) -> RecordedTable:
        """Return a table of a run's plan."""
        if table.observed is None:
            return RecordedTable(table.ref)
        return RecordedTable(table.ref, table.observed.table_id, table.observed.location)

    @staticmethod
    def of_row(row: LedgerRow, root: Path) -> RecordedTable:
        """Return the table of a row in the ledger of the project at a folder."""
        return RecordedTable(table_ref(row.table, root), row.table_id, row.location)


def recorded_tables(plan: Plan) -> dict[TableRef, RecordedTable]:
    """Return the tables of a run's plan, by what the plan calls them."""
    return {table.ref: RecordedTable.of_plan(table) for table in plan.tables}


class FoundBy(enum.Enum):
    """By what the records of a table are found."""

    ID = "its id"
    NEWEST_RUN = "the id that the newest run met"
    PLACE = "its place"
    NAME = "its name"


@dataclass(frozen=True, slots=True)
class CurrentTable:
    """A table that a policy names now. ``location`` is None for a catalog's table that no run has met."""

    ref: TableRef
    location: str | None
    table_id: str | None
    found_by: FoundBy
    places: TablePlaces
    _answers: dict[RecordedTable, bool] = field(default_factory=dict)

    @property
    def doubt(self) -> str | None:
        """What to say where records are not found by the id in the table's log."""
        if self.found_by is FoundBy.ID:
            return None
        return f"the id of {self.ref.identifier} cannot be read here: its runs are found by {self.found_by.value}"

    def was(self, recorded: RecordedTable) -> bool:
        """Tell whether a record is of this table."""
        if self.table_id and recorded.table_id and self.table_id != recorded.table_id:
            return False
        if recorded not in self._answers:
            self._answers[recorded] = self._compared(recorded)
        return self._answers[recorded]

    def _compared(self, recorded: RecordedTable) -> bool:
        then, same_id = recorded.known_location, self.table_id is not None and recorded.table_id is not None
        if self.location is None or then is None:
            return same_id or name_key(self.ref) == name_key(recorded.ref)
        if place_key(self.places, self.location) == place_key(self.places, then):
            return True
        return same_id and self.table_id is not None and not self.places.may_hold(then, self.table_id)


class TableIndex:
    """Tells which records of several runs are of one table, by its id; a copy is a table of its own.

    Args:
        plans: Of the runs, the newest first. The newest record of a table stands for the table as it is now.
    """

    def __init__(self, plans: Iterable[Plan]) -> None:
        self._tables: list[CurrentTable] = []
        self._by_id: dict[str, list[int]] = {}
        self._by_place: dict[tuple[str, str], int] = {}
        self._by_name: dict[str, list[int]] = {}
        self._keys: dict[RecordedTable, int | None] = {}
        self._places = StoragePlaces()
        for plan in plans:
            for recorded in recorded_tables(plan).values():
                key, then = self.key_of(recorded), recorded.location
                if key is None and recorded.table_id is not None and then is not None:
                    key = self._keys[recorded] = len(self._tables)
                    self._by_id.setdefault(recorded.table_id, []).append(key)
                    self._by_place[recorded.table_id, place_key(self._places, then)] = key
                    self._tables.append(CurrentTable(recorded.ref, then, recorded.table_id, FoundBy.ID, self._places))
                if key is not None:
                    self._by_name.setdefault(name_key(recorded.ref), []).append(key)

    def key_of(self, recorded: RecordedTable) -> int | None:
        """Return the number of the table that a record is of; None if no plan has that table with its id."""
        if recorded not in self._keys:
            self._keys[recorded] = self._found(recorded)
        return self._keys[recorded]

    def _found(self, recorded: RecordedTable) -> int | None:
        """Look by the place first: hundreds of copies share an id, and each is compared with none of the others."""
        if recorded.table_id is None:
            keys, then = self._by_name.get(name_key(recorded.ref), []), None
        else:
            keys, then = self._by_id.get(recorded.table_id, []), recorded.known_location
        if not keys or recorded.table_id is None or then is None:
            return next((key for key in keys if self._tables[key].was(recorded)), None)
        here = self._by_place.get((recorded.table_id, place_key(self._places, then)))
        if here is None and not self._places.may_hold(then, recorded.table_id):
            return keys[0]
        return here


def current_tables(refs: Iterable[TableRef], runs_dir: Path) -> dict[str, CurrentTable]:
    """Return tables as they are now, by identifier.

    Raises:
        EnvironmentUnfit: E641, the folder of runs cannot be listed.
    """
    with reading_runs(runs_dir):
        keys = remembered(runs_dir).keys
    return {ref.identifier: current_table(ref, keys.get(ref.identifier)) for ref in refs}


def current_table(ref: TableRef, recorded: PlacedTable | None) -> CurrentTable:
    """Return a table as it is now; ``recorded`` are the id and the place that the newest run met under its name."""
    met, recorded_location = recorded or (None, None)
    location = location_of(ref) if ref.is_path else recorded_location
    table_id = None if location is None else table_id_at(location)
    if table_id is not None:
        found_by = FoundBy.ID
    elif met is not None and (location is None or local_folder(location) is None):
        table_id, found_by = met, FoundBy.NEWEST_RUN
    else:
        found_by = FoundBy.NAME if location is None else FoundBy.PLACE
    return CurrentTable(ref, location, table_id, found_by, StoragePlaces())
