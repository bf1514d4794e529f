"""Read fields of a policy from the keys of their names, and write them as these keys again.

``max_file_size_bytes`` of ``optimize`` is ``optimize.maxFileSize``. A field that is called otherwise than its key names
the key in its metadata.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from maintainer.policy.predicate.partition_predicate import Predicate, parse_predicate
from maintainer.units import format_duration, format_size

_T = TypeVar("_T")

_UNITS = re.compile(r"_seconds$|(?<=_size)_bytes$")
"""Keys have no unit in their name, but for ``maxBytes`` and its like."""


def policy_part(kind: Callable[..., _T], section: str, values: Mapping[str, object], **given: object) -> _T:
    """Build a part of a policy from checked values in base units; what nobody set has the field's own default.

    Args:
        kind: The dataclass.
        section: The dotted key that its keys stand below; empty for the top level.
        values: Effective values by dotted key.
        given: Fields that are not read by their name.
    """
    for name, key, read in _readers(kind):
        dotted = ".".join(filter(None, (section, key)))
        if name not in given and dotted in values:
            given[name] = read(values[dotted])
    return kind(**given)


def written_settings(part: object, section: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value that a policy, or a part of one, sets: its dotted key, and the value in words."""
    for field in dataclasses.fields(part):  # type: ignore[arg-type]
        name, value = _key(field), getattr(part, field.name)
        key = ".".join(filter(None, (section, name)))
        if dataclasses.is_dataclass(value) and not isinstance(value, Predicate):
            yield from written_settings(value, key)
        elif value not in (None, ()):
            yield key, _in_words(field.name, value)


@lru_cache(maxsize=64)
def _readers(kind: Any) -> tuple[tuple[str, str, Callable[[Any], object]], ...]:  # noqa: ANN401
    hints = get_type_hints(kind)
    return tuple((field.name, _key(field), _reader(hints[field.name])) for field in dataclasses.fields(kind))


def _key(field: dataclasses.Field[Any]) -> str:
    key = _UNITS.sub("", field.name)
    return str(field.metadata.get("key", re.sub(r"_([a-z])", lambda match: match[1].upper(), key)))


def _reader(hint: Any) -> Callable[[Any], object]:  # noqa: ANN401
    options = [option for option in get_args(hint) if option is not NoneType]
    if get_origin(hint) is tuple:
        read = _reader(options[0])
        return lambda items: tuple(read(item) for item in items)
    kind = options[0] if options else hint
    if kind is Predicate:
        return _predicate
    if kind is date:
        return date.fromisoformat
    if kind is float or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        return kind
    return lambda value: value


@lru_cache(maxsize=1024)
def _predicate(text: str) -> Predicate:
    """Read a predicate; equal texts share one, they are frozen."""
    return parse_predicate(text)


def _in_words(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and name.endswith("_seconds"):
        return format_duration(value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return format_size(value)
    if isinstance(value, enum.Enum):
        return str(value.value)
    return str(value) if isinstance(value, (str, int, float, Predicate)) else json.dumps(value, **_JSON)


def _json(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return str(value.value if isinstance(value, enum.Enum) else value)


_JSON: dict[str, Any] = {"default": _json, "ensure_ascii": False, "sort_keys": True}
