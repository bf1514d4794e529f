"""A place that could not be searched stays in sight for each selection that may mean tables in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import StoreSilent
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.project.table_search import Meant, TableProblem
from maintainer.policy.selectors import parse_selector
from maintainer.policy.table_names import name_key, table_ref
from tests.support.policies.projects import write_project

STORE, CATALOG = "s3://lake/bronze", "catalog"
FILES = {
    "maintainer.yml": "version: 1\nroots: ['s3://lake/bronze']\n",
    "policies/lake.yml": "match: {tables: ['*']}\nmanage: true\nowner: team-lake\ntags: [nightly]\n",
    "policies/adds.yml": "match: {tables: ['*/orders']}\ntags: [hourly]\n",
    "policies/known.yml": "table: s3://lake/bronze/known\ntags: [own]\n",
}


def meant(root: Path, place: str, select: str = "", exclude: str = "") -> bool:
    project = load_project(write_project(root, FILES))
    problem = TableProblem(TableRef(place), "maintainer.yml", StoreSilent("away"))
    return Meant(
        parse_selector([select], project.root),
        parse_selector([exclude], project.root),
        rules=project.rules,
        known=frozenset({name_key(table_ref("s3://lake/bronze/known", project.root))}),
        root=project.root,
    ).may_be_in(problem)


@pytest.mark.parametrize(
    ("select", "store", "catalog"),
    [
        ("", True, True),
        ("tag:nightly", True, True),
        ("tag:hourly", True, True),
        ("tag:own", False, False),
        ("tag:own tag:nightly", True, True),
        ("tag:own,tag:nightly", False, False),
        ("owner:team-lake", True, True),
        ("owner:team-bi", False, False),
        ("*", True, True),
        ("*orders", True, True),
        ("s3a://lake/*", True, False),
        ("s3://lake/bronze/a*", True, False),
        ("s3://lake/silver/*", False, False),
        ("sales.*", False, True),
        ("s3://lake/bronze", True, False),
        ("s3://lake/bronze/new", True, False),
        ("s3://lake/bronze/known", False, False),
        ("s3://lake/silver/new", False, False),
        ("sales.orders", False, True),
        ("path:policies/lake.yml", True, True),
        ("path:policies/adds.yml", False, False),
        ("path:policies", True, True),
        ("path:maintainer.yml", True, True),
        ("state:modified", True, True),
        ("due", True, True),
        ("drifted", True, True),
        ("due,tag:own", False, False),
        ("result:failed", False, False),
    ],
)
def test_what_may_lie_there_is_meant(tmp_path: Path, select: str, store: bool, catalog: bool) -> None:
    assert (meant(tmp_path, STORE, select), meant(tmp_path, CATALOG, select)) == (store, catalog)


@pytest.mark.parametrize(
    ("exclude", "store", "catalog"),
    [
        ("s3a://lake/bronze/", False, True),
        ("s3://lake/*", False, True),
        ("s3://lake/bronze/*", False, True),
        ("s3://lake/bronze/a*", True, True),
        ("s3://lake/bronze/known", True, True),
        ("*", False, False),
        ("catalog", True, False),
        ("tag:nightly", True, True),
        ("s3://lake/*,tag:nightly", True, True),
    ],
)
def test_only_what_leaves_out_all_of_a_place_leaves_it_out(
    tmp_path: Path, exclude: str, store: bool, catalog: bool
) -> None:
    assert (meant(tmp_path, STORE, exclude=exclude), meant(tmp_path, CATALOG, exclude=exclude)) == (store, catalog)
