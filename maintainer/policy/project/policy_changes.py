"""What a change of policy files means for tables: which come in, go out, and which effective values differ. Pure."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.select.table_names import identity
from maintainer.units import format_duration, format_size

NOT_SET = "not set"

_SILENT = frozenset({"table", "file", "digest", "origins", "description"})
"""Fields that change nothing about what is done to a table."""

_CAMEL = re.compile(r"_([a-z])")


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

    came: tuple[str, ...]
    left: tuple[str, ...]
    changed: tuple[TableChange, ...]

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return bool(self.came or self.left or self.changed)


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
        came=tuple(sorted(policy.table.identifier for key, policy in new.items() if key not in old)),
        left=tuple(sorted(policy.table.identifier for key, policy in old.items() if key not in new)),
        changed=tuple(sorted(changed, key=lambda one: one.table)),
    )


def _shorter(before: ResolvedPolicy, now: ResolvedPolicy) -> tuple[str, str] | None:
    """Retention before and now where less is kept: also where nothing was deleted at all before."""
    if now.vacuum is None or (before.vacuum and before.vacuum.retention_seconds <= now.vacuum.retention_seconds):
        return None
    was = "nothing was deleted" if before.vacuum is None else format_duration(before.vacuum.retention_seconds)
    return was, format_duration(now.vacuum.retention_seconds)


def _values(before: ResolvedPolicy, now: ResolvedPolicy) -> tuple[ValueChange, ...]:
    old, new = dict(_flat("", before)), dict(_flat("", now))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return tuple(ValueChange(key, old.get(key, NOT_SET), new.get(key, NOT_SET)) for key in sorted(keys))


def _flat(prefix: str, value: object) -> list[tuple[str, str]]:
    """Every value below a policy, by its dotted key in the words of a policy file."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        key, text = _spelled(prefix, value)
        return [] if text is None else [(key, text)]
    found: list[tuple[str, str]] = []
    for field in dataclasses.fields(value):
        if not prefix and field.name in _SILENT:
            continue
        found += _flat(f"{prefix}.{field.name}" if prefix else field.name, getattr(value, field.name))
    return found


def _spelled(key: str, value: object) -> tuple[str, str | None]:
    """A key without the unit that our own names end with, and its value in that unit."""
    head, _, name = key.rpartition(".")
    text = _plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if name.endswith("_seconds"):
            name, text = name.removesuffix("_seconds"), format_duration(value)
        elif name.endswith("_bytes"):
            # `maxFileSize`, but `maxBytes` and `batchBytes`, which have the unit in their own name.
            name, text = re.sub(r"(_size)_bytes$", r"\1", name), format_size(value)
    spelled = _CAMEL.sub(lambda match: match[1].upper(), f"{head}.{name}" if head else name)
    return spelled, text


def _plain(value: object) -> str | None:
    match value:
        case None | () | []:
            return None
        case bool():
            return "true" if value else "false"
        case enum.Enum():
            return str(value.value)
        case str() | int() | float():
            return str(value)
        case _:
            return json.dumps(value, default=_json, ensure_ascii=False, sort_keys=True)


def _json(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return str(value.value if isinstance(value, enum.Enum) else value)
