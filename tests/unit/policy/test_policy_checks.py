from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.errors import ProjectError
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import Severity
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.project.table_search import FoundTable, TableSearch
from maintainer.policy.selectors import SelectorContext, parse_selector, select
from maintainer.policy.table_names import table_ref
from tests.support.policies.projects import complaints, loaded, write_project


@pytest.mark.parametrize(
    ("spelling", "other"),
    [
        ("sales.orders", "sales.orders"),
        ("sales.orders", "Sales.`ORDERS`"),
        ("sales.orders", "spark_catalog.sales.orders"),
        ("orders", "default.orders"),
        ("/lake/x", "file:///lake//y/../x/"),
        ("/lake/x", "delta.`/lake/x`"),
        ("lake/x", "./lake/x"),
        ("s3://b/x", "S3A://b/x/"),
    ],
)
def test_two_files_for_one_table_are_an_error_in_any_spelling(tmp_path: Path, spelling: str, other: str) -> None:
    project = loaded(tmp_path, {"policies/a.yml": f"table: {spelling}\n", "policies/b.yml": f"table: {other}\n"})
    assert complaints(project) == ["policies/b.yml:2:8 P350"]
    assert project.diagnostics[0].help == "one table, one file: the other is policies/a.yml:2"


def test_a_path_below_the_project_and_its_absolute_form_are_one_table(tmp_path: Path) -> None:
    project = loaded(tmp_path, {"policies/a.yml": "table: lake/x\n", "policies/b.yml": f"table: {tmp_path}/lake/x\n"})
    assert complaints(project) == ["policies/b.yml:2:8 P350"]
    assert project.tables[0].ref == TableRef("lake/x", f"{tmp_path}/lake/x")


def test_different_tables_are_different(tmp_path: Path) -> None:
    names = ["a.b", "c.b", "cat.a.b", "/a/b", "s3://a/b", "gs://a/b", "a/b", "b"]
    project = loaded(tmp_path, {f"policies/{i}.yml": f"table: {name}\n" for i, name in enumerate(names)})
    assert complaints(project) == []
    assert len(project.resolved()) == len(names)


def test_an_unknown_profile_is_named_with_the_nearest(tmp_path: Path) -> None:
    files = {"policies/_profiles/big-table.yml": "owner: x\n", "policies/t.yml": "table: s.t\nextends: [big-tabel]\n"}
    project = loaded(tmp_path, files)
    assert complaints(project) == ["policies/t.yml:3:11 P351"]
    assert project.diagnostics[0].help == "did you mean `big-table`?"
    assert project.resolved() == ()
    with pytest.raises(ProjectError) as caught:
        project.resolve_table("s.t")
    assert (caught.value.exit_code, caught.value.where) == (2, "policies/t.yml:3:11")


def test_a_profile_with_errors_is_not_called_unknown(tmp_path: Path) -> None:
    files = {"policies/_profiles/p.yml": "optimise: {}\n", "policies/t.yml": "table: s.t\nextends: [p]\n"}
    assert complaints(loaded(tmp_path, files)) == ["policies/_profiles/p.yml:2:1 P201"]


def test_two_profiles_of_one_name_are_an_error(tmp_path: Path) -> None:
    files = {"policies/_profiles/p.yml": "owner: x\n", "policies/sales/_profiles/p.yml": "owner: y\n"}
    assert complaints(loaded(tmp_path, files)) == ["policies/sales/_profiles/p.yml:1:1 P352"]


RULES = {
    "policies/a.yml": 'match: {tables: ["s.*"]}\nlimits: {maxFiles: 1, maxBytes: 1GiB}\n',
    "policies/b.yml": "match: {tags: [x]}\nlimits: {maxFiles: 2, maxBytes: 1024MiB}\n",
    "policies/t.yml": "table: s.t\ntags: [x]\n",
    "policies/u.yml": "table: s.u\ntags: [x]\n",
    "policies/v.yml": "table: s.v\n",
}


