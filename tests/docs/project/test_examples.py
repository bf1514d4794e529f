"""The files under examples/ are well formed, and what they call is there. Running them: tests/integration/fleet."""

from __future__ import annotations

import inspect
import json
import os
import py_compile
import re
import runpy
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml

import maintainer
from maintainer.cli.setup_commands import UNKNOWN, project_files
from maintainer.policy.project.policy_project import load_project
from maintainer.report.plan.plan_markdown import MARKER
from maintainer.units import parse_duration
from tests.support.policies.example_commands import (
    EXAMPLES,
    airflow_tasks,
    cron_job_container,
    docker_instructions,
    example_commands,
    github_jobs,
    github_script,
    gitlab_jobs,
    json_example,
    parsed_command,
)
from tests.support.policies.projects import git, write_project

COMMANDS = example_commands()


def parsed(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """Read a command line of an example; its folders elsewhere are those of the examples here."""
    return parsed_command(str(EXAMPLES) if word.startswith(("/opt/", "/Workspace/")) else word for word in arguments)


@pytest.mark.parametrize("place", COMMANDS)
def test_every_command_is_one(place: str) -> None:
    name, options = parsed(COMMANDS[place])
    if name == "apply":
        # Nobody is there to ask, and the run ends by itself before the job is ended.
        assert options["yes"] or options["plan_file"] is not None
        assert options["timeout_seconds"] == 5 * 3600


def test_there_is_one_for_each_way() -> None:
    assert {parsed(arguments)[0] for arguments in COMMANDS.values()} == {"validate", "doctor", "plan", "apply"}
    places = {place.partition(" ")[0] for place in COMMANDS}
    assert places == {"github", "gitlab", "airflow", "kubernetes", "docker", "emr", "databricks"}


def test_each_job_is_ended_later_than_its_run() -> None:
    run_seconds = 5 * 3600
    pipeline = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text(encoding="utf-8"))
    cron_job = yaml.safe_load((EXAMPLES / "kubernetes" / "cronjob.yml").read_text(encoding="utf-8"))
    (task,) = airflow_tasks()
    limits = [
        *(github_jobs()[job]["timeout-minutes"] * 60 for job in ("apply", "nightly")),
        parse_duration(pipeline[".apply"]["timeout"].replace(" ", "")),
        task["execution_timeout"].total_seconds(),
        cron_job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"],
        json_example("emr_serverless_job.json")["executionTimeoutMinutes"] * 60,
        json_example("databricks_job.json")["timeout_seconds"],
    ]
    assert all(limit >= run_seconds + 1800 for limit in limits)
    assert all(job["timeout-minutes"] < 360 for job in github_jobs().values())


def test_what_gitlab_keeps_is_what_the_job_writes() -> None:
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text(encoding="utf-8"))[".apply"]
    (line,) = job["after_script"]
    program, *arguments = shlex.split(line)
    assert program == "$CI_BUILDS_DIR/maintainer/bin/maintainer"
    assert parsed(arguments)[0] == "report"
    assert job["artifacts"]["paths"] == [arguments[arguments.index("--out") + 1]]


def test_the_github_workflow_is_the_one_that_init_writes() -> None:
    files = project_files(UNKNOWN, "/srv/maintainer")
    for name, path in (("workflow", "workflows/maintainer.yml"), ("action", "actions/maintainer/action.yml")):
        assert (EXAMPLES / f"github-{name}.yml").read_text(encoding="utf-8") == files[f".github/{path}"]


def test_files_beside_one_another_fit() -> None:
    container, instructions = cron_job_container(), dict(docker_instructions())
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/state"}
    assert instructions["WORKDIR"] == "/project"
    # The image has JARs and an archive in the user's cache folder; a cache elsewhere would hide them.
    assert not {variable["name"] for variable in container["env"]} & {"MAINTAINER_HOME", "MAINTAINER_JARS"}
    assert instructions["ENTRYPOINT"] == '["maintainer"]'
    entry = Path(json_example("emr_serverless_job.json")["jobDriver"]["sparkSubmit"]["entryPoint"]).name
    assert (EXAMPLES / entry).is_file()
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*") if path.is_file()}
    whole = {name for name in files if name.startswith(("many-tables/", "demo/"))}
    assert files - {"README.md"} - whole | {"many-tables", "demo"} == set(re.findall(r"\]\(([^)]+)\)", readme))


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.name)
def test_python_compiles(file: Path, tmp_path: Path) -> None:
    py_compile.compile(str(file), cfile=str(tmp_path / "x.pyc"), doraise=True)


class RecordedProject:
    """Takes the calls of an example; their arguments are checked against the real signatures."""

    calls: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    @staticmethod
    def load(root: str, env: str | None = None) -> RecordedProject:
        RecordedProject.calls = [("load", {"root": root, "env": env})]
        return RecordedProject()

    def apply(self, **kwargs: Any) -> Any:
        inspect.signature(maintainer.Project.apply).bind(self, **kwargs)
        RecordedProject.calls.append(("apply", kwargs))
        table = SimpleNamespace(ref=SimpleNamespace(identifier="sales.orders"), steps=(1, 2))
        outcome = SimpleNamespace(run_id="20261121T220000Z-7f3a", tables=(table,))
        return SimpleNamespace(outcome=outcome, raise_for_status=lambda: RecordedProject.calls.append(("raise", {})))


