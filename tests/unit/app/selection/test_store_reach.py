"""Stores that are away: one error where no table is left, else one for each table of theirs, and none is opened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.planning.make_plan import PlanRequest, make_plan
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import tables_out_of_reach
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.protocols import SignOfLife
from maintainer.errors import LogUnreadable, MaintainerError, NoTable, StoreSilent, TableError
from maintainer.model.table.commit_records import CommitsWanted
from maintainer.model.table.table_facts import TableRef
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS, make_facts, make_files

GONE = "http://127.0.0.1:1: Connection refused"


@dataclass
class Sign:
    """What is at ``s3://gone``, and each name, is away."""

    table: TableRef
    waited_for: list[str]

    def error(self, others_wait: Callable[[], bool] = lambda: False) -> MaintainerError | None:
        self.waited_for.append(self.table.identifier + " for others" * others_wait())
        if self.table.is_path and not self.table.location.startswith("s3://gone/"):
            return None
        return StoreSilent("the storage cannot be reached", where=self.table.identifier, found=GONE)


def opened(asked: list[set[str]], waited_for: list[str] | None = None) -> OpenedEngine:
    """An engine for which everything on ``s3://gone`` is away, and nothing is known of ``s3://unknown``."""

    def signs_of_life(tables: Collection[TableRef]) -> dict[str, SignOfLife]:
        asked.append({table.identifier for table in tables})
        known = [table for table in tables if not table.location.startswith("s3://unknown/")]
        return {table.identifier: Sign(table, [] if waited_for is None else waited_for) for table in known}

    return OpenedEngine(
        None, lambda location: None, None, None, None, signs_of_life=signs_of_life,  # type: ignore[arg-type] # no other
    )  # fmt: skip


def refs(*names: str) -> list[TableRef]:
    return [TableRef(name) for name in names]


def test_a_fleet_on_a_dead_store_ends_with_one_message() -> None:
    asked: list[set[str]] = []
    tables = refs(*(f"s3://gone/t{number:02}" for number in range(30)))
    with pytest.raises(TableError) as caught:
        tables_out_of_reach(opened(asked), tables)
    error = caught.value
    assert (error.code, error.where, error.found) == ("T435", "s3://gone/t00 and 29 more tables", GONE)
    assert len(asked) == 1


def test_one_table_is_named_alone() -> None:
    with pytest.raises(TableError) as caught:
        tables_out_of_reach(opened([]), refs("s3://gone/t"))
    assert caught.value.where == "s3://gone/t"


def test_a_watch_goes_on() -> None:
    assert list(tables_out_of_reach(opened([]), refs("s3://gone/t"), ends=False)) == ["s3://gone/t"]


def test_names_on_a_dead_metastore_end_a_command_that_has_no_other_table() -> None:
    with pytest.raises(TableError) as caught:
        tables_out_of_reach(opened([]), refs("s3://gone/t", "sales.orders"))
    assert caught.value.where == "s3://gone/t and 1 more table"


def test_nobody_waits_where_another_table_can_be_read_meanwhile() -> None:
    waited_for: list[str] = []
    signs = tables_out_of_reach(opened([], waited_for), refs("s3://gone/t", "sales.orders", "s3://unknown/t"))
    assert (sorted(signs), waited_for) == (["s3://gone/t", "sales.orders"], [])
    assert [str(signs[name].error()) for name in sorted(signs)] == [
        "T435: s3://gone/t: the storage cannot be reached", "T435: sales.orders: the storage cannot be reached",
    ]  # fmt: skip


def test_one_table_that_is_reached_lets_the_command_go_on() -> None:
    signs = tables_out_of_reach(opened([]), refs("s3://gone/t", "s3://here/t"))
    assert (signs["s3://gone/t"].error() is None, signs["s3://here/t"].error()) == (False, None)


def test_nothing_is_away_where_there_are_no_tables() -> None:
    assert tables_out_of_reach(opened([]), []) == {}


