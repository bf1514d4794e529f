"""Refuse table properties that another key manages, that cannot be undone, or that Delta would not take."""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.policy.checks.findings import SAFE_SECONDS, Finding, Settings
from maintainer.policy.diagnostics.diagnostics import Severity
from maintainer.policy.yaml.yaml_document import Path
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
DELETED_FILES = "delta.deletedfileretentionduration"
_LOST_AT_ZERO = {
    DELETED_FILES: "any VACUUM takes files that a reader or a writer still uses",
    "delta.logretentionduration": "versions are forgotten at the next checkpoint, also those that a reader still needs",
    "delta.settransactionretentionduration": "a stream that starts again may write its last batch a second time",
}
"""Intervals by their name in lower case, for Delta's names have no case: what is lost if one is 0."""


def check_properties(settings: Settings) -> Iterator[Finding]:
    """Yield properties that a policy must not hold, and intervals that are too short or not written Delta's way."""
    short_is_meant = settings.values.get("vacuum.allowShortRetention") is True
    for key, value in settings.values.items():
        if not key.startswith("properties."):
            continue
        name = key.removeprefix("properties.")
        path = ("properties", name)
        if name in _MANAGED:
            yield Finding("P315", path, "is managed by another key", _MANAGED[name], at_key=True)
        elif name.startswith(_PROTOCOL):
            message = "changes the table's protocol, which cannot be undone"
            yield Finding("P315", path, message, "change it by hand, once, with all readers in mind", at_key=True)
        elif name.lower() in _LOST_AT_ZERO:
            yield from _check_interval(path, name.lower(), value, short_is_meant=short_is_meant)


def _check_interval(path: Path, name: str, value: object, *, short_is_meant: bool) -> Iterator[Finding]:
    """Delta reads ``interval 30 days`` (or ``30 days``), and neither ``30d`` nor ISO 8601. Short ones lose files."""
    text = str(value)
    words = text if text.lower().startswith("interval ") else f"interval {text}"
    try:
        seconds = parse_duration(words)
    except UnitError as error:
        try:
            help = f"write `{_interval(parse_duration(text))}`"
        except UnitError:
            help = "write it like `interval 30 days`"
        message = "months and years have no fixed length" if "month" in str(error) else "is not an interval of Delta"
        yield Finding("P318", path, message, help)
        return
    if seconds == 0:
        yield Finding("P320", path, f"is 0: {_LOST_AT_ZERO[name]}", "write at least `interval 7 days`")
    elif name == DELETED_FILES and seconds < SAFE_SECONDS and not short_is_meant:
        message = f"{format_duration(seconds)} is below 7d: a VACUUM by others may take files that are still used"
        help = "write at least `interval 7 days`, or `vacuum: {allowShortRetention: true}` if it is meant"
        yield Finding("P320", path, message, help, severity=Severity.WARNING)


def _interval(seconds: int) -> str:
    """Write a duration as Delta's interval: ``interval 1 day 12 hours``."""
    names = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
    parts = []
    for part in format_duration(seconds).split():
        count, name = part[:-1], names[part[-1]]
        parts.append(f"{count} {name}{'' if count == '1' else 's'}")
    return "interval " + " ".join(parts)
