"""The ledger in a plan: a table like any other, and no problem where no run has made it yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.app.planning.make_plan import PlanRequest, known_tables, make_plan
from maintainer.app.project_folders import Project
from maintainer.cli.act.plan_command import print_table_planned
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.errors import LogUnreadable, NoTable, TableError
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import TableFacts, TableRef
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS, make_facts, make_files

LEDGER = ".maintainer/ledger"


class Lake:
    """An engine of which only facts are asked."""

    deletes = True
    places = StoragePlaces()

    def __init__(self, **errors: str) -> None:
        self._errors = {name.replace("_", "/"): code for name, code in errors.items()}

    def facts(self, ref: TableRef) -> TableFacts:
        code = self._errors.get("ledger" if ref.identifier == LEDGER else ref.identifier)
        if code is not None:
            kind = {"T401": NoTable, "T403": LogUnreadable}.get(code, TableError)
            raise kind("there is no such table", code=code, where=ref.identifier)
        return make_facts(files=make_files(90 << 20), name=ref.identifier, location=f"file:/{ref.identifier}")

    def vacuum_history(self, facts: TableFacts, checkpoints: object, *, removed_before_ms: int) -> VacuumHistory:
        return VacuumHistory()

    def vacuum_look(self, facts: TableFacts, question: object) -> TableFacts:
        return replace(facts, removed_files=())

    @contextmanager
    def worker(self, name: str) -> Iterator[Any]:
        yield SimpleNamespace(reader=self)


def with_ledger(root: Path, files: dict[str, str]) -> Project:
    """A project whose ledger looks as if a run had made it."""
    return Project.load(write_project(root, {**files, f"{LEDGER}/_delta_log/{0:020}.json": ""}))


def planned(root: Path, lake: Any) -> dict[str, str]:
    project = with_ledger(root, {"policies/t.yml": "table: lake/t\n"})
    plan = make_plan(project, lake, PlanRequest(project.policies, NOW_MS))
    return {table.ref.identifier: table.problem.code if table.problem else table.policy_file for table in plan.tables}


def test_the_ledger_is_planned_by_the_policy_of_its_own(tmp_path: Path) -> None:
    assert planned(tmp_path, Lake()) == {"lake/t": "policies/t.yml", LEDGER: "built-in"}


def test_a_ledger_that_no_run_has_made_yet_is_no_problem(tmp_path: Path) -> None:
    assert planned(tmp_path, Lake(ledger="T401")) == {"lake/t": "policies/t.yml"}


def test_one_that_cannot_be_read_is(tmp_path: Path) -> None:
    assert planned(tmp_path, Lake(ledger="T403")) == {"lake/t": "policies/t.yml", LEDGER: "E656"}


def test_another_table_that_is_not_there_is_never_passed_over(tmp_path: Path) -> None:
    assert planned(tmp_path, Lake(ledger="T401", lake_t="T401")) == {"lake/t": "T401"}


def test_the_ledger_holds_up_no_deletion_of_another_table(tmp_path: Path) -> None:
    project = with_ledger(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    assert [ref.identifier for ref in known_tables(project, project.policies)] == ["lake/t"]


def test_progress_of_planning_counts_the_tables_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = with_ledger(tmp_path, {f"policies/{letter}.yml": f"table: lake/{letter}\n" for letter in "ab"})
    lake: Any = Lake()
    make_plan(project, lake, PlanRequest(project.policies, NOW_MS, jobs=1, on_table=print_table_planned))
    lines = capsys.readouterr().err.splitlines()
    assert sorted(line.split("  ")[0] for line in lines) == [LEDGER, "[1/2] lake/a", "[2/2] lake/b"]
