"""Name what differs in the files that many tables share: maintainer.yml, rules and profiles.

Files are compared as they are written. What an environment variable puts into maintainer.yml is not looked at: it may
be a secret, and it is no change of the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.resolve.merge import SETTING_KEYS
from maintainer.policy.resolve.policy_values import NOT_SET
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.schema.schema_check import DocumentKind, kind_of
from maintainer.policy.schema.schema_keys import written
from maintainer.policy.yaml.discovery import PROJECT_FILE, ProjectFiles
from maintainer.policy.yaml.table_line import table_in_first_lines
from maintainer.policy.yaml.yaml_reader import display_path, read_bytes, read_text

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