class Lake:
    """An engine that notes which tables are opened, and has none of them."""

    deletes = True
    places = StoragePlaces()

    def __init__(self, small_files: Collection[str] = (), num_files: int = 3) -> None:
        self.small_files, self.num_files = small_files, num_files
        self.opened: list[str] = []
        self.reader = self

    def facts(self, ref: TableRef) -> Any:
        self.opened.append(ref.identifier)
        if ref.location in self.small_files:
            return replace(make_facts(files=make_files(*[1 << 20] * self.num_files), location=ref.location), ref=ref)
        raise NoTable("there is no such table", where=ref.identifier)

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> Any:
        raise LogUnreadable("nothing is known of other writers", where=ref.identifier)

    @contextmanager
    def worker(self, name: str) -> Iterator[Any]:
        yield self


def test_a_table_whose_store_is_away_is_a_problem_and_is_not_opened(tmp_path: Path) -> None:
    files = {"policies/a.yml": "table: s3://gone/a\n", "policies/b.yml": "table: s3://here/b\n"}
    project = Project.load(write_project(tmp_path, files))
    lake: Any = Lake()
    away = tables_out_of_reach(opened([]), (policy.table for policy in project.policies))
    plan = make_plan(project, lake, PlanRequest(project.policies, NOW_MS, away=away))
    problem_codes = {table.ref.identifier: table.problem.code for table in plan.tables if table.problem}
    assert problem_codes == {"s3://gone/a": "T435", "s3://here/b": "T401"}
    assert lake.opened == ["s3://here/b"]


@pytest.mark.parametrize("num_files", [1, 3])
def test_others_wait_once_all_of_them_are_planned_and_one_has_something_to_do(tmp_path: Path, num_files: int) -> None:
    """One that cannot be read is over, too."""
    files = {f"policies/{name[-1]}.yml": f"table: {name}\n" for name in ("sales.a", "sales.b", "s3://unknown/c", "/d")}
    project = Project.load(write_project(tmp_path, files))
    order: list[str] = []
    lake: Any = Lake(["/d"], num_files)
    lake.opened = order
    away = tables_out_of_reach(opened([], order), (policy.table for policy in project.policies))
    make_plan(project, lake, PlanRequest(project.policies, NOW_MS, jobs=1, away=away))
    waits = " for others" if num_files == 3 else ""
    assert order[-2:] == [f"sales.a{waits}", f"sales.b{waits}"]
    assert set(order[:-2]) == {"/d", "s3://unknown/c"}


def test_tables_that_wait_for_a_sign_of_life_hold_up_no_other(tmp_path: Path) -> None:
    """One thread reads: what waits comes after what does not, and names after stores."""
    files = {f"policies/{name[-1]}.yml": f"table: {name}\n" for name in ("sales.a", "s3://gone/b", "s3://unknown/c")}
    project = Project.load(write_project(tmp_path, files))
    lake, order = Lake(), []  # type: tuple[Any, list[str]]
    away = tables_out_of_reach(opened([], order), (policy.table for policy in project.policies))
    lake.opened = order
    make_plan(project, lake, PlanRequest(project.policies, NOW_MS, jobs=1, away=away))
    assert order == ["s3://unknown/c", "s3://gone/b", "sales.a"]


@pytest.mark.parametrize(
    ("small_files", "expected"),
    [(("s3://unknown/c", "s3://unknown/d"), 1), ((), 0)],
    ids=["two tables have steps", "nothing to do"],
)
def test_what_steps_need_is_started_once_beside_planning(
    tmp_path: Path, small_files: tuple[str, ...], expected: int
) -> None:
    tables = ("s3://gone/b", "s3://unknown/c", "s3://unknown/d")
    project = Project.load(write_project(tmp_path, {f"policies/{name[-1]}.yml": f"table: {name}\n" for name in tables}))
    lake: Any = Lake(small_files)
    started: list[str] = []
    request = PlanRequest(project.policies, NOW_MS, on_first_step=lambda: started.append("session"))
    plan = make_plan(project, lake, request)
    assert sum(bool(table.steps) for table in plan.tables) == len(small_files)
    assert len(started) == expected
