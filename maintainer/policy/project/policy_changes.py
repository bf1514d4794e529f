"""Compare two states of a project: which tables are added or removed, and which effective values differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.policy.resolve.policy_fields import written_settings
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.select.table_names import identity
from maintainer.units import format_duration

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
    """Retention before and now where less is kept: also where nothing was deleted at all before."""
    if now.vacuum is None or (before.vacuum and before.vacuum.retention_seconds <= now.vacuum.retention_seconds):
        return None
    was = "nothing was deleted" if before.vacuum is None else format_duration(before.vacuum.retention_seconds)
    return was, format_duration(now.vacuum.retention_seconds)


def _values(before: ResolvedPolicy, now: ResolvedPolicy) -> tuple[ValueChange, ...]:
    old, new = dict(written_settings(before)), dict(written_settings(now))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key) and key.partition(".")[0] not in _SILENT]
    return tuple(ValueChange(key, old.get(key, NOT_SET), new.get(key, NOT_SET)) for key in sorted(keys))
