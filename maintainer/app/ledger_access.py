"""Open the ledger of a project for a run, or say why there is none."""

from __future__ import annotations

from collections.abc import Callable

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.project_folders import Project
from maintainer.errors import MaintainerError
from maintainer.journal.ledger.ledger_mark import check_mark, read_mark
from maintainer.journal.ledger.ledger_rebuild import LedgerStore
from maintainer.model.plan.plan import Problem

_NO_LEDGER = Problem(
    "E654",
    "over Spark Connect no ledger table is kept: its path would be one of the server's",
    help="the run folder holds the same rows; `maintainer history` reads it",
)


def open_ledger(project: Project, opened: OpenedEngine, on_problem: Callable[[Problem], None]) -> LedgerStore | None:
    """Open the project's ledger; None over Spark Connect, which ``on_problem`` is given as E654."""
    ledger = opened.ledger_at(project.ledger_location)
    if ledger is None:
        on_problem(_NO_LEDGER)
    return ledger


def ledger_problem(project: Project, ledger: LedgerStore | None) -> Problem | None:
    """Look at the ledger as it lies there: what is wrong with it; None where nothing is, or where there is none yet."""
    if ledger is None:
        return None
    try:
        check_mark(read_mark(project.runs_dir), ledger.mark(), ledger.location)
    except MaintainerError as error:
        value = f" ({error.found})" if error.found else ""
        return Problem(error.code, f"{error.what}{value}", error.where, error.help)
    return None
