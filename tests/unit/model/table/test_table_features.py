"""Features of tables that a rewrite must see, however they are spelled."""

from __future__ import annotations

import pytest

from maintainer.model.table.table_features import keeps_row_ids, text_prefix_length


@pytest.mark.parametrize(
    ("value", "keeps"), [("true", True), ("TRUE", True), ("True", True), ("false", False), ("", False), (None, False)]
)
def test_row_tracking_is_on_in_any_case_of_the_word(value: str | None, keeps: bool) -> None:
    assert keeps_row_ids({} if value is None else {"delta.enableRowTracking": value}) is keeps


@pytest.mark.parametrize(
    ("value", "length"), [(None, 32), ("4", 4), ("+100", 100), ("0", 0), ("-1", 32), ("x", 32), ("", 32)]
)
def test_the_table_says_how_much_of_a_text_its_bounds_keep(value: str | None, length: int) -> None:
    properties = {} if value is None else {"delta.dataSkippingStringPrefixLength": value}
    assert text_prefix_length(properties) == length
