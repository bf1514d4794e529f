"""Tables called by the end of their names: by commands that only look, and never where something is done unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import chosen_tables
from maintainer.app.selection.managed_search import search_tables
from maintainer.app.selection.run_spec import RunSpec, SelectionOptions
from maintainer.errors import ProjectError
from tests.support.policies.projects import write_project

RULE = "match: {tables: ['*']}\nmanage: true\n"
ENDS = ("lake/sales/orders", "lake/sales/items", "lake/crm/items", "lake/orders_old")


def lake(folder: Path, roots: str = "[lake]", **files: str) -> None:
    policies = {f"policies/{name}.yml": text for name, text in files.items()}
    write_project(folder, {"maintainer.yml": f"roots: {roots}\n", "policies/all.yml": RULE, **policies})
    for table in ENDS:
        (folder / table / "_delta_log").mkdir(parents=True)


def ended(folder: Path, **options: object) -> list[str]:
    """The tables that a command would work on."""
    command = str(options.pop("command", "plan"))
    found = search_tables(Project.load(folder), EngineOptions())
    spec = RunSpec(SelectionOptions(**options))  # type: ignore[arg-type]
    return [policy.table.identifier for policy in chosen_tables(found, spec, command=command).policies]


def test_commands_that_only_look_take_the_end_of_a_name(tmp_path: Path) -> None:
    lake(tmp_path)
    for command in ("plan", "status", "list", "verify"):
        assert ended(tmp_path, select=("orders",), command=command) == ["lake/sales/orders"]
        assert ended(tmp_path, exclude=("sales/items", "orders"), command=command) == [
            "lake/crm/items",
            "lake/orders_old",
        ]
        with pytest.raises(ProjectError, match="the names of 2 tables end with `items`") as caught:
            ended(tmp_path, select=("items",), command=command)
        assert (caught.value.code, caught.value.found) == ("E613", "lake/crm/items, lake/sales/items")
    with pytest.raises(ProjectError, match="E623: `rders` selects nothing"):
        ended(tmp_path, select=("rders",))


def test_an_exact_name_wins_over_the_end_of_another(tmp_path: Path) -> None:
    lake(tmp_path, exact="table: orders\n")
    for options in ({}, {"command": "apply"}):
        assert ended(tmp_path, select=("orders",), **options) == ["orders"]


@pytest.mark.parametrize("command", ["apply", "watch", "ledger"])
def test_commands_that_change_something_take_whole_names(tmp_path: Path, command: str) -> None:
    lake(tmp_path)
    for option in ("select", "exclude"):
        with pytest.raises(ProjectError, match=f"it is the end of a name, and {command} takes whole names") as caught:
            ended(tmp_path, command=command, **{option: ("orders",)})
        assert (caught.value.code, caught.value.help) == ("E623", "write `lake/sales/orders`")
        with pytest.raises(ProjectError, match="the names of 2 tables end with `items`"):
            ended(tmp_path, command=command, **{option: ("items",)})
    assert ended(tmp_path, command=command, select=("lake/sales/*",), exclude=("lake/sales/items",)) == [
        "lake/sales/orders"
    ]
    assert ended(tmp_path, command=command, select=("orders",), shown_first=True) == ["lake/sales/orders"]


def test_a_table_of_a_place_out_of_reach_may_be_called_so(tmp_path: Path) -> None:
    lake(tmp_path, "[lake, gone]")
    found = search_tables(Project.load(tmp_path), EngineOptions())

    def problems(command: str, name: str) -> int:
        spec = RunSpec(SelectionOptions((name,), allow_empty=True))
        return len(chosen_tables(found, spec, command=command).problems)

    assert [problems("plan", name) for name in ("new", "a/new", "orders", f"{tmp_path}/lake/new")] == [1, 1, 0, 0]
    assert problems("apply", "new") == 0
