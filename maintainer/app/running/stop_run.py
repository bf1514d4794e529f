"""Ask a run to stop, on whichever machine it is."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

from maintainer.app.project_folders import Project
from maintainer.errors import ProjectError
from maintainer.journal.events.event_log import EVENTS_FILE, is_alive
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.folder.documents import LocalDocuments
from maintainer.journal.folder.run_folder import is_run_id
from maintainer.journal.stop_request import STOPS, StopRequest, ask_to_stop
from maintainer.journal.store.state_access import shared_documents


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
    request = StopRequest(f"{getpass.getuser()} on {socket.gethostname()}", now_ms, reason)
    try:
        ask_to_stop(documents, run_id, request)
    except OSError as error:
        raise FolderUnwritable.at(Path(documents.place(run_id)), error, code="E651") from error
    return True
