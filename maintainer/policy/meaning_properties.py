"""Meaning of ``properties``: what another key manages, what cannot be undone, what Delta would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maintainer.policy.document import Path
from maintainer.policy.meaning_values import Finding, map_at
from maintainer.units import UnitError, format_duration, parse_duration

_AUTO_COMPACT = ("minNumFiles", "minFileSize", "maxFileSize", "modifiedPartitionsOnly")
_MANAGED = {
    "delta.autoOptimize.autoCompact": "write `autoCompact:` at the top level",
    **{
        f"maintainer.autoCompact.{key}": f"write `autoCompact: {{{key}: ...}}` at the top level"
        for key in _AUTO_COMPACT
    },
}
_PROTOCOL = ("delta.minReaderVersion", "delta.minWriterVersion", "delta.feature.")
_INTERVALS = frozenset(
    {"delta.logRetentionDuration", "delta.deletedFileRetentionDuration", "delta.setTransactionRetentionDuration"}
)


def check_properties(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield properties that a policy must not hold, and intervals that are not written Delta's way."""
    for name, value in (map_at(settings, ("properties",)) or {}).items():
        path = (*base, "properties", name)
        if value is None:
            continue
        if name in _MANAGED:
            yield Finding("P315", path, "is managed by another key", _MANAGED[name], at_key=True)
        elif name.startswith(_PROTOCOL):
            message = "changes the table's protocol, which cannot be undone"
            yield Finding("P315", path, message, "change it by hand, once, with all readers in mind", at_key=True)
        elif name in _INTERVALS:
            yield from _check_interval(path, value)


def _check_interval(path: Path, value: object) -> Iterator[Finding]:
    """Delta reads ``interval 30 days`` (or ``30 days``), and neither ``30d`` nor ISO 8601."""
    text = str(value)
    words = text if text.lower().startswith("interval ") else f"interval {text}"
    try:
        parse_duration(words)
    except UnitError as error:
        try:
            help = f"write `{_interval(parse_duration(text))}`"
        except UnitError:
            help = "write it like `interval 30 days`"
        message = "months and years have no fixed length" if "month" in str(error) else "is not an interval of Delta"
        yield Finding("P318", path, message, help)


def _interval(seconds: int) -> str:
    """Write a duration as Delta's interval: ``interval 1 day 12 hours``."""
    names = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
    parts = []
    for part in format_duration(seconds).split():
        count, name = part[:-1], names[part[-1]]
        parts.append(f"{count} {name}{'' if count == '1' else 's'}")
    return "interval " + " ".join(parts)
