from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import ProjectError
from maintainer.policy import selectors
from maintainer.policy.project.policy_project import LoadedProject
from maintainer.policy.selectors import Method, SelectorContext, check_answerable, parse_selector, select
from tests.support.policies.projects import loaded

FILES = {
    "policies/sales/orders.yml": "table: sales.orders\nowner: team-sales\ntags: [nightly, tier1]\n",
    "policies/sales/items.yml": "table: sales.items\nowner: team-sales\n",
    "policies/crm/leads.yml": "table: crm.leads\ntags: [nightly]\n",
    "policies/lake.yml": "table: lake/events\n",
}
ALL = {"sales.orders", "sales.items", "crm.leads", "lake/events"}


@pytest.fixture
def project(tmp_path: Path) -> LoadedProject:
    return loaded(tmp_path, FILES)


def chosen(project: LoadedProject, *include: str, exclude: tuple[str, ...] = (), allow_empty: bool = False) -> set[str]:
    context = SelectorContext(project.root, "plan", {Method.DUE: lambda table, _: table == "crm.leads"})
    policies = select(
        project.resolved(),
        parse_selector(include, project.root),
        parse_selector(exclude, project.root),
        context,
        allow_empty=allow_empty,
    )
    return {policy.table.identifier.removeprefix(f"{project.root}/") for policy in policies}


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ((), ALL),
        (("sales.orders",), {"sales.orders"}),
        (("spark_catalog.sales.orders",), {"sales.orders"}),
        (("sales.*",), {"sales.orders", "sales.items"}),
        (("table:sales.*",), {"sales.orders", "sales.items"}),
        (("lake/*",), {"lake/events"}),
        (("lake/events",), {"lake/events"}),
        (("./lake/events/",), {"lake/events"}),
        (("delta.`lake/events`",), {"lake/events"}),
        (("*/events",), {"lake/events"}),
        (("Sales.ORDERS",), {"sales.orders"}),
        (("`sales`.`orders`",), {"sales.orders"}),
        (("tag:nightly",), {"sales.orders", "crm.leads"}),
        (("owner:team-sales",), {"sales.orders", "sales.items"}),
        (("path:policies/sales/",), {"sales.orders", "sales.items"}),
        (("path:policies/*/leads.yml",), {"crm.leads"}),
        (("path:./policies/sales/items.yml",), {"sales.items"}),
        (("tag:nightly,sales.*",), {"sales.orders"}),
        (("tag:nightly sales.items",), {"sales.orders", "crm.leads", "sales.items"}),
        (("tag:tier1", "lake/events"), {"sales.orders", "lake/events"}),
        (("due",), {"crm.leads"}),
        (("due,tag:nightly sales.items",), {"crm.leads", "sales.items"}),
    ],
)
def test_a_selection_means(project: LoadedProject, include: tuple[str, ...], expected: set[str]) -> None:
    assert chosen(project, *include) == expected


@pytest.mark.parametrize("folder", ["plain", "with [brackets]", "a*b?"])
def test_an_absolute_path_means_the_table_below_the_project(tmp_path: Path, folder: str) -> None:
    project = loaded(tmp_path / folder, FILES)
    assert chosen(project, "lake/*") == {"lake/events"}
    if " " not in folder:  # a space separates alternatives
        assert chosen(project, f"{project.root}/lake/events") == {"lake/events"}


def test_a_rule_reaches_a_path_below_a_project_whatever_its_folder_is_called(tmp_path: Path) -> None:
    rule = {"policies/rule.yml": 'match: {tables: ["lake/*"]}\nlimits: {maxFiles: 5}\n'}
    project = loaded(tmp_path / "team [a]", {**FILES, **rule})
    assert project.resolve_table("lake/events").limits.max_files == 5


def test_a_thousand_names_are_looked_up_and_not_searched_for(project: LoadedProject) -> None:
    (project.root / "many.txt").write_text("\n".join(["sales.orders", "./lake/events"] * 5_000))
    assert chosen(project, "@many.txt") == {"sales.orders", "lake/events"}


