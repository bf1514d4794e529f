"""The loop of a pull request by the scripts of the workflow: plan on a branch, comment, merge, apply that plan.

And the commands of every other file under examples/, on a table that another engine made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest

from tests.support.policies.example_commands import (
    EXAMPLES,
    emr_arguments,
    example_commands,
    github_script,
    json_example,
)
from tests.support.policies.projects import git, write_project
from tests.support.product import job, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROWS = 400


def small_files(table: Path) -> None:
    for number in range(8):
        ids = list(range(number * 50, (number + 1) * 50))
        deltalake.write_deltalake(str(table), pa.table({"id": ids, "k": [value % 7 for value in ids]}), mode="append")


def files_and_ids(table: Path) -> tuple[int, list[int]]:
    read = deltalake.DeltaTable(str(table))
    return len(read.file_uris()), sorted(read.to_pyarrow_table()["id"].to_pylist())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with three tables, two of them with a policy, and one that comes with a later release."""
    for name in ("orders", "events"):
        small_files(tmp_path / "lake" / name)
    root = tmp_path / "project"
    write_project(
        root,
        {
            "maintainer.yml": "environments: {prod: {}}\nstate: .maintainer\n",
            ".gitignore": ".maintainer/\nplan.json\nplan.md\n",
            "policies/orders.yml": f"table: {tmp_path}/lake/orders\ntags: [nightly]\nvacuum: {{retention: 14d}}\n",
            "policies/events.yml": f"table: {tmp_path}/lake/events\ntags: [nightly]\nsuspend: {{reason: later}}\n",
        },
    )
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "base")
    return root


def script(text: str, project: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    summary = {"PATH": path, "GITHUB_STEP_SUMMARY": str(project.parent / "summary.md")}
    summary["GITHUB_OUTPUT"] = str(project.parent / "output.txt")
    return subprocess.run(
        ["bash", "-e", "-c", text], cwd=project, env={**os.environ, **summary, **environ}, capture_output=True,
        text=True, timeout=550, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_what_was_reviewed_is_applied_after_the_merge(project: Path) -> None:
    lake = project.parent / "lake"
    git(project, "checkout", "-q", "-b", "change")
    write_project(
        project,
        {
            "policies/orders.yml": f"table: {lake}/orders\ntags: [nightly, gold]\nvacuum: {{retention: 8d}}\n",
            "policies/new.yml": f"table: {lake}/not_yet\n",
        },
    )
    git(project, "rm", "-q", "policies/events.yml")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "change")
    done = script(github_script("plan", "maintainer --env"), project, BASE="main")
    assert done.returncode == 0, done.stderr
    comment = (project / "plan.md").read_text(encoding="utf-8").splitlines()
    orders = f"`{lake}/orders`"
    assert f"| {orders} | `vacuum.retention` | `14d` | `8d` |" in comment
    assert f"| {orders} | `tags` | `nightly` | `nightly, gold` |" in comment
    assert any(line.startswith(f"| `{lake}/events` | `policies/events.yml` | compaction ") for line in comment)
    assert any(line.startswith(f"| . | `{lake}/not_yet` | left alone | ") for line in comment)
    assert any(line.startswith(f"| + | {orders} | compact | 8 files, ") for line in comment)
    assert (project.parent / "summary.md").read_text(encoding="utf-8").splitlines() == comment
    planned = (project / "plan.json").read_bytes()

    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "--no-ff", "-m", "merge", "change")
    deltalake.write_deltalake(str(lake / "orders"), pa.table({"id": [ROWS], "k": [0]}), mode="append")
    done = script(github_script("apply", "plan.json"), project)
    assert done.returncode == 0, done.stdout + done.stderr
    name, _, folder = (project.parent / "output.txt").read_text(encoding="utf-8").strip().partition("=")
    assert (name, {"results.json", "report.html"} <= {path.name for path in Path(folder).iterdir()}) == (
        "run-folder",
        True,
    )
    # The eight files of the plan became one; the row that came after it lies in a file of its own.
    assert files_and_ids(lake / "orders") == (2, list(range(ROWS + 1)))
    assert files_and_ids(lake / "events")[0] == 8
    assert (project / "plan.json").read_bytes() == planned


def test_a_policy_that_changed_after_the_review_is_refused_by_name_and_value(
    spark: SparkSession, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert run(["--env", "prod", "plan", "--out", "plan.json"]) == 0
    policy = project / "policies" / "orders.yml"
    policy.write_text(policy.read_text(encoding="utf-8").replace("14d", "7d"), encoding="utf-8")
    capsys.readouterr()
    assert run(["--env", "prod", "apply", "plan.json"]) == 4
    shown = "".join(capsys.readouterr())
    assert "policy key vacuum.retention was 14d, now 7d" in " ".join(shown.split())
    assert "sha256" not in shown
    assert files_and_ids(project.parent / "lake" / "orders")[0] == 8


APPLIES = {
    place: arguments
    for place, arguments in example_commands().items()
    if "apply" in arguments and "plan.json" not in arguments and place != "emr"
}


@pytest.fixture
def at(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project)
    monkeypatch.setenv("MAINTAINER_STATE", str(project / ".maintainer"))
    return project


def here(arguments: list[str], project: Path) -> list[str]:
    return [str(project) if word in ("/opt/lake-policies", "/Workspace/lake-policies") else word for word in arguments]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", APPLIES)
def test_each_command_applies(place: str, spark: SparkSession, at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = here(APPLIES[place], at)
    if place == "databricks":
        monkeypatch.setattr(sys, "argv", ["maintainer-job", *arguments])
        job()
    else:
        assert run(arguments) == 0
    assert files_and_ids(at.parent / "lake" / "orders") == (1, list(range(ROWS)))


@pytest.mark.long
def test_the_job_of_emr_by_spark_submit(project: Path) -> None:
    import pyspark

    from tests.support.product import jar_folder

    jars = [str(path) for path in sorted(jar_folder().glob("*.jar"))]
    spark_submit = Path(pyspark.__path__[0]) / "bin" / "spark-submit"
    submitted = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    parameters = json_example("emr_serverless_job.json")["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"]
    done = subprocess.run(
        [str(spark_submit), "--master", "local[2]", "--jars", ",".join(jars), "--driver-class-path", ":".join(jars),
         *parameters.split(), str(EXAMPLES / "emr_entry.py"), *here(emr_arguments(), project)],
        cwd=project, env=submitted, capture_output=True, text=True, timeout=550, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert files_and_ids(project.parent / "lake" / "orders") == (1, list(range(ROWS)))


@pytest.mark.sampled(1)
def test_the_image_shows_a_plan_by_default(spark: SparkSession, at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(example_commands()["docker build"]) == 0
    assert run(example_commands()["docker run"]) == 0
    assert "1 table to change" in capsys.readouterr().out
    assert files_and_ids(at.parent / "lake" / "orders")[0] == 8