def test_rules_of_one_priority_that_disagree_name_both_lines(tmp_path: Path) -> None:
    project = loaded(tmp_path, RULES)
    assert complaints(project) == ["policies/b.yml:3:20 P353"]
    assert project.diagnostics[0].message == (
        "policies/a.yml:3 sets `limits.maxFiles` differently, with the same priority 0, for `s.t` and 1 more"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"policies/b.yml": "match: {tags: [x]}\npriority: 1\nlimits: {maxFiles: 2}\n"},
        {"policies/b.yml": "match: {tags: [x]}\nlimits: {maxFiles: 1}\n"},
        {"policies/b.yml": "match: {tags: [x]}\nlimits: {maxFiles: null}\n"},
        {
            "policies/b.yml": 'match: {tags: [x], exclude: ["s.*"]}\nlimits: {maxFiles: 2}\n',
            "policies/w.yml": "table: other.w\ntags: [x]\n",
        },
    ],
)
def test_rules_do_not_disagree_by_priority_value_null_or_reach(tmp_path: Path, change: dict[str, str]) -> None:
    assert complaints(loaded(tmp_path, {**RULES, **change})) == []


@pytest.mark.parametrize("table", ["s3://b/t", "abfss://c@a.dfs.core.windows.net/t", "gs://b/t"])
def test_a_trash_on_an_object_store_is_a_warning(tmp_path: Path, table: str) -> None:
    project = loaded(tmp_path, {"policies/t.yml": f"table: {table}\nvacuum: {{trash: 3d}}\n"})
    (finding,) = project.diagnostics
    assert (finding.code, finding.severity, finding.span.line) == ("P307", Severity.WARNING, 3)
    assert "there is no trash on an object store" in finding.message


@pytest.mark.parametrize("table", ["s.t", "/lake/t", "lake/t", "hdfs://n/t", "file:///lake/t"])
def test_a_trash_elsewhere_is_none(tmp_path: Path, table: str) -> None:
    assert complaints(loaded(tmp_path, {"policies/t.yml": f"table: {table}\nvacuum: {{trash: 3d}}\n"})) == []


def test_a_map_and_a_scalar_of_one_key_disagree(tmp_path: Path) -> None:
    files = {
        "policies/a.yml": 'match: {tables: ["s.*"]}\nautoCompact: {}\n',
        "policies/b.yml": 'match: {tables: ["*.t"]}\nautoCompact: false\n',
        "policies/t.yml": "table: s.t\n",
    }
    assert complaints(loaded(tmp_path, files)) == ["policies/b.yml:3:14 P353"]


def test_a_table_that_only_rules_reach_is_resolved_and_any_other_is_unmanaged(tmp_path: Path) -> None:
    project = loaded(tmp_path, {name: text for name, text in RULES.items() if name != "policies/b.yml"})
    resolution = project.resolution_of("spark_catalog.s.new")
    assert (resolution.policy.file, resolution.named_by_file) == ("policies/a.yml", False)
    assert resolution.policy.limits.max_files == 1
    with pytest.raises(ProjectError, match="E613") as caught:
        project.resolve_table("z.t")
    assert (caught.value.exit_code, caught.value.help) == (2, "did you mean `s.t`?")


CALLED = ("analytics.finance.orders", "/data/warehouse/events", "analytics.finance.items", "analytics.sales.items")


def called(tmp_path: Path) -> LoadedProject:
    return loaded(tmp_path, {f"policies/{number}.yml": f"table: {table}\n" for number, table in enumerate(CALLED)})


@pytest.mark.parametrize(
    ("word", "table"),
    [
        ("orders", "analytics.finance.orders"),
        ("Finance.Orders", "analytics.finance.orders"),
        ("finance.`orders`", "analytics.finance.orders"),
        ("events", "/data/warehouse/events"),
        ("warehouse/events/", "/data/warehouse/events"),
        ("sales.items", "analytics.sales.items"),
    ],
)
def test_a_table_called_by_the_end_of_its_name_is_that_table(tmp_path: Path, word: str, table: str) -> None:
    project = called(tmp_path)
    assert project.resolve_table(word).table.identifier == table
    assert load_project(tmp_path, only=word).resolve_table(word).table.identifier == table


@pytest.mark.parametrize("word", ["ders", "Events", "data/warehouse", "analytics", "/", "`"])
def test_what_is_no_end_of_a_name_calls_no_table(tmp_path: Path, word: str) -> None:
    with pytest.raises(ProjectError, match="E613: no policy names"):
        called(tmp_path).resolve_table(word)


