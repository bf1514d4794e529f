"""Which tables a watch looks at, from search to search."""

from __future__ import annotations

from pathlib import Path

from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import WatchedTables, chosen_tables
from maintainer.app.selection.managed_search import search_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.errors import CatalogAway
from tests.unit.app.selection.searched_lakes import Finder, lake, opened, project


def watched_of(search: Project, finder: Finder) -> WatchedTables:
    return WatchedTables(search, RunSpec(), opened(finder), chosen_tables(search, RunSpec(), command="watch"), 0.0)


def after_a_search(watched: WatchedTables) -> list[str]:
    watched.searched_at = float("-inf")
    return [policy.table.identifier for policy in watched.policies()]


def test_a_watch_looks_for_new_tables_from_time_to_time(tmp_path: Path) -> None:
    lake(tmp_path, "lake/a")
    watched = watched_of(search_tables(project(tmp_path), EngineOptions()), Finder())
    watched.searched_at = float("inf")
    lake(tmp_path, "lake/b")
    assert [policy.table.identifier for policy in watched.policies()] == ["lake/a"]
    assert after_a_search(watched) == ["lake/a", "lake/b"]


def test_a_watch_keeps_the_tables_of_a_place_that_cannot_be_searched_now(tmp_path: Path) -> None:
    """It would leave them alone until the next search, and not know any more how often each of them failed."""
    finder = Finder([("sales.a", "s3a://b/a"), ("sales.c", "s3a://b/c")], ["s3a://b/a", "s3a://b/c", "s3a://b/d"])
    loaded = project(tmp_path, "roots: ['s3://b']\ndatabases: [sales]")
    watched = watched_of(search_tables(loaded, opened(finder)), finder)
    everything = ["s3://b/d", "sales.a", "sales.c"]
    assert after_a_search(watched) == everything
    finder.catalog, finder.stored = [CatalogAway("no answer")], ["s3a://b/a", "s3a://b/c", "s3a://b/e"]
    for _ in range(2):
        assert after_a_search(watched) == ["s3://b/e", "sales.a", "sales.c"]  # what is gone from the store is gone
        assert [problem.error.code for problem in watched.chosen.problems] == ["E647"]
    finder.catalog, finder.stored = [("sales.a", "s3a://b/a")], []
    assert after_a_search(watched) == ["sales.a"]
