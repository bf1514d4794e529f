"""``maintainer validate --select``: the findings that concern some tables, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from maintainer.app.selection.table_selection import SelectionOptions, choose
from maintainer.cli.validate.validate_scope import Checked, findings_of
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.resolve.resolve import TableSource, own_tags, table_source
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.select.table_names import identity


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that a file names, whether or not the file has errors.

    Where there is an effective policy, tags and owner are its; else what the file itself says.
    """

    table: TableRef
    file: str
    tags: tuple[str, ...]
    owner: str | None
    source: TableSource


def check_selected(root: Path, env: str | None, options: SelectionOptions) -> Checked:
    """Check the project, and keep what concerns the selected tables.

    That is their own files, the rules that reach them, the profiles that they extend and maintainer.yml; and
    every file of which nobody can say whom it concerns, because it names no table, or its ``match`` has errors.

    Raises:
        ProjectError: There is no project or environment; a selector cannot be read or answered, or selects nothing.
    """
    project = load_project(root, env, keep_resolutions=False)
    named, broken = _named_tables(project)
    chosen = choose(named, project, options, command="validate", broken=broken)
    others = _of_others(project, named, chosen)
    findings = tuple(finding for finding in findings_of(project) if finding.file not in others)
    return Checked(findings, project.files_read - len(others), len(chosen))


def _named_tables(project: LoadedProject) -> tuple[list[NamedTable], frozenset[str]]:
    """Return every table that a file names, in the order of files, and those without an effective policy."""
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
        named.append(NamedTable(source.ref, file, tags, owner, source))
    return named, frozenset(broken)


def _of_others(project: LoadedProject, named: Iterable[NamedTable], chosen: Iterable[NamedTable]) -> set[str]:
    """Return the files that certainly concern none of the chosen tables."""
    tables = {identity(table.table) for table in chosen}
    others = {table.file for table in named if identity(table.table) not in tables}
    reaching: set[str] = set()
    extended: set[str] = set()
    for table in chosen:
        names = table.source.extends
        extended.update(names)
        profiles = [project.profiles[name].tags for name in names if name in project.profiles]
        tags = own_tags([*profiles, table.source.tags])
        reaching.update(rule.document.file for rule in project.match_rules_for(table.table, tags))
    others |= {rule.document.file for rule in project.rules} - reaching
    for file, document in project.documents.items():
        if kind_of(document) is DocumentKind.PROFILE and Path(file).stem not in extended:
            others.add(file)
    return others
