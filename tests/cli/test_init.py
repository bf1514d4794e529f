"""What `maintainer init` writes beside policies: a workflow whose commands exist, and where to install from."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from maintainer.cli.act.run_output import RUN_FOLDER_OUTPUT
from maintainer.cli.main import run
from maintainer.cli.setup_commands import UNKNOWN, requirement_of
from maintainer.delta.spark.java_home import SUPPORTED_MAJORS
from maintainer.policy.project.policy_changes import modified_tables
from maintainer.policy.project.policy_project import load_project
from tests.support.policies.example_commands import EXAMPLES, command_lines, parsed_command
from tests.support.policies.projects import git
from tests.support.tables.delta_tables import age

COMMIT = "3f2c1a9f00d5c0ffee3f2c1a9f00d5c0ffee3f2c"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert run(["-q", "init", str(tmp_path / "new")]) == 0
    return tmp_path / "new"


@pytest.fixture
def jobs(project: Path) -> dict[str, Any]:
    loaded = yaml.safe_load((project / ".github/workflows/maintainer.yml").read_text(encoding="utf-8"))
    jobs_document: dict[str, Any] = loaded["jobs"]
    return jobs_document


def scripts(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_every_command_of_the_workflow_and_the_hook_parses(project: Path, jobs: dict[str, Any]) -> None:
    lines = [line for job in jobs.values() for script in scripts(job) for line in command_lines(script)]
    hook = yaml.safe_load((project / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"][0]["entry"]
    lines += list(command_lines(hook))
    commands = [next(word for word in line if word in ("validate", "plan", "apply")) for line in lines]
    assert commands == ["validate", "plan", "apply", "apply", "plan", "validate"]
    _, plan, reviewed, nightly, drift, hook = (parsed_command(line)[1] for line in lines)
    assert (drift["detailed_exitcode"], drift["output"], drift["out"]) == (True, "markdown", None)
    assert hook["with_tests"]
    assert (plan["since"], plan["compare"], plan["output"]) == ("$BASE", "$BASE", "markdown")
    assert (str(plan["out"]), str(reviewed["plan_file"]), reviewed["yes"]) == ("plan.json", "plan.json", False)
    assert (nightly["yes"], nightly["plan_file"], nightly["output"]) == (True, None, "github")


def test_a_wrong_option_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parsed_command(["apply", "--no-such-option"])
    with pytest.raises(click.UsageError):
        parsed_command(["apply", "-o", "gitlab"])


def test_pull_requests_are_checked_and_main_is_applied_one_at_a_time(jobs: dict[str, Any]) -> None:
    assert "maintainer validate --strict --tests -o github" in scripts(jobs["check"])
    assert "pull_request" in jobs["plan"]["if"]
    assert "head.repo.full_name == github.repository" in jobs["plan"]["if"]
    assert jobs["comment"]["permissions"] == {"pull-requests": "write"}
    assert "always()" in jobs["comment"]["if"]
    for name in ("apply", "nightly"):
        assert jobs[name]["concurrency"] == {"group": "maintainer-apply", "cancel-in-progress": False}
    assert jobs["reviewed"]["if"].startswith("github.event_name == 'push'")
    assert "refs/heads/main" in jobs["nightly"]["if"]
    for job in jobs.values():
        # Values that strangers choose (a branch's name) reach the shell as environment variables only.
        assert not any("${{ github" in script for script in scripts(job))


LOOKING = ("plan", "apply", "nightly", "drift")
"""The jobs that look at tables."""


def test_the_night_waits_for_no_person_and_shares_state_and_turn_with_what_was_reviewed(jobs: dict[str, Any]) -> None:
    environments = {name: job["environment"] for name, job in jobs.items() if "environment" in job}
    assert environments == {"apply": "prod", "nightly": "prod-nightly"}
    # To maintainer both are `prod`: one state, one quarantine, one ledger.
    calls = {name: line for name in LOOKING for script in scripts(jobs[name]) for line in command_lines(script)}
    assert {name: line[:2] for name, line in calls.items()} == {name: ["--env", "prod"] for name in LOOKING}
    pipeline = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text(encoding="utf-8"))
    nights = {**pipeline[".apply"], **pipeline["nightly"]}
    assert (pipeline[".apply"]["environment"], nights["environment"]) == ("prod", "prod-nightly")
    assert (nights["resource_group"], pipeline["apply"].get("resource_group")) == ("maintainer-apply", None)


def test_a_login_to_a_cloud_is_three_lines_to_uncomment(project: Path, jobs: dict[str, Any]) -> None:
    action = (project / ".github/actions/maintainer/action.yml").read_text(encoding="utf-8")
    steps = yaml.safe_load(action)["runs"]["steps"]
    assert [step.get("uses", step.get("name")) for step in steps] == [
        "actions/setup-java@v4",
        "Install maintainer with Spark",
    ]
    assert int(steps[0]["with"]["java-version"]) in SUPPORTED_MAJORS
    assert "-r requirements.txt 'maintainer[spark]'" in steps[1]["run"]
    for name in LOOKING:
        assert {"uses": "./.github/actions/maintainer"} in jobs[name]["steps"]
    with_login = re.sub(r"^( +)# (?=- uses|  )", r"\1", action, flags=re.MULTILINE)
    logins = yaml.safe_load(with_login)["runs"]["steps"][:-2]
    assert [(step["uses"], "with" in step) for step in logins] == [
        ("aws-actions/configure-aws-credentials@v4", True),
        ("azure/login@v2", True),
        ("google-github-actions/auth@v2", True),
    ]
    workflow = (project / ".github/workflows/maintainer.yml").read_text(encoding="utf-8")
    with_tokens = yaml.safe_load(workflow.replace("# id-token: write", "id-token: write"))["jobs"]
    assert [name for name, job in with_tokens.items() if "id-token" in job.get("permissions", {})] == list(LOOKING)
    assert not any("id-token" in job.get("permissions", {}) for job in jobs.values())


@pytest.mark.parametrize("count", [2, 7, 1000])
def test_the_first_change_of_the_rule_breaks_no_test_of_it(project: Path, count: int) -> None:
    rule = project / "policies" / "lake.yml"
    text = rule.read_text(encoding="utf-8")
    rule.write_text(text.replace("{minSmallFiles: 20}", f"{{minSmallFiles: {count}}}"), encoding="utf-8")
    assert rule.read_text(encoding="utf-8") != text
    assert run(["--project", str(project), "validate", "--strict", "--tests"]) == 0


def test_a_first_pull_request_compares_with_a_branch_that_has_no_project(project: Path) -> None:
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "empty")
    git(project, "branch", "base")
    (project / "policies" / "orders.yml").write_text("version: 1\ntable: sales.orders\n", encoding="utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "policies")
    assert modified_tables(load_project(project), "base") == {"sales.orders"}


def test_no_name_of_an_index_is_asked_for(project: Path) -> None:
    lines = (project / "requirements.txt").read_text(encoding="utf-8").splitlines()
    [line] = [line for line in lines if line and not line.startswith("#")]
    assert line.startswith("maintainer @ ")
    assert str(urlsplit(UNKNOWN.partition("git+")[2]).hostname).endswith(".invalid")


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            {"url": "https://git.example.com/x.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"maintainer @ git+https://git.example.com/x.git@{COMMIT}",
        ),
        (
            {"url": "ssh://git@git.example.com:22/x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"maintainer @ git+ssh://git@git.example.com:22/x@{COMMIT}",
        ),
        (
            {"url": "https://user:token@git.example.com/x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"maintainer @ git+https://git.example.com/x@{COMMIT}",
        ),
        (
            {"url": "https://f.example.com/m.whl?sig=1", "archive_info": {"hashes": {"sha256": "ab12"}}},
            "maintainer @ https://f.example.com/m.whl#sha256=ab12",
        ),
        ({"url": "https://f.example.com/m.whl", "archive_info": {}}, UNKNOWN),
        ({"url": "file:///home/me/maintainer", "dir_info": {"editable": True}}, UNKNOWN),
        ({"url": "https://g.example.com/x", "vcs_info": {"vcs": "hg", "commit_id": COMMIT}}, UNKNOWN),
        ({"url": "https://g.example.com/x y", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, UNKNOWN),
        ({"url": 7}, UNKNOWN),
        ([], UNKNOWN),
    ],
)
def test_the_requirement_names_where_this_maintainer_came_from(record: object, line: str) -> None:
    assert requirement_of(json.dumps(record)) == line


def test_a_damaged_record_is_no_record() -> None:
    assert requirement_of("{") == UNKNOWN
    assert requirement_of(json.dumps({"url": "https://x/" + "y" * 30_000})) == UNKNOWN


def test_init_says_that_the_place_must_be_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "say in requirements.txt where maintainer is installed from"
    monkeypatch.setattr("maintainer.cli.setup_commands.requirement_line", lambda: UNKNOWN)
    assert run(["init", str(tmp_path / "a")]) == 0
    assert sentence in capsys.readouterr().out
    known = f"maintainer @ git+https://git.example.com/x@{COMMIT}"
    monkeypatch.setattr("maintainer.cli.setup_commands.requirement_line", lambda: known)
    assert run(["init", str(tmp_path / "b c")]) == 0
    out = capsys.readouterr().out
    assert sentence not in out
    assert re.search(r"Next: write there where your tables lie, .*Then: cd '[^']*/b c' && maintainer list", out)
    assert known in (tmp_path / "b c" / "requirements.txt").read_text().splitlines()
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path / "d")
    assert run(["init", "."]) == 0
    assert "Then: maintainer list" in capsys.readouterr().out


@pytest.mark.parametrize(
    "place", ["/srv/maintainer/prod", "/srv/with space", "~/state", "/srv/a: b # c", "s3://lake/m"]
)
def test_the_workflow_keeps_the_state_where_init_was_told(tmp_path: Path, place: str) -> None:
    root = tmp_path / "new"
    assert run(["-q", "init", str(root), "--state", place]) == 0
    expanded = place.replace("~", str(Path.home()))
    assert load_project(root, "prod").project.state == expanded
    assert load_project(root).project.state == f"{root}/.maintainer"
    jobs = yaml.safe_load((root / ".github/workflows/maintainer.yml").read_text(encoding="utf-8"))["jobs"]
    for job in (jobs["apply"], jobs["nightly"]):
        (upload,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
        (applies,) = [step for step in job["steps"] if "--env prod apply" in step.get("run", "")]
        # A state on an object store has no folder to upload; the run says which one it writes.
        folder = f"steps.{applies['id']}.outputs.{RUN_FOLDER_OUTPUT}"
        assert upload["with"]["path"] == f"${{{{ {folder} }}}}"
        assert f"{folder} != ''" in upload["if"]
        assert "-o github" in applies["run"]


@pytest.mark.parametrize(
    ("place", "written"),
    [("/data/lake", "/data/lake"), ("s3://b/lake/", "s3://b/lake"), ("tables", "{here}/tables"), ("new/x y", "x y")],
)
def test_init_writes_where_the_tables_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init", "new", "--root", place]) == 0
    env = " --env prod" if place.startswith("s3:") else ""
    assert f"Next: cd new && maintainer{env} list" in capsys.readouterr().out
    loaded = load_project(tmp_path / "new")
    (root,) = loaded.project.places.roots
    assert root == str(tmp_path / "new" / written.format(here=tmp_path)) or root == written.format(here=tmp_path)
    assert loaded.diagnostics == ()


def test_the_sample_tests_hold_beside_a_table_of_ones_own(tmp_path: Path) -> None:
    assert run(["-q", "init", str(tmp_path / "new"), "--root", "s3://b/lake"]) == 0
    policy = "version: 1\ntable: s3://b/lake/orders\noptimize: {zorder: {columns: [id]}}\n"
    (tmp_path / "new" / "policies" / "orders.yml").write_text(policy)
    assert run(["--project", str(tmp_path / "new"), "validate", "--tests"]) == 0


@pytest.mark.parametrize(
    ("place", "state"),
    [
        ("s3://b/lake", "s3://b/_maintainer"),
        ("s3a://b", "s3a://b/_maintainer"),
        ("gs://b/lake", "gs://b/_maintainer"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/_maintainer"),
        ("hdfs://name/lake", "{here}/.maintainer"),  # a state cannot lie there
        ("/data/lake", "{here}/.maintainer"),
    ],
)
def test_a_lake_in_a_bucket_gets_its_state_there_and_the_lines_for_other_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, state: str
) -> None:
    root = tmp_path / "new"
    assert run(["init", str(root), "--root", place]) == 0
    loaded = load_project(root, "prod")
    assert loaded.diagnostics == ()
    assert loaded.project.state == state.format(here=root)
    assert ("name a place that no job wipes" in capsys.readouterr().out) == state.startswith("{here}")
    text = (root / "maintainer.yml").read_text(encoding="utf-8")
    assert ("# spark:\n" in text) == place.startswith("s3")
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    if "spark:" in lines:  # as somebody with another server makes of it
        first = lines.index("spark:")
        assert lines[first + 2].startswith("    spark.hadoop.fs.s3a.endpoint: ")
        whole = text.splitlines()[:first] + lines[first : first + 5] + text.splitlines()[first + 5 :]
        (root / "maintainer.yml").write_text("\n".join(whole) + "\n", encoding="utf-8")
        changed = load_project(root, "prod")
        assert changed.diagnostics == ()
        assert len(changed.project.spark.settings) == 3


def test_the_first_list_shows_the_tables_that_lie_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b", "c_tmp"):
        (tmp_path / "lake" / name / "_delta_log").mkdir(parents=True)
    assert run(["-q", "init", str(tmp_path / "new"), "--root", str(tmp_path / "lake")]) == 0
    assert run(["--project", str(tmp_path / "new"), "validate", "--strict", "--tests"]) == 0
    capsys.readouterr()
    assert run(["--project", str(tmp_path / "new"), "list"]) == 0
    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines()[1:]] == [
        [f"{tmp_path}/lake/{name}", "team-data", "nightly", "policies/lake.yml:6"] for name in ("a", "b")
    ]
    assert printed.err == "2 tables\n"


def test_the_vacuum_that_the_rule_proposes_takes_what_compactions_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "lake" / "orders"
    for number in range(3):
        write_deltalake(str(table), pa.table({"id": list(range(number * 10, number * 10 + 10))}), mode="append")
    DeltaTable(str(table)).optimize.compact()
    age(table, 8)
    assert run(["-q", "init", str(tmp_path / "new"), "--root", str(tmp_path / "lake")]) == 0
    rule = tmp_path / "new" / "policies" / "lake.yml"
    (line,) = re.findall(r"^# (vacuum: .*)$", rule.read_text(encoding="utf-8"), re.MULTILINE)
    assert f"`{line}`" in (EXAMPLES.parent / "docs" / "s3-in-fifteen-minutes.md").read_text(encoding="utf-8")
    rule.write_text(f"{rule.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")
    capsys.readouterr()
    assert run(["--project", str(tmp_path / "new"), "plan"]) == 0
    assert "Deletes 3 files" in capsys.readouterr().out


def test_init_refuses_a_place_that_no_state_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path / "new"), "--state", "/srv/maintainer/ledger"]) == 2
    assert "write `state: /srv/maintainer`" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_init_says_that_the_default_does_not_last_and_for_whom_a_place_was_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    assert ("name a place that no job wipes" in out, "Records of runs" in out) == (True, False)
    assert run(["init", str(tmp_path / "other"), "--state", "/srv/maintainer"]) == 0
    out = capsys.readouterr().out
    assert "name a place that no job wipes" not in out
    # A command that is typed by hand, without an environment, does not use that place.
    assert out.endswith(
        "Records of runs: /srv/maintainer with `--env prod`, as in the workflow; .maintainer without it.\n"
    )


@pytest.mark.parametrize(("typed", "state"), [("/srv/m\n", "/srv/m"), ("\n", ".maintainer"), ("/a/ledger\n/b\n", "/b")])
def test_init_asks_on_a_terminal(tmp_path: Path, typed: str, state: str) -> None:
    controller, terminal = pty.openpty()
    os.write(controller, typed.encode())
    command = [sys.executable, "-m", "maintainer", "init", str(tmp_path / "new")]
    done = subprocess.run(command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, timeout=60, check=True)
    os.close(terminal)
    asked = ""
    with contextlib.suppress(OSError):  # Linux: all is read, and the other side is closed
        while piece := os.read(controller, 10_000):
            asked += piece.decode()
    os.close(controller)
    assert "Where shall the jobs of the workflow remember their runs?" in asked
    assert (tmp_path / "new" / "maintainer.yml").read_text(encoding="utf-8").count(f"state: {state}\n") == 1 + (
        state == ".maintainer"
    )
    assert ("no job wipes" in done.stdout.decode()) == (state == ".maintainer")
