"""A state that the next run will not see is said before the run, and only where it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.lasting_state import LASTING_FOLDER, lasting_state_problem
from tests.support.policies.projects import write_project

RUN = "20261121T220003Z-7f3a"
NO_MOUNTS = Path("/nonexistent")


def project_at(root: Path, state: str = ".maintainer", env: str | None = None) -> Project:
    files = {"maintainer.yml": f"state: {state}\nenvironments: {{prod: {{}}}}\n", "policies/t.yml": "table: lake/t\n"}
    return Project.load(write_project(root, files), env)


def said(project: Project, environ: dict[str, str], mounts: Path = NO_MOUNTS) -> str | None:
    problem = lasting_state_problem(project, environ, mounts=mounts)
    return None if problem is None else problem.what.partition(": ")[2]


WIPED = "its state is in the checkout of this job, which the next job deletes"


@pytest.mark.parametrize(
    ("system", "checkout"),
    [
        ("GITHUB_ACTIONS", "GITHUB_WORKSPACE"),
        ("GITLAB_CI", "CI_PROJECT_DIR"),
        ("TF_BUILD", "BUILD_SOURCESDIRECTORY"),
        ("JENKINS_URL", "WORKSPACE"),
    ],
)
def test_a_state_in_the_checkout_of_a_job_is_named_with_the_line_to_add(
    tmp_path: Path, system: str, checkout: str
) -> None:
    project = project_at(tmp_path / "checkout", env="prod")
    environ = {system: "true", checkout: str(tmp_path / "checkout")}
    problem = lasting_state_problem(project, environ, mounts=NO_MOUNTS)
    assert problem is not None
    assert (problem.code, problem.where) == ("E680", f"{tmp_path}/checkout/.maintainer")
    assert problem.what.endswith(WIPED)
    assert problem.help is not None
    assert f"under `environments:`, `prod:`: `state: {LASTING_FOLDER}`" in problem.help
    followed = project_at(tmp_path / "checkout", LASTING_FOLDER)
    assert said(followed, environ) is None


def test_a_laptop_hears_nothing(tmp_path: Path) -> None:
    assert said(project_at(tmp_path), {}) is None
    assert said(project_at(tmp_path), {"CI": "true"}) is None, "CI alone says nothing of the place"


def test_a_state_beside_the_checkout_lasts_except_on_a_runner_for_one_job(tmp_path: Path) -> None:
    project = project_at(tmp_path / "checkout", str(tmp_path / "kept"))
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path / "checkout")}
    assert said(project, environ) is None
    assert said(project, {**environ, "RUNNER_ENVIRONMENT": "self-hosted"}) is None
    on_runner = said(project, {**environ, "RUNNER_ENVIRONMENT": "github-hosted"})
    assert on_runner == "its state is on this runner, which exists for one job only"


def test_a_state_that_remembers_a_run_has_lasted(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    environ = {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(tmp_path)}
    assert said(project, environ) == WIPED
    project.runs_dir.mkdir(parents=True)
    assert said(project, environ) == WIPED
    (project.runs_dir / RUN).mkdir()
    assert said(project, environ) is None


def test_a_checkout_reached_by_a_link_is_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    project = project_at(tmp_path / "real")
    assert said(project, {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path / "link")}) == WIPED


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def test_a_pod_whose_state_is_on_no_volume(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    root = "1 0 0:1 / / rw - overlay overlay rw,lowerdir=/a\n"
    project = project_at(tmp_path / "project")
    mounts.write_text(root)
    assert said(project, POD, mounts) == "its state is in the container, not on a volume, and is deleted with it"
    mounts.write_text(f"{root}2 1 8:1 /vol {tmp_path} rw - ext4 /dev/sdb rw\n")
    assert said(project, POD, mounts) is None
    assert said(project, POD) is None, "what cannot be told is not said"


def test_tables_on_a_store_lead_to_a_state_beside_them(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": "",
        "policies/a.yml": "table: lake/t\n",
        "policies/b.yml": "table: s3a://acme-lake/bronze/t\n",
    }
    project = Project.load(write_project(tmp_path, files))
    problem = lasting_state_problem(project, {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(tmp_path)}, mounts=NO_MOUNTS)
    assert problem is not None
    assert problem.help is not None
    assert "`state: s3a://acme-lake/_maintainer`" in problem.help
    assert said(project_at(tmp_path / "other", "s3a://acme-lake/_maintainer"), {"GITHUB_ACTIONS": "true"}) is None
