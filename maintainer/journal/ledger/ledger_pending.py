"""Keep rows for the ledger in the run folder until their append has landed, and remember that the ledger exists.

``ledger_pending.jsonl`` holds the rows of a run. A run also appends what earlier runs could not, and makes the rows of
runs that were killed before they could. No table fails by an append. ``ledger.json`` holds the ledger as it was last
left, so that a missing or replaced one is reported and not silently created again.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from maintainer.errors import CommitUnknown, EngineGone, LedgerUnfit, MaintainerError, Refused
from maintainer.journal.event_log import EVENTS_FILE, add_event, is_alive, last_event
from maintainer.journal.folder.atomic_files import read_document, write_atomically
from maintainer.journal.folder.documents import LocalDocuments, data_of, value_in
from maintainer.journal.folder.run_folder import PLAN_FILE, RESULTS_FILE, RunFolder, run_folders
from maintainer.journal.ledger.ledger_rebuild import anew, missing_rows
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow, LedgerSink
from maintainer.journal.memory.past_runs import MAX_RUNS_READ, read_record
from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import RunEnd
from maintainer.model.run.run_events import LedgerRows

MARK_FILE = "ledger.json"
REBUILD_HELP = (
    "see first whether its disk is there and `state:` is right; if it is lost: `maintainer ledger rebuild`; until then "
    "nothing is appended to it, and the rows wait in the run folders"
)
PENDING_FILE = "ledger_pending.jsonl"
OLD_ROWS = "E658"
"""The code of a problem with rows of earlier runs; those of the run itself are in the ledger."""

MAX_PENDING_RUNS = 20
"""Earlier runs whose rows one run takes along; the rest waits for the next."""


def keep_pending(folder: RunFolder, rows: tuple[LedgerRow, ...], *, by: str, is_anew: bool = False) -> None:
    """Put rows of a run into its folder, durably, until they are in the ledger, and record that they are known.

    Args:
        folder: The run's.
        rows: Its rows.
        by: The run that does it.
        is_anew: They take the place of rows that waited and never reached the ledger.

    Raises:
        OSError: They could not be written.
        FolderUnwritable: E650 or E651, that they are known could not be recorded.
    """
    data = "".join(row.to_json() + "\n" for row in rows)
    write_atomically(folder.path / PENDING_FILE, data.encode("utf-8", "surrogatepass"))
    add_event(folder.path.parent, folder.run_id, LedgerRows(time.time_ns() // 1_000_000, len(rows), is_anew), by=by)


def rows_wait(folder: RunFolder) -> bool:
    """Return whether a later run has to append what this one could not."""
    return (folder.path / PENDING_FILE).is_file()


def flush(folder: RunFolder, rows: tuple[LedgerRow, ...], sink: LedgerSink | None) -> Problem | None:
    """Append a run's rows to the ledger, and those of earlier runs that are still waiting.

    Without a sink, or when the append fails, the rows stay in the run folder. Where they could not be written there,
    the run's last event says so, and the next run makes them again from the events.

    Returns:
        What went wrong, for the report; the run itself does not fail by it.
    """
    problem: Problem | None = None
    try:
        if rows:
            keep_pending(folder, rows, by=folder.run_id)
        if sink is None:
            return None
        runs_dir = folder.path.parent
        check_mark(read_mark(runs_dir), sink.mark(), sink.location)
        problem = _take_rows_of_dead_runs(folder, sink)
        waiting = _waiting(folder)
        for pending_folder in waiting:
            problem = _append_pending(pending_folder, sink, is_own=pending_folder is folder) or problem
        if waiting:
            write_mark(runs_dir, sink.mark())
    except MaintainerError as error:
        cause = error.what + (f" (found: {error.found})" if error.found else "")
        if isinstance(error, LedgerUnfit):  # waiting does not help
            return Problem(error.code, cause, error.where, error.help)
        if isinstance(error, (EngineGone, CommitUnknown)):  # perhaps after its commit: the next run looks
            return Problem("E652", f"whether the ledger has this run's rows is not known: {cause}", error.where, LATER)
        return Problem("E652", f"the ledger could not be written: {cause}", error.where, error.help or LATER)
    except OSError as error:
        return Problem("E652", f"the ledger could not be written: {error}", str(folder.path), LATER)
    return problem


LATER = "the run folder keeps what happened; the next apply appends the rows"


def _take_rows_of_dead_runs(own_folder: RunFolder, sink: LedgerSink) -> Problem | None:
    """Keep rows that no other run appends: those of killed runs, and of what was settled after a run had ended."""
    problem: Problem | None = None
    taken = 0
    for folder in run_folders(own_folder.path.parent)[-MAX_RUNS_READ:]:
        if taken >= MAX_PENDING_RUNS:
            break
        if folder.run_id == own_folder.run_id or not _may_miss_rows(folder.path):
            continue
        try:
            record = read_record(folder.path)
            # Rows may wait already, and what was found out later comes with them: the next run may be far off.
            waiting = read_pending(folder.path / PENDING_FILE)
        except (OSError, ValueError, MaintainerError) as error:
            help_text = "`maintainer ledger rebuild` adds what the tables' logs tell of that run"
            problem = Problem(
                OLD_ROWS, f"the rows of a killed run cannot be made: {error}", str(folder.path), help_text
            )
            if isinstance(error, (ValueError, Refused)):  # damaged for good: said once, and not looked at again
                known = LedgerRows(time.time_ns() // 1_000_000, 0)
                add_event(folder.path.parent, folder.run_id, known, by=own_folder.run_id)
            continue
        if record.end is not RunEnd.RUNNING:
            taken += 1
            is_anew = bool(waiting) and not sink.steps_of(folder.run_id)
            if is_anew:
                rows = anew(record, waiting)
            else:
                step_ids = {row.step_id for row in waiting}  # a run that was killed right here put them there before
                rows = (*waiting, *(row for row in missing_rows(record) if row.step_id not in step_ids))
            keep_pending(folder, rows, by=own_folder.run_id, is_anew=is_anew)
    return problem


def _may_miss_rows(folder: Path) -> bool:
    """Whether a run ended before its rows were known, or something was found out about it after they were."""
    if not all((folder / name).is_file() for name in (PLAN_FILE, RESULTS_FILE, EVENTS_FILE)):
        return False
    last = last_event(folder / EVENTS_FILE)
    ended = last is not None and last["type"] in ("run_finished", "ledger_rows") and last.get("rows_known", True)
    return not ended and not is_alive(folder / EVENTS_FILE)


def _waiting(own_folder: RunFolder) -> list[RunFolder]:
    """Run folders with rows not yet appended, oldest first, our own last and always."""
    earlier = [
        folder
        for folder in run_folders(own_folder.path.parent)
        if folder.run_id != own_folder.run_id
        and (folder.path / PENDING_FILE).is_file()
        and not is_alive(folder.path / EVENTS_FILE)
    ]
    last = [own_folder] if rows_wait(own_folder) else []
    return earlier[:MAX_PENDING_RUNS] + last


def _append_pending(folder: RunFolder, sink: LedgerSink, *, is_own: bool) -> Problem | None:
    path = folder.path / PENDING_FILE
    try:
        rows = read_pending(path)
    except ValueError as error:
        # One damaged file must not hold up the rows of every later run.
        help_text = "move the file away; then `maintainer ledger rebuild` makes the rows from the events beside it"
        return Problem(OLD_ROWS, f"rows that wait for the ledger are damaged: {error}", str(path), help_text)
    if rows and not is_own:  # a rebuild may have brought some of them in, or another machine with the same state
        step_ids = sink.steps_of(folder.run_id)
        rows = tuple(row for row in rows if row.step_id not in step_ids)
    if rows:
        sink.append(folder.run_id, rows)
    with contextlib.suppress(FileNotFoundError):  # a run beside us may have taken them along
        path.unlink()
    return None


def read_pending(path: Path) -> tuple[LedgerRow, ...]:
    """Read the rows that wait in a run folder; none when the file is gone.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds something else.
    """
    try:
        text = read_document(path)
    except FileNotFoundError:
        return ()
    return tuple(LedgerRow.from_document(json.loads(line)) for line in text.split("\n") if line)


def read_mark(runs_dir: Path) -> LedgerMark | None:
    """Return the ledger as a run of this state last left it; None where no run has appended yet."""
    with contextlib.suppress(OSError):
        return value_in(LocalDocuments(runs_dir.parent).read(MARK_FILE), LedgerMark)
    return None


def write_mark(runs_dir: Path, mark: LedgerMark | None) -> None:
    """Record the ledger's current table and version.

    Raises:
        OSError: The state cannot be written.
    """
    if mark is not None and mark != read_mark(runs_dir):
        write_atomically(runs_dir.parent / MARK_FILE, data_of(mark))


def check_mark(before: LedgerMark | None, now: LedgerMark | None, location: str) -> None:
    """Make sure that the ledger is still the one that rows were appended to.

    Args:
        before: As it was left.
        now: As it is; None where there is none.
        location: Where it is kept now: one that was moved on purpose is another ledger.

    Raises:
        EnvironmentUnfit: E655, it is gone, another table lies in its place, or it has lost versions.
    """
    if before is None or before.location != location:
        return
    if now is None:
        what, found = "the ledger is gone", f"no Delta table; it was there, at version {before.version}"
    elif now.table_id != before.table_id:
        what, found = "another table lies where the ledger was", f"table id {now.table_id}, not {before.table_id}"
    elif now.version < before.version:
        what, found = "the ledger has lost versions", f"version {now.version}; it was at version {before.version}"
    else:
        return
    raise LedgerUnfit(what, where=location, found=found, help=REBUILD_HELP)
