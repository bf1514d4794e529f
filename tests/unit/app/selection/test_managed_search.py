"""The search for tables that only rules manage, on real folders and on a catalog and a store that answer as told."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.engine_access import EngineOptions
from maintainer.app.planning.make_plan import known_tables
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import chosen_tables, searched
from maintainer.app.selection.managed_search import (
    gone_tables,
    needs_session,
    remember_found,
    search_tables,
    tables_found_before,
    with_recorded_tables,
)
from maintainer.app.selection.run_spec import RunSpec, SelectionOptions, Shard
from maintainer.delta.snapshot.find_tables import SearchLimits, tables_below
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.errors import CatalogAway, FoldersTooDeep, NotSupportedYet, ProjectError
from maintainer.model.plan.plan import GoneTable, Problem
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import table_ref
from tests.support.runs import sample_plans
from tests.unit.app.selection.searched_lakes import RULE, Finder, lake, opened, project

EMPTY = sample_plans.plan()


def names(search: Project) -> dict[str, str]:
    return {policy.table.identifier: policy.source for policy in search.policies}


def problems(search: Project) -> list[tuple[str, str | None]]:
    return [(problem.table.identifier, problem.error.code) for problem in search.loaded.problems]


def test_folders_of_this_machine_are_searched_without_spark(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a", "lake/raw/b c", "other/d")
    before = project(tmp_path)
    assert not needs_session(before)
    search = search_tables(before, EngineOptions())
    assert names(search) == {"lake/a": "policies/rule.yml:2", "lake/raw/b c": "policies/rule.yml:2"}
    assert search_tables(search, EngineOptions()) is search


def test_a_project_without_managing_rules_is_not_searched(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    plain = project(tmp_path, "timezone: UTC", rule="match: {tables: ['*']}\nowner: a", t="table: lake/a")
    assert search_tables(plain, EngineOptions()) is plain
    assert with_recorded_tables(plain, [TableRef("lake/b")]) is plain
    assert not needs_session(plain)
    assert gone_tables(plain) == ()
    remember_found(plain, EMPTY, refuse)


def test_a_link_to_a_table_with_a_file_is_that_table(tmp_path: Path) -> None:
    lake(tmp_path, "data/a", "lake/b")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "data")
    loaded = project(
        tmp_path, "roots: [lake, data]", own="table: elsewhere/a", every="match: {tables: ['data/*']}\nmanage: true"
    )
    assert names(search_tables(loaded, EngineOptions())) == {
        "elsewhere/a": "policies/own.yml", "lake/b": "policies/rule.yml:2",
    }  # fmt: skip


def test_a_table_of_a_catalog_with_a_file_by_its_address_is_that_table(tmp_path: Path) -> None:
    finder = Finder([("sales.orders", "s3a://b/x%20y")])
    loaded = project(tmp_path, "databases: [sales]", own="table: s3://b/x y")
    assert names(search_tables(loaded, opened(finder))) == {"s3://b/x y": "policies/own.yml"}


def test_a_missing_root_is_a_problem_and_the_others_are_searched(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    search = search_tables(project(tmp_path, "roots: [gone, lake]"), EngineOptions())
    assert list(names(search)) == ["lake/a"]
    assert problems(search) == [("./gone", "E645")]


def test_a_catalog_and_a_store_are_asked(tmp_path: Path) -> None:
    finder = Finder(
        [("sales.orders", "s3a://b/orders"), ("hr.people", "s3a://b/people")],
        ["s3a://b/orders", "s3a://b/x%20y", "s3a://b/people"],
    )
    loaded = project(tmp_path, "roots: ['s3://b']\ndatabases: [SALES]")
    assert needs_session(loaded)
    assert list(names(search_tables(loaded, opened(finder)))) == ["s3://b/people", "s3://b/x y", "sales.orders"]


def test_a_named_table_below_a_root_stays_its_files(tmp_path: Path) -> None:
    lake(tmp_path, "lake/people", "lake/a")
    loaded = project(tmp_path, own="table: hr.people")
    assert needs_session(loaded)
    search = search_tables(loaded, opened(Finder([("hr.people", f"file:{tmp_path}/lake/people")])))
    assert names(search) == {"hr.people": "policies/own.yml", "lake/a": "policies/rule.yml:2"}


def test_what_was_found_before_a_failure_counts(tmp_path: Path) -> None:
    failing = CatalogAway("the catalog does not answer")
    finder = Finder([("sales.a", "s3a://b/a"), failing], ["s3a://b/c", FoldersTooDeep("deep", where="s3a://b/d")])
    search = search_tables(project(tmp_path, "roots: ['s3://b']\ndatabases: [sales]"), opened(finder))
    assert list(names(search)) == ["s3://b/c", "sales.a"]
    assert problems(search) == [("catalog", "E647")]
    assert search.loaded.search is not None
    assert [note.code for note in search.loaded.search.notes] == ["E648"]


def test_a_catalog_that_cannot_be_listed_is_a_problem_where_it_is_meant(tmp_path: Path) -> None:
    unlisted = NotSupportedYet("the tables of catalog prod cannot be listed", where="prod")
    finder = Finder([("sales.a", "s3a://b/a"), unlisted])
    search = search_tables(project(tmp_path, "databases: [sales, prod.sales]"), opened(finder))
    assert (list(names(search)), problems(search)) == (["sales.a"], [("catalog", "E620")])
    assert [name for name in ("prod", "dev") if finder.meant(name)] == ["prod"]


@pytest.mark.parametrize("name", ["sales.`a.b`", "sales.`a``b`", "sales.`a/b`"])
def test_a_name_in_back_ticks_is_managed_like_any_other(tmp_path: Path, name: str) -> None:
    search = search_tables(project(tmp_path, "databases: [sales]"), opened(Finder([(name, "s3a://b/a")])))
    assert names(search) == {name: "policies/rule.yml:2"}


def test_where_nothing_can_be_listed_every_place_is_a_problem(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    loaded = project(tmp_path, "roots: [lake, 's3://b']\ndatabases: [sales]")
    search = search_tables(loaded, opened(NotSupportedYet("over Spark Connect", code="E620")))
    assert list(names(search)) == ["lake/a"]
    assert problems(search) == [("catalog", "E620"), ("s3://b", "E620")]


# -- what is chosen


def test_a_problem_is_chosen_like_a_table(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a", "lake/b")
    search = search_tables(project(tmp_path, "roots: [gone, lake]"), EngineOptions())

    def chosen(*select: str, shard: Shard | None = None) -> tuple[list[str], list[str]]:
        tables = chosen_tables(search, RunSpec(SelectionOptions(select), shard), command="plan")
        return [policy.table.identifier for policy in tables.policies], [
            problem.table.identifier for problem in tables.problems
        ]

    assert chosen() == (["lake/a", "lake/b"], ["./gone"])
    assert chosen("lake/a") == (["lake/a"], [])
    shards = [chosen(shard=Shard(number, 2)) for number in (1, 2)]
    assert sorted(name for parts in shards for part in parts for name in part) == ["./gone", "lake/a", "lake/b"]


def test_a_place_that_was_not_searched_is_chosen_wherever_its_tables_may_be_meant(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    tagged = "match: {tables: [lake/a, 'gone/*']}\nmanage: true\ntags: [nightly]\nowner: bi"
    own = "table: lake/own\ntags: [own]"
    search = search_tables(project(tmp_path, "roots: [gone, lake]", tagged=tagged, own=own), EngineOptions())

    def chosen(select: str, exclude: str = "", *, empty: bool = False) -> tuple[list[str], list[str]]:
        options = SelectionOptions((select,), (exclude,), allow_empty=empty)
        tables = chosen_tables(search, RunSpec(options), command="plan")
        return [policy.table.identifier for policy in tables.policies], [
            problem.table.identifier for problem in tables.problems
        ]

    assert chosen("tag:nightly") == (["lake/a"], ["./gone"])
    assert chosen("tag:own") == (["lake/own"], [])
    assert chosen("tag:nightly", "gone/*") == (["lake/a"], [])
    assert chosen("gone/*") == ([], ["./gone"])
    assert chosen("gone/*", empty=True) == ([], ["./gone"])
    with pytest.raises(ProjectError, match="there is no such folder") as caught:
        chosen_tables(search, RunSpec(SelectionOptions(("gone/x",))), command="verify").with_a_table()
    assert caught.value.code == "E645"
    with pytest.raises(ProjectError, match="selects nothing"):
        chosen("tag:nightli")


def test_a_table_that_a_run_names_is_planned_also_where_it_is_gone(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    spec = RunSpec(tables=frozenset({"lake/a", "lake/gone"}))
    search = searched(project(tmp_path), spec, EngineOptions())
    tables = chosen_tables(search, spec, command="apply").policies
    assert [policy.table.identifier for policy in tables] == ["lake/a", "lake/gone"]


def test_a_place_that_a_run_names_means_all_tables_of_rules_there(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a", "lake/own", "other/c")
    spec = RunSpec(tables=frozenset({"./lake", "./gone", "catalog"}))
    every = "match: {tables: ['*']}\nmanage: true\npriority: 1"
    before = project(tmp_path, "roots: [lake, other, gone]", every=every, own="table: lake/own")
    recorded = with_recorded_tables(before, [TableRef("./lake", str(tmp_path / "lake"))])
    assert list(names(recorded)) == ["lake/own"]
    tables = chosen_tables(searched(before, spec, EngineOptions()), spec, command="apply")
    assert [policy.table.identifier for policy in tables.policies] == ["lake/a"]
    assert [problem.table.identifier for problem in tables.problems] == ["./gone"]


def test_the_catalog_that_a_run_names_means_all_tables_of_rules_in_it(tmp_path: Path) -> None:
    finder = Finder([("sales.orders", "s3a://b/orders")], ["s3a://b/x"])
    loaded = project(tmp_path, "roots: ['s3://b']\ndatabases: [sales]", own="table: hr.people")
    spec = RunSpec(tables=frozenset({"catalog"}))
    search = with_recorded_tables(search_tables(loaded, opened(finder)), [TableRef("catalog")])
    tables = chosen_tables(search, spec, command="apply").policies
    assert [policy.table.identifier for policy in tables] == ["sales.orders"]


# -- from one run to the next


def refuse(problem: Problem) -> None:
    pytest.fail(problem.what)


def again(search: Project) -> Project:
    return search_tables(replace(search, loaded=replace(search.loaded, search=None)), EngineOptions())


def test_a_table_that_is_gone_is_named_until_the_next_run(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a", "lake/b")
    night = search_tables(project(tmp_path), EngineOptions())
    assert gone_tables(night) == ()
    remember_found(night, EMPTY, refuse)
    shutil.rmtree(tmp_path / "lake/b")
    morning = again(night)
    assert gone_tables(morning) == (GoneTable(table_ref("lake/b", tmp_path), "policies/rule.yml:2"),)
    assert [ref.identifier for ref in tables_found_before(morning)] == ["lake/a", "lake/b"]
    remember_found(morning, EMPTY, refuse)
    assert gone_tables(morning) == ()


def test_a_table_whose_disk_may_not_be_mounted_is_remembered_and_may_refer_to_files_of_others(tmp_path: Path) -> None:
    """An empty folder is searched without a problem; a clone in it would be forgotten, and its files deleted."""
    lake(tmp_path, "lake/a", "mount/clone")
    loaded = project(tmp_path, "roots: [lake, mount]", more='match: {tables: ["mount/*"]}\nmanage: true')
    night = search_tables(loaded, EngineOptions())
    remember_found(night, EMPTY, refuse)
    shutil.rmtree(tmp_path / "mount/clone")
    for _ in range(3):
        unmounted = again(night)
        assert names(unmounted) == {"lake/a": "policies/rule.yml:2"}
        assert [table.ref.identifier for table in gone_tables(unmounted)] == ["mount/clone"]
        assert [ref.identifier for ref in known_tables(unmounted)] == ["lake/a", "mount/clone"]
        remember_found(unmounted, EMPTY, refuse)
    (tmp_path / "mount/other").mkdir()
    remember_found(again(night), EMPTY, refuse)
    assert [ref.identifier for ref in known_tables(again(night))] == ["lake/a"]


def test_a_table_in_a_place_that_was_not_searched_or_that_rules_disagree_about_may_refer_to_files_of_others(
    tmp_path: Path,
) -> None:
    lake(tmp_path, "lake/a", "lake/b")
    night = search_tables(project(tmp_path, "roots: [lake, more]"), EngineOptions())
    remember_found(night, EMPTY, refuse)
    (tmp_path / "policies" / "odd.yml").write_text("version: 1\nmatch: {tables: ['lake/b']}\nowner: another\n")
    (tmp_path / "policies" / "rule.yml").write_text(f"{RULE}owner: team-lake\n")
    disagree = search_tables(Project.load(tmp_path), EngineOptions())
    assert problems(disagree) == [("./more", "E645"), ("lake/b", "E617")]
    assert names(disagree) == {"lake/a": "policies/rule.yml:2"}
    assert [ref.identifier for ref in known_tables(disagree)] == ["lake/a", "lake/b"]
    (tmp_path / "lake").rename(tmp_path / "away")
    assert [ref.identifier for ref in known_tables(again(night))] == ["lake/a", "lake/b"]


def test_a_place_that_cannot_be_searched_has_lost_nothing(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    night = search_tables(project(tmp_path), EngineOptions())
    remember_found(night, EMPTY, refuse)
    (tmp_path / "lake").rename(tmp_path / "away")
    outage = again(night)
    assert gone_tables(outage) == ()
    remember_found(outage, EMPTY, refuse)
    lake(tmp_path, "lake/c")
    assert [table.ref.identifier for table in gone_tables(again(night))] == ["lake/a"]


def test_a_catalog_that_does_not_answer_has_lost_nothing(tmp_path: Path) -> None:
    loaded = project(tmp_path, "databases: [sales]")
    remember_found(search_tables(loaded, opened(Finder([("sales.a", "s3a://b/a")]))), EMPTY, refuse)
    silent = search_tables(loaded, opened(Finder([CatalogAway("no answer")])))
    assert gone_tables(silent) == ()


def test_a_table_that_got_a_file_or_lost_its_rule_is_not_gone(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a", "lake/b")
    remember_found(search_tables(project(tmp_path), EngineOptions()), EMPTY, refuse)
    (tmp_path / "lake/a/_delta_log").rmdir()
    (tmp_path / "policies" / "a.yml").write_text("version: 1\ntable: lake/a\n")
    assert gone_tables(search_tables(Project.load(tmp_path), EngineOptions())) == ()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format_version": "9", "tables": {"lake/x": "r"}}', '{"format_version": "1", "tables": 3}']
)
def test_a_memory_that_cannot_be_read_says_nothing(tmp_path: Path, content: str) -> None:
    lake(tmp_path, "lake/a")
    search = search_tables(project(tmp_path), EngineOptions())
    search.runs_dir.parent.mkdir(parents=True)
    (search.runs_dir.parent / "found_tables.json").write_text(content)
    assert gone_tables(search) == ()


def test_a_memory_that_cannot_be_written_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    search = search_tables(project(tmp_path), EngineOptions())
    search.runs_dir.parent.parent.mkdir(parents=True, exist_ok=True)
    search.runs_dir.parent.write_text("a file where the folder should be")
    reported: list[Problem] = []
    remember_found(search, EMPTY, reported.append)
    assert [problem.code for problem in reported] == ["E651"]


# -- bounds of the walk through folders


def below(root: Path, limits: SearchLimits, clock: Callable[[], float] = lambda: 0.0) -> tuple[list[str], str]:
    tables, error = walked(tables_below(LocalFiles(), f"file:{root}", limits, clock))
    return [uri.removeprefix(f"file:{root}/") for uri in tables], error.code


def walked(walk: Iterator[str]) -> tuple[list[str], ProjectError]:
    tables: list[str] = []
    try:
        for uri in walk:
            tables.append(uri)
    except ProjectError as error:
        return tables, error
    pytest.fail("the walk came to its end")


def test_the_walk_is_bounded_and_says_where_it_ends(tmp_path: Path) -> None:
    lake(tmp_path, "1/2/3/t", "a/x", "t", "u")
    assert below(tmp_path, SearchLimits(max_depth=3)) == (["t", "u", "a/x"], "E648")
    assert below(tmp_path, SearchLimits(max_folders=2)) == ([], "E644")
    assert below(tmp_path, SearchLimits(max_tables=2)) == (["t", "u"], "E646")
    ticks = iter(range(100))
    assert below(tmp_path, SearchLimits(max_seconds=4), lambda: float(next(ticks))) == (["t"], "E649")
    assert below(tmp_path / "nowhere", SearchLimits()) == ([], "E645")


def test_a_folder_that_cannot_be_listed_is_named_and_the_others_are_searched(tmp_path: Path) -> None:
    lake(tmp_path, "a", "closed/t", "d")

    class Closed(LocalFiles):
        def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
            if uri.endswith("closed"):
                raise PermissionError(13, "Permission denied")
            return super().children(uri)

    tables, error = walked(tables_below(Closed(), f"file:{tmp_path}"))
    assert [uri.rpartition("/")[2] for uri in tables] == ["a", "d"]
    assert (error.code, error.where) == ("E645", f"file:{tmp_path}/closed")
    assert error.what == "a folder cannot be searched for tables: Permission denied"


def test_a_new_project_chooses_nothing_and_a_selector_must_still_match(tmp_path: Path) -> None:
    new = project(tmp_path, "roots: []")
    assert chosen_tables(new, RunSpec(), command="plan").policies == ()
    with pytest.raises(ProjectError, match="selects nothing"):
        chosen_tables(new, RunSpec(SelectionOptions(select=("lake/a",))), command="plan")
