"""The command: its words, its document, its exit codes. Spark is not started here."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from maintainer.cli.main import run
from tests.support.http_receiver import http_receiver
from tests.support.stores.s3_server import S3Server, s3_server


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def doctor(folder: Path, *arguments: str, **env: str) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patches, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
    ):  # fmt: skip
        patches.chdir(folder)
        for name, value in env.items():
            patches.setenv(name, value)
        code = run(["doctor", *arguments])
    return Done(code, out.getvalue(), err.getvalue())


def doctor_in_a_process(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A process has one client of each store, so what says another thing of a store needs one of its own."""
    return subprocess.run(
        [sys.executable, "-m", "maintainer", "doctor", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_java_11_is_one_line_with_its_fix_and_exit_1(tmp_path: Path) -> None:
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    java = tmp_path / "jdk" / "bin" / "java"
    java.write_text('#!/bin/sh\ncase "$1" in --add*) exit 1;; esac\necho \'openjdk version "11.0.22"\' >&2\n')
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    done = doctor_in_a_process(tmp_path, JAVA_HOME=str(tmp_path / "jdk"))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    [at] = [n for n, line in enumerate(lines) if line.startswith("FAIL  java ")]
    assert "Spark 4 does not run on Java 11" in lines[at]
    assert lines[at].endswith("[E602]")
    assert lines[at + 1].strip().startswith("fix: ")
    assert "Traceback" not in done.stdout + done.stderr
    assert lines[-1].endswith("1 failure")


def test_document_holds_the_same_checks(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--no-spark", "-o", "json", PATH="/nowhere", JAVA_HOME="")
    document = json.loads(done.stdout)
    assert done.stderr == ""
    assert done.returncode == 1
    assert document["format_version"] == "1"
    java = next(check for check in document["checks"] if check["name"] == "java")
    assert (java["status"], java["code"]) == ("FAIL", "E601")
    assert not any(check["name"] == "session" for check in document["checks"])


def test_policies_with_errors_are_a_finding_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text("version: 1\ntable: ./t\noptimise: {}\n")
    done = doctor(tmp_path, "--no-spark")
    assert done.returncode == 1
    assert "fix: maintainer validate" in done.stdout
    assert "ok    python" in done.stdout


def test_missing_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text("version: 1\ntable: ./lake/t\n")
    done = doctor(tmp_path, "--no-spark")
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert line.split(maxsplit=2) == ["FAIL", "table", f"{tmp_path}/lake/t does not exist"]


def test_the_run_folder_that_the_project_names_is_tried(tmp_path: Path) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\nstate: ${env:STATE}\n")
    (tmp_path / "kept").mkdir()
    (tmp_path / "file").write_text("no folder")

    def run_folder(state: str) -> tuple[str, str]:
        done = doctor(tmp_path, "--no-spark", "-o", "json", STATE=str(tmp_path / state))
        check = next(check for check in json.loads(done.stdout)["checks"] if check["name"] == "run folder")
        return check["status"], check["detail"]

    assert run_folder("kept") == ("ok", f"{tmp_path}/kept/runs can be written")
    assert run_folder("file") == ("FAIL", f"{tmp_path}/file cannot be written: Not a directory")


KEYS = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


def state_on(server: S3Server, folder: Path, bucket: str = "lake", **other: str) -> dict[str, Any]:
    """What doctor says of a state on a server, and that it looks at the rest all the same."""
    (folder / "maintainer.yml").write_text(f"version: 1\nstate: s3://{bucket}/_maintainer\n")
    home = str(folder / "home")
    keys = {**KEYS, **other}
    endpoint = {"AWS_ENDPOINT_URL": server.url, "MAINTAINER_HOME": home}
    done = doctor_in_a_process(folder, "--no-spark", "-o", "json", **endpoint, **keys)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["run folder"]["status"] == "ok"
    assert home in checks["run folder"]["detail"]
    assert (checks["state"]["status"] == "ok") or done.returncode == 1
    state: dict[str, Any] = checks["state"]
    return state


def test_a_state_on_a_store_is_tried(tmp_path: Path) -> None:
    with s3_server("lake") as server:
        good = state_on(server, tmp_path)
        assert (good["status"], good["code"]) == ("ok", None)
        assert good["detail"].startswith("s3://lake/_maintainer can be listed, read and written")
        missing = state_on(server, tmp_path, "elsewhere")
        assert (missing["status"], missing["code"]) == ("FAIL", "E683")
        assert missing["fix"] == "make the bucket or container, or correct `state:` in maintainer.yml"
        refused = state_on(server, tmp_path, AWS_SECRET_ACCESS_KEY="planted")
        assert (refused["status"], refused["code"]) == ("FAIL", "E682")
        assert "planted" not in refused["detail"]
    gone = state_on(server, tmp_path)
    assert (gone["status"], gone["code"]) == ("FAIL", "E681")
    assert gone["fix"].startswith("check the endpoint, `path.style.access` and the network")


def test_a_setting_that_only_hadoop_knows_is_said_to_have_no_effect_on_the_state(tmp_path: Path) -> None:
    """Spark would write each object with an access list; the state has none, and no error shows it."""
    with s3_server("lake") as server:
        (tmp_path / "maintainer.yml").write_text(
            "version: 1\nstate: s3://lake/_maintainer\nspark:\n  conf:\n"
            "    spark.hadoop.fs.s3a.bucket.lake.acl.default: Private\n"
        )
        environment = {**KEYS, "AWS_ENDPOINT_URL": server.url, "MAINTAINER_HOME": str(tmp_path / "home")}
        done = doctor_in_a_process(tmp_path, "--no-spark", "-o", "json", **environment)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, checks["state"]["status"], checks["state settings"]["status"]) == (0, "ok", "warn")
    assert "spark.hadoop.fs.s3a.bucket.lake.acl.default" in checks["state settings"]["detail"]


def test_a_store_that_ignores_conditions_is_no_place_for_a_state(tmp_path: Path) -> None:
    with s3_server("lake", keeps_conditions=False) as server:
        ignoring = state_on(server, tmp_path)
    assert (ignoring["status"], ignoring["code"]) == ("FAIL", "E684")
    assert "a second write replaced what a first one had made" in ignoring["detail"]


def test_tables_that_rules_manage_are_checked_like_others(tmp_path: Path) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\nroots: [lake, gone]\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/rule.yml").write_text('version: 1\nmatch: {tables: ["*"]}\nmanage: true\n')
    for name, commit in (("good", "00000000000000000000.json"), ("empty", "note.txt")):
        log = tmp_path / "lake" / name / "_delta_log"
        log.mkdir(parents=True)
        (log / commit).write_text("{}")
    lines = [" ".join(line.split()) for line in doctor(tmp_path, "--no-spark").stdout.splitlines()]
    assert "ok tables of rules 2 tables by 1 rule" in lines
    assert any(line.startswith("FAIL tables of ./gone ") and line.endswith("[E645]") for line in lines)
    assert "ok tables 1 of 2 on local paths can be read" in lines
    assert any(line.startswith("FAIL table ") and "empty/_delta_log holds no commit" in line for line in lines)


def test_places_on_other_storage_are_left_to_a_session_and_an_empty_list_is_said(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/rule.yml").write_text('version: 1\nmatch: {tables: ["*"]}\nmanage: true\n')
    said = {}
    for roots in ('["s3://b/lake"]', "[]"):
        (tmp_path / "maintainer.yml").write_text(f"version: 1\nroots: {roots}\n")
        checks = json.loads(doctor(tmp_path, "--no-spark", "-o", "json").stdout)["checks"]
        said[roots] = [(check["status"], check["detail"]) for check in checks if check["name"] == "tables of rules"]
    assert said == {
        '["s3://b/lake"]': [("ok", "not looked for: that needs a session (1 rule)")],
        "[]": [("warn", "`roots` in maintainer.yml is empty, so no table is managed")],
    }


def test_a_test_message_is_sent_when_asked_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "maintainer.yml").write_text('version: 1\nnotify: {url: "${env:HOOK:-}", on: [failure]}\n')

    def notified(hook: str) -> tuple[int, dict[str, Any]]:
        done = doctor(tmp_path, "--no-spark", "--notify", "-o", "json", HOOK=hook)
        assert "planted" not in done.stdout + done.stderr
        return done.returncode, next(one for one in json.loads(done.stdout)["checks"] if one["name"] == "notify")

    with http_receiver((200, 404)) as receiver:
        hook = f"{receiver.url}/planted"
        doctor(tmp_path, "--no-spark", HOOK=hook)
        assert receiver.posts == []
        _, taken = notified(hook)
        ((path, _, body),) = receiver.posts
        refused_code, refused = notified(hook)
    assert (path, taken["status"]) == ("/planted", "ok")
    message = json.loads(body)
    assert (message["event"], message["num_tables"], message["exit_code"]) == ("test", 0, None)
    assert message["text"].endswith("this is a test by `maintainer doctor --notify`. Nothing failed.")
    assert (refused_code, refused["status"], refused["code"]) == (1, "FAIL", "E657")
    assert refused["detail"] == "the test message to http://127.0.0.1 was not taken: HTTP 404"
    code, missing = notified("")
    assert (code, missing["status"]) == (1, "FAIL")
    assert "no address to send a test message to" in missing["detail"]
