"""The history of a project or a table: our own steps, from run folders or the ledger, and everyone else's commits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from maintainer.app.engine_access import EngineOptions, open_engine, project_engine
from maintainer.app.lookback.ledger_access import required_ledger
from maintainer.app.lookback.run_history import HistoryQuery, history_row, notes_of, recorded_rows, rows_of_table
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import named_policy
from maintainer.app.selection.recorded_tables import CurrentTable, current_tables
from maintainer.errors import MaintainerError
from maintainer.journal.folder.run_folder import is_run_id
from maintainer.journal.ledger.ledger_pending import check_mark, read_mark
from maintainer.journal.ledger.ledger_rebuild import end_in_log, is_half_known
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.auto_compaction import STEP_KIND
from maintainer.model.run.history_rows import APPENDED, BY_HOOK, LOST, NOT_RECORDED, HistoryRow
from maintainer.model.run.outcome import RunOutcome
from maintainer.model.run.receipts import Amounts
from maintainer.model.table.commit_records import NO_VACUUM_END, CommitsRead, CommitsWanted, TableCommit, whole_vacuums
from maintainer.model.table.store_requests import RunRequests
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.project_settings import ledger_ref
from maintainer.policy.table_names import name_key

MAX_ROWS = 100_000
"""As many steps as one look at the history returns at most."""

LOG_UNREAD_CODE = "T403"


@dataclass(frozen=True, slots=True)
class HistoryFound:
    """Steps, newest first.

    ``doubt`` says why some of them may be another table's; ``problems`` are runs, and the log of the table, that could
    not be read. ``requests`` are what the runs of these steps asked of object stores, as far as that was counted.
    """

    rows: tuple[HistoryRow, ...]
    doubt: str | None = None
    problems: tuple[tuple[str | None, Problem], ...] = ()
    requests: Mapping[str, RunRequests] = field(default_factory=dict)

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
    runs: list[RunOutcome] = []
    if query.ledger:
        rows = ledger_rows(project, all_of_it, known, engine)
    else:
        of_table = rows_of_table(known, project.root)
        recorded, unread = recorded_rows(project.past_runs_dir, all_of_it, of_table, runs.append)
        notes = notes_of(runs)
        rows = [history_row(row, notes) for row in recorded]
    doubt = known.doubt if rows and known is not None else None
    problems: list[tuple[str | None, Problem]] = [(None, problem) for problem in unread]
    if known is not None and with_others:
        try:
            rows = _with_others(project, known, rows, query, engine)[: query.limit]
        except (MaintainerError, OSError, ValueError) as error:
            problems.append((known.ref.identifier, _log_unread(error)))
            rows = rows[: query.limit]
    requests = {run.run_id: run.requests for run in runs if run.requests is not None}
    return HistoryFound(tuple(rows), doubt, tuple(problems), requests)


def _log_unread(error: MaintainerError | OSError | ValueError) -> Problem:
    what = "commits of others are not shown, the table's log cannot be read: "
    if isinstance(error, MaintainerError):
        return Problem(error.code, what + error.what, error.where, error.help)
    return Problem(LOG_UNREAD_CODE, what + str(error), help="`--ours` shows our own steps without the log")


def _with_others(
    project: Project, table: CurrentTable, rows: list[HistoryRow], query: HistoryQuery, engine: EngineOptions
) -> list[HistoryRow]:
    wanted = CommitsWanted(query.limit, query.since_ms)
    others = _commits_on_disk(table, wanted)
    if others is None:
        with open_engine(engine) as opened, opened.history() as reader:
            others = reader.commits(table.ref, wanted)
    if others.oldest_version is None:
        from maintainer.delta.storage.failures.engine_failures import no_table

        raise no_table("there is no such table: it has no log", table.ref.identifier)
    is_ledger = name_key(table.ref) == name_key(ledger_ref(project.loaded.project, project.root))

    def runs_here(run_id: str) -> bool:
        return is_run_id(run_id) and (project.past_runs_dir / run_id).is_dir()

    return beside_ours(rows, others.commits, table.ref.identifier, is_ledger=is_ledger, runs_here=runs_here)


MAX_LEDGER_ROWS = 100_000
"""Rows of the ledger that are looked through, the newest."""


def _commits_on_disk(table: CurrentTable, wanted: CommitsWanted) -> CommitsRead | None:
    """Read a table's commits from its folder; None where it does not lie on this machine.

    Raises:
        MaintainerError, OSError: The log cannot be read.
        ValueError: A commit is damaged.
    """
    from maintainer.delta.log.commit_history import read_commits
    from maintainer.delta.storage.table_log import log_on_disk

    location = table.location
    log = None if location is None else log_on_disk(location)
    return None if log is None or location is None else read_commits(log, location, wanted)


def ledger_rows(
    project: Project, query: HistoryQuery, table: CurrentTable | None, options: EngineOptions
) -> list[HistoryRow]:
    """Return the steps of all runs that append to the project's ledger, of whichever machine, newest first.

    Args:
        project: Whose ledger.
        query: Which steps are asked for.
        table: Only this table's, also under names that it had before.
        options: Which session reads it.

    Raises:
        MaintainerError: The ledger cannot be read.
        NotSupportedYet: E620, over Spark Connect.
    """
    with open_engine(options) as opened:
        store = required_ledger(project, opened, "leave --ledger out: the run folders hold the runs of this machine")
        check_mark(read_mark(project.past_runs_dir), store.mark(), store.location)
        name, table_id = (table.ref.identifier, table.table_id) if table else (None, None)
        rows = store.rows(table=name, table_id=table_id, limit=MAX_LEDGER_ROWS)
    of_table = rows_of_table(table, project.root)
    wanted = (row for row in rows if of_table(row) and query.wants(row) and not (query.failed and is_half_known(row)))
    return [history_row(row) for row in itertools.islice(wanted, query.limit)]


def hook_rows(project: Project, run_id: str, options: EngineOptions) -> list[HistoryRow]:
    """Return the commits of one call of the writers' hook, newest first: from a table's log, else from the ledger.

    The logs of the project's tables on this machine are looked through first. Only when none of them has the commits,
    and there may be a ledger, Spark is started to read that.

    Raises:
        MaintainerError: The ledger cannot be read.
    """
    from maintainer.delta.storage.table_log import local_folder

    for name, table in current_tables((policy.table for policy in project.policies), project.past_runs_dir).items():
        # A log that cannot be read here leaves the ledger to be asked.
        with suppress(MaintainerError, OSError, ValueError):
            read = _commits_on_disk(table, CommitsWanted())
            commits = () if read is None else read.commits
            of_run = [commit for commit in commits if commit.stamp is not None and commit.stamp.run_id == run_id]
            if of_run:
                return [_row(commit, name, lambda _run_id: False) for commit in of_run]
    ledger = local_folder(project.ledger_location)
    if ledger is not None and not ledger.is_dir():
        return []
    rows = ledger_rows(project, HistoryQuery(limit=MAX_LEDGER_ROWS), None, options)
    return [row for row in rows if row.run_id == run_id]


def beside_ours(
    ours: Sequence[HistoryRow],
    commits: Iterable[TableCommit],
    table: str,
    *,
    is_ledger: bool = False,
    runs_here: Callable[[str], bool] = lambda run_id: False,
) -> list[HistoryRow]:
    """Return our steps and everyone else's commits, newest first.

    A commit of ours that no row tells of (its run folder is gone, or lies on another machine) is a row of its own.

    Args:
        ours: The table's own steps.
        commits: The table's commits, newest first.
        table: What the table is called.
        is_ledger: The table is the ledger, to which runs append.
        runs_here: Tells of a run's id whether its folder is on this machine.
    """
    rest = [commit for commit in commits if commit.stamp is None or not _is_in_rows(commit, ours)]
    rows = [*ours, *(_row(whole_vacuum, table, runs_here) for whole_vacuum in whole_vacuums(rest))]
    if is_ledger:
        rows = [replace(row, reason=APPENDED) if row.run_id is None and row.step == "WRITE" else row for row in rows]
    return sorted(rows, key=lambda row: (row.at_ms, row.version_after or -1), reverse=True)


def _is_in_rows(commit: TableCommit, ours: Sequence[HistoryRow]) -> bool:
    stamp = commit.stamp
    return stamp is not None and any(
        row.run_id == stamp.run_id
        # A Z-order that somebody asked for removes the request at its end, in a row that says so.
        and row.step in (stamp.kind, StepKind.SET_PROPERTIES)
        and row.version_after is not None
        and (-1 if row.version_before is None else row.version_before) < commit.version <= row.version_after
        for row in ours
    )


def _row(commit: TableCommit, table: str, runs_here: Callable[[str], bool]) -> HistoryRow:
    stamp = commit.stamp
    return HistoryRow(
        at_ms=commit.at_ms,
        table=table,
        step=stamp.kind if stamp else commit.operation or "(no operation)",
        status=end_in_log(commit).value if stamp else "",
        run_id=stamp.run_id if stamp else None,
        version_before=None,
        version_after=commit.version,
        **asdict(Amounts.of([commit])),
        duration_seconds=commit.duration_seconds,
        reason=_about(commit, runs_here),
        by=None if stamp else commit.by,
    )


def _about(commit: TableCommit, runs_here: Callable[[str], bool]) -> str | None:
    if commit.stamp is None:
        return commit.detail or None
    if commit.stamp.kind == STEP_KIND:
        return BY_HOOK
    reason = NOT_RECORDED if runs_here(commit.stamp.run_id) else LOST
    return f"{NO_VACUUM_END}; {reason}" if commit.operation == "VACUUM START" else reason
