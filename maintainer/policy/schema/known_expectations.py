"""The expectations that a policy may name, with their arguments, and those that it may not.

`tools.expectations` writes what the installed Great Expectations registers into ``schemas/expectations.json``.
"""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.policy.schema.schema_keys import load_schema


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
