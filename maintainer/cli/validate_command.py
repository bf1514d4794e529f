"""``maintainer validate``: checks policy files without Spark and without network.

The checks themselves are in ``policy``, their rendering in ``report.diagnostics_report``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.context import CliContext
from maintainer.cli.options import FILE, SELECTION, keep_output, spec_options
from maintainer.cli.validate_scope import check_project, check_project_and_tests, check_text
from maintainer.cli.validate_selection import check_selected
from maintainer.errors import ExitCode
from maintainer.journal.folder.atomic_files import writing
from maintainer.policy.yaml.yaml_reader import MAX_FILE_BYTES
from maintainer.report.diagnostics_report import (
    DiagnosticsReport,
    ProjectSources,
    render_concise,
    render_full,
    render_github,
    render_json,
    render_junit,
    render_sarif,
    render_step_summary,
)
from maintainer.report.findings import write_step_summary
from maintainer.report.style import PLAIN, Style

_DOCUMENTS = {"json": render_json, "github": render_github, "junit": render_junit, "sarif": render_sarif}
FORMATS = ("full", "concise", *_DOCUMENTS)


@click.command("validate")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@spec_options(SELECTION)
@click.option(
    "-o", "--output-format", "form", type=click.Choice(FORMATS), default="full", show_default=True, callback=keep_output
)
@click.option("--output-file", type=FILE, help="Write the findings to this file. The summary still goes to stderr.")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even with findings.")
@click.option(
    "--stdin-filename", metavar="NAME", help="Check only stdin, as if it were this file of the project. For editors."
)
@click.option("--tests", "with_tests", is_flag=True, help="Also run the policy tests in policies/_tests/.")
@click.pass_context
def validate_command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    spec: RunSpec,
    form: str,
    output_file: Path | None,
    strict: bool,
    exit_zero: bool,
    stdin_filename: str | None,
    with_tests: bool,
) -> None:
    """Check policy files, and how they fit together. Needs no Spark and no network.

    The whole project is always read, because rules, profiles and duplicates concern several files. With PATHS only
    findings in those files and folders are shown. With --select only findings about those tables are shown: in their
    files, the rules that match them, the profiles that they extend, and maintainer.yml.
    """
    if spec.selection.given and (paths or stdin_filename or with_tests):
        raise click.UsageError(
            "--select, --exclude and --since choose tables of the whole project: they go with neither PATHS "
            "(`--select path:policies/sales/`) nor --stdin-filename nor --tests"
        )
    if stdin_filename and paths:
        raise click.UsageError("--stdin-filename and PATHS exclude each other")
    if with_tests and (stdin_filename or paths):
        raise click.UsageError("--tests runs all tests of the project: give neither PATHS nor --stdin-filename")
    context: CliContext = ctx.obj
    root = context.project_root
    started = time.perf_counter()
    if stdin_filename:
        checked = check_text(sys.stdin.buffer.read(MAX_FILE_BYTES + 1), stdin_filename, root)
    elif spec.selection.given:
        checked = check_selected(root, context.env, spec.selection)
    elif with_tests:
        checked = check_project_and_tests(root, context.env, context.verbosity)
    else:
        checked = check_project(root, context.env, paths)
    seconds, folder = time.perf_counter() - started, _folder_in_repository(root)
    report = replace(checked, seconds=seconds, strict=strict, folder=folder)
    style = PLAIN if output_file else Style(context.color)
    _write(_rendered(report, form, root, style), output_file)
    if output_file:
        click.echo(report.summary(), err=True)
    if form == "github":
        write_step_summary(render_step_summary(report), os.environ)
    if report.failed and not exit_zero:
        ctx.exit(ExitCode.FINDINGS)


def _rendered(report: DiagnosticsReport, form: str, root: Path, style: Style) -> Iterable[str]:
    if form in _DOCUMENTS:
        return [_DOCUMENTS[form](report).rstrip("\n")]
    if form == "concise":
        return render_concise(report, style)
    return render_full(report, ProjectSources(root, report.texts), style)


def _write(lines: Iterable[str], output_file: Path | None) -> None:
    """Print line by line, or write a file; a terminal that cannot show a character gets a substitute."""
    if output_file is None:
        for line in lines:
            click.echo(_encodable(line))
        return
    with writing(output_file, "the list of findings"), output_file.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _encodable(line: str) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return line.encode(encoding, errors="backslashreplace").decode(encoding)


def _folder_in_repository(root: Path) -> str:
    """Return the project's folder as annotations need it: relative to the workspace, else to the current folder."""
    base = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    try:
        folder = root.relative_to(base.resolve()).as_posix()
    except ValueError:
        return ""
    return "" if folder == "." else folder
