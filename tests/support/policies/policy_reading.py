"""Shared steps of these tests: text in, findings out, as `validate` would have them for one file."""

from __future__ import annotations

from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.policy_checks import check_file
from maintainer.policy.yaml.yaml_reader import read_text

HEAD = "version: 1\ntable: a.b\n"
"""How a file of one table begins."""


def findings_of(content: str | bytes, file: str = "policies/t.yml") -> list[Diagnostic]:
    """Return every finding of one file by itself, sorted."""
    document, findings = read_text(content, file)
    if document is not None:
        findings = [*findings, *check_file(document)]
    return sorted(findings)


def places_of(content: str | bytes, file: str = "policies/t.yml") -> list[tuple[str, int, int]]:
    """Return code, line and column of every finding."""
    return [(finding.code, finding.span.line, finding.span.column) for finding in findings_of(content, file)]


def only_finding(content: str, file: str = "policies/t.yml") -> Diagnostic:
    """Return the finding of a file that has one."""
    (finding,) = findings_of(content, file)
    return finding
