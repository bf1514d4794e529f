"""Rules that change no table are a warning: those that reach none, and those that are replaced by higher ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.cli.main import run
from maintainer.policy.diagnostics import Diagnostic, Severity
from maintainer.policy.project.policy_project import load_project

ORDERS = "version: 1\ntable: sales.orders\n"


def findings(folder: Path, *policies: str) -> tuple[Diagnostic, ...]:
    (folder / "policies").mkdir()
    for number, text in enumerate(policies):
        (folder / "policies" / f"p{number}.yml").write_text(text, encoding="utf-8")
    return load_project(folder).diagnostics


def rule(tables: str, settings: str = "vacuum: {retention: 14d}", priority: int = 0) -> str:
    return f"version: 1\nmatch: {{tables: {tables}}}\npriority: {priority}\n{settings}\n"


@pytest.mark.parametrize(
    ("tables", "help"),
    [
        ('["slaes.*"]', "did you mean `sales.*`?"),
        ("[sales.order]", "did you mean `sales.orders`?"),
        (
            '["sales\\\\.*"]',
            "`sales\\.*` is read as a glob, not as a regular expression: `*` stands for any characters",
        ),
        (
            '["hr.*"]',
            "with `manage: true` a rule also manages tables without a file; `maintainer inventory --write` makes a "
            "file for each instead",
        ),
    ],
)
def test_a_rule_that_reaches_nothing_is_a_warning(tmp_path: Path, tables: str, help: str) -> None:
    (finding,) = findings(tmp_path, ORDERS, rule(tables))
    assert (finding.code, finding.severity) == ("P357", Severity.WARNING)
    assert (finding.file, finding.span.line, finding.span.column) == ("policies/p1.yml", 2, 9)
    assert finding.message == "this rule reaches no table that has a policy"
    assert finding.help == help


def test_a_project_of_rules_alone_manages_nothing(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, rule('["*"]'))
    assert finding.message == "no file names a table, so this rule changes nothing"
    assert finding.help is not None
    assert "`maintainer inventory --write`" in finding.help


def test_such_a_rule_fails_a_strict_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(findings(tmp_path, ORDERS, rule('["slaes.*"]'))) == 1
    monkeypatch.chdir(tmp_path)
    assert run(["validate"]) == 0
    assert run(["validate", "--strict"]) == 1


def test_a_rule_by_tags_reaches_nothing_where_no_table_has_them(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, ORDERS, "version: 1\nmatch: {tags: [nightly]}\nowner: a\n")
    assert (finding.code, finding.span.line, finding.span.column) == ("P357", 2, 9)


def test_a_rule_whose_settings_are_all_replaced_is_a_warning(tmp_path: Path) -> None:
    (finding,) = findings(
        tmp_path,
        ORDERS,
        rule('["sales.*"]', "owner: a\nvacuum: {retention: 14d}"),
        rule('["*"]', "owner: b", 1),
        rule('["*"]', "vacuum: {retention: 8d}", 2),
    )
    assert (finding.code, finding.severity, finding.file) == ("P358", Severity.WARNING, "policies/p1.yml")
    assert finding.message == (
        "every setting of this rule is replaced by policies/p2.yml and policies/p3.yml, for each table that it reaches"
    )


@pytest.mark.parametrize(
    "rules",
    [
        # One setting is left.
        (rule('["*"]', "owner: a\nvacuum: {retention: 14d}"), rule('["*"]', "owner: b", 1)),
        # One table is left: the other rule does not reach it.
        (rule('["*"]', "owner: a"), rule('["sales.orders"]', "owner: b", 1)),
        # The same priority, and the same value.
        (rule('["*"]', "owner: a"), rule('["sales.*"]', "owner: a")),
    ],
)
def test_a_rule_that_changes_something_is_none(tmp_path: Path, rules: tuple[str, ...]) -> None:
    assert findings(tmp_path, ORDERS, "version: 1\ntable: hr.people\n", *rules) == ()


def test_what_a_table_itself_replaces_is_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, ORDERS + "owner: a\n", rule('["*"]', "owner: b")) == ()