def test_what_is_excluded_is_left_out_even_if_it_was_named(project: LoadedProject) -> None:
    assert chosen(project, exclude=("tag:nightly",)) == {"sales.items", "lake/events"}
    assert chosen(project, "sales.*", exclude=("sales.orders",)) == {"sales.items"}
    assert chosen(project, "sales.*", exclude=("lake/*",)) == {"sales.orders", "sales.items"}


@pytest.mark.parametrize(
    ("exclude", "help"),
    [
        ("sales.order", "did you mean `sales.orders`?"),
        ("zzz.*", "`maintainer list` shows all tables"),
        ("tag:nightyl", "did you mean `tag:nightly`?"),
        ("sales.items sales.orders,tag:x", "`maintainer list` shows all tables"),
    ],
)
def test_excluding_nothing_is_an_error_with_the_nearest_name(project: LoadedProject, exclude: str, help: str) -> None:
    with pytest.raises(ProjectError, match=r"E623: `.*` excludes nothing") as caught:
        chosen(project, exclude=(exclude,))
    assert (caught.value.help or "").startswith(help)
    assert chosen(project, exclude=(exclude,), allow_empty=True) == ALL - {"sales.items" if " " in exclude else ""}


def test_what_changes_from_run_to_run_may_exclude_nothing(project: LoadedProject) -> None:
    assert chosen(project, "sales.*", exclude=("due,sales.*",)) == {"sales.orders", "sales.items"}


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_one_store_has_one_name_in_globs(tmp_path: Path, scheme: str) -> None:
    project = loaded(tmp_path, {"policies/a.yml": "table: s3a://b/a\n", "policies/b.yml": "table: s3://b/b\n"})
    assert chosen(project, f"{scheme}://b/*") == {"s3a://b/a", "s3://b/b"}
    assert chosen(project, exclude=(f"{scheme}://b/a*",)) == {"s3://b/b"}


def test_a_file_of_selectors_holds_one_a_line(project: LoadedProject) -> None:
    (project.root / "tables.txt").write_text("# tonight\nsales.orders\t# the big one\n\ntag:nightly,crm.*\n")
    assert chosen(project, "@tables.txt") == {"sales.orders", "crm.leads"}


def test_a_name_may_have_the_sign_of_a_comment_in_a_file(tmp_path: Path) -> None:
    """Else another table would be chosen: the one that is called by what stands before it."""
    project = loaded(tmp_path, {**FILES, "policies/e.yml": "table: lake/events#2\n"})
    (project.root / "tables.txt").write_text("#all\n  # of\nlake/events#2 # them\n")
    assert chosen(project, "@tables.txt") == {"lake/events#2"}


def test_a_name_may_have_a_space_in_a_file_and_behind_a_backslash(tmp_path: Path) -> None:
    project = loaded(
        tmp_path, {**FILES, "policies/mine.yml": "table: lake/my orders\n", "policies/m.yml": "table: lake/me\n"}
    )
    (project.root / "my tables.txt").write_text("lake/my orders\nsales.items\n")
    (project.root / "escaped.txt").write_text("lake/my\\ orders\n")
    assert chosen(project, "@my\\ tables.txt") == {"lake/my orders", "sales.items"}
    assert chosen(project, "@escaped.txt") == {"lake/my orders"}
    assert chosen(project, "lake/my\\ orders sales.items") == {"lake/my orders", "sales.items"}
    with pytest.raises(ProjectError, match="E623: `lake/my` selects nothing") as caught:
        chosen(project, "lake/my orders")
    help = "did you mean `lake/my\\ orders`? A space in a name is written `\\ `, between quotes of the shell. "
    assert (caught.value.help or "").startswith(help)


@pytest.mark.parametrize(
    ("include", "help"),
    [
        ("tag:nightyl", "did you mean `tag:nightly`?"),
        ("sales.order", "did you mean `sales.orders`?"),
        ("owner:team-sale", "did you mean `owner:team-sales`?"),
        ("path:policies/sale/", "did you mean `path:policies/sales`?"),
        ("sales.orders,tag:x", "`maintainer list` shows all tables"),
        ("tag:nightly zzz.*", "`maintainer list` shows all tables"),
        ("sales.orders,sales.items", "A comma means and: put a space between several tables. `maintainer list`"),
    ],
)
def test_selecting_nothing_is_an_error_with_the_nearest_name(project: LoadedProject, include: str, help: str) -> None:
    with pytest.raises(ProjectError, match="E623") as caught:
        chosen(project, include)
    assert caught.value.exit_code == 2
    assert (caught.value.help or "").startswith(help)
    assert chosen(project, include, allow_empty=True) <= ALL


