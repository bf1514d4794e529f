"""Compare two states of a project: which tables are added or removed, and which effective values differ.

The state at a git commit is read with ``git archive`` into a temporary folder and loaded as a project of its own, then
compared by digest. A changed rule therefore selects every table it reaches, and a moved file or a new comment selects
none.

In the files that many tables share (maintainer.yml, rules, profiles) what is written is compared. Values that come from
environment variables are not: they may be secrets, and are no change of the commit.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from maintainer.errors import NoEnvironment, NoProject, ProjectError
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.policy.resolve.merge import SETTING_KEYS
from maintainer.policy.resolve.resolved import (
    BUILT_IN,
    NOT_SET,
    ResolvedPolicy,
    ValueChange,
    policy_values,
    value_changes,
)
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.schema.schema_keys import written
from maintainer.policy.table_names import name_key
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROJECT_FILE, ProjectFiles, find_files, table_in_first_lines
from maintainer.policy.yaml.yaml_reader import display_path, read_bytes, read_text
from maintainer.units import count_of, format_duration, format_size

GIT_TIMEOUT_SECONDS = 60
MAX_ARCHIVE_BYTES = 512 * 1024 * 1024

NOTHING_DELETED = "nothing was deleted"
"""What stands for a retention where there was no vacuum."""

DEFAULTS = "with defaults"
"""The value of a map in which nobody wrote a key: ``vacuum: {}``."""

_MEMBERS = ("properties.", "consumers.", "verify.expectations.")
"""Keys whose members have names of their own. Members have no default; their origin is that of the whole list."""


def modified_tables(project: LoadedProject, ref: str) -> frozenset[str]:
    """Return the identifiers of tables whose effective policy differs from the one at a git commit.

    A table that had no policy then counts as modified.

    Args:
        project: The project as it is now.
        ref: A commit, branch or tag.

    Raises:
        ProjectError: E625 no git, no repository, no such commit; E626 the policies of that commit have errors.
    """
    before = {name_key(policy.table): policy.digest for policy in policies_at(project, ref)}
    return frozenset(
        policy.table.identifier for policy in project.resolved() if before.get(name_key(policy.table)) != policy.digest
    )


def policies_at(project: LoadedProject, ref: str) -> tuple[ResolvedPolicy, ...]:
    """Return the effective policies of the project as it was at a git commit; none where it did not exist yet.

    Args:
        project: The project as it is now.
        ref: A commit, branch or tag.

    Raises:
        ProjectError: E625 no git, no repository, no such commit; E626 the policies of that commit have errors.
    """
    with _at_commit(project.root, ref) as old_root:
        return _policies_in(project, old_root, ref)


def shared_values_at(project: LoadedProject, ref: str) -> SharedValues:
    """Return what the files that many tables share said at a git commit; nothing where there was no project yet.

    Raises:
        ProjectError: E625 no git, no repository, no such commit.
    """
    with _at_commit(project.root, ref) as old_root:
        there = any((old_root / name).exists() for name in (PROJECT_FILE, POLICY_FOLDER))
        return shared_values(find_files(old_root), old_root) if there else {}


def _policies_in(project: LoadedProject, old_root: Path, ref: str) -> tuple[ResolvedPolicy, ...]:
    env = project.project.environment
    try:
        old = load_project(old_root, env, paths_from=project.root)
    except NoProject:
        return ()  # there was none yet: everything is new
    except NoEnvironment:
        old = load_project(old_root, paths_from=project.root)  # it is new
    if errors := old.errors:
        help = "compare with a commit whose policies are valid"
        message = f"the policies at `{ref}` have errors, so nothing can be compared with them: {errors[0].message}"
        raise ProjectError(message, code="E626", where=f"{ref}:{errors[0].file}:{errors[0].span.line}", help=help)
    # Tables that rules manage are compared by what is there now: how they were then, nobody knows.
    return replace(old, search=project.search).resolved()


@contextmanager
def _at_commit(root: Path, ref: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="maintainer-since-") as folder:
        _extract(root, ref, Path(folder))
        yield Path(folder)


def _extract(root: Path, ref: str, target: Path) -> None:
    if not ref or ref.startswith("-"):
        raise _git_error(f"`{ref}` is not a git commit", ref)
    commit = git_output(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", ref=ref)
    listed = git_output(root, "ls-tree", "-z", "--name-only", commit.decode().strip(), ref=ref)
    wanted = [name for name in listed.decode().split("\0") if name in (PROJECT_FILE, POLICY_FOLDER)]
    if not wanted:
        return
    archive = git_output(root, "archive", "--format=tar", commit.decode().strip(), "--", *wanted, ref=ref)
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


def git_output(root: Path, *arguments: str, ref: str = "HEAD") -> bytes:
    """Return what git prints.

    Raises:
        ProjectError: E625, git is not there or refuses; ``ref`` is what it was asked about.
    """
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(root), *arguments],
            capture_output=True,
            timeout=GIT_TIMEOUT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        is_there = not isinstance(error, FileNotFoundError)
        what = f"git cannot be run: {error.strerror}" if is_there else "git is not installed"
        raise _git_error(what, ref, "install git, or leave out what compares with a commit") from error
    except subprocess.TimeoutExpired as error:
        raise _git_error(f"git did not answer in {GIT_TIMEOUT_SECONDS} s", ref) from error
    if done.returncode != 0:
        reason, *advice = done.stderr.decode(errors="replace").strip().splitlines() or [f"there is no commit `{ref}`"]
        # What git advises, such as the line that trusts a repository of somebody else.
        raise _git_error(reason.removeprefix("fatal: "), ref, " ".join(" ".join(advice).split()) or None)
    return done.stdout


def _git_error(what: str, ref: str, help: str | None = None) -> ProjectError:
    known = "name a commit, branch or tag of this repository; in CI fetch the whole history (`fetch-depth: 0`)"
    return ProjectError(what, code="E625", found=ref, help=help or known)


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table whose effective policy differs."""

    table: str
    policy_file: str
    values: tuple[ValueChange, ...]
    shorter_retention: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PolicyWork:
    """A policy that only one of the two states has, and what it asks for in words, in the order of the steps."""

    table: str
    policy_file: str
    work: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicyChanges:
    """What differs between two states of a project; each list by table."""

    added: tuple[PolicyWork, ...]
    removed: tuple[PolicyWork, ...]
    changed: tuple[TableChange, ...]

    @property
    def any(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def policy_changes(before: Sequence[ResolvedPolicy], now: Sequence[ResolvedPolicy]) -> PolicyChanges:
    """Compare effective policies; a table is the same under another spelling of its path.

    Args:
        before: As they were.
        now: As they are.
    """
    old = {name_key(policy.table): policy for policy in before}
    new = {name_key(policy.table): policy for policy in now}
    changed = [
        TableChange(policy.table.identifier, policy.file, values, _shorter(old[key], policy))
        for key, policy in new.items()
        if key in old and old[key].digest != policy.digest and (values := _values(old[key], policy))
    ]
    return PolicyChanges(
        added=_only_in(new, old),
        removed=_only_in(old, new),
        changed=tuple(sorted(changed, key=lambda change: change.table)),
    )


def _values(before: ResolvedPolicy, now: ResolvedPolicy) -> tuple[ValueChange, ...]:
    """Name every value that differs. Defaults that come or go with the map around them are named as this map.

    They stay unnamed where somebody wrote another key of the map: that key shows that the map came or went.
    """
    shown: list[ValueChange] = []
    maps: dict[str, ValueChange] = {}
    for change in value_changes(policy_values(before), policy_values(now)):
        comes = change.before == NOT_SET and _is_default(now, change.key)
        goes = change.now == NOT_SET and _is_default(before, change.key)
        if comes or goes:
            name = change.key.rpartition(".")[0]
            maps[name] = ValueChange(name, NOT_SET, DEFAULTS) if comes else ValueChange(name, DEFAULTS, NOT_SET)
        else:
            shown.append(change)
    written = tuple(change.key for change in shown)
    unwritten = (
        change for name, change in maps.items() if not any(f"{key}.".startswith(f"{name}.") for key in written)
    )
    return tuple(sorted((*shown, *unwritten), key=lambda change: change.key))


def _is_default(policy: ResolvedPolicy, key: str) -> bool:
    """Return whether nobody wrote this key: it has its default, perhaps because of a map that is there."""
    if "." not in key or " from " in key or key.startswith(_MEMBERS):
        return False
    return policy.origins.get(key, BUILT_IN) == BUILT_IN


def _only_in(these: Mapping[str, ResolvedPolicy], others: Mapping[str, ResolvedPolicy]) -> tuple[PolicyWork, ...]:
    rest = (policy for key, policy in these.items() if key not in others)
    work = (PolicyWork(policy.table.identifier, policy.file, work_of(policy)) for policy in rest)
    return tuple(sorted(work, key=lambda entry: entry.table))


def work_of(policy: ResolvedPolicy) -> tuple[str, ...]:
    """Say what a policy asks for, in the order in which it is done: what begins with it, and what ends without it."""
    optimize, vacuum = policy.optimize, policy.vacuum
    work = [count_of(len(policy.properties), "table property", "table properties")] if policy.properties else []
    if policy.auto_compact is not None:
        work.append(f"auto compaction {'on' if policy.auto_compact.enabled else 'off'}")
    if optimize.zorder is not None:
        work.append(f"Z-order by {', '.join(optimize.zorder.columns)}")
    elif optimize.rewrite is not None:
        work.append("partitions in files of a number or size")
    else:
        work.append(f"compaction of files under {format_size(optimize.min_file_size_bytes)}")
    if optimize.purge is not None:
        work.append("purge of deleted rows and dropped columns")
    if vacuum is not None:
        work.append(f"vacuum with retention {format_duration(vacuum.retention_seconds)}")
    if policy.verify.expectations:
        work.append(f"{count_of(len(policy.verify.expectations), 'expectation')} after each change")
    return tuple(work)


def _shorter(before: ResolvedPolicy, now: ResolvedPolicy) -> tuple[str, str] | None:
    for least in sorted({0, *(least for policy in (before, now) for least, _ in policy.sizes)}):
        old, new = before.of_size(least).vacuum, now.of_size(least).vacuum
        if new is not None and (old is None or old.retention_seconds > new.retention_seconds):
            was = NOTHING_DELETED if old is None else format_duration(old.retention_seconds)
            return was, format_duration(new.retention_seconds)
    return None


SharedValues = Mapping[str, Mapping[str, str]]
"""Of each shared file its dotted keys with their values, as YAML has them."""

_SILENT = frozenset({"version", "description"})


@dataclass(frozen=True, slots=True)
class SharedChange:
    """A key of a shared file that differs. ``num_tables`` take something from there; None: it is about whole runs."""

    file: str
    key: str
    before: str
    now: str
    num_tables: int | None


def shared_values(files: ProjectFiles, root: Path) -> SharedValues:
    """Read the files that many tables share; one that cannot be read is left out.

    Args:
        files: All files of a project.
        root: Where they are.
    """
    values: dict[str, Mapping[str, str]] = {}
    project_file = () if files.project_file is None else (files.project_file,)
    for path in (*project_file, *files.policies, *files.profiles):
        content = read_bytes(path, root)
        if isinstance(content, Diagnostic) or table_in_first_lines(content) is not None:
            continue
        document, _ = read_text(content, display_path(path, root))
        if document is not None and kind_of(document) is not DocumentKind.POLICY:
            values[document.file] = {key: value for key, value in _leaves(document.data) if key not in _SILENT}
    return values


def shared_changes(
    before: SharedValues, now: SharedValues, old: Sequence[ResolvedPolicy], new: Sequence[ResolvedPolicy]
) -> tuple[SharedChange, ...]:
    """Compare two states of the shared files, and count the tables that take the changed values.

    Args:
        before: As they were.
        now: As they are.
        old: The effective policies as they were: what a value that is gone reached.
        new: The effective policies as they are.
    """
    changes = []
    for file in sorted({*before, *now}):
        values, values_now = before.get(file, {}), now.get(file, {})
        for key in sorted({*values, *values_now}):
            if values.get(key) != values_now.get(key):
                reached = _reached(file, key, new if key in values_now else old)
                pair = values.get(key, NOT_SET), values_now.get(key, NOT_SET)
                changes.append(SharedChange(file, key, *pair, reached))
    return tuple(changes)


def _leaves(data: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, dict) and data:
        for name, inner in data.items():
            yield from _leaves(inner, f"{key}.{name}" if key else str(name))
    elif data is not None:
        yield key, written(data)


def _reached(file: str, key: str, policies: Iterable[ResolvedPolicy]) -> int | None:
    setting = _setting(file, key)
    if setting is None and file == PROJECT_FILE:
        return None
    # Which tables a rule reaches, and tags, which add up, show in no value alone: any value of the file counts.
    whole_file = setting in (None, "tags")
    return sum(
        any(origin.file == file and (whole_file or name == setting) for name, origin in policy.origins.items())
        for policy in policies
    )


def _setting(file: str, key: str) -> str | None:
    """Return the key of a table's policy that a key of a shared file sets; None for any other key."""
    parts = key.split(".")
    if file == PROJECT_FILE:
        of_environment = parts[0] == "environments" and parts[2:3] == ["overrides"]
        parts = parts[3:] if of_environment else parts[1:] if parts[0] == "defaults" else []
    return ".".join(parts) if parts and parts[0] in SETTING_KEYS else None
