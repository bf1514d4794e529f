"""``due`` and ``drifted``: chosen broadly before the look at the tables, exactly after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.selection.table_selection import Look, SelectionOptions, choose, narrowed
from maintainer.errors import ProjectError
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject, load_project
from tests.support.policies.projects import write_project

PROPERTIES = SetPropertiesStep((("a.b", None),), (("a.b", "1"),), (Reason(ReasonCode.PROPERTY_DRIFT, "differs"),))


@pytest.fixture
def project(tmp_path: Path) -> LoadedProject:
    files = {f"policies/{name}.yml": f"table: s.{name}\ntags: [{name}]\n" for name in ("drifts", "idle", "other")}
    return load_project(write_project(tmp_path, files))


def looked(*drifting: str) -> Plan:
    names = ("drifts", "idle", "other")
    tables = tuple(
        TablePlan(TableRef(f"s.{name}"), f"{name}.yml", "d", steps=(PROPERTIES,) if name in drifting else ())
        for name in names
    )
    return Plan(0, 1, tables)


@pytest.mark.parametrize(
    ("select", "exclude", "before", "after"),
    [
        (("drifted",), (), {"drifts", "idle", "other"}, {"drifts"}),
        (("due",), (), {"drifts", "idle", "other"}, {"drifts"}),
        (("due,tag:idle",), (), {"idle"}, set()),
        (("drifted tag:other",), (), {"drifts", "idle", "other"}, {"drifts", "other"}),
        ((), ("due",), {"drifts", "idle", "other"}, {"idle", "other"}),
        (("s.*",), ("due,tag:other", "tag:idle"), {"drifts", "other"}, {"drifts", "other"}),
    ],
)
def test_what_may_be_meant_is_looked_at_and_what_is_meant_is_kept(
    project: LoadedProject, select: tuple[str, ...], exclude: tuple[str, ...], before: set[str], after: set[str]
) -> None:
    options = SelectionOptions(select, exclude)
    first = choose(project.resolved(), project, options, command="plan", look=Look.COMES)
    assert {policy.table.identifier for policy in first} == {f"s.{name}" for name in before}
    seen = {policy.table for policy in first}
    plan = Plan(0, 1, tuple(table for table in looked("drifts").tables if table.ref in seen))
    kept = narrowed(plan, project, options, command="plan")
    assert {str(table.ref) for table in kept.tables} == {f"s.{name}" for name in after}


def test_that_nothing_is_due_is_an_answer_and_a_misspelt_name_beside_it_is_not(project: LoadedProject) -> None:
    options = SelectionOptions(("due",))
    assert narrowed(looked(), project, options, command="plan").tables == ()
    with pytest.raises(ProjectError) as caught:
        choose(project.resolved(), project, SelectionOptions(("due,tag:idel",)), command="plan", look=Look.COMES)
    assert caught.value.code == "E623"


def test_a_command_that_never_looks_refuses(project: LoadedProject) -> None:
    with pytest.raises(ProjectError) as caught:
        choose(project.resolved(), project, SelectionOptions(("due",)), command="list")
    assert caught.value.code == "E624"
    assert caught.value.help == "it needs a look at the tables: use it with `plan`, `apply` or `status`"
