"""``maintainer validate``: checks policy files without Spark and without network.

It checks a project and its tests, some files of it, others, or stdin. The checks themselves are in ``policy``, their
rendering in ``report.diagnostics_report``. With ``--select`` it shows the findings that concern some tables, whether
files name them or rules manage them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

from maintainer.app.engine_access import EngineOptions
from maintainer.app.planning.policy_places import paths_to_one_table
from maintainer.app.project_folders import Project
from maintainer.app.selection.managed_search import needs_session, search_tables, with_recorded_tables
from maintainer.app.selection.run_spec import RunSpec, SelectionOptions, choose
from maintainer.cli.context import CliContext
from maintainer.cli.options import FILE, SELECTION, keep_output, spec_options
from maintainer.errors import ExitCode, NothingSelected
from maintainer.journal.folder.atomic_files import writing
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.policy_checks import check_file
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.resolve.resolve import RuleSource, own_tags, table_source
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.selectors import Selectable, parse_selector
from maintainer.policy.table_names import name_key, table_ref
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROJECT_FILE, is_policy_file, misplaced_policies
from maintainer.policy.yaml.yaml_document import YamlDocument
from maintainer.policy.yaml.yaml_reader import MAX_FILE_BYTES, display_path, read_bytes, read_text
from maintainer.report.diagnostics_report import (
    DiagnosticsReport,
    project_lines,
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
from maintainer.units import count_of

MAX_FILES = 20_000
"""Files that paths on the command line may lead to."""


def check_text(content: bytes, name: str, root: Path) -> DiagnosticsReport:
    """Check one file's content under its name in the project, by itself."""
    file = display_path(Path(os.path.abspath(name)), root)
    document, findings = read_text(content, file)
    findings = [*findings, *_checked(document)]
    texts = {file: content.decode("utf-8-sig", errors="replace")}
    return DiagnosticsReport(tuple(sorted(findings)), 1, 1, texts=texts)


def check_project(root: Path, env: str | None, paths: tuple[Path, ...]) -> DiagnosticsReport:
    """Check the project, and keep what concerns ``paths`` (all of it without paths).

    A file that no project holds is checked by itself.

    Raises:
        ProjectError: There is no project and no path was given, or there is no such environment.
    """
    if not paths:
        project = load_project(root, env, keeps_policies=False)
        return _whole(project)
    files = {display_path(path, root): path for path in _files_of(paths)}
    findings: list[Diagnostic] = []
    documents: dict[str, YamlDocument] = {}
    texts: dict[str, str] = {}
    if (root / POLICY_FOLDER).is_dir() or (root / PROJECT_FILE).is_file():
        project = load_project(root, env, keeps_policies=False)
        findings.extend(finding for finding in findings_of(project) if finding.file in files)
        documents.update((file, document) for file, document in project.documents.items() if file in files)
    known = {*documents, *(finding.file for finding in findings)}
    for file, path in files.items():
        if file not in known:
            document, errors = _read_alone(path, file, root)
            findings.extend(errors)
            findings.extend(_checked(document))
            if document is not None:
                documents[file] = document
                texts[file] = document.text
    policies = sum(kind_of(document) in (DocumentKind.POLICY, DocumentKind.RULE) for document in documents.values())
    return DiagnosticsReport(tuple(sorted(findings)), len(files), policies, texts=texts)


def _whole(project: LoadedProject) -> DiagnosticsReport:
    return DiagnosticsReport(
        findings_of(project),
        project.files_read,
        project.policy_count,
        managing_rules=len(project.managing_rules),
        no_table_yet=project.has_no_table_yet,
        misplaced=misplaced_policies(project.root) if project.policy_count == 0 else None,
    )


def findings_of(project: LoadedProject) -> tuple[Diagnostic, ...]:
    """Return the findings of all files, and of paths that reach one table on this machine."""
    return tuple(sorted([*project.diagnostics, *paths_to_one_table(project.tables)]))


def _files_of(paths: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the files that paths name, and the policies in folders that they name; links are not followed."""
    allowed = MAX_FILES
    for given in paths:
        path = Path(os.path.abspath(given))
        if not path.is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path, followlinks=False):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if is_policy_file(name) and not name.startswith(".") and allowed > 0:
                    allowed -= 1
                    yield Path(folder) / name


def _read_alone(path: Path, file: str, root: Path) -> tuple[YamlDocument | None, list[Diagnostic]]:
    content = read_bytes(path, root if path.is_relative_to(root) else path.parent)
    return (None, [replace(content, file=file)]) if isinstance(content, Diagnostic) else read_text(content, file)


def _checked(document: YamlDocument | None) -> list[Diagnostic]:
    return [] if document is None else check_file(document)


def check_project_and_tests(root: Path, env: str | None, verbosity: int) -> DiagnosticsReport:
    """Check a project, and run its tests if it has no errors; says on stderr how many ran.

    Raises:
        ProjectError: There is no project, or no such environment.
    """
    from maintainer.app.policy_tests import run_policy_tests  # planning is loaded only when it is asked for

    project = load_project(root, env)
    if project.errors:
        click.echo("tests were not run, because the policies have errors", err=True)
        return _whole(project)
    report = run_policy_tests(project)
    if verbosity >= 0:
        where = f"policies/_tests/ ({count_of(report.files, 'file')})"
        passed = report.tests - report.failed
        click.echo(f"{count_of(report.tests, 'test')} in {where}: {passed} passed, {report.failed} failed", err=True)
    findings = tuple(sorted([*findings_of(project), *report.diagnostics]))
    return replace(_whole(project), diagnostics=findings, files_read=project.files_read + report.files)


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
    named += _managed_tables(project, {name_key(table.table) for table in named})
    try:
        chosen = choose(named, project, options, command="validate", broken=broken)
    except NothingSelected as error:
        if files := _hides_tables(project):
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
    wrong = {finding.file for finding in project.errors}
    documents = project.documents.items()
    managing = {file for file, each in documents if kind_of(each) is DocumentKind.RULE and each.data.get("manage")}
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


def _managed_tables(project: LoadedProject, with_own_file: Collection[str]) -> list[NamedTable]:
    """Return the tables that rules manage; those with a file of their own stay its, also where it has errors."""
    managed = project.managed
    tables: list[Selectable] = [*(resolution.policy for resolution in managed.resolutions), *managed.refused]
    return [
        NamedTable(table.table, table.file, table.tags, table.owner, project.match_rules_for(table.table))
        for table in tables
        if name_key(table.table) not in with_own_file
    ]


def _of_others(project: LoadedProject, named: Iterable[NamedTable], chosen: Iterable[NamedTable]) -> set[str]:
    """Return the files that certainly concern none of the chosen tables."""
    tables = {name_key(table.table) for table in chosen}
    reaching = {rule.document.file for table in chosen for rule in table.rules}
    extended = {name for table in chosen for name in table.profiles}
    others = {table.file for table in named if name_key(table.table) not in tables}
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
    return render_full(report, project_lines(root, report.texts), style)


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
