"""A finding as an annotation, and the step summary."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from maintainer.policy.diagnostics import Severity, SourceSpan
from maintainer.report.findings import (
    Case,
    Finding,
    Suite,
    cut_lines,
    file_and_line,
    render_annotations,
    render_suites,
    write_step_output,
    write_step_summary,
)


def test_annotation_properties_are_escaped_and_columns_need_one_line() -> None:
    finding = Finding(Severity.ERROR, "a:b,c%\n!", "x:y,z%\r\n", file="f,1.yml", span=SourceSpan(3, 2, 3, 9))
    of_two_lines = dataclasses.replace(finding, span=SourceSpan(3, 2, 4, 9))
    title = "::error title=maintainer a%3Ab%2Cc%25%0A!"
    assert render_annotations([finding, of_two_lines]) == (
        f"{title},file=f%2C1.yml,line=3,col=2,endLine=3,endColumn=9::x:y,z%25%0D%0A\n"
        f"{title},file=f%2C1.yml,line=3,endLine=4::x:y,z%25%0D%0A\n"
    )


def test_ten_annotations_of_a_kind_and_a_count_of_the_rest() -> None:
    many = [Finding(Severity.ERROR, "t", str(n)) for n in range(25)] + [Finding(Severity.WARNING, "t", "w")] * 11
    lines = render_annotations(many).splitlines()
    assert [line for line in lines if line.startswith("::error")] == [
        f"::error title=maintainer t::{n}" for n in range(10)
    ]
    assert len(lines) == 21
    assert lines[-1] == "15 more errors, 1 more warning: GitHub shows 10 of a kind; all are in the step summary"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("policies/a.yml:12", ("policies/a.yml", 12)),
        ("policies/a.yaml:12:3", ("policies/a.yaml", 12)),
        ("policies/a.yml", ("policies/a.yml", None)),
        ("sales.items@v78", ("own.yml", None)),
        ("policies/a.yml:0", ("own.yml", None)),
        (None, ("own.yml", None)),
    ],
)
def test_where_a_finding_points(where: str | None, expected: tuple[str, int | None]) -> None:
    assert file_and_line(where, "own.yml") == expected


def test_the_step_summary_is_appended_cut_at_its_limit_and_never_raises(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    assert write_step_summary("x", {}) is False
    assert write_step_summary("one\n", {"GITHUB_STEP_SUMMARY": str(file)}) is True
    assert write_step_summary("größe\n" * 300_000, {"GITHUB_STEP_SUMMARY": str(file)}) is True
    text = file.read_text(encoding="utf-8")
    assert text.startswith("one\ngröße\n")
    assert text.endswith("größe\n\nCut: GitHub shows no more than 1 MiB.\n")
    assert 1024 * 1024 - 10 < file.stat().st_size <= 1024 * 1024
    assert write_step_summary("a line that is too long\n", {"GITHUB_STEP_SUMMARY": str(file)}) is False
    assert write_step_summary("x", {"GITHUB_STEP_SUMMARY": str(tmp_path)}) is False
    assert cut_lines("a\nb\n", 4) == "a\nb\n"


def test_a_step_output_is_one_line_and_never_raises(tmp_path: Path) -> None:
    file = tmp_path / "output"
    assert write_step_output("a", "x", {}) is False
    assert write_step_output("a", "x", {"GITHUB_OUTPUT": str(file)}) is True
    assert write_step_output("b", "y z", {"GITHUB_OUTPUT": str(file)}) is True
    assert write_step_output("c", "1\nevil=2", {"GITHUB_OUTPUT": str(file)}) is False
    assert write_step_output("c", "1", {"GITHUB_OUTPUT": str(tmp_path)}) is False
    assert file.read_text(encoding="utf-8") == "a=x\nb=y z\n"


def test_a_case_has_its_place_and_its_code() -> None:
    case = Case("P201 at 4:3", 0.0, "failure", "unknown <key>", "a.yml:4:3", "P201", {"file": "a.yml", "line": "4"})
    lines = render_suites("maintainer validate", [Suite("a.yml", [case, Case("b", body="warning: x")])], 1.5)
    assert lines.splitlines() == [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<testsuites name="maintainer validate" tests="2" failures="1" errors="0" skipped="0" time="1.500">',
        '  <testsuite name="a.yml" tests="2" failures="1" errors="0" skipped="0" time="0.000">',
        '    <testcase classname="a.yml" name="P201 at 4:3" file="a.yml" line="4" time="0.000">',
        '      <failure message="unknown &lt;key&gt;" type="P201">a.yml:4:3</failure>',
        "    </testcase>",
        '    <testcase classname="a.yml" name="b" time="0.000">',
        "      <system-out>warning: x</system-out>",
        "    </testcase>",
        "  </testsuite>",
        "</testsuites>",
    ]
