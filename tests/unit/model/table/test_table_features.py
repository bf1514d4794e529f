"""Features of tables that a rewrite must see, however they are spelled."""

from __future__ import annotations

import pytest

from maintainer.model.table.table_features import keeps_row_ids


@pytest.mark.parametrize(
    ("value", "keeps"), [("true", True), ("TRUE", True), ("True", True), ("false", False), ("", False), (None, False)]
)
def test_row_tracking_is_on_in_any_case_of_the_word(value: str | None, keeps: bool) -> None:
    assert keeps_row_ids({} if value is None else {"delta.enableRowTracking": value}) is keeps
