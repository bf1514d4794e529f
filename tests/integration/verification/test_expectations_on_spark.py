"""Every expectation that a policy may name runs on Spark, and every one that is refused for Spark's sake does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import EXPECTATIONS, WITHOUT_SPARK, CheckedExpectation, validate_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

NUMBER: dict[str, Any] = {"column": "number"}
TEXT: dict[str, Any] = {"column": "text"}
PAIR: dict[str, Any] = {"column_A": "number", "column_B": "other"}
COLUMNS: dict[str, Any] = {"column_list": ["number", "other"]}
RANGE: dict[str, Any] = {"min_value": 0, "max_value": 9}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "expect_column_distinct_values_to_be_in_set": {**NUMBER, "value_set": [1, 2]},
    "expect_column_distinct_values_to_contain_set": {**NUMBER, "value_set": [1, 2]},
    "expect_column_distinct_values_to_equal_set": {**NUMBER, "value_set": [1, 2]},
    "expect_column_kl_divergence_to_be_less_than": {
        **TEXT,
        "partition_object": {"values": ["a1", "b2", "c3", "d4"], "weights": [0.25, 0.25, 0.25, 0.25]},
        "threshold": 0.5,
    },
    "expect_column_max_to_be_between": {**NUMBER, **RANGE},
    "expect_column_mean_to_be_between": {**NUMBER, **RANGE},
    "expect_column_median_to_be_between": {**NUMBER, **RANGE},
    "expect_column_min_to_be_between": {**NUMBER, **RANGE},
    "expect_column_most_common_value_to_be_in_set": {**NUMBER, "value_set": [1]},
    "expect_column_pair_values_a_to_be_greater_than_b": PAIR,
    "expect_column_pair_values_to_be_equal": PAIR,
    "expect_column_pair_values_to_be_in_set": {**PAIR, "value_pairs_set": [[1, 5], [2, 6]]},
    "expect_column_proportion_of_non_null_values_to_be_between": {**NUMBER, "min_value": 0, "max_value": 1},
    "expect_column_proportion_of_unique_values_to_be_between": {**NUMBER, "min_value": 0, "max_value": 1},
    "expect_column_quantile_values_to_be_between": {
        **NUMBER,
        "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[0, 9]]},
    },
    "expect_column_stdev_to_be_between": {**NUMBER, **RANGE},
    "expect_column_sum_to_be_between": {**NUMBER, **RANGE},
    "expect_column_to_exist": NUMBER,
    "expect_column_type_to_be": {**TEXT, "type_": "StringType"},
    "expect_column_unique_value_count_to_be_between": {**NUMBER, **RANGE},
    "expect_column_value_lengths_to_be_between": {**TEXT, **RANGE},
    "expect_column_value_lengths_to_equal": {**TEXT, "value": 2},
    "expect_column_value_z_scores_to_be_less_than": {**NUMBER, "threshold": 3, "double_sided": True},
    "expect_column_values_to_be_between": {**NUMBER, **RANGE},
    "expect_column_values_to_be_dateutil_parseable": {"column": "day"},
    "expect_column_values_to_be_decreasing": NUMBER,
    "expect_column_values_to_be_in_set": {**NUMBER, "value_set": [1, 2]},
    "expect_column_values_to_be_in_type_list": {**TEXT, "type_list": ["StringType"]},
    "expect_column_values_to_be_increasing": NUMBER,
    "expect_column_values_to_be_json_parseable": {"column": "json"},
    "expect_column_values_to_be_null": NUMBER,
    "expect_column_values_to_be_of_type": {**TEXT, "type_": "StringType"},
    "expect_column_values_to_be_unique": NUMBER,
    "expect_column_values_to_match_json_schema": {"column": "json", "json_schema": {"type": "object"}},
    "expect_column_values_to_match_like_pattern": {**TEXT, "like_pattern": "a%"},
    "expect_column_values_to_match_like_pattern_list": {**TEXT, "like_pattern_list": ["a%"]},
    "expect_column_values_to_match_regex": {**TEXT, "regex": "^[a-z]"},
    "expect_column_values_to_match_regex_list": {**TEXT, "regex_list": ["^[a-z]"]},
    "expect_column_values_to_match_strftime_format": {"column": "day", "strftime_format": "%Y-%m-%d"},
    "expect_column_values_to_not_be_in_set": {**NUMBER, "value_set": [9]},
    "expect_column_values_to_not_be_null": NUMBER,
    "expect_column_values_to_not_be_outliers": {**NUMBER, "method": "iqr", "multiplier": 1.5},
    "expect_column_values_to_not_match_like_pattern": {**TEXT, "like_pattern": "z%"},
    "expect_column_values_to_not_match_like_pattern_list": {**TEXT, "like_pattern_list": ["z%"]},
    "expect_column_values_to_not_match_regex": {**TEXT, "regex": "^z"},
    "expect_column_values_to_not_match_regex_list": {**TEXT, "regex_list": ["^z"]},
    "expect_compound_columns_to_be_unique": COLUMNS,
    "expect_multicolumn_sum_to_equal": {**COLUMNS, "sum_total": 6},
    "expect_multicolumn_values_to_be_equal": COLUMNS,
    "expect_select_column_values_to_be_unique_within_record": COLUMNS,
    "expect_table_column_count_to_be_between": RANGE,
    "expect_table_column_count_to_equal": {"value": 5},
    "expect_table_columns_to_match_ordered_list": {"column_list": ["number", "other", "text", "day", "json"]},
    "expect_table_columns_to_match_set": {"column_set": ["number", "other", "text", "day", "json"]},
    "expect_table_row_count_to_be_between": RANGE,
    "expect_table_row_count_to_equal": {"value": 4},
}
"""Arguments with which each can be computed on the rows below; whether it then holds is not the question."""

ROWS = [
    (1, 5, "a1", "2026-11-21", '{"a": 1}'),
    (2, 6, "b2", "2026-11-22", "{}"),
    (3, 7, "c3", "2026-11-23", "{}"),
    (4, 8, "d4", "2026-11-24", "{}"),
]


def test_what_a_policy_may_name_runs_on_spark(spark: SparkSession) -> None:
    assert set(ARGUMENTS) == set(EXPECTATIONS) | set(WITHOUT_SPARK)  # whole
    frame = spark.createDataFrame(ROWS, "number int, other int, text string, day string, json string").coalesce(1)
    names = sorted(ARGUMENTS)
    suite = [CheckedExpectation(name, json.dumps(ARGUMENTS[name])) for name in names]
    verification = validate_frame(frame, "every expectation", suite, version=0)
    problems = {
        assertion.expectation: assertion.error for assertion in verification.assertions if assertion.outcome == "error"
    }
    assert set(problems) == set(WITHOUT_SPARK), problems
