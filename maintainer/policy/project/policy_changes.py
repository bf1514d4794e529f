"""Compare two states of a project: which tables are added or removed, and which effective values differ.

The state at a git commit is read with ``git archive`` into a temporary folder and loaded as a project of its own,
then compared by digest. A changed rule therefore selects every table it reaches, and a moved file or a new comment
selects none.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from maintainer.errors import ProjectError
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.resolve.policy_fields import written_settings
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import identity
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROJECT_FILE
from maintainer.units import format_duration

GIT_TIMEOUT_SECONDS = 60
MAX_ARCHIVE_BYTES = 512 * 1024 * 1024


def modified_tables(project: LoadedProject, ref: str) -> frozenset[str]:
    """Return the identifiers of tables whose effective policy differs from the one at a git commit.

    A table that had no policy then counts as modified.

    Args:
        project: The project as it is now.
        ref: A commit, branch or tag.

    Raises:
        ProjectError: E625 no git, no repository, no such commit; E626 the policies of that commit have errors.
    """
    before = {identity(policy.table): policy.digest for policy in policies_at(project, ref)}
    return frozenset(
        policy.table.identifier for policy in project.resolved() if before.get(identity(policy.table)) != policy.digest
    )


def policies_at(project: LoadedProject, ref: str) -> tuple[ResolvedPolicy, ...]:
    """Return the effective policies of the project as it was at a git commit; none where it did not exist yet.

    Args:
        project: The project as it is now.
        ref: A commit, branch or tag.

    Raises:
        ProjectError: E625 no git, no repository, no such commit; E626 the policies of that commit have errors.
    """
    with tempfile.TemporaryDirectory(prefix="maintainer-since-") as folder:
        old_root = Path(folder)
        _extract(project.root, ref, old_root)
        return _policies_in(project, old_root, ref)


def _policies_in(project: LoadedProject, old_root: Path, ref: str) -> tuple[ResolvedPolicy, ...]:
    env = project.project.environment
    try:
        old = load_project(old_root, env, paths_from=project.root)
    except ProjectError as error:
        if error.code == "E611":
            return ()  # there was no project yet: everything is new
        if error.code != "E627":
            raise
        old = load_project(old_root, paths_from=project.root)  # the environment is new
    errors = [finding for finding in old.diagnostics if finding.is_error]
    if errors:
        raise ProjectError(
            f"the policies at `{ref}` have errors, so nothing can be compared with them: {errors[0].message}",
            code="E626",
            where=f"{ref}:{errors[0].file}:{errors[0].span.line}",
            help="compare with a commit whose policies are valid",
        )
    return tuple(old.resolved())


def _extract(root: Path, ref: str, target: Path) -> None:
    if not ref or ref.startswith("-"):
        raise _git_error(f"`{ref}` is not a git commit", ref)
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", ref=ref)
    listed = _git(root, "ls-tree", "-z", "--name-only", commit.decode().strip(), ref=ref)
    wanted = [name for name in listed.decode().split("\0") if name in (PROJECT_FILE, POLICY_FOLDER)]
    if not wanted:
        return
    archive = _git(root, "archive", "--format=tar", commit.decode().strip(), "--", *wanted, ref=ref)
    if len(archive) > MAX_ARCHIVE_BYTES:
        raise _git_error("the policies of that commit are larger than 512 MiB", ref)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            if not member.isfile() or name.is_absolute() or ".." in name.parts:
                continue  # links are not followed in a project, so they are not made here either
            content = tar.extractfile(member)
            assert content is not None  # only of what is no file
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())


def _git(root: Path, *arguments: str, ref: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(root), *arguments],
            capture_output=True,
            timeout=GIT_TIMEOUT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise _git_error("git is not installed", ref) from error
    except subprocess.TimeoutExpired as error:
        raise _git_error(f"git did not answer in {GIT_TIMEOUT_SECONDS} s", ref) from error
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        what = reason[0].removeprefix("fatal: ") if reason else f"there is no commit `{ref}`"
        raise _git_error(what, ref)
    return done.stdout


def _git_error(what: str, ref: str) -> ProjectError:
    return ProjectError(
        what,
        code="E625",
        found=f"--since {ref}",
        help="name a commit, branch or tag of this repository; in CI fetch the whole history (`fetch-depth: 0`)",
    )


NOT_SET = "not set"

_SILENT = frozenset({"table", "file", "digest", "origins", "description"})
"""Keys that change nothing about what is done to a table."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One effective value, as a policy file spells its key; values in words."""

    key: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table whose effective policy differs."""

    table: str
    policy_file: str
    values: tuple[ValueChange, ...]
    shorter_retention: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PolicyChanges:
    """What differs between two states of a project; each list by table."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[TableChange, ...]

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


def policy_changes(before: Sequence[ResolvedPolicy], now: Sequence[ResolvedPolicy]) -> PolicyChanges:
    """Compare effective policies; a table is the same under another spelling of its path.

    Args:
        before: As they were.
        now: As they are.
    """
    old = {identity(policy.table): policy for policy in before}
    new = {identity(policy.table): policy for policy in now}
    changed = [
        TableChange(policy.table.identifier, policy.file, values, _shorter(old[key], policy))
        for key, policy in new.items()
        if key in old and old[key].digest != policy.digest and (values := _values(old[key], policy))
    ]
    return PolicyChanges(
        added=tuple(sorted(policy.table.identifier for key, policy in new.items() if key not in old)),
        removed=tuple(sorted(policy.table.identifier for key, policy in old.items() if key not in new)),
        changed=tuple(sorted(changed, key=lambda change: change.table)),
    )


def _shorter(before: ResolvedPolicy, now: ResolvedPolicy) -> tuple[str, str] | None:
    if now.vacuum is None or (before.vacuum and before.vacuum.retention_seconds <= now.vacuum.retention_seconds):
        return None
    was = "nothing was deleted" if before.vacuum is None else format_duration(before.vacuum.retention_seconds)
    return was, format_duration(now.vacuum.retention_seconds)


def _values(before: ResolvedPolicy, now: ResolvedPolicy) -> tuple[ValueChange, ...]:
    old, new = dict(written_settings(before)), dict(written_settings(now))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key) and key.partition(".")[0] not in _SILENT]
    return tuple(ValueChange(key, old.get(key, NOT_SET), new.get(key, NOT_SET)) for key in sorted(keys))
