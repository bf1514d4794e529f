"""Every script of the GitHub workflow, the GitLab pipeline and the cron line, run as their machines run them.

The repository is a local one, the tables and the state lie on an S3 server. ``gh`` is a stand-in that answers from a
file and takes its `--jq` to jq; GitLab's API is a small server. `pip install` is the one command that is left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from tests.support.policies.example_commands import EXAMPLES, github_jobs
from tests.support.policies.projects import git
from tests.support.product import run
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.s3_projects import ENVIRONMENT, SETTINGS, S3Project
from tests.support.stores.s3_server import S3Server, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")]

PAGE = EXAMPLES.parent / "docs" / "s3-in-fifteen-minutes.md"
GH = """\
#!{python}
import json, os, subprocess, sys
words, call, jq = sys.argv[2:], {{"method": "GET", "fields": {{}}}}, None
while words:
    word = words.pop(0)
    if word == "-X":
        call["method"] = words.pop(0)
    elif word == "--jq":
        jq = words.pop(0)
    elif word in ("-f", "-F"):
        key, _, value = words.pop(0).partition("=")
        call["fields"][key] = open(value[1:]).read() if word == "-F" and value.startswith("@") else value
        call["method"] = "POST" if call["method"] == "GET" else call["method"]
    elif not word.startswith("--"):
        call["path"] = word
if call["method"] == "GET":
    answer = json.loads(open(os.environ["GH_ANSWERS"]).read())[call["path"]]
    sys.exit(subprocess.run(["jq", "-r", jq], input=json.dumps(answer), text=True).returncode)
with open(os.environ["GH_CALLS"], "a") as calls:
    calls.write(json.dumps(call) + "\\n")
