"""What the engine that will apply the plan cannot do is left alone, by name."""

from __future__ import annotations

from datetime import date

from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.planning.needs import next_need
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_files, make_policy, make_vacuum

TODAY = date(2026, 11, 21)


def test_an_engine_that_deletes_nothing_leaves_vacuum_alone() -> None:
    policy = make_policy(vacuum=make_vacuum(), lines={"vacuum": 11, "vacuum.retention": 12})
    facts = make_facts(files=make_files(10, 20))
    options = PlanOptions(deletes=False)
    # Nothing is looked for on storage that nobody will delete.
    assert next_need(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY, options)) is None
    assert next_need(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY)) is not None
    planned = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY, options))
    assert planned.problem is None
    assert not any(isinstance(step, VacuumStep) for step in planned.steps)
    assert [step.kind for step in planned.steps] == ["compact"]
    (left,) = [one for one in planned.left_alone if one.reason.code is ReasonCode.NOT_BY_ENGINE]
    assert left.reason.origin == "orders.yml:11"
    assert "--engine transaction" in left.reason.text
