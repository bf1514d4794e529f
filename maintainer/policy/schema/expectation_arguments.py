"""Find arguments with which an expectation cannot work, without Great Expectations: types, bounds, regular expressions.

What only Great Expectations or Spark can tell (does the column exist, is it a number) is left to the run.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from maintainer.policy.schema.schema_keys import cut_text, shown, written

_TEXTS = frozenset({"column", "column_A", "column_B", "type_", "regex", "strftime_format"})
_NUMBERS = {"expect_table_row_count_to_equal": "value", "expect_table_column_count_to_equal": "value"}
_BROKEN_EVERYWHERE = re.compile(
    "unterminated character set|missing \\), unterminated subpattern|unbalanced parenthesis|nothing to repeat"
)
"""What Java, whose expressions Spark runs, refuses like Python. In the rest the two differ."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.]+)?")

_filters_lock = threading.Lock()
"""Python's warning filters are of the whole process: two threads that overlap would put back each other's."""


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """What is wrong with one argument, behind its dotted name; ``argument`` is the expectation itself as ``type``."""

    argument: str
    message: str
    help: str


def argument_problems(name: str, arguments: Mapping[str, object]) -> Iterator[ArgumentProblem]:
    """Yield what is wrong with the arguments that an expectation has, without its type; names were checked before."""
    for argument, value in arguments.items():
        if value is None:
            continue
        if argument.endswith(("_set", "_list")) and not isinstance(value, list):
            yield ArgumentProblem(argument, f"must be a list, not {shown(value)}", f"write a list: {_as_list(value)}")
        elif argument in _TEXTS and not isinstance(value, str):
            yield ArgumentProblem(
                argument, f"must be text, not {shown(value)}", "write text, in quotes if it is a number"
            )
        elif _NUMBERS.get(name) == argument and type(value) is not int:
            yield ArgumentProblem(argument, f"must be a whole number, not {shown(value)}", "write it like `1000`")
        elif argument in ("regex", "regex_list"):
            for pattern in value if isinstance(value, list) else [value]:
                yield from _regex_problem(argument, pattern)
    low, high = arguments.get("min_value"), arguments.get("max_value")
    if name.endswith("_to_be_between") and "quantile_ranges" not in arguments and low is None and high is None:
        yield ArgumentProblem("type", "has no bounds", "add `min_value:`, `max_value:` or both")
    if _is_above(low, high):
        message = f"{shown(low)} is above max_value, {shown(high)}: no value is between them"
        yield ArgumentProblem("min_value", message, "exchange the two")


def _regex_problem(argument: str, pattern: object) -> Iterator[ArgumentProblem]:
    if not isinstance(pattern, str):
        yield ArgumentProblem(argument, f"must be text, not {shown(pattern)}", "write a regular expression in quotes")
        return
    try:
        with _filters_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except re.error as error:
        if _BROKEN_EVERYWHERE.search(error.msg):
            place = "" if error.pos is None else f" at character {error.pos + 1}"
            message = f"{shown(pattern)} is not a regular expression: {error.msg}{place}"
            yield ArgumentProblem(
                argument, message, "close what is open, or put a backslash before a sign that is text"
            )


def _is_above(low: object, high: object) -> bool:
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return low > high
    days = isinstance(low, str) and isinstance(high, str) and len(low) == len(high)
    return days and bool(_DAY.fullmatch(str(low)) and _DAY.fullmatch(str(high))) and str(low) > str(high)


def _as_list(value: object) -> str:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else [value]
    return f"`{written([cut_text(item) if isinstance(item, str) else item for item in items])}`"
