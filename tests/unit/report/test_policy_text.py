from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from maintainer.cli.main import cli
from maintainer.report.policy_text import explain_json, explain_text, flow, merged_yaml
from maintainer.report.style import Style
from tests.support.policies.projects import complaints, loaded

FILES = {
    "maintainer.yml": "timezone: Europe/Berlin\ndefaults: {vacuum: {retention: 30d}}\n",
    "policies/rule.yml": 'match: {tables: ["s.*"]}\noptimize: {maxFileSize: 1GiB}\nvacuum: {retention: 14d}\n',
    "policies/t.yml": """\
        table: s.t
        owner: "yes"
        description: "a: b # c\\n  second 'line'"
        tags: [nightly, "2026"]
        optimize:
          maxFileSize: 256 MiB
          where: "d >= '2026-01-01' AND NOT `odd col` IN (1, 2)"
          zorder: {columns: [a, b.c], mode: full}
        autoCompact: true
        vacuum: {retention: 1w}
        properties: {team.a: "true", team.b: 7, team.c: interval 30 days}
        consumers: [{name: "null", maxLag: 36h}]
        window: [{days: [mon], from: 22:00, to: 04:00}]
        verify: {expectations: [{type: expect_column_values_to_be_between, column: q, min_value: 0.5, mostly: 1}]}
        suspend: {until: 2099-01-01, reason: "-"}
        """,
}


def test_each_value_has_its_origin_and_what_it_replaced(tmp_path: Path) -> None:
    text = explain_text(loaded(tmp_path, FILES).resolution_of("s.t"))
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines()}
    assert lines["s.t"] == "policies/t.yml"
    assert lines["optimize.maxFileSize"] == "256MiB policies/t.yml:7 overrides 1GiB policies/rule.yml:3"
    assert lines["vacuum.retention"] == ("7d policies/t.yml:11 overrides 14d policies/rule.yml:4, 30d maintainer.yml:3")
    assert lines["optimize.minFileSize"] == "192MiB built-in"
    assert lines["window"] == ("[{timezone: Europe/Berlin, days: [mon], from: 22:00, to: 04:00}] policies/t.yml:14")
    assert lines["optimize.where"] == "\"d >= '2026-01-01' AND NOT `odd col` IN (1, 2)\" policies/t.yml:8"


def test_colour_adds_nothing_that_can_be_read(tmp_path: Path) -> None:
    resolution = loaded(tmp_path, FILES).resolution_of("s.t")
    painted = explain_text(resolution, Style(color=True))
    plain = explain_text(resolution)
    assert painted != plain
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m"):
        painted = painted.replace(code, "")
    assert painted == plain


def test_a_table_that_only_rules_reach_is_said_to_be_one(tmp_path: Path) -> None:
    assert "no file names this table" in explain_text(loaded(tmp_path, FILES).resolution_of("s.other"))


def test_a_place_without_a_table_is_not_said_to_be_managed(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": "roots: [lake]\n",
        "policies/rule.yml": 'match: {tables: ["*"]}\nmanage: true\n',
    }
    project = loaded(tmp_path, files)
    log = tmp_path / "lake" / "orders" / "_delta_log"
    log.mkdir(parents=True)
    for name, line in (
        ("orders", "no file names this table: the rule at policies/rule.yml:2 manages it"),
        ("order", "there is no table here now; if there were one, the rule at policies/rule.yml:2 would manage it"),
    ):
        result = CliRunner().invoke(cli, ["--project", str(project.root), "explain", f"lake/{name}"])
        assert result.output.splitlines()[1] == line


def test_json_has_base_units_and_places(tmp_path: Path) -> None:
    document = explain_json(loaded(tmp_path, FILES).resolution_of("s.t"))
    values = {value["key"]: value for value in document["values"]}
    assert values["optimize.maxFileSize"]["value"] == 256 << 20
    assert values["vacuum.retention"] == {
        "key": "vacuum.retention",
        "value": 604_800,
        "text": "7d",
        "origin": {"file": "policies/t.yml", "line": 11, "column": 21, "built_in": False},
        "overrides": [
            {
                "value": 1_209_600,
                "text": "14d",
                "origin": {"file": "policies/rule.yml", "line": 4, "column": 21, "built_in": False},
            },
            {
                "value": 2_592_000,
                "text": "30d",
                "origin": {"file": "maintainer.yml", "line": 3, "column": 32, "built_in": False},
            },
        ],
    }
    assert values["limits.timeout"]["origin"]["built_in"] is True
    assert {key: value["value"] for key, value in values.items()}.items() <= document["policy"].items()


def test_the_merged_file_alone_says_the_same(tmp_path: Path) -> None:
    resolution = loaded(tmp_path / "one", FILES).resolution_of("s.t")
    alone = loaded(tmp_path / "other", {"policies/merged.yml": merged_yaml(resolution)})
    assert complaints(alone) == []
    again = alone.resolution_of("s.t")
    assert again.values == resolution.values
    assert again.policy.digest == resolution.policy.digest


def test_a_map_that_switches_something_on_is_explained_and_merged_where_it_is_empty(tmp_path: Path) -> None:
    text = "table: s.t\nvacuum: {}\nautoCompact: true\noptimize: {purge: {}}\n"
    resolution = loaded(tmp_path / "one", {"policies/t.yml": text}).resolution_of("s.t")
    lines = explain_text(resolution).splitlines()
    for key in ("vacuum.retention", "autoCompact", "optimize.purge.deletedRowsRatio", "optimize.purge.droppedColumns"):
        assert any(line.startswith(f"{key} ") for line in lines)
    again = loaded(tmp_path / "other", {"policies/merged.yml": merged_yaml(resolution)}).resolution_of("s.t")
    assert again.policy.optimize == resolution.policy.optimize
    assert (again.policy.vacuum, again.policy.auto_compact) == (
        resolution.policy.vacuum,
        resolution.policy.auto_compact,
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("64MiB", "64MiB"),
        ("22:00", "22:00"),
        ("interval 30 days", "interval 30 days"),
        ("true", '"true"'),
        ("Null", '"Null"'),
        ("12", '"12"'),
        ("1.5", '"1.5"'),
        ("1e3", '"1e3"'),
        ("0x1F", '"0x1F"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("*.tmp", '"*.tmp"'),
        ("", '""'),
        ("-", '"-"'),
        ("ü", '"\\u00fc"'),
        ("s3://b/x", '"s3://b/x"'),
        ([1, True, None, 0.5], "[1, true, null, 0.5]"),
    ],
)
def test_a_value_is_quoted_where_yaml_would_read_something_else(value: object, text: str) -> None:
    assert flow(value) == text
