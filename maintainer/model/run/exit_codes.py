"""Choose the exit code of a process from what happened. Pure, so that every front end uses the same.

Order, the most severe first: 5 a failed verification, 70 a bug of ours, 143 and 130 an interruption (the rest was not
tried), 2 nothing ran, 1 a failure, 6 a refusal beside changes, 4 a refusal alone, 3 changes to apply, 0. A table that
yielded to another writer is no failure: the next run tries it again.
"""

from __future__ import annotations

from collections.abc import Iterable

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.outcome import FAILED_STEPS, FAILED_TABLES, RunOutcome, StepStatus, TableStatus

BUG_CODE = "E699"
"""Code of an exception that nobody foresaw: the table ended by it, the traceback is in the run folder."""

_NOT_DONE = FAILED_TABLES | {TableStatus.NOT_REACHED, TableStatus.INTERRUPTED}
"""A table that was not reached is no success either: what keeps tables from being started is a failure, or a full
disk, which may have no table of its own. One is interrupted in a run that nobody stopped where a job was cancelled from
outside. One that is not supported failed only where a policy names it."""


_GRAVEST_FIRST = (
    ExitCode.VERIFICATION_FAILED,
    ExitCode.BUG,
    ExitCode.TERMINATED,
    ExitCode.INTERRUPTED,
    ExitCode.USAGE,
    ExitCode.FINDINGS,
    ExitCode.PARTLY_REFUSED,
    ExitCode.REFUSED,
    ExitCode.CHANGES_PENDING,
    ExitCode.OK,
)


def gravest(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that outranks the others; 0 where there is none. The numbers say nothing about it."""
    return min(codes, key=_GRAVEST_FIRST.index, default=ExitCode.OK)


def exit_code(outcome: RunOutcome) -> ExitCode:
    """Return the exit code of a run.

    5 if a verification failed; 70 if a table ended by a bug of ours; 143 if the run was ended by SIGTERM, 130 by
    anything else (Ctrl-C, a timeout); 1 if a step or a table failed or was interrupted alone, or a table was not
    reached, or the fate of a commit is unknown, or a vacuum left files behind, or the ledger could not be written; if a
    table was blocked, 6 where the run changed another one, or a part of this one, and 4 where it changed none; else 0.
    Of the maintenance of our own ledger only a failed verification and a bug count: no table of the user's is worse for
    more.
    """
    everything = {table.status for table in outcome.tables}
    every_step = {step.status for table in outcome.tables for step in table.steps}
    tables = {table.status for table in outcome.user_tables}
    steps = {step.status for table in outcome.user_tables for step in table.steps}
    if TableStatus.VERIFY_FAILED in everything or StepStatus.VERIFY_FAILED in every_step:
        return ExitCode.VERIFICATION_FAILED
    problems = [table.problem for table in outcome.tables] + [s.error for table in outcome.tables for s in table.steps]
    if any(problem is not None and problem.code == BUG_CODE for problem in problems):
        return ExitCode.BUG
    if outcome.interrupted_by is not None:
        return ExitCode.TERMINATED if "TERM" in outcome.interrupted_by.upper() else ExitCode.INTERRUPTED
    if tables & _NOT_DONE or steps & (FAILED_STEPS | {StepStatus.INTERRUPTED}) or outcome.problems:
        return ExitCode.FINDINGS
    if TableStatus.BLOCKED in tables:
        changed = any(table.changed for table in outcome.user_tables)
        return ExitCode.PARTLY_REFUSED if changed else ExitCode.REFUSED
    return ExitCode.OK


def look_exit_code(problems: Iterable[Problem]) -> ExitCode:
    """Return the exit code of a look at tables: 70 if a bug of ours spoiled it, 1 if anything else did, else 0."""
    codes = {problem.code for problem in problems}
    return ExitCode.BUG if BUG_CODE in codes else ExitCode.FINDINGS if codes else ExitCode.OK


def plan_exit_code(plan: Plan, *, detailed: bool = False) -> ExitCode:
    """Return the exit code of ``plan``.

    As ``look_exit_code`` if a table could not be planned, 4 if one is blocked, 3 if there are changes and the detailed
    code was asked for, else 0. Our own ledger does not count.
    """
    unplanned = [table.problem for table in plan.user_tables if table.problem is not None and not table.is_passed_over]
    if unplanned:
        return look_exit_code(unplanned)
    states = {table.state for table in plan.user_tables}
    if "blocked" in states:
        return ExitCode.REFUSED
    return ExitCode.CHANGES_PENDING if detailed and "changes" in states else ExitCode.OK


def exit_reason(code: ExitCode) -> str:
    """Say in words why a run ended with a code, for the last line on the terminal."""
    return {
        ExitCode.OK: "nothing failed",
        ExitCode.FINDINGS: "a step, a table, a place or the ledger failed",
        ExitCode.USAGE: "nothing ran: the call, the project or the environment is wrong",
        ExitCode.CHANGES_PENDING: "there are changes to apply",
        ExitCode.REFUSED: "refused: no table was changed",
        ExitCode.PARTLY_REFUSED: "part done: some tables were changed, others were refused",
        ExitCode.VERIFICATION_FAILED: "a verification failed",
        ExitCode.BUG: "a bug of ours",
        ExitCode.INTERRUPTED: "interrupted before everything was done",
        ExitCode.TERMINATED: "terminated before everything was done",
    }[code]