def test_dagster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintainer.app.python_api.Project", RecordedProject)
    metadata: list[Any] = []
    context = SimpleNamespace(add_output_metadata=metadata.append)

    class Schedule:
        def __init__(self, *, job: Any, cron_schedule: str) -> None:
            job()
            assert len(cron_schedule.split()) == 5

    fake = ModuleType("dagster")
    fake.__dict__.update(
        op=lambda function: lambda: function(context),
        job=lambda function: function,
        OpExecutionContext=object,
        ScheduleDefinition=Schedule,
    )
    monkeypatch.setitem(sys.modules, "dagster", fake)
    runpy.run_path(str(EXAMPLES / "dagster_job.py"))
    assert metadata == [{"run": "20261121T220000Z-7f3a", "tables": 1}]
    assert [name for name, _ in RecordedProject.calls] == ["load", "apply", "raise"]
    assert RecordedProject.calls[1][1] == {"select": ["tag:nightly"], "jobs": 2, "timeout_seconds": 18_000}


def test_dbt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what was built and a policy manages is chosen, never every table; and no failure is dbt's."""
    chosen: list[Any] = []

    def apply(self: maintainer.Project, **kwargs: Any) -> Any:
        chosen.append(kwargs["select"])
        raise RuntimeError("Spark is not there")

    monkeypatch.setattr("maintainer.app.python_api.project_api.Project.apply", apply)
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "after_dbt_build.py"
    text = (EXAMPLES / "after_dbt_build.py").read_text(encoding="utf-8")
    script.write_text(text.replace("/opt/lake-policies", str(tmp_path)), encoding="utf-8")
    policies = {f"policies/{name}.yml": f"table: shop.{name}\n" for name in ("orders", "returns")}
    write_project(tmp_path, {"maintainer.yml": "environments: {prod: {}}\n", **policies})
    (tmp_path / "target").mkdir()
    said = []
    for names in (None, ["`shop`.`orders`", "shop.other", None], ["shop.other"]):
        if names is not None:
            nodes = {f"model.shop.{number}": {"relation_name": name} for number, name in enumerate(names)}
            (tmp_path / "target" / "manifest.json").write_text(json.dumps({"nodes": nodes}), encoding="utf-8")
        runpy.run_path(str(script))
        said.append(capsys.readouterr())
    monkeypatch.setitem(sys.modules, "maintainer", None)  # the environment of dbt does not have it
    runpy.run_path(str(script))
    said.append(capsys.readouterr())
    assert chosen == [["shop.orders"]]
    assert [out for out, _ in said] == ["", "", "", ""]
    assert [err.startswith("no maintenance after this build: ") for _, err in said] == [True, True, False, True]


