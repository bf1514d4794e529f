"""What past runs did, from run folders alone: their steps, and tables in trouble again and again.

Neither Spark nor a network is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

from maintainer.app.running.restore_files import UNDELETE_FILE, undelete_rows
from maintainer.app.running.verify_commits import VERIFICATION_FILE, verification_rows
from maintainer.app.selection.recorded_tables import CurrentTable, RecordedTable
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.folder.atomic_files import read_document, reading_runs
from maintainer.journal.folder.run_folder import latest_time_ms, run_folders
from maintainer.journal.ledger.ledger_rows import LedgerRow, rows_of
from maintainer.journal.memory.past_runs import MAX_RUNS_READ, PastRun, past_runs, read_record
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import ENDED_STEPS, RunEnd, RunOutcome, StepStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import absolute_path, is_called, is_uri, name_key
from maintainer.report.run.outcome_text import said_of
from maintainer.report.text_layout import when
from maintainer.units import count_of, format_duration

DEFAULT_ROWS = 200

NAMED_AFTER_RUNS = 3
MAX_NAMED = 50
CODE = "C717"
UNREAD_CODE = "E643"
_FAILED_HELP = "`maintainer history --failed` shows why; `suspend:` keeps a table out until it is fixed"
_LOST_HELP = "give the table a `window:`, `quietFor:` or `skipNewestPartitions:`"
HOT_HELP = (
    "run it when its writers rest (`window:`), or partition it and name the partition in their predicates: "
    "`optimize.where:` and `skipNewestPartitions:` leave theirs out"
)


def in_a_row(runs_dir: Path, outcome: RunOutcome) -> list[Problem]:
    """Return what to say about those tables of a run that failed, lost to other writers or were hot in three runs.

    Called when the run is over. At most fifty tables are named one by one.

    Raises:
        OSError: The runs cannot be read.
        EnvironmentUnfit: E641, another version wrote them.
    """
    records, places = remembered(runs_dir), StoragePlaces()
    problems: list[Problem] = []
    for table in outcome.tables:
        name = table.ref.identifier
        streak = records.streak_of(name, places)
        for number, since_ms, what, help_text in (
            (streak.failed, streak.failing_since_ms, "failed in {}", _FAILED_HELP),
            (streak.lost, None, "another writer won in {}", _LOST_HELP),
            (streak.hot, streak.hot_since_ms, "waiting: hot in {}", HOT_HELP),
        ):
            if number >= NAMED_AFTER_RUNS:
                said = what.format(f"{count_of(number, 'run')} in a row")
                since = "" if since_ms is None else f", since {when(since_ms, UTC)}"
                problems.append(Problem(CODE, f"{said}{since}", name, help_text))
    if len(problems) > MAX_NAMED:
        more = f"{len(problems) - MAX_NAMED:,} more that are in trouble for runs in a row"
        problems[MAX_NAMED:] = [Problem(CODE, more, help="`maintainer history --failed` shows them all")]
    return problems


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which steps are asked for.

    Args:
        table: Only this table's, as a policy names it; None for all.
        since_ms: Only steps that ended then or later, milliseconds since 1970 UTC.
        failed: Only steps that did not succeed.
        ours: Only our own steps: the table's log is not read.
        ledger: Read the ledger, which knows the runs of every machine, and not the run folders.
        file: Only deletions for which this data file was planned, by its address or the end of it; no log is read.
        limit: At most so many, at least 1.

    Raises:
        ValueError: ``limit`` is less.
    """

    table: str | None = None
    since_ms: int | None = None
    failed: bool = False
    ours: bool = False
    ledger: bool = False
    limit: int = DEFAULT_ROWS
    file: str | None = None

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"limit must be at least 1, and is {self.limit}")

    def wants(self, row: LedgerRow) -> bool:
        """Tell whether a step is one of those, by its time and its end."""
        in_time = self.since_ms is None or row.started_at_ms + 1000 * row.duration_seconds >= self.since_ms
        return in_time and not (self.failed and row.status in ENDED_STEPS)


EVERY_STEP = HistoryQuery()

