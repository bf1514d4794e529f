"""Restore files that a vacuum moved into the trash, or hid in a bucket, with the same record as every other run.

The run folder gets its events, ``undelete.json`` and a row for the ledger. The next ``apply`` appends that row with
its own, because a Spark append would take longer than the restore.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from maintainer.app.project_folders import Project
from maintainer.app.selection.recorded_tables import CurrentTable, FoundBy, RecordedTable
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.protocols import TableEngine
from maintainer.errors import MaintainerError
from maintainer.journal.folder.atomic_files import reading_runs, recording
from maintainer.journal.folder.run_folder import PLAN_FILE, is_run_id
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_pending import keep_pending
from maintainer.journal.ledger.ledger_rows import LedgerRow, predicted_columns
from maintainer.journal.memory.past_runs import read_record
from maintainer.journal.store.state_access import runs_dir_with
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.history_rows import UNDELETE
from maintainer.model.run.outcome import StepStatus
from maintainer.model.run.receipts import Amounts, UndeleteReceipt
from maintainer.model.run.run_events import Deleting
from maintainer.model.table.storage_facts import MarkedFile
from maintainer.model.table.table_facts import TableFacts
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import count_of

UNDELETE_FILE = "undelete.json"
FORMAT_VERSION = "1"


def undelete_run(
    project: Project, worker: TableEngine, journal: Journal, policy: ResolvedPolicy, of_run: str
) -> UndeleteReceipt:
    """Bring back a run's files and record it, also where it fails.

    Args:
        project: The project, for the record.
        worker: An engine with a reader and a writer.
        journal: This run's record, open.
        policy: The policy of the table.
        of_run: The run whose vacuum took the files away.

    Raises:
        TableError: T430 and T431, nothing of this run can come back; or the table cannot be read.
        EnvironmentUnfit: E641, the record of that run cannot be read.
        FolderUnwritable: E651. What was brought back is back.
    """
    started_at_ms = journal.now_ms()
    # What is true if this process is killed now; replaced at the end.
    row = LedgerRow(
        run_id=journal.run_id,
        table=policy.table.identifier,
        step_id=f"{policy.table.identifier}/{UNDELETE}",
        kind=UNDELETE,
        status=StepStatus.INTERRUPTED.value,
        reason=f"run {of_run} had taken the files away",
        started_at_ms=started_at_ms,
        policy_file=policy.file,
        policy_digest=policy.digest,
        git_commit=project.git_commit(),
        environment=project.env,
        owner=policy.owner,
        error_code="C712",
        error="the run was killed, or its machine went down, while files were restored; run it again",
        **predicted_columns(Amounts()),
    )
    receipt: UndeleteReceipt | None = None
    end: dict[str, Any] = {"status": StepStatus.FAILED.value, "error_code": None, "error": None}
    try:
        facts = worker.reader.facts(policy.table)
        row = replace(row, table_id=facts.table_id, location=facts.location)
        journal.note("undelete", table=policy.table.identifier, of_run=of_run)
        _keep(journal, row, None)
        receipt = worker.writer.undelete(facts, of_run, _deleted_by(project, of_run, facts))
        end |= {"num_files_added": receipt.num_files_restored, "bytes_added": receipt.bytes_restored}
        end["status"] = (StepStatus.INCOMPLETE if receipt.refused else StepStatus.SUCCEEDED).value
        if receipt.refused:
            end["error"] = f"{count_of(len(receipt.refused), 'file')} not brought back, such as {receipt.refused[0]}"
        return receipt
    except MaintainerError as error:
        end |= {"error_code": error.code, "error": error.what}
        raise
    finally:
        row = replace(row, duration_seconds=(journal.now_ms() - started_at_ms) / 1000, **end)
        _keep(journal, row, receipt)
        journal.finished()


def _deleted_by(project: Project, run_id: str, facts: TableFacts) -> tuple[MarkedFile, ...]:
    """Return the files of a table that a run was to delete; none where no record of it tells of a deletion there.

    A copy of the table has its id, names of files that are the same, and delete markers of its own.
    """
    if not is_run_id(run_id):
        return ()
    folder = runs_dir_with(project.loaded.project, run_id) / run_id
    with reading_runs(folder.parent):
        if not (folder / PLAN_FILE).is_file():
            return ()
        record = read_record(folder)
    table = CurrentTable(facts.ref, facts.location, facts.table_id, FoundBy.ID, StoragePlaces())
    deleting = (event for event in record.events if isinstance(event, Deleting))
    begun = [event for event in deleting if table.was(RecordedTable(facts.ref, event.table_id, event.location))]
    markers = dict(pair for event in begun for pair in event.markers)
    step_ids = {event.step_id for event in begun}
    return tuple(
        MarkedFile(file.path, file.size_bytes, markers.get(file.path))
        for planned, step in record.plan.steps()
        if isinstance(step, VacuumStep) and planned.step_id(step) in step_ids
        for file in step.files
    )


def _keep(journal: Journal, row: LedgerRow, receipt: UndeleteReceipt | None) -> None:
    document = {
        "format_version": FORMAT_VERSION,
        "step": asdict(row),
        "refused": list(receipt.refused) if receipt else [],
    }
    journal.folder.write_document(UNDELETE_FILE, document)
    with recording(journal.folder.path):
        keep_pending(journal.folder, (row,), by=journal.run_id)


def undelete_rows(text: str) -> tuple[LedgerRow, ...]:
    """Return the one row of the record of an undelete.

    Raises:
        ValueError: It is something else; as KeyError and TypeError are.
    """
    return (LedgerRow.from_document(json.loads(text)["step"]),)
