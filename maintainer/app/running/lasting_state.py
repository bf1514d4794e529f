"""Say before a run when its state will be gone for the next one: a checkout that is wiped, a container's own layer.

It is said only where it shows: a job in CI, or a container, whose state remembers no earlier run. A state that has one
has lasted so far, by a cache that the job restores or because nobody wipes the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from maintainer.app.project_folders import Project
from maintainer.journal.folder.run_folder import run_folders
from maintainer.model.plan.plan import Problem
from maintainer.model.table.store_kinds import STATE_PLACES
from maintainer.policy.table_names import is_uri

NO_LASTING_STATE = "E680"

CHECKOUTS = {
    "GITHUB_ACTIONS": "GITHUB_WORKSPACE",
    "GITLAB_CI": "CI_PROJECT_DIR",
    "TF_BUILD": "BUILD_SOURCESDIRECTORY",
    "JENKINS_URL": "WORKSPACE",
    "BUILDKITE": "BUILDKITE_BUILD_CHECKOUT_PATH",
    "BITBUCKET_BUILD_NUMBER": "BITBUCKET_CLONE_DIR",
}
"""The variable by which each CI system is known, and the one that names its checkout."""

LASTING_FOLDER = "/srv/maintainer"

MOUNTS = Path("/proc/self/mountinfo")
_IN_A_CONTAINER = (Path("/.dockerenv"), Path("/run/.containerenv"))
_CONTAINER_LAYERS = frozenset({"overlay", "aufs"})


def lasting_state_problem(
    project: Project, environ: Mapping[str, str] = os.environ, *, mounts: Path = MOUNTS
) -> Problem | None:
    """Return the warning that the next run will know nothing of this one; None where nothing says so.

    Args:
        project: The project.
        environ: Environment variables.
        mounts: Linux's list of mounts of this process.
    """
    state = project.loaded.project.state
    if is_uri(state):
        return None
    try:
        if run_folders(project.runs_dir):
            return None
    except OSError:
        return None  # opening the run's record says what is wrong
    why = _why_it_goes(Path(os.path.realpath(state)), environ, mounts)
    if why is None:
        return None
    what = f"the next run will not have the records of this one: {why}"
    return Problem(NO_LASTING_STATE, what, state, _help(project))


def _why_it_goes(state: Path, environ: Mapping[str, str], mounts: Path) -> str | None:
    for system, checkout in CHECKOUTS.items():
        if environ.get(system) and environ.get(checkout):
            if state.is_relative_to(os.path.realpath(environ[checkout])):
                return "its state is in the checkout of this job, which the next job deletes"
            break
    if environ.get("RUNNER_ENVIRONMENT") == "github-hosted":
        return "its state is on this runner, which exists for one job only"
    container = "KUBERNETES_SERVICE_HOST" in environ or any(mark.exists() for mark in _IN_A_CONTAINER)
    if container and _file_system(state, mounts) in _CONTAINER_LAYERS:
        return "its state is in the container, not on a volume, and is deleted with it"
    return None


def _file_system(place: Path, mounts: Path) -> str | None:
    """Return the type of the file system that a place is on; None where it cannot be told."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    holding: tuple[int, str] | None = None
    for line in lines:
        # man proc_pid_mountinfo: the fifth field is the mount point, the type follows the lone dash.
        fields, _, rest = line.partition(" - ")
        words, kind = fields.split(), rest.split()
        if len(words) > 4 and kind and place.is_relative_to(words[4].replace("\\040", " ")):
            holding = max(holding or (-1, ""), (len(words[4]), kind[0]))
    return None if holding is None else holding[1]


def _help(project: Project) -> str:
    env = project.env
    line = f"state: {_place(policy.table.location for policy in project.policies)}"
    where = "in maintainer.yml" if env is None else f"in maintainer.yml under `environments:`, `{env}:`"
    return (
        f"each run forgets quarantine, the last rewrite (`every:`) and versions still to be proven; "
        f"name a place that lasts, {where}: `{line}`"
    )


def _place(locations: Iterable[str]) -> str:
    """Return a place for the state: beside the first table on an object store, or a folder of the machine."""
    for location in locations:
        scheme, _, rest = location.partition("://")
        bucket = rest.partition("/")[0]
        if scheme in STATE_PLACES and bucket:
            return f"{scheme}://{bucket}/_maintainer"
    return LASTING_FOLDER