OfTable = Callable[[LedgerRow], bool]
"""Tells whether a row is of the table that is asked about."""


def rows_of_table(table: CurrentTable | None, root: Path) -> OfTable:
    """Return what chooses the rows of a table of the project at a folder; None chooses all rows."""
    if table is None:
        return lambda _row: True
    return lambda row: table.was(RecordedTable.of_row(row, root))


def recorded_rows(
    runs_dir: Path,
    query: HistoryQuery = EVERY_STEP,
    of_table: OfTable = lambda _row: True,
    on_run: Callable[[RunOutcome], None] = lambda _run: None,
) -> tuple[list[LedgerRow], list[Problem]]:
    """Return the steps of past runs, newest first, and what could not be read.

    Args:
        runs_dir: The folder of all runs.
        query: Which steps are asked for. Of a file that it names, the reason says what became of it.
        of_table: Which rows are meant.
        on_run: Called with each run that has some of them.

    Raises:
        EnvironmentUnfit: E641, the folder of runs cannot be listed.
    """
    rows: list[LedgerRow] = []
    unread: list[Problem] = []
    newest_first = _newest_first()

    def since_ms() -> int:
        """Of the runs that are left only those count that did something later than all steps that are wanted."""
        return max(query.since_ms or 0, rows[-1].started_at_ms if len(rows) >= query.limit else 0)

    for run in past_runs(runs_dir, since_ms=since_ms):
        if isinstance(run, tuple):
            unread.append(_unread(*run))
            continue
        steps = [row for row in rows_of(run.plan, run.outcome) if of_table(row)]
        if query.file is not None:
            fates = ((row, _fate_of(query.file, run, row)) for row in steps)
            steps = [replace(row, reason=fate) for row, fate in fates if fate is not None]
        wanted = [row for row in reversed(steps) if query.wants(row)]
        if wanted:
            on_run(run.outcome)
        rows += wanted
        if len(rows) >= query.limit:
            rows[:] = newest_first(rows)[: query.limit]
    without_plan = (row for name in ROWS_WITHOUT_PLAN for row in rows_in_documents(runs_dir, name))
    for row_or_unread in without_plan if query.file is None else ():
        if isinstance(row_or_unread, tuple):
            unread.append(_unread(*row_or_unread))
        elif of_table(row_or_unread) and query.wants(row_or_unread):
            rows.append(row_or_unread)
    return newest_first(rows)[: query.limit], unread


def _newest_first() -> Callable[[list[LedgerRow]], list[LedgerRow]]:
    """Return what puts steps in order; what a clock that was ahead recorded comes last, as its run does."""
    latest_ms = latest_time_ms()

    def at(row: LedgerRow) -> tuple[bool, int]:
        return row.started_at_ms <= latest_ms, row.started_at_ms

    return lambda rows: sorted(rows, key=at, reverse=True)


ROWS_WITHOUT_PLAN: Mapping[str, Callable[[str], Iterable[LedgerRow]]] = {
    UNDELETE_FILE: undelete_rows,
    VERIFICATION_FILE: verification_rows,
}
"""What runs leave that carry out no plan, and the rows in it."""


def rows_in_documents(runs_dir: Path, name: str) -> Iterator[LedgerRow | tuple[Path, str]]:
    """Yield the rows of one kind of document, of the newest run first; for one that cannot be read its path, and why.

    Raises:
        EnvironmentUnfit: E641, the folder of runs cannot be listed.
    """
    with reading_runs(runs_dir):
        folders = run_folders(runs_dir)[-MAX_RUNS_READ:]
    for path in (folder.path / name for folder in reversed(folders)):
        if path.is_file():
            try:
                yield from tuple(ROWS_WITHOUT_PLAN[name](read_document(path)))
            except (OSError, ValueError, KeyError, TypeError) as error:
                yield path, str(error)


