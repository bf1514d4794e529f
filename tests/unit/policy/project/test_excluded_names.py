"""What a rule excludes: a table under any of its names, in any spelling of its store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.errors import ProjectError, StoreSilent
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject
from maintainer.policy.project.table_search import FoundTable, TableProblem, TableSearch
from maintainer.policy.table_names import table_ref
from tests.support.policies.searched_projects import MANAGE, ROOTS, project, searched, sources

EXCLUDES = """version: 1
match:
  tables: ["lake/*", "sales.*"]
  exclude: ["sales.pii", "lake/secret"]
"""
BOTH = ROOTS + "databases: [sales]\n"


def test_what_a_rule_excludes_by_one_name_it_manages_by_none(tmp_path: Path) -> None:
    loaded = project(tmp_path, EXCLUDES + "manage: true\n", settings=BOTH)
    now = searched(loaded, ("sales.pii", "lake/pii"), ("sales.secret", "lake/secret"), ("sales.ok", "lake/ok"))
    assert list(sources(now)) == ["sales.ok"]
    assert now.manager_of(TableRef("sales.secret")) is None
    with pytest.raises(ProjectError) as refused:
        now.resolve_table("sales.secret")
    assert (refused.value.what, refused.value.where) == (
        "`match.exclude` leaves `sales.secret` out", "policies/p0.yml:4",
    )  # fmt: skip


def test_a_name_that_no_place_declares_excludes_too(tmp_path: Path) -> None:
    loaded = project(tmp_path, EXCLUDES + "manage: true\n")
    table = FoundTable((table_ref("lake/pii", tmp_path),), aliases=("name:sales.pii",))
    assert sources(replace(loaded, search=TableSearch((table,)))) == {}


def test_what_a_rule_excludes_by_one_name_gets_none_of_its_settings(tmp_path: Path) -> None:
    every = 'version: 1\nmatch: {tables: ["*"]}\nmanage: true\n'
    loaded = project(tmp_path, every, EXCLUDES + "owner: nobody\n", settings=BOTH)
    now = searched(loaded, ("sales.secret", "lake/secret"), ("sales.ok", "lake/ok"))
    assert {policy.table.identifier: policy.owner for policy in now.resolved()} == {
        "sales.ok": "nobody", "sales.secret": None,
    }  # fmt: skip


def test_nor_does_a_table_with_a_file_where_its_other_name_was_found(tmp_path: Path) -> None:
    own = "version: 1\ntable: sales.secret\n"
    loaded = project(tmp_path, MANAGE, EXCLUDES + "owner: nobody\n", own, settings=BOTH)
    table = FoundTable((table_ref("lake/secret", tmp_path),), aliases=("name:sales.secret",))
    (policy,) = replace(loaded, search=TableSearch((table,))).resolved()
    assert (policy.table.identifier, policy.owner) == ("sales.secret", None)


@pytest.mark.parametrize("excluded", ["s3a://b/lake/pii*", "s3n://b/lake/pii*", "S3://b/lake/pii*"])
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_one_store_has_one_name_in_globs(tmp_path: Path, scheme: str, excluded: str) -> None:
    rule = f'version: 1\nmatch: {{tables: ["s3://b/lake/*"], exclude: ["{excluded}"]}}\nmanage: true\n'
    now = searched(
        project(tmp_path, rule, settings=f'version: 1\nroots: ["{scheme}://b/lake"]\n'),
        f"{scheme}://b/lake/ok", f"{scheme}://b/lake/pii",
    )  # fmt: skip
    assert list(sources(now)) == [f"{scheme}://b/lake/ok"]


def dead(loaded: LoadedProject) -> list[tuple[str, int, str]]:
    return [(finding.code, finding.span.column, finding.message) for finding in loaded.diagnostics]


@pytest.mark.parametrize(
    ("exclude", "is_dead"),
    [
        ("sales.pii", False), ("lake/pii", False), ("sales.own", False), ("sales.pi", True), ("lake/pi", True),
        ("Sales.pii", True),  # case counts in globs
        ("hr.people", True),  # it is there, and the rule does not match it
        ("elsewhere.pi", False), ("other/pi", False),  # nobody looked there
        ("*.tmp_*", False),  # what is not there yet
    ],
)  # fmt: skip
def test_an_excluded_name_that_no_table_has_is_a_warning_after_the_search(
    tmp_path: Path, exclude: str, is_dead: bool
) -> None:
    rule = f'version: 1\nmatch: {{exclude: ["{exclude}"], tables: ["lake/*", "sales.*"]}}\nmanage: true\n'
    own = "version: 1\ntable: sales.own\n"
    loaded = project(tmp_path, rule, own, settings=ROOTS + "databases: [sales, hr]\n")
    assert dead(loaded) == []
    now = searched(loaded, ("sales.pii", "lake/pii"), "sales.ok", "hr.people")
    message = f"`{exclude}` excludes no table that this rule would match"
    assert dead(now) == ([("P357", 19, message)] if is_dead else [])
    away = TableProblem(TableRef("catalog"), "maintainer.yml", StoreSilent("away"))
    assert now.search is not None
    for part in ({"is_recorded": True}, {"problems": (away,)}, {"notes": (away.error,)}):
        assert dead(replace(now, search=replace(now.search, **part))) == []


@pytest.mark.parametrize(
    ("exclude", "is_dead"),
    [
        ("tmp/*", True), ("./tmp_*/x", True), ("/data/tmp/*", True), ("s3://b/tmp/*", True),
        ("lake/tmp/*", False), ("*/tmp/*", False), ("own/*", False), ("tmp_*", False), ("hr.*", False),
    ],
)  # fmt: skip
def test_a_glob_of_paths_that_excludes_nothing_in_any_place_is_a_warning(
    tmp_path: Path, exclude: str, is_dead: bool
) -> None:
    """Whoever writes `tmp/*` means such a folder anywhere; it starts at the project's, and all tables are managed."""
    rule = f'version: 1\nmatch: {{exclude: ["{exclude}"], tables: ["*"]}}\nmanage: true\n'
    loaded = project(tmp_path, rule, "version: 1\ntable: own/t\n", settings=BOTH)
    message = f"no table that fits `{exclude}` can be in the declared places, so it excludes none"
    assert dead(loaded) == ([("P387", 19, message)] if is_dead else [])
