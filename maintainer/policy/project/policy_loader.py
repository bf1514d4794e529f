"""Read the files of a project one by one, check each, and sort them into tables, rules and profiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.policy_checks import check_file
from maintainer.policy.project.project_settings import with_environment
from maintainer.policy.resolve.resolve import ProfileSource, RuleSource, TableSource, rule_source, table_source
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.table_names import is_called, name_key, table_ref
from maintainer.policy.yaml.discovery import table_in_first_lines
from maintainer.policy.yaml.yaml_document import YamlDocument
from maintainer.policy.yaml.yaml_reader import read_bytes, read_document


class PolicyLoader:
    """Reads and checks one file after the other, and keeps what is good of each kind.

    Args:
        root: The folder that files must be in.
        paths_from: Where relative table paths start.
        only: The one table that is asked for; files that certainly name another one are not read.
    """

    def __init__(self, root: Path, paths_from: Path, only: str | None) -> None:
        self._root = root
        self._paths_from = paths_from
        self._only = only
        self.not_read: list[str] = []
        self.findings: list[Diagnostic] = []
        self.broken: set[str] = set()
        self.documents: dict[str, YamlDocument] = {}
        self.rules: list[RuleSource] = []
        self.named_tables: list[TableSource] = []
        self.named_profiles: list[ProfileSource] = []

    @property
    def tables(self) -> list[TableSource]:
        """The files of tables without errors of their own."""
        return [table for table in self.named_tables if table.document.file not in self.broken]

    def read_project(self, path: Path | None, environ: Mapping[str, str]) -> YamlDocument | None:
        """Read maintainer.yml and put environment variables into it; None where it cannot be read, or is not there."""
        if path is None:
            return None
        document, findings = read_document(path, self._root)
        if document is not None:
            document, problems = with_environment(document, environ)
            findings = [*findings, *problems]
        return self._check(document, findings, path)

    def read_policy(self, path: Path) -> None:
        """Read the file of a table, a rule or a profile."""
        if self._only is not None and (other := self._other_table(path)) is not None:
            self.not_read.append(other)
            return
        document = self._check(*read_document(path, self._root), path)
        if document is None:
            return
        kind = kind_of(document)
        if kind is DocumentKind.POLICY and isinstance(document.data.get("table"), str):
            self.named_tables.append(table_source(document, self._paths_from))
        elif kind is DocumentKind.PROFILE:
            self.named_profiles.append(ProfileSource(document))
        elif kind is DocumentKind.RULE and document.file not in self.broken:
            self.rules.append(rule_source(document, self._paths_from))

    def _other_table(self, path: Path) -> str | None:
        """Return the table of a file that certainly names another one than the one that is asked for."""
        content = read_bytes(path, self._root)
        named = None if isinstance(content, Diagnostic) else table_in_first_lines(content)
        if named is None or self._only is None:
            return None
        ref = table_ref(named, self._paths_from)
        is_meant = name_key(ref) == name_key(table_ref(self._only, self._paths_from)) or is_called(ref, self._only)
        return None if is_meant else named

    def _check(self, document: YamlDocument | None, findings: list[Diagnostic], path: Path) -> YamlDocument | None:
        if document is not None:
            findings = [*findings, *check_file(document)]
            document = document.without_text()
            self.documents[document.file] = document
        self.findings.extend(findings)
        self.broken.update(finding.file for finding in findings if finding.is_error)
        return document
