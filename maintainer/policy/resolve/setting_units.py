"""The unit of each setting: how its value is read into base units, and spelled again for people."""

from __future__ import annotations

from functools import lru_cache

from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.units import exact_size, format_duration, parse_duration, parse_size

SIZES = frozenset(
    {
        "optimize.minFileSize",
        "optimize.maxFileSize",
        "optimize.batchSize",
        "optimize.rewrite.fileSize",
        "optimize.cluster.minCubeSize",
        "optimize.cluster.targetCubeSize",
        "optimize.when.minSmallBytes",
        "optimize.zorder.batchBytes",
        "optimize.zorder.bytesPerIteration",
        "autoCompact.minFileSize",
        "autoCompact.maxFileSize",
        "limits.maxBytes",
    }
)
"""Dotted keys whose value is a size."""

DURATIONS = frozenset(
    {
        "optimize.quietFor",
        "optimize.quietAfterUpdates",
        "optimize.every",
        "vacuum.retention",
        "vacuum.every",
        "vacuum.untrackedAge",
        "vacuum.untrackedEvery",
        "vacuum.trash",
        "limits.timeout",
    }
)
"""Dotted keys whose value is a duration."""


def base_value(key: str, value: object) -> object:
    """Read a setting's value into base units: bytes, seconds, the canonical text of a predicate.

    Raises:
        UnitError: The value is not a size or duration (checked documents have none such).
        PredicateError: ``optimize.where`` is not a predicate.
    """
    if isinstance(value, (int, str)) and (key in SIZES or key in DURATIONS or key == "optimize.where"):
        return _scalar(key, value)
    if key.startswith("properties."):
        return _property(value)
    if key in ("consumers", "window") and isinstance(value, list):
        return [_item(item) for item in value]
    return value


def spelled(key: str, value: object) -> object:
    """Turn a base value back into what a policy file may hold: ``67108864`` is ``64MiB``."""
    if key in SIZES and isinstance(value, int):
        return exact_size(value)
    if key in DURATIONS and isinstance(value, int):
        return format_duration(value)
    if key == "consumers" and isinstance(value, list):
        return [{k: format_duration(v) if k == "maxLag" else v for k, v in item.items()} for item in value]
    return value


@lru_cache(maxsize=4096, typed=True)
def _scalar(key: str, value: int | str) -> object:
    """Read one value; a fleet says the same few things thousands of times."""
    if key in SIZES:
        return parse_size(value)
    return parse_duration(str(value)) if key in DURATIONS else parse_predicate(str(value)).text


def _property(value: object) -> str:
    """Return a table property's value as Delta keeps it: as text, truth in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _item(item: object) -> object:
    """Read an item of a list of maps: keys without a value are as if not written, lags are seconds."""
    if not isinstance(item, dict):
        return item
    written = {key: value for key, value in item.items() if value is not None}
    return {key: parse_duration(value) if key == "maxLag" else value for key, value in written.items()}
