"""Load a project from disk: policies, settings, and the folders that a run uses."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from maintainer.errors import ProjectError
from maintainer.journal.folder.run_folder import PLAN_FILE, run_folders
from maintainer.journal.store.state_access import local_runs_dir, runs_dir_of
from maintainer.model.plan.plan import DIRTY
from maintainer.policy.project.policy_changes import git_output
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import is_uri
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROJECT_FILE
from maintainer.units import count_of


class PolicyProblems(ProjectError):
    """Policy files have errors, so nothing ran. ``loaded`` holds every finding and the text it points at."""

    default_code = "E616"

    def __init__(self, loaded: LoadedProject) -> None:
        self.loaded = loaded
        errors = count_of(len(loaded.errors), "error")
        super().__init__(f"{errors} in the policies; nothing was run", help="maintainer validate")


@dataclass(frozen=True)
class Project:
    """A loaded project without errors."""

    loaded: LoadedProject
    env: str | None = None

    @staticmethod
    def load(root: str | Path = ".", env: str | None = None, only: str | None = None) -> Project:
        """Read every file of the project; with ``only`` no file that names another table than this one.

        Raises:
            ProjectError: There is no project, or ``env`` does not exist.
            PolicyProblems: At least one file has an error.
        """
        loaded = load_project(Path(root).resolve(), env, only=only)
        if loaded.errors:
            raise PolicyProblems(loaded)
        return Project(loaded, env)

    @property
    def root(self) -> Path:
        """The folder of maintainer.yml."""
        return self.loaded.root

    @property
    def policies(self) -> tuple[ResolvedPolicy, ...]:
        """Effective policies of all tables that a file names, in the order of their identifiers."""
        return self.loaded.resolved()

    @property
    def runs_dir(self) -> Path:
        """The folder of all run folders, with what a run must know of earlier ones; see ``runs_dir_of``."""
        return runs_dir_of(self.loaded.project)

    @property
    def past_runs_dir(self) -> Path:
        """The same folder, with everything that is known of past runs."""
        return runs_dir_of(self.loaded.project, every_run=True)

    @property
    def ledger_location(self) -> str:
        """Where the ledger table is: a path or a URI."""
        return self.loaded.project.ledger

    def git_commit(self) -> str | None:
        """Return the commit that the policies are at, with ``+dirty`` when files differ; None outside a repository."""
        try:
            commit = git_output(self.root, "rev-parse", "HEAD").decode().strip()
            dirty = git_output(self.root, "status", "--porcelain", "--", PROJECT_FILE, POLICY_FOLDER)
        except ProjectError:
            return None
        return f"{commit}{DIRTY}" if dirty else commit


def records_elsewhere(project: Project) -> Iterator[str]:
    """Say in a line each where other environments keep their runs, if none that changes tables is recorded in this one.

    A store is not asked whether there are any.
    """
    settings = project.loaded.project
    if any((folder.path / PLAN_FILE).is_file() for folder in run_folders(project.past_runs_dir)):
        return
    for env in (None, *settings.environments):
        other = settings if env == project.env else load_project(project.root, env, keeps_policies=False).project
        if other.state == settings.state:
            continue
        whose, look = (f"environment {env}", f"--env {env}") if env else ("the project without --env", "no --env")
        if is_uri(other.state):
            yield f"{whose} keeps its runs on {other.state}: {look} shows them"
        elif runs := run_folders(local_runs_dir(other)):
            yield f"{whose} has {count_of(len(runs), 'run')}: {look} shows them"


def describe_selection(select: Sequence[str], exclude: Sequence[str]) -> tuple[str, ...]:
    """Return the selection as a plan records it."""
    return (*select, *(f"-{spec}" for spec in exclude))


def local_zone() -> datetime.tzinfo:
    """Return the zone of this machine: times in text are local, times in JSON are UTC."""
    return datetime.datetime.now().astimezone().tzinfo or datetime.UTC
