"""The expectations that a policy may name, with their arguments, and those that it may not.

`tools.expectations` writes what the installed Great Expectations registers into ``schemas/expectations.json``.

Arguments with which an expectation cannot work are found without it: types, bounds, regular expressions. What only
Great Expectations or Spark can tell (does the column exist, is it a number) is left to the run.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from maintainer.policy.schema.schema_keys import cut_text, load_schema, shown, written


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one expectation: those it needs, and those it may have."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


NOT_FOR_POLICIES = frozenset(
    {
        "batch_id",
        "catch_exceptions",
        "condition_parser",
        "description",
        "id",
        "library_metadata",
        "meta",
        "notes",
        "rendered_content",
        "result_format",
        "row_condition",
        "severity",
        "windows",
    }
)
"""Arguments that every expectation has and a policy may not set: they change how results are reported, or (a row
condition) are text that the engine would run."""

REFUSED_EXPECTATIONS: dict[str, str] = {
    "unexpected_rows_expectation": "it runs SQL text, which a policy must not contain",
    "expect_query_results_to_match_comparison": "it runs SQL text, which a policy must not contain",
    "expect_table_row_count_to_equal_other_table": "it works on SQL sources only, not on Spark",
}
"""Registered names that a policy may not use, and why."""

_USE_REGEX = "write `expect_column_values_to_match_regex`"
_USE_NO_REGEX = "write `expect_column_values_to_not_match_regex`"

WITHOUT_SPARK: dict[str, str] = {
    "expect_column_values_to_be_dateutil_parseable": "write `expect_column_values_to_match_strftime_format`",
    "expect_column_values_to_match_like_pattern": _USE_REGEX,
    "expect_column_values_to_match_like_pattern_list": "write `expect_column_values_to_match_regex_list`",
    "expect_column_values_to_not_match_like_pattern": _USE_NO_REGEX,
    "expect_column_values_to_not_match_like_pattern_list": "write `expect_column_values_to_not_match_regex_list`",
}
"""Registered names that Great Expectations cannot compute on Spark, and what to write instead.

Found by running every registered expectation on Spark, and by looking for a Spark provider of its metric."""

EXPECTATIONS: dict[str, Arguments] = {
    name: Arguments(**{need: tuple(keys) for need, keys in arguments.items()})
    for name, arguments in load_schema("expectations.json").items()
}
"""Registered name to arguments."""


_TEXTS = frozenset({"column", "column_A", "column_B", "type_", "regex", "strftime_format"})
_NUMBERS = {"expect_table_row_count_to_equal": "value", "expect_table_column_count_to_equal": "value"}
_BROKEN_EVERYWHERE = re.compile(
    "unterminated character set|missing \\), unterminated subpattern|unbalanced parenthesis|nothing to repeat"
)
"""What Java, whose expressions Spark runs, refuses like Python. In the rest the two differ."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.]+)?")

_filters_lock = threading.Lock()
"""Python's warning filters are of the whole process: two threads that overlap would put back each other's."""


ArgumentProblem = tuple[str, str, str]
"""An argument (``type`` is the expectation itself), what is wrong with it, and what to write instead."""


def argument_problems(name: str, arguments: Mapping[str, object]) -> Iterator[ArgumentProblem]:
    """Yield what is wrong with the arguments that an expectation has, without its type; names were checked before."""
    for argument, value in arguments.items():
        if value is None:
            continue
        if argument.endswith(("_set", "_list")) and not isinstance(value, list):
            yield argument, f"must be a list, not {shown(value)}", f"write a list: {_as_list(value)}"
        elif argument in _TEXTS and not isinstance(value, str):
            yield argument, f"must be text, not {shown(value)}", "write text, in quotes if it is a number"
        elif _NUMBERS.get(name) == argument and type(value) is not int:
            yield argument, f"must be a whole number, not {shown(value)}", "write it like `1000`"
        elif argument in ("regex", "regex_list"):
            for pattern in value if isinstance(value, list) else [value]:
                yield from _regex_problem(argument, pattern)
    low, high = arguments.get("min_value"), arguments.get("max_value")
    if name.endswith("_to_be_between") and "quantile_ranges" not in arguments and low is None and high is None:
        yield "type", "has no bounds", "add `min_value:`, `max_value:` or both"
    if _is_above(low, high):
        message = f"{shown(low)} is above max_value, {shown(high)}: no value is between them"
        yield "min_value", message, "exchange the two"


def _regex_problem(argument: str, pattern: object) -> Iterator[ArgumentProblem]:
    if not isinstance(pattern, str):
        yield argument, f"must be text, not {shown(pattern)}", "write a regular expression in quotes"
        return
    try:
        with _filters_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except re.error as error:
        if _BROKEN_EVERYWHERE.search(error.msg):
            place = "" if error.pos is None else f" at character {error.pos + 1}"
            message = f"{shown(pattern)} is not a regular expression: {error.msg}{place}"
            yield argument, message, "close what is open, or put a backslash before a sign that is text"


def _is_above(low: object, high: object) -> bool:
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return low > high
    days = isinstance(low, str) and isinstance(high, str) and len(low) == len(high)
    return days and bool(_DAY.fullmatch(str(low)) and _DAY.fullmatch(str(high))) and str(low) > str(high)


def _as_list(value: object) -> str:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else [value]
    return f"`{written([cut_text(item) if isinstance(item, str) else item for item in items])}`"
