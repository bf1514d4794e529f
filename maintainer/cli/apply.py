"""``maintainer apply``: do it, prove each step, record it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from maintainer import __version__
from maintainer.app.apply_plan import (
    ApplyRequest,
    apply_plan,
    check_run_limits,
    check_saved_plan,
    engine_log_of,
    open_journal,
)
from maintainer.app.engine_access import EngineOptions, open_engine
from maintainer.app.make_plan import PlanRequest, make_plan
from maintainer.app.project import Project, describe_selection
from maintainer.app.report_pages import run_page
from maintainer.app.selection import Look, SelectionOptions, choose, narrowed
from maintainer.cli.context import CliContext
from maintainer.cli.engine_options import engine_options, parse_engine_options
from maintainer.cli.plan import DEFAULT_PLAN_JOBS, plan_text, progress
from maintainer.cli.project import local_zone, now_ms, open_project
from maintainer.cli.selection import selection_options
from maintainer.cli.ticking import ticking
from maintainer.errors import ExitCode, MaintainerError, ProjectError
from maintainer.journal.durable import write_atomically
from maintainer.journal.journal import Journal
from maintainer.model.exit_codes import exit_code
from maintainer.model.outcome import RunOutcome
from maintainer.model.plan import Plan, Problem
from maintainer.model.progress import ProgressSink
from maintainer.model.results_wire import run_to_json
from maintainer.model.wire import MAX_PLAN_CHARACTERS, from_json
from maintainer.planning.planner import PlanOptions as PlanningOptions
from maintainer.report.github import render_annotations, run_annotations, run_markdown, write_step_summary
from maintainer.report.junit import render_junit
from maintainer.report.layout import printable
from maintainer.report.progress_jsonl import ProgressJsonl
from maintainer.report.progress_text import ProgressText
from maintainer.report.run_text import render_run
from maintainer.report.style import Style, cursor_wanted, is_terminal
from maintainer.units import UnitError, parse_duration


@click.command("apply")
@click.argument("plan_file", metavar="[PLAN]", required=False, type=click.Path(dir_okay=False, path_type=Path))
@selection_options
@engine_options
@click.option("--yes", is_flag=True, help="Do not ask. In a pipeline nobody is asked.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Tables at once.")
@click.option("--fail-fast", is_flag=True, help="Start no further table after the first that fails.")
@click.option("--max-failures", type=click.IntRange(min=1), help="Start no further table after so many failures.")
@click.option("--timeout", metavar="DURATION", help="Stop after this time, such as 2h.")
@click.option("--exact", is_flag=True, help="With PLAN: demand the very versions that were planned.")
@click.option("--ignore-window", is_flag=True, help="Run as if every window were open.")
@click.option("--ignore-every", is_flag=True, help="Run as if every step were due.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "jsonl", "github", "junit"]),
    default="text",
    show_default=True,
)
@click.pass_obj
def command(
    context: CliContext,
    plan_file: Path | None,
    select_: tuple[str, ...],
    exclude: tuple[str, ...],
    since: str | None,
    allow_empty: bool,
    master: str | None,
    conf: tuple[str, ...],
    yes: bool,
    jobs: int,
    fail_fast: bool,
    max_failures: int | None,
    timeout: str | None,
    exact: bool,
    ignore_window: bool,
    ignore_every: bool,
    output: str,
) -> int:
    """Do what the policies ask for, prove each rewrite before it commits, and record it.

    With PLAN, a file that `maintainer plan --out` saved: exactly that, or a refusal.
    """
    project = open_project(context)
    started_at_ms = now_ms()
    chosen = SelectionOptions(select_, exclude, since, allow_empty)
    request = _Request(jobs, fail_fast, max_failures, _seconds(timeout), output, chosen)
    if plan_file is not None:
        _refuse_beside_a_plan(select_, exclude, since, ignore_window, ignore_every)
        saved, planning = _read_plan(plan_file), None
    else:
        saved = None
        policies = choose(project.loaded.resolved(), project.loaded, chosen, command="apply", look=Look.COMES)
        planning = PlanRequest(
            policies,
            started_at_ms,
            describe_selection(select_, exclude),
            max(jobs, DEFAULT_PLAN_JOBS),
            PlanningOptions(ignore_windows=ignore_window, ignore_every=ignore_every),
            progress(context) if output == "text" else None,
        )
    journal = open_journal(project, started_at_ms)
    try:
        options = parse_engine_options(master, conf, engine_log_of(journal))
        return _run(context, project, journal, options, request, saved, planning, exact=exact, ask=not yes)
    finally:
        journal.close()


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of a run as they were given."""

    jobs: int
    fail_fast: bool
    max_failures: int | None
    timeout_seconds: float | None
    output: str
    chosen: SelectionOptions


def _run(
    context: CliContext,
    project: Project,
    journal: Journal,
    options: EngineOptions,
    request: _Request,
    saved: Plan | None,
    planning: PlanRequest | None,
    *,
    exact: bool,
    ask: bool,
) -> int:
    with open_engine(options) as opened:
        engine = opened.engine
        if planning is not None:
            plan = narrowed(make_plan(project, engine, planning), project.loaded, request.chosen, command="apply")
            if request.output == "text" and context.verbosity >= 0:
                click.echo(plan_text(context, project, plan, for_apply=True), err=True, nl=False)
        else:
            assert saved is not None
            plan = check_saved_plan(project, engine, saved, now_ms=now_ms(), exact=exact)
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
                on_problem=_warn,
            )
            ledger = opened.ledger_at(project.ledger_location)
            if ledger is None:
                _warn(_NO_LEDGER)
            outcome = apply_plan(project, engine, plan, journal, ledger, bounds)
    _keep_beside_results(journal, "junit.xml", lambda: render_junit(outcome))
    _keep_beside_results(journal, "report.html", lambda: run_page(project.runs_dir, outcome.run_id, local_zone())[1])
    _print_outcome(context, outcome, journal, request.output)
    return exit_code(outcome)


_NO_LEDGER = Problem(
    "E654",
    "over Spark Connect no ledger table is kept: its path would be one of the server's",
    help="the run folder holds the same rows; `maintainer history` reads it",
)


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


def _read_plan(path: Path) -> Plan:
    """Read a saved plan.

    Raises:
        ProjectError: E642, the file cannot be read.
        Refused: A402, it is no plan or was edited.
    """
    try:
        if path.stat().st_size > 4 * MAX_PLAN_CHARACTERS:
            raise ProjectError(
                "the plan cannot be read: it is too large to be a plan of ours",
                code="E642",
                where=str(path),
                help="`maintainer plan --out FILE` makes one",
            )
        return from_json(path.read_text(encoding="utf-8"), where=str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ProjectError(
            f"the plan cannot be read: {reason}",
            code="E642",
            where=str(path),
            help="`maintainer plan --out FILE` makes one",
        ) from error


def _refuse_beside_a_plan(*options: object) -> None:
    """A saved plan says by itself what is done; options that would choose are a misunderstanding."""
    if any(options):
        raise click.UsageError(
            "with PLAN there is nothing to choose: leave out --select, --exclude, --since and --ignore-..."
        )


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    try:
        return float(parse_duration(duration))
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--timeout") from error
