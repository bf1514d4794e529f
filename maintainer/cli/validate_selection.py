"""``validate --select``: the findings that concern some tables, whether files name them or rules manage them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import Project
from maintainer.app.selection.managed_search import needs_session, search_tables, with_recorded_tables
from maintainer.app.selection.run_spec import SelectionOptions, choose
from maintainer.cli.validate_scope import findings_of
from maintainer.errors import ProjectError
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.resolve.resolve import RuleSource, own_tags, table_source
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.selectors import Selectable, parse_selector
from maintainer.policy.table_names import identity, table_ref
from maintainer.policy.yaml.discovery import PROJECT_FILE
from maintainer.report.diagnostics_report import DiagnosticsReport


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
    project = _with_managed(load_project(root, env, keep_resolutions=False), options)
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
