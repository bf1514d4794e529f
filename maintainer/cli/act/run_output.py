"""Shows a run of ``apply``, ``retry`` or ``watch``: the plan before it, its progress, problems, and the result.

It asks before tables are changed, as Terraform does: a person agrees on a terminal, a pipeline says ``--yes``. Where
there is nobody to ask and nobody has agreed, a command refuses before it looks at any table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from maintainer.app.planning.make_plan import PlannedTable
from maintainer.app.project_folders import Project, local_zone
from maintainer.app.running.run_listener import RunListener, RunResult
from maintainer.cli.act.plan_command import plan_text, print_table_planned
from maintainer.cli.context import CliContext, note, print_document, warn
from maintainer.errors import ExitCode, ProjectError
from maintainer.errors.foreign_text import visible_json
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.product_version import __version__
from maintainer.model.run.outcome import run_to_json
from maintainer.model.run.progress import ProgressEvent, ProgressSink, RunStarted
from maintainer.report.findings import render_annotations, write_step_output, write_step_summary
from maintainer.report.run.progress_jsonl import ProgressJsonl
from maintainer.report.run.progress_text import PlannedNames, ProgressText
from maintainer.report.run.run_findings import joined, render_junit, run_findings
from maintainer.report.run.run_text import render_run, run_markdown
from maintainer.report.status_documents import end_json
from maintainer.report.style import Style, cursor_wanted, is_terminal
from maintainer.report.text_layout import printable

RUN_FOLDER_OUTPUT = "run-folder"


class RunOutput(RunListener):
    """Prints a run as ``-o`` asks: results to stdout, everything else to stderr.

    Args:
        context: How much to say, and whether in colour.
        project: The project, for the plan's heading.
        output: ``text``, ``json``, ``jsonl``, ``github`` or ``junit``.
        ask: Ask a person before anything is changed.
    """

    def __init__(self, context: CliContext, project: Project, output: str, *, ask: bool) -> None:
        self._context = context
        self._project = project
        self._output = output
        self._ask = ask
        self._shows_text = output == "text" and context.verbosity >= 0

    def table_planned(self, table: PlannedTable) -> None:
        """Print a line for each planned table."""
        if self._shows_text:
            print_table_planned(table)

    def agrees_to(self, plan: Plan) -> bool:
        """Print the plan and ask, unless nobody has to be asked. Nobody is asked about a plan that was not shown."""
        asks = self._ask and plan.has_changes
        if self._shows_text or asks:
            text = plan_text(self._context, self._project, plan, for_apply=True, in_brief=not asks)
            click.echo(text, err=True, nl=False)
        return not asks or is_approved("Apply this plan?", yes=False)

    @contextmanager
    def progress(self, plan: Plan) -> Iterator[ProgressSink | None]:
        """Show progress: lines for people on stderr, one JSON event a line on stdout for machines, or nothing."""
        if self._output == "jsonl":
            yield ProgressJsonl(sys.stdout, __version__)
            return
        if self._context.verbosity < 0 or self._output not in ("text", "github"):
            yield _name_run_folder if self._output == "github" else None
            return
        printer = ProgressText(
            sys.stderr,
            Style(self._context.color_stderr),
            live=cursor_wanted(sys.stderr, os.environ),
            planned=PlannedNames(
                [str(table.ref) for table in plan.tables],
                [str(table.ref) for table in plan.tables if table.blocked or table.problem],
            ),
            tz=local_zone(),
            verbose=self._context.verbosity > 0,
        )

        def named_and_shown(event: ProgressEvent) -> None:
            _name_run_folder(event)
            printer(event)

        try:
            yield named_and_shown if self._output == "github" else printer
        finally:
            printer.close()

    def problem(self, problem: Problem) -> None:
        """Print a warning. It does not change the exit code."""
        warn(problem.what, problem.code)
        for label, text in (("-->", problem.where), ("= help:", problem.help)):
            if text:
                note(f"  {label} {printable(text)}")

    def finished(self, result: RunResult) -> None:
        """Print the result on stdout."""
        outcome = result.outcome
        if self._output == "json":
            print_document(visible_json(run_to_json(outcome)))
        elif self._output == "junit":
            click.echo(render_junit(outcome), nl=False)
        elif self._output == "github":
            click.echo(render_annotations(joined(run_findings(outcome))), nl=False)
            write_step_summary(run_markdown(outcome), os.environ)
        if self._output in ("text", "github"):
            folder = _from_here(result.run_folder)
            click.echo(render_run(outcome, Style(self._context.color), run_folder=folder), nl=False)


def exit_code_of(result: RunResult | None, output: str) -> ExitCode:
    """Return the exit code of a run; one that a person did not agree to leaves work undone, and has no results."""
    if result is not None:
        return result.exit_code
    if output == "json":
        print_document(end_json(ExitCode.FINDINGS, ()))
    return ExitCode.FINDINGS


def _name_run_folder(event: ProgressEvent) -> None:
    """Say to later steps of the job which folder a run writes, as soon as there is one: they may keep it."""
    if isinstance(event, RunStarted):
        write_step_output(RUN_FOLDER_OUTPUT, event.run_folder, os.environ)


def _from_here(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):  # not below the current folder, or that one was removed meanwhile
        return str(path)


YES = click.option("--yes", is_flag=True, help="Do not ask. Needed without a terminal.")


def require_approval(*, yes: bool, command: str, first: str) -> None:
    """Refuse a command that changes tables where nobody agreed and nobody can be asked.

    Args:
        yes: Whether ``--yes`` was given.
        command: The command, for the message.
        first: What a person can look at or should know before agreeing to it.

    Raises:
        ProjectError: E628.
    """
    if yes or (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    raise ProjectError(
        f"`{command}` changes tables, and there is no terminal to ask whether it may",
        code="E628",
        help=f"in a pipeline write `{command} --yes`; {first}",
    )


def is_approved(question: str, *, yes: bool) -> bool:
    """Ask a question on the terminal, unless ``--yes`` was given, and say so where nothing is done. Enter means no."""
    if yes or click.confirm(question, default=False, err=True):
        return True
    click.echo("Nothing was done.", err=True)
    return False
