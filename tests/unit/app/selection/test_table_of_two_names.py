"""A table that a search finds by name and by path, under whichever of them it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import chosen_tables, named_policy
from maintainer.app.selection.managed_search import search_tables
from maintainer.app.selection.run_spec import RunSpec, SelectionOptions
from tests.unit.app.selection.searched_lakes import Finder, opened, project

FINDER = Finder([("sales.a", "s3a://b/a"), ("hr.own", "s3a://b/own")], ["s3a://b/a", "s3a://b/own", "s3a://b/c"])


@pytest.fixture
def search(tmp_path: Path) -> Project:
    """``sales.a`` lies below the root, too, and so does ``hr.own``, which has a file; ``s3://b/c`` has no name."""
    return search_tables(
        project(tmp_path, "roots: ['s3://b']\ndatabases: [sales]", own="table: hr.own"), opened(FINDER)
    )


def chosen(search: Project, *select: str, exclude: tuple[str, ...] = ()) -> list[str]:
    spec = RunSpec(SelectionOptions(select, exclude))
    return [policy.table.identifier for policy in chosen_tables(search, spec, command="apply").policies]


@pytest.mark.parametrize(("written", "called"), [
    ("s3a://b/a", "sales.a"), ("SALES.A", "sales.a"), ("s3://b/?", "s3://b/c sales.a"), ("s3://b/own", "hr.own"),
    ("*/own", "hr.own"),
])  # fmt: skip
def test_it_is_selected_and_excluded_by_each_of_its_names(search: Project, written: str, called: str) -> None:
    everything = ["hr.own", "s3://b/c", "sales.a"]
    assert chosen(search) == everything
    assert chosen(search, written) == called.split()
    assert chosen(search, exclude=(written,)) == [name for name in everything if name not in called.split()]


@pytest.mark.parametrize(("written", "called"), [("s3a://b/a", "sales.a"), ("s3://b/own", "hr.own")])
def test_its_policy_is_the_one_that_it_has(search: Project, written: str, called: str) -> None:
    policy = named_policy(search, written, opened(FINDER), whole=True)[1]
    assert (policy.table.identifier, policy) == (called, search.loaded.resolve_table(called))
