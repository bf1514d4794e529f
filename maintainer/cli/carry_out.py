"""Plans, runs and prints what came of it: what ``apply`` and ``retry`` have in common."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from maintainer import __version__
from maintainer.app.apply_plan import (
    ApplyRequest,
    SavedPlanCheck,
    apply_plan,
    check_run_limits,
    check_saved_plan,
)
from maintainer.app.budgeting import fit
from maintainer.app.engine_access import EngineOptions, open_engine
from maintainer.app.in_a_row import in_a_row
from maintainer.app.ledger_access import open_ledger
from maintainer.app.make_plan import PlanRequest, make_plan
from maintainer.app.project import Project
from maintainer.app.report_pages import run_page
from maintainer.app.selection import SelectionOptions, narrowed
from maintainer.cli.budget_options import given_budget
from maintainer.cli.context import CliContext
from maintainer.cli.plan import plan_text
from maintainer.cli.project import local_zone, now_ms
from maintainer.cli.ticking import ticking
from maintainer.errors import ExitCode, MaintainerError
from maintainer.execution.batches import BatchSize
from maintainer.journal.durable import write_atomically
from maintainer.journal.journal import Journal
from maintainer.model.exit_codes import exit_code
from maintainer.model.outcome import RunOutcome
from maintainer.model.plan import Plan, Problem
from maintainer.model.progress import ProgressSink
from maintainer.model.results_wire import run_to_json
from maintainer.report.github import render_annotations, run_annotations, run_markdown, write_step_summary
from maintainer.report.junit import render_junit
from maintainer.report.layout import printable
from maintainer.report.progress_jsonl import ProgressJsonl
from maintainer.report.progress_text import ProgressText
from maintainer.report.run_text import render_run
from maintainer.report.style import Style, cursor_wanted, is_terminal


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of a run as they were given. ``batches`` None takes those of maintainer.yml."""

    jobs: int
    fail_fast: bool
    max_failures: int | None
    timeout_seconds: float | None
    output: str
    chosen: SelectionOptions
    batches: tuple[BatchSize, ...] | None = None


def refuse_two_bounds(*, fail_fast: bool, max_failures: int | None) -> None:
    """Refuse two answers to how many failures are borne."""
    if fail_fast and max_failures is not None:
        raise click.UsageError("--fail-fast and --max-failures exclude each other: the first is the second with 1")


def carry_out(
    context: CliContext,
    project: Project,
    journal: Journal,
    options: EngineOptions,
    request: RunRequest,
    saved: Plan | None,
    planning: PlanRequest | None,
    *,
    check: SavedPlanCheck = SavedPlanCheck(),  # noqa: B008 (frozen)
    ask: bool,
) -> int:
    """Plan, or check a saved plan; run it; print what came of it.

    Args:
        context: How to print.
        project: The project.
        journal: Of this run, open; the caller closes it.
        options: Which Spark does the work.
        request: Bounds and output.
        saved: A plan to carry out as it is; None to plan.
        planning: What to plan; None with a saved plan.
        check: How a saved plan is held against the tables.
        ask: Ask a person before anything is changed.

    Returns:
        The exit code.
    """
    with open_engine(options) as opened:
        engine = opened.engine
        if planning is not None:
            plan = narrowed(make_plan(project, engine, planning), project.loaded, request.chosen, command="apply")
            plan = fit(project, plan, given_budget())
            if request.output == "text" and context.verbosity >= 0:
                click.echo(plan_text(context, project, plan, for_apply=True), err=True, nl=False)
        else:
            assert saved is not None
            plan = check_saved_plan(project, engine, saved, now_ms=now_ms(), check=check)
        check_run_limits(project, plan)
        if ask and saved is None and plan.has_changes and not _confirmed():
            click.echo("Nothing was done.", err=True)
            return ExitCode.FINDINGS
        with _event_sink(context, request.output, plan) as sink:
            bounds = ApplyRequest(
                request.jobs,
                request.fail_fast,
                request.max_failures,
                request.timeout_seconds,
                on_event=sink,
                batches=request.batches,
            )
            ledger = open_ledger(project, opened, _warn)
            outcome = apply_plan(project, engine, plan, journal, ledger, bounds)
    _keep_beside_results(journal, "junit.xml", lambda: render_junit(outcome))
    _keep_beside_results(journal, "report.html", lambda: run_page(project.runs_dir, outcome.run_id, local_zone())[1])
    _print_outcome(context, outcome, journal, request.output)
    with suppress(OSError):  # the run is over, and has said how it ended
        for problem in in_a_row(project.runs_dir, outcome):
            _warn(problem)
    return exit_code(outcome)


def _warn(problem: Problem) -> None:
    """Say what went wrong beside the tables; the run itself does not fail by it."""
    click.echo(f"warning[{problem.code}]: {printable(problem.what)}", err=True)
    for label, text in (("-->", problem.where), ("= help:", problem.help)):
        if text:
            click.echo(f"  {label} {printable(text)}", err=True)


def _keep_beside_results(journal: Journal, name: str, draw: Callable[[], str]) -> None:
    """Write a file made from the results beside them; what is already done does not fail by it."""
    path = journal.folder.path / name
    try:
        write_atomically(path, draw().encode("utf-8", "replace"))
    except (OSError, MaintainerError) as error:
        reason = error.what if isinstance(error, MaintainerError) else error.strerror or str(error)
        help_text = "results.json beside it holds the same outcomes"
        _warn(Problem("E651", f"{name} could not be written: {reason}", str(path), help_text))


def _confirmed() -> bool:
    """Ask, but only a person: stdin and stderr must be a terminal."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return True
    return click.confirm("Apply this plan?", default=False, err=True)


@contextmanager
def _event_sink(context: CliContext, output: str, plan: Plan) -> Iterator[ProgressSink | None]:
    """Progress: lines for people on stderr, one JSON event a line on stdout for machines, or nothing."""
    if output == "jsonl":
        yield ProgressJsonl(sys.stdout, __version__)
        return
    if context.verbosity < 0 or output not in ("text", "github"):
        yield None
        return
    stream: TextIO = sys.stderr
    printer = ProgressText(
        stream,
        Style(context.color_stderr),
        live=cursor_wanted(stream, os.environ),
        tables=[str(table.ref) for table in plan.tables],
        tz=local_zone(),
        terminal_size=_terminal_size,
        verbose=context.verbosity > 0,
    )
    try:
        with ticking(lambda: printer.tick(now_ms())):
            yield printer
    finally:
        printer.close()


def _terminal_size() -> tuple[int, int]:
    import shutil

    size = shutil.get_terminal_size()
    return size.columns, size.lines


def _print_outcome(context: CliContext, outcome: RunOutcome, journal: Journal, output: str) -> None:
    """The result, on stdout."""
    folder = journal.folder.path
    if output == "json":
        click.echo(run_to_json(outcome, indent=2))
    elif output == "junit":
        click.echo(render_junit(outcome), nl=False)
    elif output == "github":
        click.echo(render_annotations(run_annotations(outcome)), nl=False)
        write_step_summary(run_markdown(outcome), os.environ)
    if output in ("text", "github"):
        click.echo(render_run(outcome, Style(context.color), run_folder=_shown(folder)), nl=False)


def _shown(path: Path) -> str:
    """The path as a person in the current folder would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
