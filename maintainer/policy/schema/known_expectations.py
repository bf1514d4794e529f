"""List the expectations that a policy may name, with their arguments: a copy of Great Expectations' registry.

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

_BOUNDS = "min_value max_value strict_min strict_max"

EXPECTATIONS: dict[str, Arguments] = {
    name: Arguments(tuple(required.split()), tuple(optional.split()))
    for name, required, optional in (
        ("expect_column_distinct_values_to_be_in_set", "column value_set", ""),
        ("expect_column_distinct_values_to_contain_set", "column value_set", ""),
        ("expect_column_distinct_values_to_equal_set", "column value_set", ""),
        (
            "expect_column_kl_divergence_to_be_less_than",
            "column",
            "partition_object threshold internal_weight_holdout tail_weight_holdout bucketize_data min_value max_value",
        ),
        ("expect_column_max_to_be_between", "column", _BOUNDS),
        ("expect_column_mean_to_be_between", "column", _BOUNDS),
        ("expect_column_median_to_be_between", "column", _BOUNDS),
        ("expect_column_min_to_be_between", "column", _BOUNDS),
        ("expect_column_most_common_value_to_be_in_set", "column value_set", "ties_okay"),
        ("expect_column_pair_values_a_to_be_greater_than_b", "column_A column_B", "mostly or_equal ignore_row_if"),
        ("expect_column_pair_values_to_be_equal", "column_A column_B", "mostly ignore_row_if"),
        ("expect_column_pair_values_to_be_in_set", "column_A column_B value_pairs_set", "mostly ignore_row_if"),
        ("expect_column_proportion_of_non_null_values_to_be_between", "column", _BOUNDS),
        ("expect_column_proportion_of_unique_values_to_be_between", "column", _BOUNDS),
        ("expect_column_quantile_values_to_be_between", "column quantile_ranges", "allow_relative_error"),
        ("expect_column_stdev_to_be_between", "column", _BOUNDS),
        ("expect_column_sum_to_be_between", "column", _BOUNDS),
        ("expect_column_to_exist", "column", "column_index"),
        ("expect_column_type_to_be", "column type_", ""),
        ("expect_column_unique_value_count_to_be_between", "column", _BOUNDS),
        ("expect_column_value_lengths_to_be_between", "column", f"mostly {_BOUNDS}"),
        ("expect_column_value_lengths_to_equal", "column value", "mostly"),
        ("expect_column_value_z_scores_to_be_less_than", "column threshold double_sided", "mostly"),
        ("expect_column_values_to_be_between", "column", f"mostly {_BOUNDS}"),
        ("expect_column_values_to_be_decreasing", "column", "mostly strictly"),
        ("expect_column_values_to_be_in_set", "column value_set", "mostly"),
        ("expect_column_values_to_be_in_type_list", "column", "mostly type_list"),
        ("expect_column_values_to_be_increasing", "column", "mostly strictly"),
        ("expect_column_values_to_be_json_parseable", "column", "mostly"),
        ("expect_column_values_to_be_null", "column", "mostly"),
        ("expect_column_values_to_be_of_type", "column type_", "mostly"),
        ("expect_column_values_to_be_unique", "column", "mostly"),
        ("expect_column_values_to_match_json_schema", "column json_schema", "mostly"),
        ("expect_column_values_to_match_regex", "column", "mostly regex"),
        ("expect_column_values_to_match_regex_list", "column regex_list", "mostly match_on"),
        ("expect_column_values_to_match_strftime_format", "column strftime_format", "mostly"),
        ("expect_column_values_to_not_be_in_set", "column value_set", "mostly"),
        ("expect_column_values_to_not_be_null", "column", "mostly"),
        ("expect_column_values_to_not_be_outliers", "column", "mostly method multiplier"),
        ("expect_column_values_to_not_match_regex", "column regex", "mostly"),
        ("expect_column_values_to_not_match_regex_list", "column regex_list", "mostly"),
        ("expect_compound_columns_to_be_unique", "column_list", "mostly ignore_row_if"),
        ("expect_multicolumn_sum_to_equal", "column_list sum_total", "mostly ignore_row_if"),
        ("expect_multicolumn_values_to_be_equal", "column_list", "mostly ignore_row_if"),
        ("expect_select_column_values_to_be_unique_within_record", "column_list", "mostly ignore_row_if"),
        ("expect_table_column_count_to_be_between", "", "min_value max_value"),
        ("expect_table_column_count_to_equal", "value", ""),
        ("expect_table_columns_to_match_ordered_list", "", "column_list"),
        ("expect_table_columns_to_match_set", "", "column_set exact_match"),
        ("expect_table_row_count_to_be_between", "", _BOUNDS),
        ("expect_table_row_count_to_equal", "value", ""),
    )
}
"""Registered name to arguments."""
