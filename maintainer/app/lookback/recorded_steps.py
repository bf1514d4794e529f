"""The history of a project or a table: steps from run folders or the ledger, beside everyone else's commits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from maintainer.app.engine_access import EngineOptions, project_engine
from maintainer.app.lookback.run_history import HistoryQuery, history_row, recorded_rows, rows_of_table
from maintainer.app.lookback.table_history import beside_ours, ledger_rows, table_commits
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import named_policy
from maintainer.app.selection.recorded_tables import CurrentTable, current_tables
from maintainer.errors import MaintainerError
from maintainer.journal.folder.run_folder import is_run_id
from maintainer.model.plan.plan import Problem
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.project_settings import ledger_ref
from maintainer.policy.table_names import identity

MAX_ROWS = 100_000
"""As many steps as one look at the history returns at most."""

LOG_UNREAD_CODE = "T403"


@dataclass(frozen=True, slots=True)
class HistoryFound:
    """Steps, newest first.

    ``doubt`` says why some of them may be another table's; ``problems`` are runs, and the log of the table, that could
    not be read.
    """

    rows: tuple[HistoryRow, ...]
    doubt: str | None = None
    problems: tuple[tuple[str | None, Problem], ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What limits the steps, a sentence each."""
        doubts = () if self.doubt is None else (self.doubt,)
        return (*doubts, *(problem.what for _, problem in self.problems))


def recorded_steps(project: Project, query: HistoryQuery, engine: EngineOptions) -> HistoryFound:
    """Look up the steps of past runs; of one table beside the commits of everyone else.

    The log of a table on this machine is read as it is, of one elsewhere through the engine.

    Raises:
        ProjectError: E613, no policy names the table and no rule reaches it, or several are called so.
        MaintainerError: The runs or the ledger cannot be read. A run or a table's log that cannot be read is a problem
            beside the steps.
    """
    engine = project_engine(project.loaded.project, engine)
    ref: TableRef | None = None
    if query.table:
        project, policy = named_policy(project, query.table, engine, managed=False)
        ref = policy.table
    with_others = ref is not None and not (query.ours or query.failed or query.file)
    known = current_tables((ref,), project.past_runs_dir)[ref.identifier] if ref else None
    all_of_it = replace(query, limit=MAX_ROWS if with_others else query.limit)
    unread: list[Problem] = []
    if query.ledger:
        rows = ledger_rows(project, all_of_it, known, engine)
    else:
        recorded, unread = recorded_rows(project.past_runs_dir, all_of_it, rows_of_table(known, project.root))
        rows = list(map(history_row, recorded))
    doubt = known.doubt if rows and known is not None else None
    problems: list[tuple[str | None, Problem]] = [(None, problem) for problem in unread]
    if known is not None and with_others:
        try:
            rows = _with_others(project, known, rows, query, engine)[: query.limit]
        except (MaintainerError, OSError, ValueError) as error:
            problems.append((known.ref.identifier, _log_unread(error)))
            rows = rows[: query.limit]
    return HistoryFound(tuple(rows), doubt, tuple(problems))


def _log_unread(error: MaintainerError | OSError | ValueError) -> Problem:
    what = "commits of others are not shown, the table's log cannot be read: "
    if isinstance(error, MaintainerError):
        return Problem(error.code, what + error.what, error.where, error.help)
    return Problem(LOG_UNREAD_CODE, what + str(error), help="`--ours` shows our own steps without the log")


def _with_others(
    project: Project, table: CurrentTable, rows: list[HistoryRow], query: HistoryQuery, engine: EngineOptions
) -> list[HistoryRow]:
    others = table_commits(table, since_ms=query.since_ms, limit=query.limit, options=engine)
    return beside_ours(
        rows,
        others.commits,
        table.ref.identifier,
        is_ledger=identity(table.ref) == identity(ledger_ref(project.loaded.project, project.root)),
        runs_here=lambda run_id: is_run_id(run_id) and (project.past_runs_dir / run_id).is_dir(),
    )