def test_an_end_that_several_names_have_is_refused_with_the_names(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="E613: the names of 2 tables end with `items`") as caught:
        called(tmp_path).resolve_table("items")
    assert caught.value.found == "analytics.finance.items, analytics.sales.items"
    assert caught.value.help == "write more of the name"


def test_many_tables_of_one_end_are_counted(tmp_path: Path) -> None:
    project = loaded(tmp_path, {f"policies/{n}.yml": f"table: lake/r{n:02}/t\n" for n in range(13)})
    with pytest.raises(ProjectError, match="the names of 13 tables") as caught:
        project.resolve_table("t")
    assert caught.value.found == ", ".join(f"lake/r{n:02}/t" for n in range(10)) + ", and 3 more"


def test_a_selection_offers_the_table_that_is_called_so(tmp_path: Path) -> None:
    none, end = parse_selector([], tmp_path), "`maintainer list` shows all tables; --allow-empty if nothing is right"
    for word, shown in (("orders", "did you mean `analytics.finance.orders`? "), ("items", "")):
        with pytest.raises(ProjectError, match="E623") as caught:
            select(
                called(tmp_path).resolved(), parse_selector([word], tmp_path), none, SelectorContext(tmp_path, "plan")
            )
        assert caught.value.help == f"{shown}{end}"


def test_a_project_without_tables_is_sent_to_the_rules_that_reach_none(tmp_path: Path) -> None:
    rule = 'match:\n  tables: ["*"]\nvacuum:\n  retention: 7d\n'
    none = parse_selector([], tmp_path)
    with pytest.raises(ProjectError, match="no rule with `manage: true` finds one") as caught:
        select(loaded(tmp_path, {"policies/all.yml": rule}).resolved(), none, none, SelectorContext(tmp_path, "plan"))
    assert caught.value.code == "E623"
    assert (caught.value.help or "").startswith("correct `roots:` or `databases:` in maintainer.yml or `match:`")


@pytest.mark.parametrize("name", ["lake/tmp_1", "tmp_1"])
def test_a_table_that_a_rule_leaves_out_names_the_line(tmp_path: Path, name: str) -> None:
    rule = 'match:\n  tables: ["lake/*"]\n  exclude:\n    - "lake/old*"\n    - "lake/tmp*"\nmanage: true\n'
    files = {"maintainer.yml": "roots: [lake]\n", "policies/lake.yml": rule, "policies/b.yml": "table: lake/b\n"}
    search = TableSearch((FoundTable((table_ref("lake/tmp_1", tmp_path),)),))
    project = replace(loaded(tmp_path, files), search=search)
    with pytest.raises(ProjectError, match="E613") as caught:
        project.resolve_table(name, managed=True)
    lines = (tmp_path / "policies/lake.yml").read_text(encoding="utf-8").split("\n")
    line = lines.index('    - "lake/tmp*"') + 1
    assert caught.value.what == "`match.exclude` leaves `lake/tmp_1` out"
    assert caught.value.where == f"policies/lake.yml:{line}"


