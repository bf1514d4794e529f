"""Tables that are not touched at all, named with the reason; and those that only look so.

What the engine that will apply the plan cannot do is left alone, by name.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from maintainer.app.running.observers.webhook import RunNamed, failure_message
from maintainer.errors import ExitCode, TableError
from maintainer.execution.table.planned_ends import planned_problem, status_without_steps
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.plan_document import from_json, to_json
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.exit_codes import exit_code, plan_exit_code
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus
from maintainer.model.table.table_facts import Protocol, TableRef
from maintainer.model.table.table_features import REWRITABLE_FEATURES
from maintainer.planning.needs import next_need
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.planning.selection.supported_features import check_supported
from maintainer.report.run.run_findings import render_junit
from maintainer.report.run.run_text import render_run
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_files, make_policy, make_vacuum

TODAY = date(2026, 11, 21)


def features(*names: str) -> Protocol:
    return Protocol(3, 7, (), names)


@pytest.mark.parametrize(
    ("protocol", "clustering", "code", "found"),
    [
        (features("appendOnly", "futureThing"), (), "T404", "table feature futureThing"),
        (Protocol(3, 7, ("futureReader",), ()), (), "T404", "table feature futureReader"),
        (Protocol(4, 7), (), "T404", "reader version 4, writer version 7"),
        (Protocol(1, 8), (), "T404", "reader version 1, writer version 8"),
        (features("catalogManaged"), (), "T407", "table feature catalogManaged"),
        (features("catalogOwned-preview"), (), "T407", "table feature catalogOwned-preview"),
    ],
)
def test_what_is_not_understood_is_named_and_left_as_it_is(
    protocol: Protocol, clustering: tuple[str, ...], code: str, found: str
) -> None:
    facts = make_facts(files=make_files(10, 20), protocol=protocol, clustering_columns=clustering)
    planned = plan_table(TableInput(make_policy(), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    assert planned.problem is not None
    assert planned.problem.code == code
    assert f"(found: {found}" in planned.problem.what
    assert planned.problem.where == "sales.orders@7"
    assert planned.steps == ()


@pytest.mark.parametrize("protocol", [Protocol(1, 2), Protocol(2, 6), features(*sorted(REWRITABLE_FEATURES))])
def test_what_is_tested_is_planned(protocol: Protocol) -> None:
    facts = make_facts(files=make_files(10, 20), protocol=protocol, properties={"delta.appendOnly": "true"})
    assert plan_table(TableInput(make_policy(), facts, NEVER_TOUCHED, NOW_MS, TODAY)).state == "changes"


def test_a_broken_schema_is_a_problem_of_that_table() -> None:
    facts = replace(make_facts(files=make_files(10, 20)), schema_json="{")
    planned = plan_table(TableInput(make_policy(), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    assert planned.problem is not None
    assert planned.problem.code == "T403"


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
    (left,) = [entry for entry in planned.left_alone if entry.reason.code is ReasonCode.NOT_BY_ENGINE]
    assert left.reason.origin == "orders.yml:11"
    assert "--engine transaction" in left.reason.text


def test_what_is_known_of_a_feature_is_said() -> None:
    facts = make_facts(protocol=Protocol(3, 7, (), ("icebergCompatV1", "future")))
    with pytest.raises(TableError) as caught:
        check_supported(facts)
    assert "icebergCompatV1 (its files also belong to an Iceberg table, which has rules of its own)" in str(
        caught.value.found
    )
    assert "future" in str(caught.value.found)
    with pytest.raises(TableError) as caught:
        check_supported(make_facts(protocol=Protocol(3, 7, (), ("catalogOwned",))))
    assert caught.value.code == "T407"


def left(name: str, code: str = "T404", line: int | None = 3, file: str = "rules.yml") -> TablePlan:
    return TablePlan(TableRef(name), file, "d", problem=Problem(code, "not supported"), rule_line=line)


def reached(name: str, line: int | None = 3, file: str = "rules.yml") -> TablePlan:
    return TablePlan(TableRef(name), file, "d", rule_line=line)


@pytest.mark.parametrize(
    ("tables", "states", "code"),
    [
        ([left("a"), left("b", "T407"), reached("c")], ["unsupported", "unsupported", "up_to_date"], ExitCode.OK),
        ([left("a"), left("b")], ["problem", "problem"], ExitCode.FINDINGS),
        ([left("a"), reached("b", 9)], ["problem", "up_to_date"], ExitCode.FINDINGS),
        ([left("a"), reached("b", 3, "others.yml")], ["problem", "up_to_date"], ExitCode.FINDINGS),
        ([left("a", line=None, file="a.yml"), reached("b")], ["problem", "up_to_date"], ExitCode.FINDINGS),
        ([left("a", line=None, file="x"), reached("b", None, "x")], ["problem", "up_to_date"], ExitCode.FINDINGS),
        ([left("a", "T403"), reached("b")], ["problem", "up_to_date"], ExitCode.FINDINGS),
    ],
    ids=[
        "rule reaches others",
        "only such",
        "another rule",
        "another file",
        "a policy of its own",
        "a file of two",
        "another problem",
    ],
)
def test_a_table_that_cannot_be_maintained_is_an_error_only_where_somebody_meant_it(
    tables: list[TablePlan], states: list[str], code: ExitCode
) -> None:
    plan = assemble(tables, created_at_ms=NOW_MS)
    assert [table.state.value for table in plan.tables] == states
    assert plan_exit_code(plan) is code
    assert from_json(to_json(plan)) == plan
    ended = [
        TableOutcome(table.ref, status_without_steps(table), problem=planned_problem(table)) for table in plan.tables
    ]
    outcome = RunOutcome("r", NOW_MS, 1.0, tuple(ended))
    assert exit_code(outcome) is code
    unsupported = states.count("unsupported")
    assert outcome.count(TableStatus.UNSUPPORTED) == unsupported
    assert (f"{unsupported} not supported" in render_run(outcome)) is (unsupported > 0)
    assert f'skipped="{unsupported}"' in render_junit(outcome)
    message = failure_message(RunNamed("r", "f", "p", None), ended, ExitCode.FINDINGS, NOW_MS)
    assert message["num_tables"] == states.count("problem")
    assert (f"{unsupported} tables not supported and left alone" in message["text"]) is (unsupported > 0)