def _fate_of(file: str, run: PastRun, row: LedgerRow) -> str | None:
    """Say what became of a data file in the step of a row; None where it was not planned to be deleted there."""
    table = next(table for table in run.plan.tables if table.ref.identifier == row.table)
    step = table.step_of(row.step_id)
    if not isinstance(step, VacuumStep):
        return None
    place = row.location or table.ref.location
    planned = next((each for each in step.files if _is_meant(file, place, each.path)), None)
    if planned is None:
        return None
    steps = (step for each in run.outcome.tables for step in each.steps if step.step_id == row.step_id)
    receipt = next((step.vacuum for step in steps if step.vacuum is not None), None)
    remaining = () if receipt is None else receipt.remaining
    kept = next((text for text in remaining if text == planned.path or text.startswith(f"{planned.path} (")), None)
    verb = f"moved into the trash for {format_duration(step.trash_seconds)}" if step.trash_seconds else "deleted"
    if receipt is None and _is_open(run, row.step_id):
        still = "still goes on" if run.outcome.end is RunEnd.RUNNING else "was broken off, and the next apply finds out"
        fate = f"perhaps {verb} (the deletion {still}): {planned.path}"
    elif not row.num_files_removed or kept is not None:
        fate = f"was planned to be deleted and stayed: {kept or planned.path}"
    else:
        if row.num_files_removed + len(remaining) < len(step.files):  # some were gone before, or it was stopped
            verb = f"perhaps {verb}, as {row.num_files_removed:,} of {len(step.files):,} planned files"
        fate = f"{verb}: {planned.path}"
    version = "" if planned.removed_in_version is None else f"by version {planned.removed_in_version}, "
    since = "last changed" if planned.kind == "untracked" else "removed from the table"
    at = when(planned.removed_at_ms, UTC)
    return f"{fate}; {since} {version}{at}; decided by {step.decided_by}, policy {table.source}"


def _is_open(run: PastRun, step_id: str) -> bool:
    """Whether a step began a deletion of which nobody has looked up yet how it ended."""
    record = read_record(run.folder, with_plan=False).fold.steps.get(step_id)
    return record is not None and bool(record.open_intents)


def _is_meant(file: str, location: str, path: str) -> bool:
    """Whether a person means a file of a table: by its address, or the end of it, as the log or the storage has it."""
    for name in {path, unquote(path)}:
        whole = name if is_uri(name) or name.startswith("/") else f"{location}/{name}"
        ref, meant = TableRef(absolute_path(whole, Path("/"))), TableRef(absolute_path(file, Path("/")))
        if name_key(ref) == name_key(meant) or (not file.startswith("/") and is_called(ref, file.removeprefix("./"))):
            return True
    return False


def _unread(folder: Path, why: str) -> Problem:
    help = "its steps are missing here; restore the folder, or move it away if they are not needed"
    return Problem(UNREAD_CODE, f"a run could not be read: {folder}: {why}", str(folder), help)


Notes = Mapping[tuple[str, str], str]
"""Why steps without an error did not simply succeed, by their run and their id; a row of the ledger has no such."""


def notes_of(runs: Iterable[RunOutcome]) -> Notes:
    """Return what runs say of the ends of their steps, in the words of ``show``."""
    return {
        (run.run_id, step.step_id): said_of(step)
        for run in runs
        for table in run.tables
        for step in table.steps
        if step.error is None
    }


def history_row(row: LedgerRow, notes: Notes = MappingProxyType({})) -> HistoryRow:
    """Return a row of the ledger as `history` shows it."""
    same = {name: getattr(row, name) for name in _SAME}
    proof = None if row.proof_result == "none" else row.proof_result
    return HistoryRow(at_ms=row.started_at_ms, step=row.kind, proof=proof, note=_note(row, notes), **same)


def _note(row: LedgerRow, notes: Notes) -> str | None:
    if row.status == StepStatus.SUCCEEDED:  # a turn that went well, of a step that then did not
        return None
    step_id, _, turn = row.step_id.rpartition("#")
    return notes.get((row.run_id, row.step_id)) or (turn.isdigit() and notes.get((row.run_id, step_id))) or None


_SAME = {field.name for field in fields(HistoryRow)} & {field.name for field in fields(LedgerRow)}
"""What a row of the history and one of the ledger call by one name."""