def test_what_a_rule_does_not_match_anyway_is_not_left_out_by_it(tmp_path: Path) -> None:
    rule = 'match: {tables: ["lake/*"], exclude: ["*/tmp*"]}\n'
    with pytest.raises(ProjectError, match="no policy names `other/tmp`, and no rule reaches it"):
        loaded(tmp_path, {"policies/lake.yml": rule}).resolve_table("other/tmp")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "policies/_profiles/p.yml": "autoCompact: {maxFileSize: 64MiB}\n",
                "policies/t.yml": "table: s.t\nextends: [p]\nautoCompact:\n  minFileSize: 100MiB\n",
            },
            ["policies/t.yml:5:16 P302"],
        ),
        # Left out, maxFileSize is 128 MiB.
        ({"policies/t.yml": "table: s.t\nautoCompact:\n  minFileSize: 200MiB\n"}, ["policies/t.yml:4:16 P302"]),
        ({"policies/t.yml": "table: s.t\nautoCompact:\n  minFileSize: 100MiB\n"}, []),
        (
            {
                "policies/_profiles/p.yml": "optimize: {maxFileSize: 64MiB}\n",
                "policies/t.yml": "table: s.t\nextends: [p]\noptimize:\n  minFileSize: 100MiB\n",
            },
            ["policies/t.yml:5:16 P302"],
        ),
        (
            {
                "policies/_profiles/p.yml": "optimize: {maxFileSize: 100MiB}\n",
                "policies/t.yml": "table: s.t\nextends: [p]\noptimize:\n  minFileSize: 80MiB\n",
            },
            ["policies/t.yml:5:16 P303"],
        ),
        (  # against a built-in default
            {"policies/t.yml": "table: s.t\noptimize: {minFileSize: 1GiB}\n"},
            ["policies/t.yml:3:25 P302"],
        ),
        (
            {
                "maintainer.yml": "defaults: {vacuum: {retention: 2d, allowShortRetention: true}}\n",
                "policies/t.yml": "table: s.t\nvacuum:\n  allowShortRetention: false\n",
            },
            ["policies/t.yml:4:24 P304"],
        ),
        (
            {
                "maintainer.yml": "defaults: {vacuum: {retention: 8d}}\n",
                "policies/t.yml": "table: s.t\nconsumers: [{name: a, maxLag: 9d}]\n",
            },
            ["policies/t.yml:3:12 P305"],
        ),
        (  # the built-in retention
            {"policies/t.yml": "table: s.t\nvacuum: {}\nconsumers: [{name: a, maxLag: 9d}]\n"},
            ["policies/t.yml:4:12 P305"],
        ),
        (  # what the higher level adds would never be done
            {
                "maintainer.yml": "defaults: {vacuum: {mode: lite}}\n",
                "policies/t.yml": "table: s.t\nvacuum:\n  deleteUntracked: true\n",
            },
            ["policies/t.yml:4:20 P307"],
        ),
        (
            {
                "maintainer.yml": "defaults: {vacuum: {deleteUntracked: true}}\n",
                "policies/t.yml": "table: s.t\nvacuum:\n  mode: lite\n",
            },
            ["policies/t.yml:4:9 P307"],
        ),
        (  # one file alone: its own check speaks, once
            {"policies/t.yml": "table: s.t\noptimize: {minFileSize: 2GiB, maxFileSize: 1GiB}\n"},
            ["policies/t.yml:3:25 P302"],
        ),
    ],
)
def test_effective_values_are_checked_and_the_line_that_broke_them_is_shown(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    assert complaints(loaded(tmp_path, files)) == expected


def test_one_shared_line_is_reported_once_however_many_tables_it_breaks(tmp_path: Path) -> None:
    files = {f"policies/{i}.yml": f"table: s.t{i}\n" for i in range(20)}
    files["policies/rule.yml"] = 'match: {tables: ["s.*"]}\noptimize: {minFileSize: 1GiB}\n'
    assert complaints(loaded(tmp_path, files)) == ["policies/rule.yml:3:25 P302"]


def test_a_folder_without_a_project_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="E611") as caught:
        load_project(tmp_path)
    assert "maintainer init" in (caught.value.help or "")


def test_either_the_project_file_or_the_folder_is_enough(tmp_path: Path) -> None:
    only_file = loaded(tmp_path / "file", {"maintainer.yml": "timezone: Europe/Berlin\n"})
    only_folder = loaded(tmp_path / "folder", {"policies/t.yml": "table: s.t\n"})
    assert (only_file.resolved(), only_file.project.timezone) == ((), "Europe/Berlin")
    assert (len(only_folder.resolved()), only_folder.project.timezone) == (1, "UTC")
    assert only_folder.project.state == f"{tmp_path}/folder/.maintainer"


def test_links_are_reported_and_never_followed(tmp_path: Path) -> None:
    outside = write_project(tmp_path / "outside", {"t.yml": "table: s.t\n"})
    root = write_project(tmp_path / "project", {"policies/u.yml": "table: s.u\n"})
    (root / "policies/link.yml").symlink_to(outside / "t.yml")
    (root / "policies/folder").symlink_to(outside, target_is_directory=True)
    project = load_project(root)
    assert complaints(project) == ["policies/folder:1:1 P355", "policies/link.yml:1:1 Y102"]
    assert [policy.table.identifier for policy in project.resolved()] == ["s.u"]


def test_a_fifo_among_the_policies_does_not_hang(tmp_path: Path) -> None:
    root = write_project(tmp_path, {"policies/u.yml": "table: s.u\n"})
    os.mkfifo(root / "policies/pipe.yml")
    assert complaints(load_project(root)) == ["policies/pipe.yml:1:1 Y102"]


