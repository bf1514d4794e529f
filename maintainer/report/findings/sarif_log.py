"""Findings as a SARIF 2.1.0 log, for code hosts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from maintainer import __version__
from maintainer.policy.diagnostics import START_OF_FILE
from maintainer.report.findings.finding import Finding

MAX_SARIF_RESULTS = 25_000
"""What code hosts accept in one upload."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render_sarif(findings: Sequence[Finding], title_of: Callable[[str], str], files_read: int) -> str:
    """Return a log of one run, with relative URIs and the code as the rule; at most `MAX_SARIF_RESULTS` results."""
    shown = findings[:MAX_SARIF_RESULTS]
    codes = sorted({finding.code for finding in shown})
    rules = [_rule(code, title_of(code)) for code in codes]
    run = {
        "tool": {"driver": {"name": "maintainer", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The top folder of the repository."}}},
        "results": [_result(finding, codes) for finding in shown],
        "properties": {"files": files_read, "findings": len(findings)},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _rule(code: str, title: str) -> dict[str, Any]:
    more = f"The message of each result says what to write. docs/codes.md has the smallest example, under {code}."
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title[:1].upper()}{title[1:]}."},
        "help": {"text": more},
    }


def _result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    span = finding.span or START_OF_FILE
    end_column = max(span.end_column, span.column + 1) if span.end_line == span.line else span.end_column
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": end_column,
    }
    uri = quote(finding.file)
    # A file outside the project has an absolute path: that is relative to nothing.
    artifact = {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.severity.value,
        "message": {"text": finding.text},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
    }
