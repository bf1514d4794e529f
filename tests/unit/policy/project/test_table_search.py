"""Tables without a file that a rule manages: where they are looked for, who manages them, and what is said of rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.errors import ProjectError, StoreSilent, TableError
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.project.table_search import (
    FoundTable,
    SearchPlaces,
    TableProblem,
    TableSearch,
    catalog_meant,
    database_matches,
    database_of,
)
from maintainer.policy.table_names import table_ref
from tests.support.policies.searched_projects import MANAGE, ROOTS, project, searched, sources


def codes(loaded: LoadedProject) -> list[tuple[str, str]]:
    return [(finding.code, finding.file) for finding in loaded.diagnostics]


def test_what_was_found_is_managed_by_file_and_line_of_the_rule(tmp_path: Path) -> None:
    before = project(tmp_path, MANAGE + "owner: team-lake\ntags: [nightly]\n")
    assert before.searches
    assert sources(before) == {}
    now = searched(before, "lake/a", "lake/b/c", "other/d")
    assert sources(now) == {"lake/a": "policies/p0.yml:2", "lake/b/c": "policies/p0.yml:2"}
    policy = now.resolved()[0]
    assert (policy.file, policy.owner, policy.tags) == ("policies/p0.yml", "team-lake", ("nightly",))
    assert not now.resolution_of("lake/a").named_by_file


def test_a_file_of_its_own_stays_and_the_rule_adds_to_it(tmp_path: Path) -> None:
    own = "version: 1\ntable: lake/a\ndescription: mine\n"
    now = searched(project(tmp_path, MANAGE + "owner: team-lake\n", own), "lake/a", "lake/b")
    assert sources(now) == {"lake/a": "policies/p1.yml", "lake/b": "policies/p0.yml:2"}
    assert [policy.owner for policy in now.resolved()] == ["team-lake", "team-lake"]


@pytest.mark.parametrize("names", [("sales.orders", "lake/orders"), ("lake/orders", "sales.orders")])
def test_a_table_found_by_several_names_has_one_policy(tmp_path: Path, names: tuple[str, str]) -> None:
    rule = 'version: 1\nmatch: {tables: ["*orders"]}\nmanage: true\n'
    loaded = project(tmp_path, rule, settings=ROOTS + "databases: [sales]\n")
    assert list(sources(searched(loaded, names))) == [names[0]]


def test_a_file_under_another_name_of_the_table_stays(tmp_path: Path) -> None:
    loaded = project(tmp_path, MANAGE, "version: 1\ntable: sales.orders\n")
    table = FoundTable((table_ref("lake/orders", tmp_path),), aliases=("name:sales.orders",))
    assert list(sources(replace(loaded, search=TableSearch((table,))))) == ["sales.orders"]


def test_the_ledger_below_a_root_is_nobody_elses(tmp_path: Path) -> None:
    now = searched(project(tmp_path, MANAGE, settings=ROOTS + "state: lake/s\n"), "lake/s/ledger", "lake/a")
    assert list(sources(now)) == ["lake/a"]


def test_exclude_leaves_tables_out(tmp_path: Path) -> None:
    rule = 'version: 1\nmatch: {tables: ["lake/*"], exclude: ["lake/tmp*"]}\nmanage: true\n'
    assert list(sources(searched(project(tmp_path, rule), "lake/a", "lake/tmp_1"))) == ["lake/a"]


def test_the_highest_rule_manages_and_its_tags_are_what_other_rules_match(tmp_path: Path) -> None:
    low = MANAGE + "tags: [weekly]\n"
    high = 'version: 1\nmatch: {tables: ["lake/a*"]}\nmanage: true\npriority: 5\ntags: [nightly]\n'
    by_tag = "version: 1\nmatch: {tags: [nightly]}\npriority: 9\nowner: night-shift\n"
    now = searched(project(tmp_path, low, high, by_tag), "lake/a", "lake/b")
    assert sources(now) == {"lake/a": "policies/p1.yml:2", "lake/b": "policies/p0.yml:2"}
    assert [policy.owner for policy in now.resolved()] == ["night-shift", None]


def test_rules_that_disagree_refuse_the_table_and_no_other(tmp_path: Path) -> None:
    rival = 'version: 1\nmatch: {tables: ["lake/a"]}\nowner: b\n'
    now = searched(project(tmp_path, MANAGE + "owner: a\n", rival), "lake/a", "lake/b")
    assert list(sources(now)) == ["lake/b"]
    (refused,) = now.managed.refused
    assert (refused.table.identifier, refused.file, refused.rule_line, refused.error.code) == (
        "lake/a", "policies/p0.yml", 2, "E617",
    )  # fmt: skip
    assert now.problems == (refused,)
    assert not now.errors


def test_what_rules_lack_together_refuses_the_table(tmp_path: Path) -> None:
    now = searched(project(tmp_path, MANAGE + "optimize: {zorder: {mode: full}}\n"), "lake/a")
    assert [(refused.error.code, refused.error.where) for refused in now.managed.refused] == [
        ("P306", "policies/p0.yml:4")
    ]


def test_explain_needs_no_search(tmp_path: Path) -> None:
    loaded = project(tmp_path, MANAGE)
    assert loaded.resolve_table("lake/a").source == "policies/p0.yml:2"
    with pytest.raises(ProjectError, match="no policy names"):
        loaded.resolve_table("other/a")


def test_what_a_rule_matches_outside_of_the_places_is_not_managed(tmp_path: Path) -> None:
    loaded = project(tmp_path, 'version: 1\nmatch: {tables: ["*"]}\nmanage: true\nowner: a\n')
    policy = loaded.resolve_table("elsewhere/a")
    assert (policy.source, policy.rule_line, policy.owner) == ("policies/p0.yml", None, "a")


def test_a_mistyped_name_is_compared_with_what_was_found(tmp_path: Path) -> None:
    rule = 'version: 1\nmatch: {tables: ["lake/orders"]}\nmanage: true\n'
    now = searched(project(tmp_path, rule), "lake/orders")
    with pytest.raises(ProjectError) as error:
        now.resolve_table("lake/ordesr")
    assert error.value.help == "did you mean `lake/orders`?"


def test_an_environment_has_places_of_its_own(tmp_path: Path) -> None:
    settings = ROOTS + 'environments: {prod: {roots: ["${env:LAKE}/lake"], databases: [sales]}, dev: {}}\n'
    assert project(tmp_path, settings=settings, env="prod").project.places == SearchPlaces(("/data/lake",), ("sales",))
    assert load_project(tmp_path, "dev", {"LAKE": "x"}).project.places == SearchPlaces((f"{tmp_path}/lake",))


def test_a_template_in_a_root_is_not_a_folder(tmp_path: Path) -> None:
    (finding,) = project(tmp_path, settings='version: 1\nroots: ["${LAKE}/x"]\n').diagnostics
    assert (finding.code, finding.help) == ("P354", "write `${env:LAKE}`")


@pytest.mark.parametrize(("word", "table"), [("a", "lake/a"), ("c", "lake/b/c"), ("b/c", "lake/b/c"), ("x", "lake/x")])
def test_what_was_found_is_called_by_the_end_of_its_name(tmp_path: Path, word: str, table: str) -> None:
    rule = 'version: 1\nmatch: {tables: ["*"]}\nmanage: true\n'
    now = searched(
        project(tmp_path, rule, settings=ROOTS + "databases: [d]\n"), "lake/a", "lake/b/c", ("lake/x", "d.x")
    )
    assert now.resolve_table(word, managed=True).table.identifier == table


@pytest.mark.parametrize("word", ["typo", "lake/typo", "other/a", "d.typo"])
def test_a_rule_for_everything_manages_no_table_that_is_not_there(tmp_path: Path, word: str) -> None:
    rule = 'version: 1\nmatch: {tables: ["*"]}\nmanage: true\n'
    now = searched(project(tmp_path, rule, settings=ROOTS + "databases: [d]\n"), "lake/a")
    with pytest.raises(ProjectError, match="E613: no policy names") as caught:
        now.resolve_table(word, managed=True)
    assert caught.value.what.endswith(", and no rule manages a table that is called so")


def test_a_table_in_a_place_that_was_not_searched_may_be_there(tmp_path: Path) -> None:
    rule = 'version: 1\nmatch: {tables: ["*"]}\nmanage: true\n'
    now = searched(project(tmp_path, rule, settings=ROOTS + "databases: [d]\n"), "lake/a")
    assert now.search is not None
    away = TableProblem(table_ref(f"{tmp_path}/lake", tmp_path), "maintainer.yml", StoreSilent("gone"))
    unsure = replace(now, search=replace(now.search, problems=(away,)))
    assert unsure.resolve_table("lake/typo", managed=True).table.identifier == "lake/typo"
    for word in ("typo", "d.typo"):
        with pytest.raises(TableError, match="T435: gone"):
            unsure.resolve_table(word, managed=True)
    # The end of a name may be that of a table there, also for who takes a table that no rule manages.
    for word in ("typo", "x/typo"):
        with pytest.raises(TableError, match="T435: gone"):
            unsure.resolve_table(word)
    for whole in ("e.typo", "/x/typo", "s3://x/typo"):
        assert unsure.resolve_table(whole).table.identifier == whole


# -- rules without effect


def test_a_rule_that_manages_needs_a_place(tmp_path: Path) -> None:
    (finding,) = project(tmp_path, MANAGE, settings="version: 1\n").diagnostics
    assert (finding.code, finding.span.line, finding.is_error) == ("P386", 3, True)


@pytest.mark.parametrize(("match", "place"), [("{tags: [x]}", (2, 9)), ('{exclude: ["x"], minSize: 1GiB}', (2, 1))])
def test_a_rule_that_manages_chooses_by_name(tmp_path: Path, match: str, place: tuple[int, int]) -> None:
    findings = project(tmp_path, f"version: 1\nmatch: {match}\nmanage: true\n").diagnostics
    (finding,) = [finding for finding in findings if finding.code == "P385"]
    assert (finding.span.line, finding.span.column) == place


def test_a_match_that_cannot_be_read_is_one_finding(tmp_path: Path) -> None:
    assert codes(project(tmp_path, "version: 1\nmatch: lake\nmanage: true\n")) == [("P203", "policies/p0.yml")]


@pytest.mark.parametrize(
    ("glob", "settings", "can"),
    [
        ("lake/*", "roots: [lake]", True),
        ("lake/raw/*", "roots: [lake]", True),
        ("/*/raw", "roots: [lake]", True),
        ("*", "roots: [lake]", True),
        ("other/*", "roots: [lake]", False),
        ("s3://b/lake/*", "roots: [s3a://b/lake]", True),
        ("s3://c/lake/*", "roots: [s3a://b/lake]", False),
        ("sales.*", "roots: [lake]", False),
        ("sales.*", "databases: [SALES]", True),
        ("sales.*", "databases: ['s*']", True),
        ("sales.*", "databases: [hr]", False),
        ("sa*.x", "databases: [hr]", True),
        ("sa*.x", "roots: [lake]", False),
        ("orders", "databases: [hr]", True),
    ],
)
def test_a_glob_that_fits_no_place_is_a_warning(tmp_path: Path, glob: str, settings: str, can: bool) -> None:
    rule = f'version: 1\nmatch: {{tables: ["{glob}"]}}\nmanage: true\n'
    assert codes(project(tmp_path, rule, settings=f"version: 1\n{settings}\n")) == (
        [] if can else [("P387", "policies/p0.yml")]
    )


def test_many_places_are_counted(tmp_path: Path) -> None:
    rule = 'version: 1\nmatch: {tables: ["x.*"]}\nmanage: true\n'
    (finding,) = project(tmp_path, rule, settings="version: 1\ndatabases: [a, b, c, d, e]\n").diagnostics
    assert finding.help is not None
    assert finding.help.startswith("declared are `a.*`, `b.*`, `c.*` and 2 more; ")


def test_before_a_search_nothing_is_said_of_other_rules(tmp_path: Path) -> None:
    adds = 'version: 1\nmatch: {tables: ["lake/x*"]}\nowner: a\n'
    loaded = project(tmp_path, MANAGE, adds)
    assert codes(loaded) == []
    assert codes(searched(loaded, "lake/a")) == [("P357", "policies/p1.yml")]
    assert codes(searched(loaded, "lake/xa")) == []


def test_a_managing_rule_that_matches_nothing_is_named_after_the_search(tmp_path: Path) -> None:
    (finding,) = searched(project(tmp_path, MANAGE), "elsewhere/x").diagnostics
    assert (finding.code, finding.message) == ("P357", "this rule matches no table in the declared places")


def test_a_rule_is_not_blamed_where_a_place_could_not_be_searched(tmp_path: Path) -> None:
    loaded = project(tmp_path, MANAGE, 'version: 1\nmatch: {tables: ["x*"]}\nowner: a\n')
    away = StoreSilent("the storage cannot be reached", where="s3://b/lake")
    problem = TableProblem(table_ref("s3://b/lake", tmp_path), "maintainer.yml", away)
    assert codes(replace(loaded, search=TableSearch((), (problem,)))) == []
    assert [code for code, _ in codes(replace(loaded, search=TableSearch()))] == ["P357", "P357"]


@pytest.mark.parametrize(
    ("settings", "high", "shadowed"),
    [
        ("", "manage: true", True),
        ("", "owner: b", False),
        ("owner: a", "manage: true\nowner: b", True),
        ("owner: a", "manage: true", False),
    ],
)
def test_a_managing_rule_is_shadowed_where_another_one_manages_all(
    tmp_path: Path, settings: str, high: str, shadowed: bool
) -> None:
    rival = f'version: 1\nmatch: {{tables: ["lake/*"]}}\npriority: 5\n{high}\n'
    now = searched(project(tmp_path, MANAGE + settings + "\n", rival), "lake/a")
    assert codes(now) == ([("P358", "policies/p0.yml")] if shadowed else [])


# -- names


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("lake/a", True), ("lake", False), ("lakehouse/a", False), ("sales.orders", True), ("orders", False),
        ("hr.x", False), ("spark_catalog.sales.x", True), ("prod.sales.x", False),
    ],
)  # fmt: skip
def test_a_search_comes_to_what_is_below_a_root_or_in_a_database(tmp_path: Path, name: str, covered: bool) -> None:
    places = SearchPlaces((f"{tmp_path}/lake",), ("sales",))
    assert places.cover(table_ref(name, tmp_path)) is covered


@pytest.mark.parametrize("name", ["`a.b`", "`a``b`", "`a/b`", "`a``.b`"])
def test_a_name_in_back_ticks_is_in_its_database(tmp_path: Path, name: str) -> None:
    places = SearchPlaces(databases=("prod.sales",))
    assert places.cover(table_ref(f"prod.sales.{name}", tmp_path))
    assert database_of(TableRef(f"prod.sales.{name}")) == "prod.sales"
    assert database_of(TableRef(f"spark_catalog.sales.{name}")) == "sales"


@pytest.mark.parametrize(
    ("globs", "is_meant"),
    [
        (["prod.sales"], True), (["PROD.*"], True), (["`prod`.sales"], True), (["*"], True), (["p*"], True),
        (["[a-q]rod.sales"], True), (["sales", "bronze_*"], False), (["prod"], False), (["production.sales"], False),
        (["*.sales"], True), ([], False),
    ],
)  # fmt: skip
def test_a_catalog_is_meant_where_one_of_its_databases_may_be(globs: list[str], is_meant: bool) -> None:
    assert catalog_meant("prod", globs) is is_meant
    assert is_meant or not database_matches("prod.sales", globs)


def test_a_name_of_one_part_is_in_the_default_database() -> None:
    assert SearchPlaces(databases=("default",)).cover(TableRef("orders"))


def test_the_example_of_many_tables_is_valid() -> None:
    loaded = load_project(Path(__file__).parents[4] / "examples" / "many-tables")
    assert loaded.diagnostics == ()
    search = searched(
        loaded, "/data/lake/facts/a", "/data/lake/b", "s3://bucket/lake/c_tmp", "sales.fact_x", "sales.orders"
    )
    assert sources(search) == {
        "/data/lake/facts/a": "policies/facts.yml:3",
        "/data/lake/b": "policies/lake.yml:3",
        "sales.fact_x": "policies/facts.yml:3",
        "sales.orders": "policies/orders.yml",
    }
    assert {policy.owner for policy in search.resolved()} == {"team-lake"}


@pytest.mark.parametrize("settings", ["roots: []", "databases: []", "roots: []\ndatabases: []"])
def test_a_list_of_places_that_is_there_and_empty_is_no_mistake(tmp_path: Path, settings: str) -> None:
    loaded = project(tmp_path, MANAGE, settings=f"version: 1\n{settings}\n")
    assert loaded.has_no_table_yet
    assert not loaded.searches
    assert codes(loaded) == []


@pytest.mark.parametrize("settings", ["timezone: UTC", "roots: [lake]", "roots: []\ndatabases: [sales]"])
def test_any_other_project_may_have_tables(tmp_path: Path, settings: str) -> None:
    assert not project(tmp_path, MANAGE, settings=f"version: 1\n{settings}\n").has_no_table_yet


def test_a_project_with_files_of_tables_has_tables(tmp_path: Path) -> None:
    settings = "version: 1\nroots: []\n"
    assert not project(tmp_path, MANAGE, "version: 1\ntable: sales.a\n", settings=settings).has_no_table_yet
