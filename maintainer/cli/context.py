"""What every command has: its settings, the project, and how it prints documents, tables and warnings.

The settings are the project's root, the environment, how much to print, and whether to colour. The project is loaded
late, for ``--help`` needs none; every policy error is shown when there are any.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maintainer.cli.stage_lines import policies_are_read
from maintainer.errors import ExitCode, MaintainerError, NoProject
from maintainer.errors.foreign_text import visible_json
from maintainer.report.style import Role, Style, color_wanted
from maintainer.report.text_layout import columns, printable

if TYPE_CHECKING:
    from maintainer.app.project_folders import Project
    from maintainer.model.plan.plan import Problem

PROJECT_FILE = "maintainer.yml"
_MAX_ANCESTORS = 40


@dataclass(frozen=True, slots=True)
class CliContext:
    """Made by the group, handed to commands as ``ctx.obj``.

    ``verbosity`` is -1 (quiet), 0 or 1 (verbose). ``color`` is whether stdout takes colour; ``color_stderr``
    the same for stderr, where progress goes.
    """

    project_root: Path
    env: str | None = None
    verbosity: int = 0
    color: bool = False
    color_stderr: bool = False


def find_project_root(start: Path) -> Path:
    """Return the nearest folder at or above ``start`` that holds maintainer.yml, else ``start`` itself."""
    start = start.resolve()
    folders = [start, *start.parents][:_MAX_ANCESTORS]
    return next((folder for folder in folders if (folder / PROJECT_FILE).is_file()), start)


_GIVEN = "maintainer.given"
"""Where a context, and those below it, keep which general options were given."""


class GeneralOption(click.Option):
    """An option of every command, which stands before its name or behind it. Only ``maintainer --help`` explains it."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option in the help of the group alone."""
        return super().get_help_record(ctx) if ctx.parent is None else None


def _keep(context: click.Context, param: click.Parameter, value: object) -> None:
    """Keep what was given; before and behind the command it must be the same."""
    name, given = param.name or "", context.meta.setdefault(_GIVEN, {})
    if value in (None, False) or context.resilient_parsing:
        return
    if given.setdefault(name, value) != value:
        raise click.UsageError(
            f"{param.opts[-1]} says `{given[name]}` before the command and `{value}` behind it", context
        )
    context.obj = context_of(context)


def _general(*names: str, **said: Any) -> GeneralOption:  # noqa: ANN401
    return GeneralOption(list(names), expose_value=False, callback=_keep, **said)


GENERAL = (
    _general(
        "--project",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Project folder. Default: this folder or the nearest one above it with a maintainer.yml.",
    ),
    _general("--env", metavar="NAME", help="The environment in maintainer.yml whose overrides apply."),
    _general("-v", "--verbose", is_flag=True, help="Print more detail."),
    _general("-q", "--quiet", is_flag=True, help="Print only results and errors."),
    _general(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        help="When to color the output. auto, the default, follows NO_COLOR and FORCE_COLOR.",
    ),
)
_EPILOG = f"{', '.join('/'.join(option.opts) for option in GENERAL)}: see maintainer --help."


def with_general_options(command: click.Command) -> click.Command:
    """Let a command, and those below it, take the general options behind its name, too."""
    if GENERAL[0] not in command.params:
        command.params.extend(GENERAL)
        command.epilog = command.epilog or _EPILOG
        for below in command.commands.values() if isinstance(command, click.Group) else ():
            with_general_options(below)
    return command


def context_of(context: click.Context) -> CliContext:
    """Return the settings of every command by the general options that were given.

    Raises:
        click.UsageError: Two of them exclude each other.
        NoProject: The current folder was removed.
    """
    given = context.meta.get(_GIVEN, {})
    verbose, quiet, color = given.get("verbose", False), given.get("quiet", False), given.get("color", "auto")
    if verbose and quiet:
        raise click.UsageError("--verbose and --quiet exclude each other")
    context.color = color_wanted(color, sys.stdout, os.environ)
    return CliContext(
        project_root=given["project"].resolve() if "project" in given else find_project_root(_current_folder()),
        env=given.get("env"),
        verbosity=verbose - quiet,
        color=context.color,
        color_stderr=color_wanted(color, sys.stderr, os.environ),
    )


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise NoProject(
            "the current folder was removed", code="E611", help="change into a folder that is there"
        ) from error


