"""Read fields of a policy from the keys of their names; ``policy_values`` writes them as these keys again.

``max_file_size_bytes`` of ``optimize`` is ``optimize.maxFileSize``. A field that is called otherwise than its key names
the key in its metadata.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import date
from functools import lru_cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from maintainer.policy.predicate.partition_predicate import Predicate, parse_predicate
from maintainer.units import parse_duration, parse_size

_T = TypeVar("_T")

_UNITS = re.compile(r"_seconds$|(?<=_size)_bytes$")
"""Keys have no unit in their name, but for ``maxBytes`` and its like."""


def setting(default: Any = None, *, key: str | None = None, **said: Any) -> Any:  # noqa: ANN401
    """Declare a key of a policy: a field of a dataclass, whose text stands below it.

    Args:
        default: What holds where nobody writes the key; ``...`` where the field has none of its own.
        key: The key, where the field is called otherwise; empty for a field that is no key.
        said: ``spelled`` is the default as a policy file has it, ``words`` are the values of one of several fields of a
            key; ``required``, and what the JSON Schema says, with ``note``, ``unit``, ``above_zero`` and ``form`` for
            its keywords of ours.
    """
    words = said.pop("words", None)
    metadata = {"default": said.pop("spelled", _spelled(default, words or {})), "said": said}
    metadata |= {name: value for name, value in (("key", key), ("words", words)) if value is not None}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def _spelled(default: object, words: Mapping[object, str]) -> object:
    match default:
        case enum.Enum():
            return default.value
        case tuple():
            return [_spelled(item, words) for item in default] or None
        case bool() | int() | float():
            return words.get(default, default)
        case str():
            return default or None
        case _:
            return None


def size(default: Any = None, **said: Any) -> Any:  # noqa: ANN401
    """Declare a key that holds a size; the field has bytes."""
    is_given = isinstance(default, int | str)
    value, spelled = (parse_size(default), default) if is_given else (default, None)
    return setting(value, spelled=spelled, form="size", **said)


def duration(default: str | None = None, **said: Any) -> Any:  # noqa: ANN401
    """Declare a key that holds a duration; the field has seconds."""
    return setting(None if default is None else parse_duration(default), spelled=default, form="duration", **said)


def defaults_of(kind: Any, section: str) -> dict[str, object]:  # noqa: ANN401
    """Return what holds in a section where nobody writes the key, as a policy file has it, by dotted key."""
    defaults: dict[str, object] = {}
    for one in dataclasses.fields(kind):
        if one.metadata.get("default") not in (None, []) and "note" not in one.metadata["said"]:
            defaults.setdefault(".".join(filter(None, (section, field_key(one)))), one.metadata["default"])
    return defaults


def policy_part(kind: Callable[..., _T], section: str, values: Mapping[str, object], **given: object) -> _T:
    """Build a part of a policy, or of the project's settings, from checked values, as written or in base units.

    What nobody set has the field's own default.

    Args:
        kind: The dataclass.
        section: The dotted key that its keys stand below; empty for the top level.
        values: Effective values by dotted key.
        given: Fields that are not read by their name.
    """
    for name, key, read in _readers(kind):
        dotted = ".".join(filter(None, (section, key)))
        if name not in given and values.get(dotted) is not None:
            given[name] = read(values[dotted])
    return kind(**given)


@lru_cache(maxsize=64)
def _readers(kind: Any) -> tuple[tuple[str, str, Callable[[Any], object]], ...]:  # noqa: ANN401
    hints = get_type_hints(kind)
    return tuple((one.name, field_key(one), _reader(hints[one.name], one)) for one in dataclasses.fields(kind))


def field_key(field: dataclasses.Field[Any]) -> str:
    """Return the key that a field is read from, such as ``maxFileSize`` for ``max_file_size_bytes``."""
    key = _UNITS.sub("", field.name)
    return str(field.metadata.get("key", re.sub(r"_([a-z])", lambda match: match[1].upper(), key)))


def _reader(hint: Any, field: dataclasses.Field[Any] | None = None) -> Callable[[Any], object]:  # noqa: ANN401
    form = field.metadata.get("said", {}).get("form") if field is not None else None
    if form in _QUANTITIES:
        return _QUANTITIES[form]
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


def _seconds(value: str | int) -> int:
    """Read a duration, if it was not read before."""
    return parse_duration(value) if isinstance(value, str) else value


_QUANTITIES: dict[str, Callable[[Any], object]] = {"size": parse_size, "duration": _seconds}


@lru_cache(maxsize=1024)
def _predicate(text: str) -> Predicate:
    """Read a predicate; equal texts share one, they are frozen."""
    return parse_predicate(text)
