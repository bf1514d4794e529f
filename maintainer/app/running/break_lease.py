"""End leases by hand, with the same record as every other run."""

from __future__ import annotations

from maintainer.app.project_folders import Project
from maintainer.journal.folder.atomic_files import FolderUnwritable, reading_runs
from maintainer.journal.folder.run_folder import LEASES
from maintainer.journal.journal import Journal
from maintainer.journal.leases import Holder, all_leases, break_lease, current_holders, local_leases
from maintainer.journal.store.state_access import shared_documents
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import identity, table_called, table_ref, whole_name_needed


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
        ProjectError: E613, the name is only the end of the names of tables that have a lease.
        FolderUnwritable: E651, a lease cannot be read or written.
    """
    table_key = identity(table_ref(table, project.root))
    broken: list[Holder] = []
    others: list[TableRef] = []
    try:
        leases = shared_documents(project.loaded.project) or local_leases(project.runs_dir)
        for name, holder in all_leases(leases):
            if not holder.expires_at_ms:
                continue
            held = table_ref(holder.table, project.root)
            if identity(held) != table_key:
                others.append(held)
                continue
            # Recorded first: a lease that is gone without a word is what nobody could explain.
            what = f"of {holder.host}, until {holder.expires_at_ms}: {reason}"
            journal.note("lease_broken", table=holder.table, of_run=holder.run_id, what=what)
            ended = break_lease(leases, name, journal.run_id)
            if ended is not None:
                broken.append(ended)
    except OSError as error:
        raise FolderUnwritable.at(project.runs_dir.parent / LEASES, error, code="E651") from error
    called = None if broken else table_called(table, ((ref,) for ref in others))
    if called is not None:
        raise whole_name_needed(table, called)
    return tuple(broken)
