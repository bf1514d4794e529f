"""Expectations in a file: which can work, and how they are written."""

from __future__ import annotations

import re

import pytest

from maintainer.policy.schema.known_expectations import EXPECTATIONS, WITHOUT_SPARK
from tests.support.policies.policy_reading import HEAD, findings_of, only_finding


@pytest.mark.parametrize("name", sorted(WITHOUT_SPARK))
def test_an_expectation_that_spark_does_not_have_is_refused_with_another(name: str) -> None:
    text = f"version: 1\ntable: s.t\nverify: {{expectations: [{{type: {name}, column: a}}]}}\n"
    (diagnostics,) = findings_of(text)
    assert (diagnostics.code, diagnostics.span.line, diagnostics.span.column) == ("P316", 3, 32)
    assert "but not for Spark" in diagnostics.message
    (instead,) = re.findall(r"`(\w+)`", diagnostics.help or "")
    assert instead in EXPECTATIONS


@pytest.mark.parametrize(
    ("arguments", "place", "message"),
    [
        ("values_to_be_between, column: a, min_value: 9, max_value: 3", "min_value", "`9` is above max_value, `3`"),
        (
            "values_to_be_between, column: a, min_value: 2026-02-01, max_value: 2026-01-01",
            "min_value",
            "`2026-02-01` is above max_value, `2026-01-01`",
        ),
        ("values_to_be_between, column: a", "type", "has no bounds"),
        ("mean_to_be_between, column: a, strict_min: true", "type", "has no bounds"),
        (
            'values_to_match_regex, column: a, regex: "([a-z"',
            "regex",
            "`([a-z` is not a regular expression: unterminated character set at character 2",
        ),
        (
            "values_to_match_regex_list, column: a, regex_list: [ok, '*x']",
            "regex_list",
            "`*x` is not a regular expression: nothing to repeat at character 1",
        ),
        ("values_to_match_regex_list, column: a, regex_list: [ok, 7]", "regex_list", "must be text, not `7`"),
        ('values_to_be_in_set, column: a, value_set: "x,y"', "value_set", "must be a list, not `x,y`"),
        ("values_to_be_of_type, column: a, type_: 3", "type_", "must be text, not `3`"),
        ("values_to_not_be_null, column: 3", "column", "must be text, not `3`"),
        ("values_to_not_be_null, kwargs: {column: a}", "kwargs", "holds arguments, which stand beside `type`"),
    ],
)
def test_an_expectation_that_cannot_work_is_an_error(arguments: str, place: str, message: str) -> None:
    finding = only_finding(f"{HEAD}verify: {{expectations: [{{type: expect_column_{arguments}}}]}}\n")
    assert finding.code == "P316"
    assert finding.message.startswith(f"verify.expectations[0].{place}: {message}")
    assert finding.help


def test_a_count_of_rows_is_a_whole_number() -> None:
    finding = only_finding(
        f"{HEAD}verify: {{expectations: [{{type: expect_table_row_count_to_equal, value: many}}]}}\n"
    )
    assert finding.message == "verify.expectations[0].value: must be a whole number, not `many`"


def test_expectations_that_may_work_are_valid() -> None:
    expectations = [
        "values_to_be_between, column: a, min_value: 3, max_value: 3",
        "values_to_be_between, column: a, min_value: 9, max_value: x",
        "values_to_be_between, column: a, max_value: 2026-01-01",
        "values_to_be_between, column: a, min_value: null, max_value: 3",
        "values_to_match_regex, column: a, regex: '\\p{L}++[a[b]]'",  # Java's, which Spark runs
        "values_to_be_in_set, column: a, value_set: [x, 1]",
        "quantile_values_to_be_between, column: a, quantile_ranges: {quantiles: [0.5], value_ranges: [[1, 2]]}",
    ]
    lines = "".join(f"    - {{type: expect_column_{text}}}\n" for text in expectations)
    assert findings_of(f"{HEAD}verify:\n  expectations:\n{lines}") == []


def test_an_expectation_as_text_is_shown_as_a_map() -> None:
    finding = only_finding(f"{HEAD}verify: {{expectations: [expect_column_to_exist]}}\n")
    assert (finding.code, finding.help) == ("P203", "write a map: `{type: expect_column_to_exist, column: NAME}`")
    finding = only_finding(f"{HEAD}verify: {{expectations: expect_column_to_exist}}\n")
    assert finding.help == "write a list of maps: `[{type: expect_column_to_exist, column: NAME}]`"
