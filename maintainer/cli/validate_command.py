"""``maintainer validate``: checks policy files without Spark and without network.

The checks themselves are in ``policy``, their rendering in ``report.diagnostics_report``. With ``--select`` it shows
the findings that concern some tables, whether files name them or rules manage them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import Project
from maintainer.app.selection.managed_search import needs_session, search_tables, with_recorded_tables
from maintainer.app.selection.run_spec import RunSpec, SelectionOptions, choose
from maintainer.cli.context import CliContext
from maintainer.cli.options import FILE, SELECTION, keep_output, spec_options
from maintainer.cli.validate_scope import check_project, check_project_and_tests, check_text, findings_of
from maintainer.errors import ExitCode, ProjectError
from maintainer.journal.folder.atomic_files import writing
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.resolve.resolve import RuleSource, own_tags, table_source
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.selectors import Selectable, parse_selector
from maintainer.policy.table_names import identity, table_ref
from maintainer.policy.yaml.discovery import PROJECT_FILE
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


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that a file names, whether or not the file has errors, or that a rule manages.

    Where there is an effective policy, tags and owner are its; else what the file itself says. ``rules`` reach the
    table, ``profiles`` are the names of those that it extends.
    """

    table: TableRef
    file: str
    tags: tuple[str, ...]
    owner: str | None
    rules: tuple[RuleSource, ...]
    profiles: tuple[str, ...] = ()


def check_selected(root: Path, env: str | None, options: SelectionOptions) -> DiagnosticsReport:
    """Check the project, and keep what concerns the selected tables.

    That is their own files, the rules that reach them, the profiles that they extend and maintainer.yml; and
    every file of which nobody can say whom it concerns, because it names no table, or its ``match`` has errors.
    Tables that rules manage are looked for in folders of this machine; elsewhere only those are known that the
    selection names one by one.

    Raises:
        ProjectError: There is no project or environment; a selector cannot be read or answered, or selects nothing.
    """
    project = _with_managed(load_project(root, env, keeps_policies=False), options)
    named, broken = _named_tables(project)
    named += _managed_tables(project, {identity(table.table) for table in named})
    try:
        chosen = choose(named, project, options, command="validate", broken=broken)
    except ProjectError as error:
        if error.code == "E623" and (files := _hides_tables(project)):
            error.help = (
                f"{files[0]} has errors, so not all tables that rules manage are known; `maintainer validate` shows "
                "the errors"
            )
        raise
    others = _of_others(project, named, chosen)
    findings = tuple(finding for finding in findings_of(project) if finding.file not in others)
    return DiagnosticsReport(findings, project.files_read - len(others), len(chosen))


def _with_managed(project: LoadedProject, options: SelectionOptions) -> LoadedProject:
    searching = Project(project)
    if not needs_session(searching):
        return search_tables(searching, EngineOptions()).loaded
    written = parse_selector(options.select, project.root).table_names
    return with_recorded_tables(searching, (table_ref(name, project.root) for name in written)).loaded


def _hides_tables(project: LoadedProject) -> list[str]:
    """Return the files with errors that leave open which tables are managed: rules, and where to look."""
    wrong = {finding.file for finding in project.diagnostics if finding.is_error}
    managing = {
        file
        for file, document in project.documents.items()
        if kind_of(document) is DocumentKind.RULE and document.data.get("manage")
    }
    return sorted(wrong & (managing | {PROJECT_FILE} if managing else managing))


def _named_tables(project: LoadedProject) -> tuple[list[NamedTable], frozenset[str]]:
    policies = (resolution.policy for resolution in project.each_resolution())
    effective = {policy.file: (policy.tags, policy.owner) for policy in policies}
    named: list[NamedTable] = []
    broken: set[str] = set()
    for file, document in sorted(project.documents.items()):
        if kind_of(document) is not DocumentKind.POLICY or not isinstance(document.data.get("table"), str):
            continue
        source = table_source(document, project.root)
        if file in effective:
            tags, owner = effective[file]
        else:
            broken.add(source.ref.identifier)
            written = document.data.get("owner")
            tags, owner = tuple(sorted(source.tags or ())), written if isinstance(written, str) else None
        profiles = [project.profiles[name].tags for name in source.extends if name in project.profiles]
        rules = project.match_rules_for(source.ref, own_tags([*profiles, source.tags]))
        named.append(NamedTable(source.ref, file, tags, owner, rules, source.extends))
    return named, frozenset(broken)


def _managed_tables(project: LoadedProject, own: Collection[str]) -> list[NamedTable]:
    """Return the tables that rules manage; those with a file of their own stay its, also where it has errors."""
    managed = project.managed
    tables: list[Selectable] = [*(resolution.policy for resolution in managed.resolutions), *managed.refused]
    return [
        NamedTable(table.table, table.file, table.tags, table.owner, project.match_rules_for(table.table))
        for table in tables
        if identity(table.table) not in own
    ]


def _of_others(project: LoadedProject, named: Iterable[NamedTable], chosen: Iterable[NamedTable]) -> set[str]:
    """Return the files that certainly concern none of the chosen tables."""
    tables = {identity(table.table) for table in chosen}
    reaching = {rule.document.file for table in chosen for rule in table.rules}
    extended = {name for table in chosen for name in table.profiles}
    others = {table.file for table in named if identity(table.table) not in tables}
    others |= {rule.document.file for rule in project.rules}
    for file, document in project.documents.items():
        if kind_of(document) is DocumentKind.PROFILE and Path(file).stem not in extended:
            others.add(file)
    return others - reaching


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