def test_excluding_everything_is_an_error_too(project: LoadedProject) -> None:
    with pytest.raises(ProjectError, match="everything that was selected is excluded"):
        chosen(project, "tag:tier1", exclude=("sales.*",))
    assert chosen(project, "tag:tier1", exclude=("sales.*",), allow_empty=True) == set()


@pytest.mark.parametrize(
    ("text", "what", "help"),
    [
        ("tags:x", "`tags:x` is not a selector", "did you mean `tag:x`?"),
        ("state:new", "`state:new` is not a selector", "`state:` knows modified"),
        ("result:bad", "`result:bad` is not a selector", "`result:` knows success, failed"),
        ("a.b,", "an empty selector in `a.b,`", "a comma means and, and has no space beside it"),
        ("tag:x, a.b", "an empty selector in `tag:x,`", "a comma means and, and has no space beside it"),
        ("tag:", "`tag:` is not a selector", "allowed: a name"),
    ],
)
def test_a_term_outside_the_grammar_is_refused(tmp_path: Path, text: str, what: str, help: str) -> None:
    with pytest.raises(ProjectError, match="E621") as caught:
        parse_selector([text], tmp_path)
    assert caught.value.what == what
    assert (caught.value.help or "").startswith(help)


def test_a_file_of_selectors_that_is_no_such_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nested.txt").write_text("@other.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe")
    for name in ("missing.txt", "nested.txt", "binary.txt", "."):
        with pytest.raises(ProjectError, match="E622"):
            parse_selector([f"@{name}"], tmp_path)


@pytest.mark.parametrize("text", ["due", "drifted", "unmanaged", "result:failed", "sales.*,drifted"])
def test_a_command_that_cannot_know_says_so(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProjectError, match="E624: `maintainer list` cannot select by"):
        check_answerable(parse_selector([text], tmp_path), SelectorContext(tmp_path, "list"))


@pytest.mark.parametrize(
    ("text", "what", "help"),
    [
        ("state:modified", "`state:modified` needs a commit to compare with", "add `--since REF`"),
        ("unmanaged", "`maintainer list` cannot select by `unmanaged`", "`maintainer inventory --unmanaged`"),
    ],
)
def test_what_a_selector_lacks_is_said(tmp_path: Path, text: str, what: str, help: str) -> None:
    with pytest.raises(ProjectError) as caught:
        check_answerable(parse_selector([text], tmp_path), SelectorContext(tmp_path, "list"))
    assert (caught.value.code, caught.value.what) == ("E624", what)
    assert (caught.value.help or "").startswith(help)
    with pytest.raises(ProjectError) as refused:
        parse_selector(["x:y"], tmp_path)
    assert "unmanaged" not in (refused.value.help or "")


def test_selectors_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_TERMS", 2)
    assert len(parse_selector(["a b"], tmp_path).alternatives) == 2
    with pytest.raises(ProjectError) as caught:
        parse_selector(["a b c"], tmp_path)
    assert (caught.value.code, caught.value.what) == ("E621", "more than 2 selectors")


def test_a_file_of_selectors_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "tables.txt"
    file.write_bytes(b"a\n" * (selectors.MAX_SELECTOR_FILE_BYTES // 2))
    with pytest.raises(ProjectError) as caught:
        parse_selector(["@tables.txt"], tmp_path)
    assert caught.value.code == "E621", "it is read, and has too many lines"
    with file.open("ab") as more:
        more.write(b"\n")
    with pytest.raises(ProjectError) as caught:
        parse_selector(["@tables.txt"], tmp_path)
    assert (caught.value.code, caught.value.where) == ("E622", str(file))


def test_a_path_may_be_absolute(project: LoadedProject) -> None:
    assert chosen(project, f"path:{project.root.as_posix()}/policies/sales") == {"sales.orders", "sales.items"}
    assert chosen(project, f"path:{project.root.as_posix()}/policies/*/leads.yml") == {"crm.leads"}
