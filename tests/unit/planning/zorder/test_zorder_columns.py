"""Columns of incremental Z-order: those that are refused by name, and values that cannot be ordered."""

from __future__ import annotations

import pytest

from maintainer.model.plan.steps import SetPropertiesStep
from tests.unit.planning.zorder.zorder_plans import SAMPLE, facts_of, files, plan, policy_of, zorder_of


@pytest.mark.parametrize(
    ("columns", "code", "what"),
    [
        (("nope",), "T411", "Z-order column `nope` does not exist (found: nope)"),
        (("tags",), "T414", "Z-order column `tags` has a type without order (found: tags array)"),
        (
            ("id", "flag"),
            "T427",
            "Z-order column `flag` has a type of which the log keeps no smallest and largest",
        ),
    ],
)
def test_columns_are_refused_by_name(columns: tuple[str, ...], code: str, what: str) -> None:
    problem = plan(policy_of(*columns), facts_of(*files(500, 500))).problem
    assert problem is not None
    assert problem.code == code
    assert problem.what.startswith(what)
    assert problem.where == "orders.yml:8"


def test_a_constant_column_beside_another_costs_nothing() -> None:
    planned = plan(policy_of(), facts_of(*files(500, 500)), sample={**SAMPLE, "day": ("2026-01-01",) * 1000})
    assert zorder_of(planned).columns == ("id", "day")
    properties = planned.steps[0]
    assert isinstance(properties, SetPropertiesStep)
    assert properties.reasons[0].text.endswith("id in 256 ranges, day in 1 ranges")
