"""`list -o json` and `explain -o json` print one document each, and it is what its schema says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from benchmarks.policy_repository import write_repository
from maintainer.cli.main import run
from tests.support.policies.projects import write_project

ROOT = Path(__file__).resolve().parents[2]


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(loaded)
    return loaded


def printed(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> dict[str, Any]:
    assert run(["--project", str(root), *arguments, "-o", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def undescribed(value: object, described: dict[str, Any], whole: dict[str, Any], path: str = "$") -> Iterator[str]:
    """Yield the fields of a document that its schema does not describe."""
    if "$ref" in described:
        described = whole["definitions"][described["$ref"].rpartition("/")[2]]
    if isinstance(value, dict) and "properties" in described:
        for key, inner in value.items():
            if key not in described["properties"]:
                yield f"{path}.{key}"
            else:
                yield from undescribed(inner, described["properties"][key], whole, f"{path}.{key}")
    elif isinstance(value, list) and "items" in described:
        for inner in value:
            yield from undescribed(inner, described["items"], whole, f"{path}[]")


def check(document: dict[str, Any], name: str) -> None:
    jsonschema.validate(document, schema(name))
    assert list(undescribed(document, schema(name), schema(name))) == []


def test_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = write_repository(tmp_path, tables=50)
    document = printed(capsys, tmp_path, "list")
    check(document, "list")
    assert [table["table"] for table in document["tables"]] == tables
    check(printed(capsys, tmp_path, "list", "-s", "nothing.here", "--allow-empty"), "list")
    with pytest.raises(jsonschema.ValidationError):
        check({**document, "tables": [{**document["tables"][0], "digest": "md5:1"}]}, "list")


def test_explain_of_every_example(capsys: pytest.CaptureFixture[str]) -> None:
    document = printed(capsys, ROOT, "list")
    for table in document["tables"]:
        explained = printed(capsys, ROOT, "explain", table["table"])
        check(explained, "explain")
        assert (explained["digest"], explained["file"]) == (table["digest"], table["file"])
        assert explained["named_by_file"] is True
    assert len(document["tables"]) > 10


def test_explain_of_a_table_that_only_rules_reach(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_repository(tmp_path, tables=50)
    document = printed(capsys, tmp_path, "explain", "bronze_sales.nobody_names_this")
    check(document, "explain")
    assert document["named_by_file"] is False
    value = next(value for value in document["values"] if value["key"] == "optimize.maxFileSize")
    assert (value["value"], value["text"]) == (256 * 1024 * 1024, "256MiB")
    assert value["origin"]["file"] == "policies/_fleet/bronze.yml"


def test_json_is_one_document_whatever_else_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_repository(tmp_path, tables=50)
    for arguments in (["validate"], ["list"], ["explain", "gold_hr.x"]):
        assert run(["--project", str(tmp_path), "-v", "--color", "always", *arguments, "-o", "json"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("{\n")
        assert out.endswith("}\n")
        assert "\x1b" not in out
        json.loads(out)


def failure(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> dict[str, Any]:
    code = run(["--project", str(root), *arguments, "-o", "json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    check(document, "failure")
    assert (document["exit_code"], code) == (2, 2)
    return document


def test_a_place_that_cannot_be_searched_is_a_problem_of_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty list beside it says that nobody could look, and the code says so, too."""
    rule = "match: {tables: ['*']}\nmanage: true\n"
    write_project(tmp_path, {"maintainer.yml": "roots: [gone]\n", "policies/_all.yml": rule})
    assert run(["--project", str(tmp_path), "list", "-o", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    check(document, "list")
    assert (document["tables"], [problem["table"] for problem in document["problems"]]) == ([], ["./gone"])
    assert document["problems"][0]["code"] == "E645"
    assert run(["--project", str(tmp_path), "list"]) == 1


def test_a_catalog_that_cannot_be_listed_is_a_problem_and_none_of_its_tables_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prod = "spark.sql.catalog.prod"
    settings = {prod: "io.unitycatalog.spark.UCSingleCatalog", f"{prod}.uri": "https://unity.invalid"}
    settings[f"{prod}.auth.type"] = "oauth"
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    (tmp_path / "lake" / "a" / "_delta_log").mkdir(parents=True)
    write_project(tmp_path, {"maintainer.yml": "roots: [lake]\n", "policies/t.yml": "table: prod.sales.orders\n"})
    assert run(["--project", str(tmp_path), "inventory", "-o", "json", *conf]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [(each["table"], each["care"]) for each in document["tables"]] == [("lake/a", "unmanaged")]
    assert [(problem["table"], problem["code"]) for problem in document["problems"]] == [("prod", "E620")]


COMMANDS = [
    ["list"],
    ["plan"],
    ["apply", "--yes"],
    ["retry", "--yes"],
    ["status"],
    ["verify"],
    ["history"],
    ["inventory"],
    ["explain", "s.t"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_command_that_fails_prints_its_document_all_the_same(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, {"policies/t.yml": "table: s.t\noptimise: {}\nlimit: {}\n"})
    problems = failure(capsys, tmp_path, *command)["problems"]
    assert [(problem["code"], problem["where"]) for problem in problems] == [
        ("P201", "policies/t.yml:3:1"), ("P201", "policies/t.yml:4:1")
    ]  # fmt: skip
    (tmp_path / "empty").mkdir()
    assert [problem["code"] for problem in failure(capsys, tmp_path / "empty", *command)["problems"]] == ["E611"]


def test_a_bug_is_in_the_document_and_its_text_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("maintainer.cli.inspect.policy_commands.search_tables", broken)
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, {"policies/t.yml": "table: s.t\n"})
    assert run(["list", "-o", "json"]) == 70
    document = json.loads(capsys.readouterr().out)
    check(document, "failure")
    assert [problem["code"] for problem in document["problems"]] == ["E699"]
