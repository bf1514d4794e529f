"""Read a setting's value into base units, and spell it again for people. The schema says which key has which unit."""

from __future__ import annotations

from functools import lru_cache

from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.schema.schema_keys import key_formats
from maintainer.units import exact_size, format_duration, parse_duration, parse_size

_ITEMS = ("consumers", "window")
"""Lists of maps whose items are settings, too; keys without a value are as if not written."""


def base_value(key: str, value: object) -> object:
    """Read a setting's value into base units: bytes, seconds, the canonical text of a predicate.

    Raises:
        UnitError: The value is not a size or duration (checked documents have none such).
        PredicateError: ``optimize.where`` is not a predicate.
    """
    if key.startswith("properties."):
        # As Delta keeps it: as text, truth in lower case.
        return str(value).lower() if isinstance(value, bool) else str(value)
    if key in _ITEMS and isinstance(value, list):
        return [_item(key, item) for item in value]
    format = key_formats().get(key)
    if format in ("size", "duration", "predicate") and isinstance(value, (int, str)):
        return _scalar(format, value)
    return value


def spelled(key: str, value: object) -> object:
    """Turn a base value back into what a policy file may hold: ``67108864`` is ``64MiB``."""
    format = key_formats().get(key)
    if format == "size" and isinstance(value, int):
        return exact_size(value)
    if format == "duration" and isinstance(value, int):
        return format_duration(value)
    if key in _ITEMS and isinstance(value, list):
        return [{name: spelled(f"{key}.{name}", inner) for name, inner in item.items()} for item in value]
    return value


@lru_cache(maxsize=4096, typed=True)
def _scalar(format: str, value: int | str) -> object:
    """Read one value; a fleet says the same few things thousands of times."""
    if format == "size":
        return parse_size(value)
    return parse_duration(str(value)) if format == "duration" else parse_predicate(str(value)).text


def _item(key: str, item: object) -> object:
    if not isinstance(item, dict):
        return item
    return {name: base_value(f"{key}.{name}", inner) for name, inner in item.items() if inner is not None}
