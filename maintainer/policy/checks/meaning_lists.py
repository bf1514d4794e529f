"""Meaning of the lists in a policy: Z-order columns, windows, consumers, expectations.

Values of a document for checks of meaning: read leniently, because what is malformed was reported before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maintainer.policy.diagnostics.diagnostics import Severity, nearest
from maintainer.policy.predicate.predicate_time import read_timestamp
from maintainer.policy.schema.known_expectations import EXPECTATIONS, NOT_FOR_POLICIES
from maintainer.policy.yaml.yaml_document import Document, Path
from maintainer.units import UnitError, parse_duration, parse_size


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a path of a document; ``other`` is the path that it does not go with."""

    code: str
    path: Path
    message: str
    help: str
    other: Path | None = None
    severity: Severity = Severity.ERROR
    at_key: bool = False


def map_at(data: object, path: Path) -> dict[str, Any] | None:
    """Return the map at a path, None where there is none."""
    for part in path:
        data = data.get(part) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else None


def size_at(data: dict[str, Any], key: str) -> int | None:
    """Return a size in bytes, None where it is not set or not a size."""
    value = data.get(key)
    if value is None or type(value) not in (str, int):
        return None
    try:
        return parse_size(value)
    except UnitError:
        return None


def duration_at(data: dict[str, Any], key: str) -> int | None:
    """Return a duration in seconds, None where it is not set or not a duration."""
    value = data.get(key)
    if not isinstance(value, str):
        return None
    try:
        return parse_duration(value)
    except UnitError:
        return None


def is_refused(document: Document, path: Path) -> bool:
    """Tell whether a value was there and was left out while reading."""
    return path in document.unreadable


MANY_ZORDER_COLUMNS = 4
"""From the fifth column on the curve has hardly a bit left for each; files are skipped for none of them."""


def check_zorder(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield columns that are the same but for case, and more columns than a curve can serve."""
    zorder = map_at(settings, ("optimize", "zorder")) or {}
    path = (*base, "optimize", "zorder", "columns")
    seen: dict[str, str] = {}
    columns = _items(zorder.get("columns"))
    for position, column in columns:
        if not isinstance(column, str):
            continue
        first = seen.setdefault(column.casefold(), column)
        # Exactly the same name twice is a finding of the schema.
        if first != column:
            message = f"is the same column as `{first}`: Delta's names have no case"
            yield Finding("P306", (*path, position), message, "remove one of the two")
    since = zorder.get("fromTimestamp")
    if isinstance(since, str) and read_timestamp(since) is None:
        at = (*base, "optimize", "zorder", "fromTimestamp")
        yield Finding("P306", at, "is not a time that exists", "write it like `2026-01-01 00:00:00`")
    if len(seen) > MANY_ZORDER_COLUMNS:
        message = f"{len(seen)} columns; each one more makes all of them skip fewer files"
        help = f"keep the {MANY_ZORDER_COLUMNS} that queries filter on most"
        yield Finding("P306", path, message, help, severity=Severity.WARNING, at_key=True)


def check_windows(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield windows that are empty."""
    for position, window in _items(settings.get("window")):
        if isinstance(window, dict) and window.get("from") is not None and window["from"] == window.get("to"):
            help = "for a whole day leave the window out; otherwise change one of the two"
            path = (*base, "window", position)
            yield Finding("P308", (*path, "to"), "the window closes when it opens", help, (*path, "from"))


def check_consumers(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield consumers that ask for nothing, and names that stand twice."""
    names: dict[str, int] = {}
    for position, consumer in _items(settings.get("consumers")):
        if not isinstance(consumer, dict):
            continue
        path = (*base, "consumers", position)
        if consumer.get("maxLag") is None and consumer.get("checkpoint") is None:
            message = "says nothing about what vacuum must keep"
            yield Finding("P317", path, message, "add `maxLag: 3d`, how far behind it may be")
        name = consumer.get("name")
        if isinstance(name, str):
            first = names.setdefault(name, position)
            if first != position:
                other = (*base, "consumers", first, "name")
                message = f"a second consumer named `{name[:60]}`"
                yield Finding("P207", (*path, "name"), message, "give each its own name", other)


def check_expectations(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield arguments that an expectation does not have, must not have here, or lacks."""
    verify = map_at(settings, ("verify",)) or {}
    for position, expectation in _items(verify.get("expectations")):
        name = expectation.get("type") if isinstance(expectation, dict) else None
        if not isinstance(name, str) or name not in EXPECTATIONS:
            continue
        path = (*base, "verify", "expectations", position)
        arguments = EXPECTATIONS[name]
        known = (*arguments.required, *arguments.optional)
        for key in expectation:
            if key in NOT_FOR_POLICIES and key not in known:
                help = "remove it; it changes how results are reported, or is text that the engine would run"
                yield Finding("P316", (*path, key), "cannot be set in a policy", help, at_key=True)
            elif key != "type" and key not in known:
                near = nearest(key, known)
                help = f"did you mean `{near}`?" if near else f"it takes {', '.join(known) or 'no argument'}"
                yield Finding("P316", (*path, key), f"is not an argument of `{name}`", help, at_key=True)
        missing = [key for key in arguments.required if key not in expectation]
        if missing:
            needs = " and ".join(f"`{key}`" for key in missing)
            yield Finding("P316", (*path, "type"), f"needs {needs}", f"add `{missing[0]}:`")
        mostly = expectation.get("mostly")
        if "mostly" in known and mostly is not None and not (type(mostly) in (int, float) and 0 <= mostly <= 1):
            yield Finding("P316", (*path, "mostly"), "must be a number from 0 to 1", "write it like `0.99`")


def _items(value: object) -> list[tuple[int, Any]]:
    """The items of a list with their positions; nothing for what is no list."""
    return list(enumerate(value)) if isinstance(value, list) else []
