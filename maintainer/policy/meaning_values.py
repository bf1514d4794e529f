"""Values of a document for checks of meaning: read leniently, because what is malformed was reported before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maintainer.policy.diagnostics import Severity
from maintainer.policy.document import Document, Path
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
