"""A plan within a budget: the best rewrites stay, the rest waits with its place, and nothing else is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan import Plan, TablePlan
from maintainer.model.reasons import ReasonCode
from maintainer.model.steps import CompactStep, SetPropertiesStep
from maintainer.model.table import TableRef
from maintainer.planning.budget import Learned, candidate_of, within_budget
from maintainer.planning.ranking import Budget
from tests.unit.report import samples

MIB = 2**20
DAY_MS = 86_400_000


def table(name: str, *sizes_mib: int) -> TablePlan:
    from maintainer.model.steps import Batch

    one = samples.data_bin(None, list(sizes_mib), name)
    step = CompactStep((Batch((one,)),), 1024 * MIB, 2, ())
    properties = SetPropertiesStep((("a", None),), (("a", "1"),), ())
    return TablePlan(TableRef(name), "p.yml", "sha256:0", steps=(properties, step))


def made(*tables: TablePlan) -> Plan:
    return replace(samples.full_plan(), tables=tables, created_at_ms=100 * DAY_MS)


def test_what_does_not_fit_waits_with_its_place_and_keeps_its_other_steps() -> None:
    plan = made(table("big", 400, 400), table("best", *[1] * 50), table("good", *[10] * 20))
    fitted, choice = within_budget(plan, Budget(size_bytes=300 * MIB), Learned())
    assert [one.name for one in choice.chosen] == ["best", "good"]
    big, best, good = fitted.tables
    assert (best, good) == (plan.tables[1], plan.tables[2])
    assert [step.kind for step in big.steps] == ["set_properties"]
    (left,) = big.left_alone
    assert left.reason.code is ReasonCode.OVER_BUDGET
    assert left.reason.text == "waits: the budget of bytes has no room for 800 MiB; place 1 of 1 in the queue"
    assert (left.num_files, left.size_bytes) == (2, 800 * MIB)


def test_a_candidate_is_counted_from_the_exact_bins_and_past_runs() -> None:
    learned = Learned({"compact": 10.0 * MIB}, {"t": (9, 4)}, {"t": 93 * DAY_MS})
    found = candidate_of(table("t", 10, 20, 30), 100 * DAY_MS, learned)
    assert found is not None
    assert (found.files_fewer, found.num_files, found.size_bytes) == (2, 3, 60 * MIB)
    assert (found.seconds, found.conflict_ratio, found.waiting_days) == pytest.approx((6.0, 0.4, 7.0))
    nothing = replace(table("t", 1, 1), steps=())
    assert candidate_of(nothing, 0, learned) is None


def test_waiting_is_said_in_days() -> None:
    learned = Learned(waiting_since_ms={"t": 97 * DAY_MS})
    fitted, _ = within_budget(made(table("t", 10, 10)), Budget(num_files=1), learned)
    assert fitted.tables[0].left_alone[0].reason.text.endswith("place 1 of 1 in the queue, for 3 days now")
