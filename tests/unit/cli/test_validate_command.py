"""`validate` and `schema` as a user meets them: output, formats, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner, Result

from maintainer.cli.main import cli
from maintainer.errors import ProjectError

BAD = """\
version: 1
table: sales.orders
optimize:
  minFileSzie: 64MiB
  maxFileSize: 256MB
vacuum:
  retention: 30d
autoCompact: yes
vacuum:
  retention: 7
"""
FULL = """\
error[P201]: unknown key `minFileSzie` in optimize
 --> policies/orders.yml:4:3
  |
3 | optimize:
4 |   minFileSzie: 64MiB
  |   ^^^^^^^^^^^
5 |   maxFileSize: 256MB
  = help: did you mean `minFileSize`?

warning[P301]: optimize.maxFileSize: `256MB` is read as `256MiB`, as Spark does
 --> policies/orders.yml:5:16
  |
4 |   minFileSzie: 64MiB
5 |   maxFileSize: 256MB
  |                ^^^^^
6 | vacuum:
  = help: write `256MiB` to say so

error[P203]: autoCompact must be `true`, `false` or a map, not `yes`
 --> policies/orders.yml:8:14
  |
7 |   retention: 30d
8 | autoCompact: yes
  |              ^^^
9 | vacuum:
  = help: write `true`

error[Y108]: duplicate key `vacuum`
  --> policies/orders.yml:9:1
   |
 8 | autoCompact: yes
 9 | vacuum:
   | ^^^^^^
10 |   retention: 7
   = help: first set on line 6; YAML would silently keep only the last

