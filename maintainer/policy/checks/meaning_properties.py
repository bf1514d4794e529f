"""Meaning of ``properties``: what another key manages, what cannot be undone, what Delta would refuse.

Meaning of the keys of rewrites and clustering: which exclude one another, which have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maintainer.policy.checks.meaning_lists import Finding, map_at, size_at
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
    "delta.logretentionduration": "versions are forgotten at the next checkpoint, also those that a reader is at",
    "delta.settransactionretentionduration": "a stream that starts again may write its last batch a second time",
}
"""Intervals by their name in lower case, for Delta's names have no case: what is lost if one is 0."""

SAFE_SECONDS = 7 * 86_400
"""Delta's own check of a VACUUM, 168 hours."""


def check_properties(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield properties that a policy must not hold, and intervals that are too short or not written Delta's way."""
    short_is_meant = (map_at(settings, ("vacuum",)) or {}).get("allowShortRetention") is True
    for name, value in (map_at(settings, ("properties",)) or {}).items():
        path = (*base, "properties", name)
        if value is None:
            continue
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


NUMBER_AND_SIZE = "a number of files and a size of files cannot both be asked for"
TWO_LAYOUTS = "a partition cannot be in Z-order and as `rewrite` asks"


def check_rewrite(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield a rewrite that asks for nothing, for a number and a size, beside a Z-order, or for a column twice."""
    optimize = map_at(settings, ("optimize",)) or {}
    rewrite = map_at(optimize, ("rewrite",))
    if rewrite is None:
        return
    path = (*base, "optimize", "rewrite")
    if not any(value is not None for value in rewrite.values()):
        message = "asks for nothing"
        yield Finding("P319", path, message, "add `files`, `fileSize` or `sortBy`, or remove it", at_key=True)
    if rewrite.get("files") is not None and rewrite.get("fileSize") is not None:
        yield Finding("P319", (*path, "files"), NUMBER_AND_SIZE, "remove one of the two", (*path, "fileSize"))
    zorder = map_at(optimize, ("zorder",)) or {}
    if zorder.get("columns"):
        yield Finding("P319", path, TWO_LAYOUTS, "remove one of the two", (*base, "optimize", "zorder"), at_key=True)
    if size_at(rewrite, "fileSize") == 0:
        yield Finding("P307", (*path, "fileSize"), "must be larger than 0", "write a size like `128MiB`")
    seen: dict[str, str] = {}
    columns = rewrite.get("sortBy")
    for position, column in enumerate(columns if isinstance(columns, list) else ()):
        if isinstance(column, str):
            first = seen.setdefault(column.casefold(), column)
            # Exactly the same name twice is a finding of the schema.
            if first != column:
                message = f"is the same column as `{first}`: Delta's names have no case"
                yield Finding("P319", (*path, "sortBy", position), message, "remove one of the two")


def check_cluster(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield cube sizes of nothing, and a wanted size that the least one outdoes."""
    cluster = map_at(settings, ("optimize", "cluster")) or {}
    path = (*base, "optimize", "cluster")
    least, wanted = size_at(cluster, "minCubeSize"), size_at(cluster, "targetCubeSize")
    for key, value in (("minCubeSize", least), ("targetCubeSize", wanted)):
        if value == 0:
            yield Finding("P307", (*path, key), "must be larger than 0", "write a size like `10GiB`")
    if least and wanted and wanted < least:
        message = "is smaller than minCubeSize, which counts then"
        help = "make it larger, or leave it out"
        yield Finding("P307", (*path, "targetCubeSize"), message, help, (*path, "minCubeSize"), Severity.WARNING)
