"""Shards: every table is in exactly one, whatever else is in the fleet, and the option is read strictly.

``due`` and ``drifted``: chosen broadly before the look at the tables, exactly after it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.app.selection.run_spec import NoPlans, RunSpec, SelectionOptions, Shard, choose, narrowed
from maintainer.cli.main import run
from maintainer.errors import ProjectError
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject, load_project
from tests.support.policies.projects import write_project


@given(st.lists(st.text(), max_size=40, unique=True), st.integers(1, 9))
def test_the_union_of_shards_is_the_whole_and_no_table_is_in_two(names: list[str], total: int) -> None:
    shards = [Shard(number, total) for number in range(1, total + 1)]
    assert all(sum(shard.holds(name) for shard in shards) == 1 for name in names)


def test_a_table_stays_where_it_is() -> None:
    """By a hash that no process seeds: two drivers must agree, today and next year."""
    assert sum(Shard(1, 4).holds(f"t{number}") for number in range(4000)) == 992


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/b", "1/1001", "-1/2", "01/2", "1/2/3", ""])
def test_what_is_not_a_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a shard"):
        Shard.parse(text)


def test_what_a_plan_records_has_the_shard() -> None:
    spec = RunSpec(SelectionOptions(("tag:a",), ("tag:b",)), shard=Shard(2, 5))
    assert spec.described == ("tag:a", "-tag:b", "shard:2/5")
    assert RunSpec(shard=Shard(1, 2)).described == ("shard:1/2",)
    assert RunSpec(origin="retry", shard=Shard(1, 2)).described == ("retry", "shard:1/2")


def test_list_shows_one_shard_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\n")
    (tmp_path / "policies").mkdir()
    for number in range(12):
        (tmp_path / "policies" / f"{number}.yml").write_text(f"version: 1\ntable: db.t{number}\n")
    seen: list[str] = []
    for number in (1, 2, 3):
        assert run(["--project", str(tmp_path), "-q", "list", "--shard", f"{number}/3"]) == 0
        out = capsys.readouterr().out.splitlines()
        seen += [line.split()[0] for line in out if line.startswith("db.")]
    assert sorted(seen) == sorted(f"db.t{number}" for number in range(12))
    assert run(["--project", str(tmp_path), "list", "--shard", "4/3"]) == 2
    assert "`4/3` is not a shard" in capsys.readouterr().err


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
    first = choose(project.resolved(), project, options, command="plan", plans=NoPlans.YET)
    assert {policy.table.identifier for policy in first} == {f"s.{name}" for name in before}
    seen = {policy.table for policy in first}
    plan = Plan(0, 1, tuple(table for table in looked("drifts").tables if table.ref in seen))
    narrowed_plan = narrowed(plan, project, options, command="plan")
    assert {str(table.ref) for table in narrowed_plan.tables} == {f"s.{name}" for name in after}


def test_what_could_not_be_looked_at_is_never_taken_for_done(project: LoadedProject) -> None:
    broken = Problem("T403", "the table's log cannot be read")
    tables = (
        *looked("drifts").tables[:1],
        replace(looked().tables[1], problem=broken),
        TablePlan(TableRef("s3://away"), "maintainer.yml", "", problem=Problem("T435", "the storage is away")),
    )
    for select in ("due", "drifted"):
        narrowed_plan = narrowed(Plan(0, 1, tables), project, SelectionOptions((select,)), command="plan")
        assert [str(table.ref) for table in narrowed_plan.tables] == ["s.drifts", "s.idle", "s3://away"]


def test_that_nothing_is_due_is_an_answer_and_a_misspelt_name_beside_it_is_not(project: LoadedProject) -> None:
    options = SelectionOptions(("due",))
    assert narrowed(looked(), project, options, command="plan").tables == ()
    with pytest.raises(ProjectError) as caught:
        choose(project.resolved(), project, SelectionOptions(("due,tag:idel",)), command="plan", plans=NoPlans.YET)
    assert caught.value.code == "E623"


def test_a_command_that_never_looks_refuses(project: LoadedProject) -> None:
    with pytest.raises(ProjectError) as caught:
        choose(project.resolved(), project, SelectionOptions(("due",)), command="list")
    assert caught.value.code == "E624"
    assert caught.value.help == "it needs a look at the tables: use it with `plan`, `apply` or `status`"