Found 3 errors and 1 warning in 1 of 3 files"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "policies").mkdir()
    (tmp_path / "maintainer.yml").write_text("version: 1\n")
    (tmp_path / "policies" / "good.yml").write_text("version: 1\ntable: sales.items\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bad(project: Path) -> Path:
    (project / "policies" / "orders.yml").write_text(BAD)
    return project


def run(*args: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=stdin)


def test_success_is_one_line(project: Path) -> None:
    result = run("validate")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 policy valid (0.")
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_full_output_shows_excerpts_carets_and_help(bad: Path) -> None:
    result = run("validate")
    assert result.exit_code == 1
    assert result.stdout.startswith(FULL)


def test_colour_only_repeats_what_words_say(bad: Path) -> None:
    import re

    coloured = run("--color", "always", "validate").stdout
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert plain.startswith(FULL)


def test_concise_is_one_line_per_finding(bad: Path) -> None:
    lines = run("validate", "-o", "concise").stdout.splitlines()
    assert len(lines) == 5
    assert lines[0] == (
        "policies/orders.yml:4:3: error[P201] unknown key `minFileSzie` in optimize; did you mean `minFileSize`?"
    )


def test_json_is_one_document_that_fits_its_schema(bad: Path) -> None:
    result = run("validate", "-o", "json")
    document = json.loads(result.stdout)
    schema = json.loads((Path(__file__).parents[3] / "schemas" / "validate.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(document)
    assert result.exit_code == 1
    assert (document["errors"], document["warnings"], document["files"], document["policies"]) == (3, 1, 3, 2)
    assert document["diagnostics"][0] == {
        "code": "P201",
        "severity": "error",
        "title": "unknown key",
        "message": "unknown key `minFileSzie` in optimize",
        "help": "did you mean `minFileSize`?",
        "file": "policies/orders.yml",
        "line": 4,
        "column": 3,
        "end_line": 4,
        "end_column": 14,
    }


def test_github_annotates_and_writes_the_step_summary(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(bad / "summary.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(bad.parent))
    lines = run("validate", "-o", "github").stdout.splitlines()
    assert lines[0] == (
        f"::error title=maintainer P201,file={bad.name}/policies/orders.yml,line=4,col=3,endLine=4,endColumn=14::"
        "unknown key `minFileSzie` in optimize%0Ahelp: did you mean `minFileSize`?"
    )
    assert [line.split(" ")[0] for line in lines[:-1]] == ["::error"] * 3 + ["::warning"]
    summary = (bad / "summary.md").read_text()
    assert summary.count("\n| policies/orders.yml:") == 4


def test_github_leaves_what_it_may_not_annotate_to_the_summary(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    keys = "".join(f"k{number:02}|<b>: 1\n" for number in range(25))
    (project / "policies" / "good.yml").write_text("version: 1\ntable: a.b\n" + keys)
    lines = run("validate", "-o", "github").stdout.splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert lines[10] == "15 more errors: GitHub shows 10 of a kind; all are in the step summary"
    summary = (project / "summary.md").read_text()
    assert summary.count("P201") == 25
    assert "<b>" not in re.sub(r"`[^`\n]*`", "", summary)  # inside code it is text


def test_a_message_cannot_start_a_workflow_command(project: Path) -> None:
    (project / "policies" / "good.yml").write_text('version: 1\ntable: a.b\n"x\\n::error::y%": 1\n')
    lines = run("validate", "-o", "github").stdout.splitlines()
    assert len(lines) == 2
    assert "%25" in lines[0]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("optimize: {zorder: {columns: []}}", "optimize.zorder.columns"),
        ("verify: {expectations: [{type: expect_x}]}", "verify.expectations.type"),
        ("properties: {delta.appendOnly: tru}", "properties"),
        ("owner: ''", "owner"),
        ("autoCompact: yes", "autoCompact"),
    ],
)
def test_the_summary_names_the_key_of_the_first_finding(project: Path, line: str, key: str) -> None:
    (project / "policies" / "orders.yml").write_text(f"version: 1\ntable: sales.orders\n{line}\n")
    assert run("validate").stdout.endswith(f"s). `maintainer schema {key}` explains the key.\n")
    assert run("schema", key).exit_code == 0


def test_the_summary_names_no_key_where_no_finding_does(project: Path) -> None:
    (project / "policies" / "orders.yml").write_text('version: 1\ntable: "a\n')
    assert run("validate").stdout.endswith("s).\n")


def test_junit(bad: Path) -> None:
    top = ElementTree.fromstring(run("validate", "-o", "junit").stdout)
    assert (top.get("tests"), top.get("failures")) == ("4", "3")
    suites = {suite.get("name"): suite for suite in top}
    cases = list(suites["policies/orders.yml"])
    assert cases[0].get("name") == "P201 unknown key at 4:3"
    assert [case.find("failure") is not None for case in cases] == [True, False, True, True]
    assert [case.attrib["line"] for case in cases] == ["4", "5", "8", "9"]
    strict = ElementTree.fromstring(run("validate", "-o", "junit", "--strict").stdout)
    assert strict.get("failures") == "4"


def test_sarif(bad: Path) -> None:
    log = json.loads(run("validate", "-o", "sarif").stdout)
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    rules = [rule["id"] for rule in only["tool"]["driver"]["rules"]]
    assert rules == ["P201", "P203", "P301", "Y108"]
    for result in only["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    location = only["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "policies/orders.yml"
    assert location["region"] == {"startLine": 4, "startColumn": 3, "endLine": 4, "endColumn": 14}


SARIF_LEVELS = {"none", "note", "warning", "error"}


def test_sarif_has_what_the_standard_asks_for(bad: Path) -> None:
    """The required properties and bounds of SARIF 2.1.0, by hand: §3.13 to §3.30 and §3.49."""
    (bad / "policies" / "with space ü.yml").write_text("version: 1\ntable: s.x\nlimit: {}\nretention: 7\n")
    log = json.loads(run("validate", "-o", "sarif").stdout)
    assert set(log) == {"$schema", "version", "runs"}
    assert log["$schema"].endswith("/sarif-schema-2.1.0.json")
    (only,) = log["runs"]
    assert only["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    driver = only["tool"]["driver"]
    assert driver["name"] == "maintainer"
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for rule in driver["rules"]:
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        assert rule["fullDescription"]["text"].endswith(".")
        assert rule["id"] in rule["help"]["text"]
    assert len(only["results"]) == 6
    for result in only["results"]:
        assert result["message"]["text"]
        assert result["level"] in SARIF_LEVELS
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        uri = urlsplit(physical["artifactLocation"]["uri"])
        assert (uri.scheme, uri.netloc, uri.path.startswith("/")) == ("", "", False)
        assert (bad / unquote(uri.path)).is_file()
        assert physical["artifactLocation"]["uriBaseId"] in only["originalUriBaseIds"]
        region = physical["region"]
        assert all(type(number) is int and number >= 1 for number in region.values())
        assert (region["endLine"], region["endColumn"]) > (region["startLine"], region["startColumn"])


def test_sarif_without_findings_is_a_run_without_results(project: Path) -> None:
    log = json.loads(run("validate", "-o", "sarif").stdout)
    assert (log["runs"][0]["results"], log["runs"][0]["tool"]["driver"]["rules"]) == ([], [])


def test_strict_and_exit_zero(project: Path) -> None:
    (project / "policies" / "good.yml").write_text("version: 1\ntable: a.b\noptimize: {maxFileSize: 1gb}\n")
    assert run("validate").exit_code == 0
    assert run("validate", "--strict").exit_code == 1
    assert run("validate", "--strict", "--exit-zero").exit_code == 0
    assert json.loads(run("validate", "-o", "json", "--strict").stdout)["valid"] is False


def test_an_output_file_gets_the_findings_and_stderr_the_summary(bad: Path) -> None:
    result = run("validate", "-o", "json", "--output-file", "out.json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Found 3 errors")
    assert json.loads((bad / "out.json").read_text())["errors"] == 3
    refused = run("validate", "--output-file", "no/such/folder.txt")
    assert isinstance(refused.exception, ProjectError)


def test_paths_choose_what_is_shown_and_the_project_is_still_read(bad: Path) -> None:
    (bad / "policies" / "other.yml").write_text("version: 1\ntable: sales.items\n")
    assert run("validate", "policies/good.yml").exit_code == 0
    other = run("validate", "policies/other.yml", "-o", "json")
    assert [diagnostic["code"] for diagnostic in json.loads(other.stdout)["diagnostics"]] == ["P350"]
    assert json.loads(run("validate", "policies", "-o", "json").stdout)["files"] == 3
    assert run("validate", "no-such-file.yml").exit_code == 2


def test_a_file_outside_of_any_project_is_checked_by_itself(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    (tmp_path / "lone.yml").write_text("version: 1\ntable: a.b\nonwer: x\n")
    result = run("validate", str(tmp_path / "lone.yml"))
    assert result.exit_code == 1
    assert f"--> {tmp_path / 'lone.yml'}:3:1" in result.stdout
    assert "3 | onwer: x\n  | ^^^^^" in result.stdout


def test_stdin_is_checked_under_its_name(project: Path) -> None:
    result = run("validate", "--stdin-filename", "policies/x.yml", "-o", "concise", stdin=b"version: 1\nmatch: {}\n")
    assert result.exit_code == 1
    assert result.stdout.startswith("policies/x.yml:2:1: error[P206] match is empty")
    full = run("validate", "--stdin-filename", "policies/x.yml", stdin=b"version: 1\n\xff")
    assert "error[Y104]" in full.stdout
    assert run("validate", "--stdin-filename", "x.yml", "policies").exit_code == 2


def test_a_folder_without_a_project_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("validate")
    assert isinstance(result.exception, ProjectError)
    assert result.exception.exit_code == 2


def test_long_lines_and_wide_characters_keep_the_caret_in_place(project: Path) -> None:
    wide = "日本" * 3
    (project / "policies" / "good.yml").write_text(
        f"version: 1\ntable: a.b\nowner: {{{wide}: 1}}\nlimits: {{timeout: 3h, {'maxFiles: 1, ' * 1}{'x' * 30}: 1, "
        f"description: {'y' * 300}}}\n"
    )
    result = run("validate").stdout
    assert f"limits: {{timeout: 3h, maxFiles: 1, {'x' * 30}" in result
    long_lines = [line for line in result.splitlines() if len(line) > 130]
    assert long_lines == []
    for line, caret in zip(result.splitlines(), result.splitlines()[1:], strict=False):
        if set(caret.partition("|")[2]) == {" ", "^"} and "x" * 30 in line and len(caret.strip(" |")) == 30:
            assert caret.index("^") == line.index("x" * 30)
            break
    else:
        pytest.fail("no caret under the unknown key")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("vacuum.retention", "default   7d"),
        ("consumers.maxLag", "example   maxLag: 3d"),
        ("consumers[].maxLag", "example   maxLag: 3d"),
        ("optimize.zorder.mode", "default   incremental"),
        ("match.minSize", "example   minSize: 10GiB"),
        ("optimize.maxThreads", "allowed   1 to 256"),
        ("maxPlanAge", "(in maintainer.yml)"),
        ("window", "keys      days, from, to, timezone"),
    ],
)
def test_schema_explains_a_key(key: str, expected: str) -> None:
    result = run("schema", key)
    assert result.exit_code == 0
    assert expected in result.stdout


def test_schema_prints_the_schema(tmp_path: Path) -> None:
    assert json.loads(run("schema").stdout)["$id"] == "policy.schema.json"
    assert json.loads(run("schema", "--of", "project").stdout)["$id"] == "project.schema.json"
    assert run("schema", "--out", str(tmp_path / "s.json")).stdout == ""
    assert json.loads((tmp_path / "s.json").read_text())["$id"] == "policy.schema.json"
    assert "optimize.zorder.columns" in run("schema", "--keys").stdout.splitlines()


def test_schema_names_the_key_that_was_meant() -> None:
    refused = run("schema", "retention")
    assert isinstance(refused.exception, ProjectError)
    assert refused.exception.help == "did you mean `vacuum.retention`?"


def test_two_paths_that_reach_one_table_are_found_on_this_machine(project: Path) -> None:
    (project / "lake" / "t" / "_delta_log").mkdir(parents=True)
    (project / "lake" / "u" / "_delta_log").mkdir(parents=True)
    (project / "link").symlink_to(project / "lake")
    for name, table in (("a", "lake/t"), ("b", "link/t"), ("c", "lake/u"), ("d", "lake/not_made_yet")):
        (project / "policies" / f"{name}.yml").write_text(f"version: 1\ntable: {table}\n", encoding="utf-8")
    for selected in ((), ("-s", "link/t"), (str(project / "policies" / "b.yml"),)):
        shown = run("validate", "-o", "concise", *selected)
        assert shown.exit_code == 1
        (line,) = [line for line in shown.stdout.splitlines() if "P350" in line]
        assert line.startswith(
            "policies/b.yml:2:8: error[P350] `link/t` has a policy already: `lake/t` is the same table"
        )
    assert "P350" not in run("validate", "-s", "lake/u").stdout
    listed = run("list")
    assert listed.exit_code == 0
    assert "warning[P350]: `link/t` has a policy already: `lake/t` is the same table" in listed.stderr


def test_a_project_without_policies_is_said_and_fails_in_strict(tmp_path: Path) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\nroots: [lake]\n")
    (tmp_path / "policy").mkdir()
    for name in ("orders.yml", "policy/items.yaml"):
        (tmp_path / name).write_text("version: 1\ntable: lake/orders\n")
    (tmp_path / "compose.yml").write_text("services: {}\n")
    (tmp_path / "gone.yml").symlink_to(tmp_path / "nowhere")
    said = (
        "policies/ has no file that ends in .yml or .yaml, but these look like policies: orders.yml, policy/items.yaml"
    )
    for arguments, code in (([], 0), (["--strict"], 1)):
        result = CliRunner().invoke(cli, ["--project", str(tmp_path), "validate", *arguments])
        assert result.exit_code == code
        assert result.output.startswith("0 policies valid (")
        assert result.output.endswith(f"s); {said}\n")
