"""Ask a run to stop, on whichever machine it is, and end leases by hand, with the same record as every other run."""

from __future__ import annotations

import socket
from pathlib import Path

from maintainer.app.project_folders import Project
from maintainer.app.running.acting_user import acting_user
from maintainer.app.selection.managed_search import tables_found_before
from maintainer.errors import ProjectError
from maintainer.journal.event_log import EVENTS_FILE, is_alive
from maintainer.journal.folder.atomic_files import reading_runs, recording
from maintainer.journal.folder.documents import LocalDocuments
from maintainer.journal.folder.run_folder import LEASES, is_run_id
from maintainer.journal.journal import Journal
from maintainer.journal.leases import Holder, all_leases, break_lease, current_holders, local_leases
from maintainer.journal.stop_request import STOPS, StopRequest, ask_to_stop
from maintainer.journal.store.state_access import shared_documents
from maintainer.policy.table_names import name_key, table_called, table_ref, whole_name_needed


def stop_run(project: Project, run_id: str, reason: str | None, now_ms: int) -> bool:
    """Ask a run to stop, on whichever machine it is; False where it is over.

    Raises:
        ProjectError: E643, the project has no such run.
        EnvironmentUnfit: The state cannot be read.
        FolderUnwritable: E651, the request cannot be written.
    """
    folder = project.past_runs_dir / run_id
    if not is_run_id(run_id) or not folder.is_dir():
        help = (
            "`maintainer leases list` shows which runs work on which tables, `maintainer history` those that are over"
        )
        raise ProjectError("the state of the project has no such run", code="E643", found=run_id, help=help)
    if not is_alive(folder / EVENTS_FILE):
        return False
    documents = shared_documents(project.loaded.project, STOPS) or LocalDocuments(project.runs_dir.parent / STOPS)
    request = StopRequest(f"{acting_user()} on {socket.gethostname()}", now_ms, reason)
    with recording(Path(documents.place(run_id))):
        ask_to_stop(documents, run_id, request)
    return True


def leases_now(project: Project, now_ms: int) -> tuple[Holder, ...]:
    """Return the leases that keep others out now, in the order of the tables.

    Raises:
        EnvironmentUnfit: E641, the folder of leases cannot be listed.
    """
    with reading_runs(project.runs_dir.parent):
        held = current_holders(project.runs_dir, now_ms, shared_documents(project.loaded.project))
    return tuple(held[table] for table in sorted(held))


def break_leases_on(project: Project, journal: Journal, table: str, reason: str) -> tuple[Holder, ...]:
    """End every lease on a table that was not given back, and record who held it and why it was ended.

    Args:
        project: The project whose state holds the leases.
        journal: This run's record, open.
        table: The table, in any spelling that a policy may use.
        reason: Why.

    Returns:
        Who held them.

    Raises:
        ProjectError: E613, the name is only the end of names of tables that have a lease, or that are known.
        FolderUnwritable: E651, a lease cannot be read or written.
    """
    table_key = name_key(table_ref(table, project.root))
    broken: list[Holder] = []
    known = [*(source.ref for source in project.loaded.tables), *tables_found_before(project)]
    with recording(project.runs_dir.parent / LEASES):
        leases = shared_documents(project.loaded.project) or local_leases(project.runs_dir)
        for name, holder in all_leases(leases):
            if not holder.expires_at_ms:
                continue
            held = table_ref(holder.table, project.root)
            if name_key(held) != table_key:
                known.append(held)
                continue
            # Recorded first: a lease that is gone without a word is what nobody could explain.
            what = f"of {holder.host}, until {holder.expires_at_ms}: {reason}"
            journal.note("lease_broken", table=holder.table, of_run=holder.run_id, what=what)
            ended = break_lease(leases, name, journal.run_id)
            if ended is not None:
                broken.append(ended)
    if broken or table_key in map(name_key, known):
        return tuple(broken)
    called = table_called(table, ((ref,) for ref in known))
    if called is not None:
        raise whole_name_needed(table, called)
    return ()
