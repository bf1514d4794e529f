"""Values in a wrong form: what is offered in their place, bounds, items, and nothing at all."""

from __future__ import annotations

import pytest

from maintainer.policy.schema.formats import check_format
from maintainer.policy.schema.known_expectations import EXPECTATIONS
from tests.support.policies.policy_reading import HEAD, findings_of, only_finding


def test_an_expectation_is_never_mistaken_for_its_opposite() -> None:
    for name in EXPECTATIONS:
        words = name.split("_")
        for moved in range(len(words)) if "not" in words else ():
            rest = [word for word in words if word != "not"]
            mistyped = "_".join([*rest[:moved], "not", *rest[moved:]])
            problem = check_format("expectation", mistyped)
            if problem is not None:
                assert problem.help == f"did you mean `{name}`?"


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("22", "write `22:00`"),
        ("9:30", "write `09:30`"),
        ("9", "write `09:00`"),
        ("10pm", "write `22:00`"),
        ("12 am", "write `00:00`"),
        ("2230", "write `22:30`"),
        ("25", "write a time of day with two digits each, like `22:00`"),
        ("22:60", "write a time of day with two digits each, like `22:00`"),
        ("13pm", "write a time of day with two digits each, like `22:00`"),
    ],
)
def test_a_time_of_day_is_offered_where_one_is_meant(text: str, help: str) -> None:
    problem = check_format("time", text)
    assert problem is not None
    assert (problem.code, problem.help) == ("P205", help)


@pytest.mark.parametrize(
    ("content", "file", "helps"),
    [
        (HEAD + 'tags: ["", "a b"]\n', "policies/t.yml", ["write it like `nightly`"] * 2),
        (HEAD + "extends: [a/b]\n", "policies/t.yml", ["write it like `big-fact-table`"]),
        ("version: 1\nbatches: [1, 5, 120%]\n", "maintainer.yml", ["write it like `20%`"]),
    ],
)
def test_an_item_in_the_wrong_form_has_help(content: str, file: str, helps: list[str]) -> None:
    assert [finding.help for finding in findings_of(content, file)] == helps


def test_null_falls_back_where_it_may_and_is_an_error_where_not() -> None:
    assert findings_of(HEAD + "owner:\noptimize:\nvacuum: {retention: null}\nconsumers: ~\n") == []
    assert only_finding("version: 1\ntable:\n").message == "table has no value"
    assert only_finding("version:\ntable: a\n").message == "version has no value"


def test_a_refused_value_is_not_called_missing() -> None:
    assert [finding.code for finding in findings_of("version: 010\ntable: *x\n")] == ["Y117", "Y109"]
    assert [finding.code for finding in findings_of(HEAD + "optimize: {zorder: {mode: full, columns: [*x]}}\n")] == [
        "Y109"
    ]


def test_the_place_inside_a_predicate_is_exact_only_where_the_text_is_shown_as_it_is() -> None:
    plain = only_finding(HEAD + "optimize: {where: day = f(1)}\n")
    assert plain.span.column == 25
    quoted = only_finding(HEAD + "optimize: {where: 'day = f(1)'}\n")
    assert quoted.span.column == 26
    escaped = only_finding(HEAD + 'optimize: {where: "day\\u0020= f(1)"}\n')
    assert escaped.span.column == 19
    folded = only_finding(HEAD + "optimize:\n  where: >-\n    day =\n    f(1)\n")
    assert (folded.span.line, folded.span.column) == (4, 10)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (f"owner: {'x' * 201}", "P206", "owner has 201 characters; at most 200 are allowed"),
        (f"tags: [{', '.join(f't{n}' for n in range(101))}]", "P206", "tags has 101 items; at most 100 are allowed"),
        ("match: {tables: ['a.*'], minSize: 0}", "P307", "match.minSize: must be larger than 0"),
    ],
)
def test_bounds_are_said_with_what_was_found(line: str, code: str, message: str) -> None:
    head = "version: 1\n" if line.startswith("match") else HEAD
    finding = only_finding(f"{head}{line}\n")
    assert (finding.code, finding.message) == (code, message)


def test_items_of_a_wrong_type_are_not_also_called_twice() -> None:
    assert [finding.code for finding in findings_of(f"{HEAD}tags: [[a], [a], {{a: 1}}, {{a: 1}}]\n")] == ["P203"] * 4
    assert [finding.code for finding in findings_of(f"{HEAD}tags: [a, a]\n")] == ["P207"]


def test_what_was_right_once_is_right_again_and_what_was_wrong_is_wrong_again() -> None:
    for _ in range(3):
        assert findings_of(f"{HEAD}optimize: {{maxThreads: 3}}\n") == []
        assert [finding.code for finding in findings_of(f"{HEAD}optimize: {{maxThreads: true}}\n")] == ["P203"]
        assert [finding.code for finding in findings_of(f"{HEAD}optimize: {{maxThreads: 3.0}}\n")] == ["P203"]
        assert [finding.code for finding in findings_of(f"{HEAD}unknown: 1\nowner: a\n")] == ["P201"]
        assert [finding.code for finding in findings_of("owner: a\ntable: a.b\n")] == ["P202"]
        assert findings_of(f"{HEAD}owner: a\n") == []
