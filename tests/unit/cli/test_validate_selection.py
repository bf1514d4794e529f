"""`validate --select`: what concerns the chosen tables is shown, and nothing that might concern them is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.selection.run_spec import SelectionOptions
from maintainer.cli.main import run
from maintainer.cli.validate_command import check_project, check_selected
from maintainer.errors import ProjectError
from tests.support.policies.projects import git, write_project

FILES = {
    "maintainer.yml": "timezone: UTC\n",
    "policies/_profiles/big.yml": "optimize: {maxThreads: 0}\n",
    "policies/_profiles/small.yml": "optimize: {maxThreads: 4}\nlimit: {}\n",
    "policies/_fleet/sales.yml": 'match: {tables: ["sales.*"]}\noptimize: {maxFileSize: 256MB}\n',
    "policies/orders.yml": "table: sales.orders\ntags: [nightly]\nextends: [big]\nlimit: {}\n",
    "policies/items.yml": "table: sales.items\nowner: me\nlimit: {}\n",
    "policies/lake.yml": "table: ./lake/events\ntags: [nightly]\nextends: [small]\nowner: me\nvacuum: {retention: 7}\n",
    "policies/good.yml": "table: crm.leads\nowner: you\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, FILES)


def shown(root: Path, *select: str, exclude: tuple[str, ...] = (), since: str | None = None) -> set[str]:
    checked = check_selected(root, None, SelectionOptions(select, exclude, since))
    return {finding.file.removeprefix("policies/").removesuffix(".yml") for finding in checked.diagnostics}


def test_a_table_is_shown_with_the_rules_and_profiles_that_it_has(root: Path) -> None:
    assert shown(root, "sales.orders") == {"orders", "_profiles/big", "_fleet/sales"}
    assert shown(root, "sales.items") == {"items", "_fleet/sales"}
    assert shown(root, "crm.*") == set()


@pytest.mark.parametrize("spelling", ["lake/events", "./lake/events", "lake/../lake/events/", "lake/*", "ABSOLUTE"])
def test_a_path_below_the_project_is_chosen_in_any_spelling(root: Path, spelling: str) -> None:
    spelling = f"{root}/lake/events" if spelling == "ABSOLUTE" else spelling
    assert shown(root, spelling) == {"lake", "_profiles/small"}


def test_tags_owners_paths_and_exclusions_also_of_files_with_errors(root: Path) -> None:
    assert shown(root, "tag:nightly") == {"orders", "lake", "_profiles/big", "_profiles/small", "_fleet/sales"}
    assert shown(root, "owner:me,tag:nightly") == {"lake", "_profiles/small"}
    assert shown(root, "path:policies/items.yml") == {"items", "_fleet/sales"}
    assert shown(root, exclude=("sales.*",)) == {"lake", "_profiles/small"}


def test_a_folder_has_the_files_that_the_project_reads(root: Path) -> None:
    write_project(root, {"policies/more/B.YML": "version: 1\ntable: lake/b\nlimit: {}\n"})
    (finding,) = check_project(root, None, (root / "policies" / "more",)).diagnostics
    assert (finding.file, finding.code) == ("policies/more/B.YML", "P201")


def test_an_exclusion_may_mean_a_table_that_only_a_catalog_knows(tmp_path: Path) -> None:
    rule = {"policies/rule.yml": "match: {tables: ['sales.*']}\nmanage: true\n"}
    root = write_project(tmp_path, {**rule, "policies/own.yml": "table: lake/a\n"})
    with pytest.raises(ProjectError, match=r"E623: `sales.tmp_\*` excludes nothing"):
        shown(root, exclude=("sales.tmp_*",))
    write_project(root, {"maintainer.yml": "databases: [sales]\n"})
    assert shown(root, exclude=("sales.tmp_*",)) == set()


def test_what_concerns_nobody_knows_whom_is_always_shown(root: Path) -> None:
    write_project(
        root,
        {
            "policies/unread.yml": "table: [\n",
            "policies/nameless.yml": "tabel: s.t\n",
            "policies/_fleet/odd.yml": 'match: {tabels: ["other.*"]}\n',
        },
    )
    (root / "maintainer.yml").write_text("version: 1\ntimezone: Nowhere/Land\n")
    assert shown(root, "crm.leads") == {"unread", "nameless", "_fleet/odd", "maintainer"}


def test_the_same_table_twice_is_shown_for_either_spelling(root: Path) -> None:
    write_project(root, {"policies/twice.yml": f"table: {root}/lake/events\n"})
    assert "twice" in shown(root, "lake/events")


def test_modified_are_effective_policies_and_those_that_have_none(root: Path) -> None:
    good = {
        "policies/_profiles/big.yml": "optimize: {maxThreads: 2}\n",
        "policies/_profiles/small.yml": "optimize: {maxThreads: 4}\n",
        "policies/orders.yml": "table: sales.orders\n",
        "policies/items.yml": "table: sales.items\n",
        "policies/lake.yml": "table: ./lake/events\n",
    }
    write_project(root, good)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "good")
    write_project(root, {"policies/lake.yml": "table: ./lake/events\nlimit: {}\n"})
    assert shown(root, "state:modified", since="HEAD") == {"lake"}
    write_project(root, {"policies/_fleet/sales.yml": 'match: {tables: ["sales.*"]}\noptimize: {maxFileSize: 99MB}\n'})
    assert shown(root, "state:modified", since="HEAD") == {"lake", "_fleet/sales"}


@pytest.mark.parametrize(
    ("arguments", "code", "err"),
    [
        (["-s", "crm.leads"], 0, ""),
        (["-s", "sales.items"], 1, ""),
        (["-s", "crm.lead"], 2, "did you mean `crm.leads`?"),
        (["-s", "crm.lead", "--allow-empty"], 0, ""),
        (["-s", "lake/event"], 2, "did you mean `lake/events`?"),
        (["-s", "due"], 2, "use it with `plan`, `apply` or `status`"),
        (["-s", "state:modified"], 2, "--since REF"),
        (["--since", "HEAD"], 2, "add `--select state:modified`"),
        (["-s", "crm.leads", "policies/good.yml"], 2, "go with neither PATHS"),
        (["-s", "crm.leads", "--tests"], 2, "nor --tests"),
        (["-s", "crm.leads", "--stdin-filename", "policies/good.yml"], 2, "nor --stdin-filename"),
    ],
)
def test_exit_codes(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    err: str,
) -> None:
    monkeypatch.chdir(root)
    assert run(["validate", *arguments]) == code
    printed = capsys.readouterr()
    assert err in " ".join(printed.err.split())
    if code == 0:
        assert printed.out.startswith(("1 policy valid", "0 policies valid"))


MANAGED = {
    "maintainer.yml": "timezone: UTC\nroots: [lake]\n",
    "policies/_fleet/sales.yml": (
        'match: {tables: ["lake/sales/*", "s3://b/sales/*"]}\nmanage: true\ntags: [nightly]\n'
        "optimize: {maxFileSize: 256MB}\n"
    ),
    "policies/_fleet/crm.yml": (
        'match: {tables: ["lake/crm/*", "s3://b/crm/*"]}\nmanage: true\noptimize: {maxFileSize: 256MB}\n'
    ),
    "policies/_fleet/tagged.yml": "match: {tags: [nightly]}\noptimize: {maxFileSize: 256MB}\n",
    "policies/events.yml": "table: ./lake/sales/events\nlimit: {}\n",
}


@pytest.fixture
def managed(tmp_path: Path) -> Path:
    for name in ("sales/orders", "sales/events", "crm/leads"):
        (tmp_path / "lake" / name / "_delta_log").mkdir(parents=True)
    return write_project(tmp_path, MANAGED)


def test_a_table_that_a_rule_manages_is_shown_with_the_rules_that_reach_it(managed: Path) -> None:
    assert shown(managed, "lake/sales/orders") == {"_fleet/sales", "_fleet/tagged"}
    assert shown(managed, "lake/crm/leads") == {"_fleet/crm"}
    assert shown(managed, "lake/sales/*") == {"events", "_fleet/sales", "_fleet/tagged"}
    assert shown(managed, "tag:nightly") == {"_fleet/sales", "_fleet/tagged"}
    with pytest.raises(ProjectError) as nothing:
        shown(managed, "lake/sales/odrers")
    assert nothing.value.code == "E623"
    assert "did you mean" in str(nothing.value.help)
    assert "lake/sales/orders" in str(nothing.value.help)


def test_elsewhere_a_managed_table_is_known_by_its_name_and_never_looked_for(managed: Path) -> None:
    (managed / "maintainer.yml").write_text("version: 1\nroots: [s3://b]\n")
    assert shown(managed, "s3://b/crm/leads") == {"_fleet/crm"}
    assert shown(managed, "s3://b/sales/orders,tag:nightly") == {"_fleet/sales", "_fleet/tagged"}
    for unknown in ("s3://b/other/t", "s3://b/crm/*"):
        with pytest.raises(ProjectError) as nothing:
            shown(managed, unknown)
        assert nothing.value.code == "E623"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("policies/_fleet/crm.yml", 'version: 1\nmatch: {tables: ["lake/crm/*"]}\nmanage: true\nlimit: {}\n'),
        ("maintainer.yml", "version: 1\nroots: [lake]\nlimit: {}\n"),
    ],
)
def test_where_a_rule_or_the_settings_have_errors_its_tables_are_not_known(managed: Path, file: str, text: str) -> None:
    (managed / file).write_text(text)
    with pytest.raises(ProjectError) as nothing:
        shown(managed, "lake/crm/leads")
    assert nothing.value.code == "E623"
    assert nothing.value.help == (
        f"{file} has errors, so not all tables that rules manage are known; `maintainer validate` shows the errors"
    )
