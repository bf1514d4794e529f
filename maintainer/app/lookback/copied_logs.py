"""Tell what was done to a table from what its log brought along from the table that it is a copy of. Starts no Spark.

A folder that was copied with its log has the id of its original, and the stamps of the original's runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from maintainer.app.selection.recorded_tables import CurrentTable, FoundBy, RecordedTable
from maintainer.delta.log.table_place import StoragePlaces, table_id_at
from maintainer.delta.storage.table_log import local_folder
from maintainer.journal.ledger.ledger_rebuild import rows_from_history
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.model.run.auto_compaction import STEP_KIND
from maintainer.model.table.commit_records import CommitsRead
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import identity, table_ref

History = tuple[ResolvedPolicy, CommitsRead]
"""A table, and the commits that its log has."""


def own_rows(histories: Iterable[History], root: Path) -> Iterator[LedgerRow]:
    """Yield ledger rows of the steps that were done to each table, and not to the one that it is a copy of.

    A step names its table. Where that is a path, and another table than this one still is or may be there, this one is
    a copy. Where it is a name of a catalog, nobody knows where that was: rows of the table that has the name now come
    first, and of two rows of one step the first counts.

    Args:
        histories: Of the tables, each read at its place.
        root: The project's folder, from which relative paths start.
    """
    renamed: list[LedgerRow] = []
    for policy, read in histories:
        located = replace(read, table_id=read.table_id or table_id_at(read.location))
        table = CurrentTable(policy.table, located.location, located.table_id, FoundBy.ID, StoragePlaces())
        for row in rows_from_history(policy, located):
            named = RecordedTable(table_ref(row.step_id.rpartition("/")[0], root), located.table_id)
            if identity(named.ref) == identity(policy.table):
                yield row
            elif not _is_of_another(row, named, table):
                renamed.append(row)
    yield from renamed


def _is_of_another(row: LedgerRow, named: RecordedTable, table: CurrentTable) -> bool:
    if named.known_location is None:
        return False
    if row.kind == STEP_KIND and local_folder(table.location or "") is None:
        return False  # a writer elsewhere may reach the same place by another address
    try:
        return not table.was(named)
    except ValueError:  # no path of any system: a stamp is what a writer made of it
        return False
