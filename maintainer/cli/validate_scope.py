"""The files that ``validate`` checks: a project and its tests, some files of it, others, or stdin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from maintainer.app.planning.policy_places import paths_to_one_table
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.policy_checks import check_file
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROJECT_FILE, misplaced_policies
from maintainer.policy.yaml.yaml_document import Document
from maintainer.policy.yaml.yaml_reader import display_path, read_bytes, read_text
from maintainer.report.diagnostics_report import DiagnosticsReport
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
    documents: dict[str, Document] = {}
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
                if name.endswith((".yml", ".yaml")) and not name.startswith(".") and allowed > 0:
                    allowed -= 1
                    yield Path(folder) / name


def _read_alone(path: Path, file: str, root: Path) -> tuple[Document | None, list[Diagnostic]]:
    content = read_bytes(path, root if path.is_relative_to(root) else path.parent)
    return (None, [replace(content, file=file)]) if isinstance(content, Diagnostic) else read_text(content, file)


def _checked(document: Document | None) -> list[Diagnostic]:
    return [] if document is None else check_file(document)


def check_project_and_tests(root: Path, env: str | None, verbosity: int) -> DiagnosticsReport:
    """Check a project, and run its tests if it has no errors; says on stderr how many ran.

    Raises:
        ProjectError: There is no project, or no such environment.
    """
    from maintainer.app.policy_tests import run_policy_tests  # planning is loaded only when it is asked for

    project = load_project(root, env)
    if project.has_errors:
        click.echo("tests were not run, because the policies have errors", err=True)
        return _whole(project)
    report = run_policy_tests(project)
    if verbosity >= 0:
        where = f"policies/_tests/ ({count_of(report.files, 'file')})"
        passed = report.tests - report.failed
        click.echo(f"{count_of(report.tests, 'test')} in {where}: {passed} passed, {report.failed} failed", err=True)
    findings = tuple(sorted([*findings_of(project), *report.diagnostics]))
    return replace(_whole(project), diagnostics=findings, files_read=project.files_read + report.files)
