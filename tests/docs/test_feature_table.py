"""The docs' table of operations by table feature is what the code does, and each "yes" is shown on a real table."""

from __future__ import annotations

import json

import pytest

from maintainer.model.table.table_features import REWRITABLE_FEATURES, UNSUPPORTED_CODES, WHY_NOT
from tests.support.tables.feature_tables import TABLES
from tools.feature_matrix import BEGIN, CLUSTERING, END, PAGE, PREVIEW, lines, operations, refusal


def test_the_page_has_the_table_that_the_code_makes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text[text.index(BEGIN) + len(BEGIN) : text.index(END)].splitlines()
    assert shown == lines(), "python -m tools.feature_matrix writes it"


def test_every_yes_is_shown_on_a_real_table() -> None:
    shown = frozenset().union(*(table.features for table in TABLES.values()))
    # Clustered tables are shown in tests/integration/rewrite/test_clustered_rewrite.py, by steps of their own.
    assert shown == {feature for feature in REWRITABLE_FEATURES if not feature.endswith(PREVIEW)} - {CLUSTERING}
    assert {"compact", "zorder", "rewrite", "cluster", "purge", "vacuum", "set_properties"} <= set(operations())


@pytest.mark.parametrize("feature", sorted(REWRITABLE_FEATURES))
def test_what_is_on_the_list_is_planned(feature: str) -> None:
    assert refusal(feature) is None


@pytest.mark.parametrize("feature", [*WHY_NOT, "futureThing"])
def test_what_is_not_on_the_list_is_refused_by_name(feature: str) -> None:
    error = refusal(feature)
    assert error is not None
    assert error.code in UNSUPPORTED_CODES
    assert feature in json.dumps([error.what, error.found])
