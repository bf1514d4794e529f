"""explain, list, init and completion as a person meets them: output, exit codes, and nothing heavy imported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from maintainer.cli.main import run
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.yaml.yaml_reader import read_text
from tests.support.policies.projects import complaints, write_project

FILES = {
    "maintainer.yml": "environments: {dev: {overrides: {limits: {maxFiles: 9}}}}\n",
    "policies/sales/orders.yml": "table: sales.orders\ntags: [nightly]\nlimits: {maxFiles: 5}\n",
    "policies/crm.yml": "table: crm.leads\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, FILES)


def test_list_prints_the_selection_on_stdout_and_the_count_on_stderr(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--project", str(root), "list", "-s", "tag:nightly"]) == 0
    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines()] == [
        ["TABLE", "OWNER", "TAGS", "POLICY"],
        ["sales.orders", "-", "nightly", "policies/sales/orders.yml"],
    ]
    assert printed.err == "1 table\n"


def test_list_as_json_is_one_document(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--project", str(root), "list", "--exclude", "crm.*", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [table["table"] for table in document["tables"]] == ["sales.orders"]
    assert document["tables"][0]["digest"] == load_project(root).resolve_table("sales.orders").digest


def test_list_shows_the_ledger_behind_the_tables(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = root / ".maintainer" / "ledger" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").touch()
    assert run(["--project", str(root), "list"]) == 0
    printed = capsys.readouterr()
    names = [line.split()[0] for line in printed.out.splitlines()]
    assert names == ["TABLE", "crm.leads", "sales.orders", ".maintainer/ledger"]
    assert printed.err == "2 tables and our own ledger\n"


@pytest.mark.parametrize(
    ("arguments", "code", "err"),
    [
        (["list", "-s", "tag:nigthly"], 2, "did you mean `tag:nightly`?"),
        (["list", "-s", "tag:nigthly", "--allow-empty"], 0, "0 tables"),
        (["list", "-s", "due"], 2, "cannot select by `due`"),
        (["list", "--since", "HEAD"], 2, "add `--select state:modified`"),
        (["list", "-s", "state:modified"], 2, "--since REF"),
        (["explain", "sales.order"], 2, "did you mean `sales.orders`?"),
        (["explain", "sales.orders", "--merged", "-o", "json"], 2, "--merged prints YAML"),
        (["--env", "devv", "explain", "sales.orders"], 2, "did you mean `dev`?"),
        (["completion", "tcsh"], 2, "'tcsh' is not one of"),
    ],
)
def test_exit_codes_and_ways_out(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, err: str
) -> None:
    assert run(["--project", str(root), *arguments]) == code
    assert err in capsys.readouterr().err


def test_a_code_is_explained_where_no_file_names_a_table_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[4] / "docs" / "codes.md").read_text(encoding="utf-8")
    for code in re.findall(r"^### (\w{4}):", page, re.MULTILINE):
        assert run(["--project", str(root), "explain", code.lower()]) == 0
        printed = capsys.readouterr().out.rstrip("\n")
        assert printed.startswith(f"{code}: ")
        assert f"### {printed}\n\n#" in f"{page}\n#"
    assert run(["--project", str(root), "explain", "T999"]) == 2
    write_project(root, {"policies/codes.yml": "table: T441\n"})
    assert run(["--project", str(root), "explain", "T441"]) == 0
    write_project(root, {"policies/wrong.yml": "tabel: s.x\n"})
    assert run(["--project", str(root), "explain", "T442"]) == 0
    printed = capsys.readouterr().out
    assert "policies/codes.yml" in printed.splitlines()[0]
    assert "T442: no such bucket\n" in printed


def test_explain_shows_the_errors_of_what_it_reads_and_ends_in_2(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(root, {"policies/crm.yml": "table: crm.leads\nlimit: {}\n"})
    write_project(root, {"policies/x.yml": "table: s.x\noptimize: {maxThreads: 0}\n"})
    assert run(["--project", str(root), "explain", "sales.orders"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["--project", str(root), "explain", "s.x"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "policies/x.yml:3:24" in printed.err
    assert "policies/crm.yml" not in printed.err
    assert run(["--project", str(root), "list"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "policies/crm.yml:3:1" in printed.err
    assert "policies/x.yml:3:24" in printed.err


def test_explain_follows_the_environment(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--project", str(root), "--env", "dev", "explain", "sales.orders"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("limits.maxFiles"))
    assert line.split() == [
        "limits.maxFiles", "9", "maintainer.yml:2", "(environment)", "overrides", "5", "policies/sales/orders.yml:4"
    ]  # fmt: skip


def test_init_makes_a_project_without_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "new"
    assert run(["init", str(root)]) == 0
    project = load_project(root)
    assert complaints(project) == []
    assert project.resolved() == ()  # its rule manages what is found below a root, and the root is the user's to name
    for name in ("maintainer.yml", *(str(path.relative_to(root)) for path in root.glob("policies/*/*.yml"))):
        first = (root / name).read_text().splitlines()[0]
        assert ((root / name).parent / first.partition("$schema=")[2]).is_file()
    assert (root / ".gitignore").read_text() == ".maintainer/\nplan.json\nplan.md\n"
    assert set(json.loads((root / ".vscode/settings.json").read_text())["yaml.schemas"]) == {
        "./schemas/project.schema.json",
        "./schemas/policy.schema.json",
        "./schemas/tests.schema.json",
    }
    assert run(["--project", str(root), "validate", "--strict", "--tests"]) == 0
    assert "2 tests in policies/_tests/ (1 file): 2 passed, 0 failed" in capsys.readouterr().err


@pytest.mark.parametrize("taken", ["maintainer.yml", "policies/x.yml"])
def test_init_writes_nothing_where_there_is_a_project(
    tmp_path: Path, taken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, {taken: "table: s.t\n"})
    before = sorted(tmp_path.rglob("*"))
    assert run(["init", str(tmp_path)]) == 2
    assert sorted(tmp_path.rglob("*")) == before
    assert "E618" in capsys.readouterr().err


def test_init_leaves_other_files_alone_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    assert run(["init", str(tmp_path)]) == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    advice = "already exists and was not changed; add the lines `.maintainer/` and `plan.json`"
    assert f"= .gitignore   {advice}" in capsys.readouterr().out


def test_our_hook_and_the_one_of_init_run_the_same_command(tmp_path: Path) -> None:
    assert run(["-q", "init", str(tmp_path)]) == 0
    ours = yaml.safe_load((Path(__file__).resolve().parents[4] / ".pre-commit-hooks.yaml").read_text())[0]
    theirs = yaml.safe_load((tmp_path / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"][0]
    for hook in (ours, theirs):
        assert hook["entry"].split()[:2] == ["maintainer", "validate"]
        assert hook["pass_filenames"] is False
        assert hook["language"] == ("python" if hook is ours else "system")
        for path in ("maintainer.yml", "policies/a/b.yaml"):
            assert re.search(hook["files"], path)
    assert read_text((tmp_path / ".pre-commit-config.yaml").read_text(), "x")[1] == []


@pytest.mark.parametrize(
    ("shell", "sign"), [("bash", "complete -o"), ("zsh", "#compdef maintainer"), ("fish", "complete --")]
)
def test_completion_prints_a_script(shell: str, sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert sign in script
    assert f"_MAINTAINER_COMPLETE={shell}_complete" in script


def in_a_new_process(arguments: list[str], root: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys\nfrom maintainer.cli.main import run\n"
        "try:\n    code = run(sys.argv[1:])\n"
        "finally:\n    print([m for m in ('pyspark', 'great_expectations', 'delta', 'py4j', 'pandas')"
        " if m in sys.modules], file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    package = Path(__file__).resolve().parents[4]
    env = {**os.environ, "PYTHONPATH": str(package), **environ}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=root,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments", [["explain", "sales.orders"], ["list"], ["init", "new"], ["completion", "bash"]], ids=lambda a: a[0]
)
def test_no_engine_is_imported(root: Path, arguments: list[str]) -> None:
    done = in_a_new_process(arguments, root)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("sal", "sales.orders"), ("lake/", "lake/events"), ("./lak", "./lake/events"), ("ROOT/la", "ROOT/lake/events")],
)
def test_table_names_complete_as_the_person_has_begun_to_type_them(root: Path, typed: str, offered: str) -> None:
    write_project(root, {"policies/lake.yml": "table: ./lake/events\n"})
    typed, offered = typed.replace("ROOT", str(root)), offered.replace("ROOT", str(root))
    words = {"_MAINTAINER_COMPLETE": "bash_complete", "COMP_WORDS": f"maintainer explain {typed}", "COMP_CWORD": "2"}
    assert in_a_new_process([], root, **words).stdout == f"plain,{offered}\n"


@pytest.mark.parametrize("spelling", ["lake/events", "./lake/events", "lake//events/", "ROOT/lake/events"])
def test_a_table_below_the_project_is_called_by_its_relative_path(
    root: Path, capsys: pytest.CaptureFixture[str], spelling: str
) -> None:
    write_project(root, {"policies/lake.yml": f"table: {root}/lake/events\n"})
    spelling = spelling.replace("ROOT", str(root))
    assert run(["--project", str(root), "explain", spelling]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["lake/events", "policies/lake.yml"]
    assert run(["--project", str(root), "explain", spelling, "--merged"]) == 0
    merged = capsys.readouterr().out
    assert "table: lake/events" in merged.splitlines()
    assert run(["--project", str(root), "list", "-s", spelling, "-o", "json"]) == 0
    before = json.loads(capsys.readouterr().out)["tables"]
    assert [table["table"] for table in before] == ["lake/events"]
    # The merged file in place of the old one means the same.
    (root / "policies/lake.yml").write_text(merged)
    assert load_project(root).resolve_table(spelling).digest == before[0]["digest"]


def test_explain_finds_a_table_below_a_root_by_the_end_of_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = "match: {tables: ['*']}\nmanage: true\n"
    root = write_project(tmp_path, {"maintainer.yml": "roots: [lake]\n", "policies/all.yml": rule})
    for table in ("sales/orders", "sales/items", "crm/items"):
        (root / "lake" / table / "_delta_log").mkdir(parents=True)
    assert run(["--project", str(root), "explain", "orders"]) == 0
    assert capsys.readouterr().out.startswith("lake/sales/orders   policies/all.yml:")
    assert run(["--project", str(root), "explain", "items"]) == 2
    assert "= found: lake/crm/items, lake/sales/items\n" in capsys.readouterr().err


def test_explain_asks_no_store_for_a_table_that_a_run_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = "match: {tables: ['*']}\nmanage: true\n"
    settings = "roots: ['s3://bucket/lake']\n"
    root = write_project(tmp_path, {"maintainer.yml": settings, "policies/all.yml": rule})
    (root / ".maintainer").mkdir()
    found = {"format_version": "1", "tables": {"s3://bucket/lake/sales/orders": "policies/all.yml:1"}}
    (root / ".maintainer" / "found_tables.json").write_text(json.dumps(found))
    for written in ("orders", "s3://bucket/lake/sales/orders", "s3a://bucket/lake/new"):
        assert run(["--project", str(root), "explain", written]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("s3")]
    assert [line.split()[0] for line in printed] == ["s3://bucket/lake/sales/orders"] * 2 + ["s3a://bucket/lake/new"]


def test_a_code_is_no_key_and_the_error_says_what_explains_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "t441"]) == 2
    assert "did you mean `maintainer explain t441`?" in capsys.readouterr().err