"""
BOT = {"login": "github-actions[bot]"}


class Machine:
    """A checkout of the project's repository, and what its jobs find in their environment."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.folder, self.checkout, programs = folder, folder / "lake-policies", folder / "programs"
        self.lake = S3Project(self.checkout, server, folder / "home")
        programs.mkdir(parents=True)
        for name, content in {
            "gh": GH.format(python=sys.executable),
            "pip": "#!/bin/sh\nexit 0\n",
            "maintainer": f'#!/bin/sh\nexec {sys.executable} -m maintainer "$@"\n',
        }.items():
            (programs / name).write_text(content)
            (programs / name).chmod(0o755)
        self.env = {
            **os.environ, **ENVIRONMENT, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder),
            "PYTHONPATH": str(EXAMPLES.parent), "MAINTAINER_JARS": folder_with_connector("s3"),
            "MAINTAINER_HOME": str(folder / "home"), "RUNNER_TEMP": str(folder / "temp"),
            "CI_BUILDS_DIR": str(folder / "temp"), "GH_ANSWERS": str(folder / "answers.json"),
            "GH_CALLS": str(folder / "calls.jsonl"), "GH_REPO": "ann/lake", "NUMBER": "7", "RUN": "https://run",
            **{f"GITHUB_{name}": str(folder / name.lower()) for name in ("OUTPUT", "STEP_SUMMARY", "PATH")},
        }  # fmt: skip

    def does(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script in the checkout."""
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script], cwd=self.checkout, env={**self.env, **env},
            capture_output=True, text=True, timeout=550, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def passes(self, script: str, **env: str) -> str:
        """Run a script that must end well; returns what it printed."""
        done = self.does(script, **env)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def job(self, name: str, **env: str) -> None:
        """Run all scripts of a job of the workflow, in order."""
        for step in github_jobs()[name]["steps"]:
            if "run" in step:
                self.passes(step["run"], **env)

    def answers(self, **by_path: Any) -> None:
        """Say what ``gh`` is answered."""
        (self.folder / "answers.json").write_text(json.dumps(by_path))

    def calls(self) -> list[dict[str, Any]]:
        """What ``gh`` was told to change since the last look."""
        path = self.folder / "calls.jsonl"
        calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        path.write_text("")
        return calls

    def outputs(self) -> dict[str, str]:
        """What the steps handed on."""
        return dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())

    def num_files(self, name: str) -> int:
        return len(self.lake.table(name).file_uris())


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with s3_server("lake") as server:
        made = Machine(tmp_path, server)
        made.lake.append("orders", 4)
        places = ["--root", "s3://lake/tables", "--state", "s3://lake/_maintainer"]
        assert run(["-q", "init", str(made.checkout), *places]) == 0
        settings, text = made.checkout / "maintainer.yml", SETTINGS.format(url=server.url).partition("\n")[2]
        settings.write_text(settings.read_text() + text)
        git(made.checkout, "init", "-q", "-b", "main")
        git(made.checkout, "add", ".")
        git(made.checkout, "commit", "-q", "-m", "base")
        git(made.checkout, "checkout", "-q", "-b", "change")
        rule = made.checkout / "policies" / "lake.yml"
        rule.write_text(rule.read_text().replace("minSmallFiles: 20", "minSmallFiles: 3"))
        git(made.checkout, "commit", "-q", "-a", "-m", "change")
        yield made


def test_the_jobs_of_the_github_workflow(machine: Machine) -> None:
    names = list(github_jobs())
    assert names == ["check", "plan", "comment", "reviewed", "apply", "nightly", "drift", "issue"]
    action = yaml.safe_load((EXAMPLES / "github-action.yml").read_text())["runs"]["steps"]
    (install,) = [step["run"] for step in action if "run" in step]
    offline = {"PIP_NO_INDEX": "1", "PIP_DRY_RUN": "1"}
    told = machine.does(install.replace("-r requirements.txt 'maintainer[spark]'", "pip"), **offline)
    assert told.returncode == 0, told.stderr
    assert (machine.folder / "path").read_text() == f"{machine.folder}/temp/maintainer/bin\n"

    machine.job("check")
    machine.job("plan", BASE="main")
    comment = (machine.checkout / "plan.md").read_text()
    assert "| + | `s3://lake/tables/orders` | compact | 4 files, " in comment
    assert (machine.folder / "step_summary").read_text().endswith(comment)

    comments = "repos/ann/lake/issues/7/comments"
    machine.answers(**{comments: [{"id": 1, "user": {"login": "ann"}, "body": "<!-- maintainer:plan -->"}]})
    machine.job("comment")
    assert machine.calls() == [{"method": "POST", "fields": {"body": comment}, "path": comments}]
    machine.answers(**{comments: [{"id": 9, "user": BOT, "body": "<!-- maintainer:plan --> old"}]})
    (machine.checkout / "plan.md").unlink()
    machine.job("comment")
    (call,) = machine.calls()
    assert (call["method"], call["path"]) == ("PATCH", "repos/ann/lake/issues/comments/9")
    assert "[Its log](https://run) says why" in call["fields"]["body"]

    runs = "repos/ann/lake/actions/workflows/maintainer.yml/runs?event=pull_request&head_sha=abc"
    pulls = "repos/ann/lake/commits/merged/pulls"
    found = [
        {"id": 41, "head_repository": {"full_name": "eve/fork"}},
        {"id": 42, "head_repository": {"full_name": "ann/lake"}},
    ]
    machine.answers(**{pulls: [{"merge_commit_sha": "merged", "head": {"sha": "abc"}}], runs: {"workflow_runs": found}})
    machine.job("reviewed", GITHUB_SHA="merged")
    assert machine.outputs()["run"] == "42"
    machine.answers(**{pulls: []})
    machine.job("reviewed", GITHUB_SHA="merged")
    assert machine.outputs()["run"] == ""

    machine.job("apply")
    assert (machine.num_files("orders"), Path(machine.outputs()["run-folder"]).is_dir()) == (1, True)
    machine.job("drift")
    assert machine.outputs()["code"] == "0"
    machine.lake.append("orders", 3)
    machine.job("drift")
    assert machine.outputs()["code"] == "3"
    title, issues = "maintainer: work is left after the night", "repos/ann/lake/issues?state=open"
    for code, open_issues, expected in (
        ("3", [{"number": 3, "user": {"login": "ann"}, "title": title}], ("POST", "repos/ann/lake/issues")),
        ("3", [{"number": 5, "user": BOT, "title": title}], ("PATCH", "repos/ann/lake/issues/5")),
        ("0", [{"number": 5, "user": BOT, "title": title}], ("PATCH", "repos/ann/lake/issues/5")),
    ):
        machine.answers(**{issues: open_issues})
        machine.job("issue", CODE=code, TITLE=title)
        (call,) = machine.calls()
        assert (call["method"], call["path"]) == expected
        assert (call["fields"].get("state") == "closed") == (code == "0")
    machine.job("nightly")
    assert machine.num_files("orders") == 1


class GitLab(BaseHTTPRequestHandler):
    """The parts of GitLab's API that the pipeline asks for; ``plan`` is the artifact."""

    notes: list[str]
    plan: bytes

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        answers: dict[str, Any] = {
            "/merge_requests/7/notes": [{"id": 1, "body": "hello"}]
            + [{"id": 2, "body": note} for note in self.notes[-1:]],
            "/repository/commits/merged/merge_requests": [{"iid": 7}],
            "/repository/commits/other/merge_requests": [],
            "/merge_requests/7/pipelines": [{"id": 30}, {"id": 20}],
            "/pipelines/30/jobs": [{"id": 300, "name": "check"}, {"id": 301, "name": "plan"}],
        }
        self._answer(self.plan if path == "/jobs/301/artifacts/plan.json" else json.dumps(answers[path]).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.notes.append(parse_qs(body)["body"][0])
        self._answer(b"{}")

    def do_PUT(self) -> None:
        assert self.path == "/merge_requests/7/notes/2"
        self.do_POST()

    def _answer(self, body: bytes) -> None:
        assert self.headers["PRIVATE-TOKEN"] == "secret"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def gitlab() -> Iterator[tuple[str, type[GitLab]]]:
    handler = type("OneGitLab", (GitLab,), {"notes": [], "plan": b""})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()


def test_the_jobs_of_the_gitlab_pipeline_and_the_cron_line(machine: Machine, gitlab: tuple[str, type[GitLab]]) -> None:
    pipeline = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())
    api, handler = gitlab
    base = subprocess.run(
        ["git", "rev-parse", "main"], cwd=machine.checkout, capture_output=True, text=True, check=True
    ).stdout.strip()
    env = {
        "API": api, "MAINTAINER_TOKEN": "secret", "CI_MERGE_REQUEST_IID": "7", "CI_PIPELINE_URL": "https://p",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
    }  # fmt: skip

    def job(name: str, *, expected: int = 0, **more: str) -> str:
        done = machine.does("\n".join(pipeline[name]["script"]), **env, **more)
        assert done.returncode == expected, f"{name}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    job("check")
    job("plan")
    comment = (machine.checkout / "plan.md").read_text()
    assert "| + | `s3://lake/tables/orders` | compact | 4 files, " in comment
    job("comment")
    job("comment")
    assert handler.notes == [comment, comment]
    handler.plan = (machine.checkout / "plan.json").read_bytes()
    (machine.checkout / "plan.json").unlink()
    assert "No reviewed plan belongs to this commit" in job("apply", CI_COMMIT_SHA="other")
    job("drift", expected=3)
    job("apply", CI_COMMIT_SHA="merged")
    assert machine.num_files("orders") == 1
    (machine.folder / "temp" / "maintainer" / "bin").mkdir(parents=True)
    (machine.folder / "temp" / "maintainer" / "bin" / "maintainer").symlink_to(
        machine.folder / "programs" / "maintainer"
    )
    machine.passes("\n".join(pipeline[".apply"]["after_script"]))
    assert (machine.checkout / "report.html").stat().st_size > 1000
    job("nightly")
    job("drift")

    machine.lake.append("orders", 3)
    (line,) = re.findall(r"^0 1 \* \* \*  (.*)$", PAGE.read_text(), re.M)
    (machine.folder / "maintainer").symlink_to(machine.folder / "temp" / "maintainer")
    machine.passes(line)
    assert machine.num_files("orders") == 1
    assert "1 done" in (machine.checkout / "nightly.log").read_text()
