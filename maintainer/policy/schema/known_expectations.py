"""The expectations that a policy may name, with their arguments: Great Expectations' own registry, written down.

Great Expectations takes three seconds to import, too long for checking a file. A test reads the installed package
and fails when this table no longer says the same.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    "unexpected_rows_expectation": "it runs SQL text, and a policy holds none",
    "expect_query_results_to_match_comparison": "it runs SQL text, and a policy holds none",
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
    "expect_column_distinct_values_to_be_in_set": Arguments(("column", "value_set"), ()),
    "expect_column_distinct_values_to_contain_set": Arguments(("column", "value_set"), ()),
    "expect_column_distinct_values_to_equal_set": Arguments(("column", "value_set"), ()),
    "expect_column_kl_divergence_to_be_less_than": Arguments(
        ("column",),
        (
            "partition_object",
            "threshold",
            "internal_weight_holdout",
            "tail_weight_holdout",
            "bucketize_data",
            "min_value",
            "max_value",
        ),
    ),
    "expect_column_max_to_be_between": Arguments(("column",), ("min_value", "max_value", "strict_min", "strict_max")),
    "expect_column_mean_to_be_between": Arguments(("column",), ("min_value", "max_value", "strict_min", "strict_max")),
    "expect_column_median_to_be_between": Arguments(
        ("column",), ("min_value", "max_value", "strict_min", "strict_max")
    ),
    "expect_column_min_to_be_between": Arguments(("column",), ("min_value", "max_value", "strict_min", "strict_max")),
    "expect_column_most_common_value_to_be_in_set": Arguments(("column", "value_set"), ("ties_okay",)),
    "expect_column_pair_values_a_to_be_greater_than_b": Arguments(
        ("column_A", "column_B"), ("mostly", "or_equal", "ignore_row_if")
    ),
    "expect_column_pair_values_to_be_equal": Arguments(("column_A", "column_B"), ("mostly", "ignore_row_if")),
    "expect_column_pair_values_to_be_in_set": Arguments(
        ("column_A", "column_B", "value_pairs_set"), ("mostly", "ignore_row_if")
    ),
    "expect_column_proportion_of_non_null_values_to_be_between": Arguments(
        ("column",), ("min_value", "max_value", "strict_min", "strict_max")
    ),
    "expect_column_proportion_of_unique_values_to_be_between": Arguments(
        ("column",), ("min_value", "max_value", "strict_min", "strict_max")
    ),
    "expect_column_quantile_values_to_be_between": Arguments(("column", "quantile_ranges"), ("allow_relative_error",)),
    "expect_column_stdev_to_be_between": Arguments(("column",), ("min_value", "max_value", "strict_min", "strict_max")),
    "expect_column_sum_to_be_between": Arguments(("column",), ("min_value", "max_value", "strict_min", "strict_max")),
    "expect_column_to_exist": Arguments(("column",), ("column_index",)),
    "expect_column_type_to_be": Arguments(("column", "type_"), ()),
    "expect_column_unique_value_count_to_be_between": Arguments(
        ("column",), ("min_value", "max_value", "strict_min", "strict_max")
    ),
    "expect_column_value_lengths_to_be_between": Arguments(
        ("column",), ("mostly", "min_value", "max_value", "strict_min", "strict_max")
    ),
    "expect_column_value_lengths_to_equal": Arguments(("column", "value"), ("mostly",)),
    "expect_column_value_z_scores_to_be_less_than": Arguments(("column", "threshold", "double_sided"), ("mostly",)),
    "expect_column_values_to_be_between": Arguments(
        ("column",), ("mostly", "min_value", "max_value", "strict_min", "strict_max")
    ),
    "expect_column_values_to_be_decreasing": Arguments(("column",), ("mostly", "strictly")),
    "expect_column_values_to_be_in_set": Arguments(("column", "value_set"), ("mostly",)),
    "expect_column_values_to_be_in_type_list": Arguments(("column",), ("mostly", "type_list")),
    "expect_column_values_to_be_increasing": Arguments(("column",), ("mostly", "strictly")),
    "expect_column_values_to_be_json_parseable": Arguments(("column",), ("mostly",)),
    "expect_column_values_to_be_null": Arguments(("column",), ("mostly",)),
    "expect_column_values_to_be_of_type": Arguments(("column", "type_"), ("mostly",)),
    "expect_column_values_to_be_unique": Arguments(("column",), ("mostly",)),
    "expect_column_values_to_match_json_schema": Arguments(("column", "json_schema"), ("mostly",)),
    "expect_column_values_to_match_regex": Arguments(("column",), ("mostly", "regex")),
    "expect_column_values_to_match_regex_list": Arguments(("column", "regex_list"), ("mostly", "match_on")),
    "expect_column_values_to_match_strftime_format": Arguments(("column", "strftime_format"), ("mostly",)),
    "expect_column_values_to_not_be_in_set": Arguments(("column", "value_set"), ("mostly",)),
    "expect_column_values_to_not_be_null": Arguments(("column",), ("mostly",)),
    "expect_column_values_to_not_be_outliers": Arguments(("column",), ("mostly", "method", "multiplier")),
    "expect_column_values_to_not_match_regex": Arguments(("column", "regex"), ("mostly",)),
    "expect_column_values_to_not_match_regex_list": Arguments(("column", "regex_list"), ("mostly",)),
    "expect_compound_columns_to_be_unique": Arguments(("column_list",), ("mostly", "ignore_row_if")),
    "expect_multicolumn_sum_to_equal": Arguments(("column_list", "sum_total"), ("mostly", "ignore_row_if")),
    "expect_multicolumn_values_to_be_equal": Arguments(("column_list",), ("mostly", "ignore_row_if")),
    "expect_select_column_values_to_be_unique_within_record": Arguments(("column_list",), ("mostly", "ignore_row_if")),
    "expect_table_column_count_to_be_between": Arguments((), ("min_value", "max_value")),
    "expect_table_column_count_to_equal": Arguments(("value",), ()),
    "expect_table_columns_to_match_ordered_list": Arguments((), ("column_list",)),
    "expect_table_columns_to_match_set": Arguments((), ("column_set", "exact_match")),
    "expect_table_row_count_to_be_between": Arguments((), ("min_value", "max_value", "strict_min", "strict_max")),
    "expect_table_row_count_to_equal": Arguments(("value",), ()),
}
"""Registered name to arguments."""
