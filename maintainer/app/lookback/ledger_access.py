"""Open the ledger of a project for a run, or say why there is none, and rebuild it. Starts no Spark by itself.

A folder that was copied with its log has the id of its original, and the stamps of the original's runs: what was done
to a table is told from what its log brought along.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.lookback.run_history import rows_in_documents
from maintainer.app.project_folders import Project
from maintainer.app.running.restore_files import UNDELETE_FILE
from maintainer.app.selection.recorded_tables import CurrentTable, FoundBy, RecordedTable
from maintainer.delta.log.table_place import StoragePlaces, table_id_at
from maintainer.delta.storage.table_log import local_folder
from maintainer.errors import MaintainerError, NotSupportedYet
from maintainer.journal.event_log import EVENTS_FILE, is_alive
from maintainer.journal.ledger.ledger_pending import PENDING_FILE, check_mark, read_mark, write_mark
from maintainer.journal.ledger.ledger_rebuild import (
    FROM_RUN_FOLDER,
    LedgerStore,
    Rebuilt,
    fill_up,
    recorded_rows,
    rows_from_history,
)
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.journal.memory.past_runs import PastRun, RunRecord, past_runs, read_record
from maintainer.model.plan.plan import Problem, as_problem
from maintainer.model.run.auto_compaction import STEP_KIND
from maintainer.model.table.commit_records import CommitsRead, CommitsWanted
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import name_key, table_ref

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
            if name_key(named.ref) == name_key(policy.table):
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


_NO_LEDGER = Problem(
    "E654",
    "over Spark Connect the ledger table is not written: its path would be on the server",
    help="the run folder has the same rows; `maintainer history` reads it",
)


def open_ledger(project: Project, opened: OpenedEngine, on_problem: Callable[[Problem], None]) -> LedgerStore | None:
    """Open the project's ledger; None over Spark Connect, which ``on_problem`` is given as E654."""
    ledger = opened.ledger_at(project.ledger_location)
    if ledger is None:
        on_problem(_NO_LEDGER)
    return ledger


def required_ledger(project: Project, opened: OpenedEngine, instead: str) -> LedgerStore:
    """Open the project's ledger, for what cannot be done without it.

    Raises:
        NotSupportedYet: E620, over Spark Connect; with what to do instead.
    """
    ledger = opened.ledger_at(project.ledger_location)
    if ledger is None:
        raise NotSupportedYet("over Spark Connect there is no ledger: its path would be on the server", help=instead)
    return ledger


def ledger_problem(project: Project, ledger: LedgerStore | None) -> Problem | None:
    """Look at the ledger as it lies there: what is wrong with it; None where nothing is, or where there is none yet."""
    if ledger is None:
        return None
    try:
        check_mark(read_mark(project.past_runs_dir), ledger.mark(), ledger.location)
    except MaintainerError as error:
        return as_problem(error)
    return None


def rebuild_ledger(
    project: Project,
    opened: OpenedEngine,
    policies: Sequence[ResolvedPolicy],
    *,
    young_since_ms: int,
    dry_run: bool,
    on_table: Callable[[ResolvedPolicy], None],
) -> Rebuilt:
    """Append to the ledger what it has not.

    Args:
        project: Whose ledger.
        opened: The engine.
        policies: Tables whose histories are read.
        young_since_ms: A run of which only a table's history tells, and which began since then (milliseconds since
            1970 UTC), may still be running on another machine: it is left for another time.
        dry_run: Only count.
        on_table: Called with each table before its history is read.

    Raises:
        NotSupportedYet: E620, over Spark Connect there is no ledger.
        MaintainerError: The ledger, or the folder of runs, cannot be read or written.
    """
    store = required_ledger(project, opened, "rebuild it where the session is in this process")
    unread: list[str] = []
    runs, waiting = _runs_that_are_over(project.past_runs_dir, unread)
    restored = _restored(project.past_runs_dir, unread, waiting)
    of_folders = (row for record in runs.values() for row in recorded_rows(record))  # first, for they know more
    of_histories = own_rows(_histories(opened, policies, on_table, unread), project.root)
    rows = (row for row in itertools.chain(of_folders, restored, of_histories) if row.run_id not in waiting)
    over = {*runs, *(row.run_id for row in restored)}
    rebuilt = fill_up(store, rows, young_since_ms=young_since_ms, is_over=over.__contains__, dry_run=dry_run)
    if not dry_run:
        with contextlib.suppress(OSError):  # the next run remembers it
            write_mark(project.past_runs_dir, store.mark())
    return replace(rebuilt, unread=tuple(unread), waiting=tuple(sorted(waiting)))


def _runs_that_are_over(runs_dir: Path, unread: list[str]) -> tuple[dict[str, RunRecord], set[str]]:
    records: dict[str, RunRecord] = {}
    waiting: set[str] = set()
    for run in past_runs(runs_dir):
        folder = run.folder if isinstance(run, PastRun) else run[0]
        if _appends_itself(folder):
            waiting.add(folder.name)
            continue
        try:
            records[folder.name] = read_record(folder)
        except (OSError, ValueError, MaintainerError) as error:
            unread.append(f"run {folder.name}: {error}")
    return records, waiting


def _appends_itself(folder: Path) -> bool:
    """Whether the rows of a run reach the ledger without a rebuild."""
    return (folder / PENDING_FILE).is_file() or is_alive(folder / EVENTS_FILE)


def _restored(runs_dir: Path, unread: list[str], waiting: set[str]) -> list[LedgerRow]:
    """Return the rows of runs that brought files back, which have no plan; those that wait are added to ``waiting``."""
    rows: list[LedgerRow] = []
    for row in rows_in_documents(runs_dir, UNDELETE_FILE):
        if isinstance(row, tuple):
            unread.append(f"run {row[0].parent.name}: {row[1]}")
        elif _appends_itself(runs_dir / row.run_id):
            waiting.add(row.run_id)
        else:
            rows.append(replace(row, source=FROM_RUN_FOLDER))
    return rows


def _histories(
    opened: OpenedEngine,
    policies: Sequence[ResolvedPolicy],
    on_table: Callable[[ResolvedPolicy], None],
    unread: list[str],
) -> list[History]:
    histories: list[History] = []
    with opened.history() as reader:
        for policy in policies:
            on_table(policy)
            try:
                histories.append((policy, reader.commits(policy.table, CommitsWanted(counted=True))))
            except MaintainerError as error:
                unread.append(f"table {policy.table.identifier}: {error.what}")
    return histories