def run_script(script: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the runners do, with the programs beside this Python, and before them those in `folder/bin`."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {"PATH": path, "HOME": str(folder), "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), **environ}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A repository whose branch has an error in a policy."""
    write_project(tmp_path, {"maintainer.yml": "environments: {prod: {}}\n", "policies/a.yml": "table: s.a\n"})
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "base")
    git(tmp_path, "checkout", "-q", "-b", "change")
    (tmp_path / "policies" / "a.yml").write_text("version: 1\ntable: s.a\nvaccum: {}\n", encoding="utf-8")
    return tmp_path


def plan_script(forge: str) -> tuple[str, dict[str, str]]:
    if forge == "github":
        return github_script("plan", "maintainer --env"), {"BASE": "main"}
    return "\n".join(gitlab_jobs()["plan"]), {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "main"}


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_a_plan_that_fails_is_a_comment_too(forge: str, broken: Path) -> None:
    script, environ = plan_script(forge)
    done = run_script(script, broken, **environ)
    assert done.returncode == 2, done.stderr
    comment = (broken / "plan.md").read_text(encoding="utf-8")
    shown = done.stdout if forge == "gitlab" else (broken / "summary.md").read_text(encoding="utf-8")
    assert shown == comment
    assert comment.startswith(MARKER + "\n")
    assert "\npolicies/a.yml:3:1: error[P201] unknown key `vaccum`" in comment
    assert "error[E616]: 1 error in the policies; nothing was run" in comment
    assert not (broken / "plan.json").exists()


def fake(folder: Path, program: str, text: str) -> None:
    """Put a program on the path of scripts; it writes its arguments into `calls`."""
    file = folder / "bin" / program
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'#!/bin/bash\nprintf "%s\\n" "$*" >> "{folder}/calls"\n{text}\n', encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("comment_id", "how"),
    [
        ("41", "-X PATCH repos/o/r/issues/comments/41 -F body=@plan.md"),
        ("", "repos/o/r/issues/7/comments -F body=@plan.md"),
    ],
)
def test_github_updates_its_own_comment_or_makes_one(comment_id: str, how: str, tmp_path: Path) -> None:
    fake(tmp_path, "gh", f'case "$*" in *--paginate*) echo "{comment_id}";; esac')
    script = github_script("comment", "gh api")
    done = run_script(script, tmp_path, GH_REPO="o/r", NUMBER="7", RUN="https://example.org/run/1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines()[-1].endswith(how)
    # Nothing was downloaded here: the job of the plan was killed.
    text = (tmp_path / "plan.md").read_text(encoding="utf-8")
    assert text.startswith(MARKER + "\n")
    assert "[Its log](https://example.org/run/1) says why" in text


@pytest.mark.parametrize(
    ("code", "open_issue", "how"),
    [
        ("3", "", "repos/o/r/issues -f title=work is left -F body=@drift.md"),
        ("3", "12", "-X PATCH repos/o/r/issues/12 -F body=@drift.md"),
        ("1", "12", "-X PATCH repos/o/r/issues/12 -F body=@drift.md"),
        ("0", "12", "-X PATCH repos/o/r/issues/12 -f state=closed"),
        ("0", "", None),
    ],
)
def test_github_opens_updates_and_closes_one_issue(code: str, open_issue: str, how: str | None, tmp_path: Path) -> None:
    fake(tmp_path, "gh", f'case "$*" in *--paginate*) echo "{open_issue}";; esac')
    script = github_script("issue", "gh api")
    done = run_script(script, tmp_path, GH_REPO="o/r", CODE=code, TITLE="work is left")
    assert done.returncode == 0, done.stderr
    search, *rest = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert "repos/o/r/issues?state=open" in search
    assert [call.removeprefix("api --silent ") for call in rest] == [how] * (how is not None)


@pytest.mark.parametrize(("head", "run"), [("abc", "99"), ("", "")])
def test_github_finds_the_run_that_made_the_plan(head: str, run: str, tmp_path: Path) -> None:
    fake(tmp_path, "gh", f'case "$2" in */pulls) echo "{head}";; *head_sha=abc) echo "99";; esac')
    script = github_script("reviewed", "gh api")
    output = tmp_path / "output"
    done = run_script(script, tmp_path, GH_REPO="o/r", GITHUB_SHA="def", GITHUB_OUTPUT=str(output))
    assert done.returncode == 0, done.stderr
    assert output.read_text(encoding="utf-8") == f"run={run}\n"
    assert ("No reviewed plan belongs to this commit" in done.stdout) == (run == "")


def test_gitlab_comments_and_finds_the_plan(tmp_path: Path) -> None:
    notes = json.dumps([{"id": 3, "body": "hello"}, {"id": 5, "body": f"{MARKER}\nold"}])
    fake(tmp_path, "curl", f"case \"$*\" in *notes?per_page=100) echo '{notes}';; esac")
    (comment,) = gitlab_jobs()["comment"]
    environ = {"API": "https://gitlab.example.org/api/v4/projects/1", "MAINTAINER_TOKEN": "t"}
    done = run_script(comment, tmp_path, CI_MERGE_REQUEST_IID="7", CI_PIPELINE_URL="https://example.org/p", **environ)
    assert done.returncode == 0, done.stderr
    last = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()[-1]
    assert last.endswith(
        "-X PUT --data-urlencode body@plan.md https://gitlab.example.org/api/v4/projects/1/merge_requests/7/notes/5"
    )
    answers = "\n".join(
        f"*{end}) echo '{json.dumps(rows)}';;"
        for end, rows in (
            ("/merge_requests", [{"iid": 7}]),
            ("/merge_requests/7/pipelines", [{"id": 12}, {"id": 11}]),
            ("/pipelines/12/jobs", [{"id": 1, "name": "check"}, {"id": 2, "name": "plan"}]),
            ("/jobs/2/artifacts/plan.json", {"this": "plan"}),
        )
    )
    fake(tmp_path, "curl", f'case "$*" in\n{answers}\nesac')
    find, apply = gitlab_jobs()["apply"]
    done = run_script(find, tmp_path, CI_COMMIT_SHA="def", **environ)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")) == {"this": "plan"}
    assert apply.startswith("maintainer --env prod apply plan.json")


def test_what_init_writes_leaves_the_plan_out_of_git(tmp_path: Path) -> None:
    for name, text in project_files(UNKNOWN).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    git(tmp_path, "init", "-q")
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    (tmp_path / "plan.md").write_text("", encoding="utf-8")
    git(tmp_path, "add", ".")
    done = subprocess.run(["git", "-C", str(tmp_path), "ls-files"], capture_output=True, text=True, check=True)
    assert not {"plan.json", "plan.md"} & set(done.stdout.split())
    assert load_project(tmp_path, "prod").project.max_plan_age_seconds == 7 * 86_400