def open_project(context: CliContext, only: str | None = None) -> Project:
    """Load the project of a command; with ``only`` no file that names another table than this one.

    Raises:
        PolicyProblems: Policy files have errors; all of them have been printed to stderr.
        ProjectError: There is no project, or no such environment.
    """
    from maintainer.app.project_folders import PolicyProblems, Project
    from maintainer.report.diagnostics_report import DiagnosticsReport, project_lines, render_full

    started = time.monotonic()
    try:
        project = Project.load(context.project_root, context.env, only)
    except PolicyProblems as problems:
        loaded = problems.loaded
        seconds = time.monotonic() - started
        report = DiagnosticsReport(loaded.diagnostics, loaded.files_read, loaded.policy_count, seconds)
        for block in render_full(report, project_lines(loaded.root, {}), Style(context.color_stderr)):
            click.echo(block, err=True)
        raise
    finally:
        policies_are_read()
    if project.loaded.has_no_table_yet and context.verbosity >= 0:
        note(
            "No tables yet: `roots` in maintainer.yml is empty. Write there where your tables lie, such as "
            "`roots: [/data/lake]`; then `maintainer list` shows them."
        )
    return project


def now_ms() -> int:
    """Return the time of this machine, milliseconds since 1970 UTC; read once in a command and passed on."""
    return time.time_ns() // 1_000_000


OUTPUT = "maintainer.output"
"""Where a context keeps what ``-o`` asks for."""

_PRINTED = "maintainer.printed"


def print_document(text: str) -> None:
    """Print the JSON document of a command on stdout."""
    click.get_current_context().meta[_PRINTED] = True
    click.echo(text.rstrip("\n"))


def print_as(output: str, **forms: Callable[[], str]) -> None:
    """Print the form that ``-o`` asks for; JSON as the document of the command."""
    text = forms[output]()
    if output == "json":
        print_document(visible_json(text))
    else:
        click.echo(text, nl=False)


def print_json(document: object) -> None:
    """Print one value as the JSON document of a command."""
    print_document(visible_json(json.dumps(document, indent=2, ensure_ascii=False)))


def print_failure(context: click.Context, error: Exception) -> None:
    """With ``-o json``, print what ended the command as its document, unless it has printed one."""
    if context.meta.get(OUTPUT) == "json" and not context.meta.get(_PRINTED):
        from maintainer.report.status_documents import end_json

        code = error.exit_code if isinstance(error, MaintainerError) else ExitCode.BUG
        click.echo(end_json(code, tuple(_problems_of(error))), nl=False)


def _problems_of(error: Exception) -> Iterator[Problem]:
    from maintainer.app.project_folders import PolicyProblems
    from maintainer.model.plan.plan import Problem, as_problem
    from maintainer.model.run.exit_codes import BUG_CODE

    if isinstance(error, PolicyProblems):
        for finding in error.loaded.errors:
            yield Problem(finding.code, finding.message, finding.place, finding.help)
    elif isinstance(error, MaintainerError):
        yield as_problem(error)
    else:
        yield Problem(BUG_CODE, "a bug in maintainer", help="the message on stderr names the file to report it with")


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> None:
    """Print rows in columns below a bold heading; nothing without rows."""
    if rows:
        head, *lines = columns([heading, *([printable(cell) for cell in row] for row in rows)])
        click.echo("\n".join([style.paint(head, Role.BOLD), *lines]))


def print_search(project: Project) -> bool:
    """Warn of rules without effect and of folders that a search left out; True if there is a rule without effect.

    Before the tables are known, ``validate`` cannot say so of a rule.
    """
    loaded = project.loaded
    if loaded.search is None:
        return False
    findings = [finding for finding in loaded.diagnostics if not finding.is_error]
    for finding in findings:
        warn(f"{finding.file}:{finding.span.line}: {finding.message}; {finding.help}", finding.code)
    for note in loaded.search.notes:
        warn(f"{note.what} ({note.where}); {note.help}", note.code)
    return bool(findings)


def print_elsewhere(context: CliContext, project: Project) -> None:
    """Say where other environments keep their runs, if none are recorded in this one."""
    from maintainer.app.project_folders import records_elsewhere

    for line in records_elsewhere(project) if context.verbosity >= 0 else ():
        note(printable(line))


def warn(text: str, code: str = "") -> None:
    """Print a warning on stderr. It does not change the exit code."""
    note(f"warning{f'[{code}]' if code else ''}: {printable(text)}")


def note(line: str) -> None:
    """Print a line on stderr, above the live lines of a run where there are any: not by click, which goes past them."""
    sys.stderr.write(line + "\n")