def test_only_yaml_files_that_are_not_hidden_belong_to_a_project(tmp_path: Path) -> None:
    files = {
        "policies/a.yml": "table: s.a\n",
        "policies/deep/er/b.YAML": "version: 1\ntable: s.b\n",
        "policies/README.md": "text",
        "policies/.hidden.yml": "nonsense",
        "policies/.git/x.yml": "nonsense",
        "other/c.yml": "nonsense",
    }
    project = loaded(tmp_path, files)
    assert complaints(project) == []
    assert [policy.file for policy in project.resolved()] == ["policies/a.yml", "policies/deep/er/b.YAML"]
    assert (project.files_read, project.policy_count) == (2, 2)


def test_a_mode_without_columns_is_an_error_where_the_mode_is(tmp_path: Path) -> None:
    files = {"policies/_profiles/p.yml": "optimize: {zorder: {columns: [id]}}\n",
             "policies/a.yml": "table: s.a\noptimize: {zorder: {mode: full}}\n",
             "policies/b.yml": "table: s.b\nextends: [p]\noptimize: {zorder: {mode: full}}\n"}  # fmt: skip
    project = loaded(tmp_path, files)
    assert complaints(project) == ["policies/a.yml:3:27 P306"]
    assert project.diagnostics[0].message == "`s.a` has a Z-order mode and no columns"


@pytest.mark.parametrize("key", ["batchBytes: 5GiB", "strategies: [unindexed]", "tableProperties: honour"])
def test_what_a_table_says_of_a_z_order_without_columns_is_not_passed_over(tmp_path: Path, key: str) -> None:
    files = {"maintainer.yml": "defaults: {optimize: {zorder: {revision: 3}}}\n",
             "policies/_profiles/p.yml": "optimize: {zorder: {columns: [id]}}\n",
             "policies/a.yml": f"table: s.a\noptimize: {{zorder: {{{key}}}}}\n",
             "policies/b.yml": f"table: s.b\nextends: [p]\noptimize: {{zorder: {{{key}}}}}\n",
             "policies/c.yml": "table: s.c\n"}  # fmt: skip
    project = loaded(tmp_path, files)
    (finding,) = project.diagnostics
    assert (finding.place.rpartition(":")[0], finding.code, finding.is_error) == ("policies/a.yml:3", "P306", False)
    assert finding.message == f"`s.a` has a Z-order {key.partition(':')[0]} and no columns"


def test_a_project_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    root = write_project(tmp_path, {"policies/a.yml": "table: s.a\n"})
    (root / "maintainer.yml").write_bytes(b"version: 1\n\xff\n")
    assert [finding.file for finding in load_project(root, environ={}).diagnostics] == ["maintainer.yml"]


def test_two_settings_of_the_project_file_are_one_finding_whatever_they_reach(tmp_path: Path) -> None:
    files = {"maintainer.yml": "defaults:\n  optimize: {minFileSize: 2GiB, maxFileSize: 1GiB}\n",
             "policies/a.yml": "table: s.a\n", "policies/b.yml": "table: s.b\n"}  # fmt: skip
    assert [line.rpartition(" ")[2] for line in complaints(loaded(tmp_path, files))] == ["P302"]


def test_rules_that_contradict_one_another_are_refused_for_a_table_that_only_they_name(tmp_path: Path) -> None:
    rule = 'match: {tables: ["s.*"]}\nlimits: {maxFiles: %d}\n'
    project = loaded(tmp_path, {"policies/a.yml": rule % 1, "policies/b.yml": rule % 2})
    with pytest.raises(ProjectError) as caught:
        project.resolve_table("s.t")
    assert caught.value.code == "E617"
    assert caught.value.where == "policies/b.yml:3"


def test_a_warning_about_two_settings_of_one_file_is_given_once(tmp_path: Path) -> None:
    """The file is checked by itself, and again as part of the effective policy, where it is nobody else's."""
    both = "table: s.a\noptimize: {minFileSize: 1000MiB, maxFileSize: 1GiB}\n"
    assert complaints(loaded(tmp_path, {"policies/a.yml": both})) == ["policies/a.yml:3:25 P303"]
