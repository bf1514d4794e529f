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
from datetime import date, time
from functools import lru_cache, partial
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from maintainer.model.codec import once
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


def policy_part(kind: Callable[..., _T], data: Mapping[str, Any], **given: object) -> _T:
    """Build a policy, the project's settings, or a part of them, from a checked map, as written or in base units.

    What nobody set has the field's own default. A part without a value that it cannot do without, or with an empty text
    there, is not there.

    Args:
        kind: The dataclass.
        data: What is set, by key.
        given: Fields that are not read by their name.
    """
    for name, key, read in _readers(kind):
        value = _at(data, key)
        if name not in given and value is not None:
            given[name] = read(value)
    return kind(**given)


def _at(data: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401
    """The value of a dotted key; a dot alone is the whole map."""
    value: Any = data
    for part in key.split(".") if key != "." else ():
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


@lru_cache(maxsize=64)
def _readers(kind: Any) -> tuple[tuple[str, str, Callable[[Any], object]], ...]:  # noqa: ANN401
    hints = get_type_hints(kind)
    return tuple((one.name, field_key(one), _reader(hints[one.name], one)) for one in dataclasses.fields(kind))


def field_key(field: dataclasses.Field[Any]) -> str:
    """Return the key that a field is read from, such as ``maxFileSize`` for ``max_file_size_bytes``."""
    key = _UNITS.sub("", field.name)
    return str(field.metadata.get("key", re.sub(r"_([a-z])", lambda match: match[1].upper(), key)))


def _reader(hint: Any, field: dataclasses.Field[Any] | None = None) -> Callable[[Any], object]:  # noqa: ANN401
    metadata = {} if field is None else field.metadata
    form, words = metadata.get("said", {}).get("form"), metadata.get("words")
    if form in _QUANTITIES:
        return _QUANTITIES[form]
    options = [option for option in get_args(hint) if option is not NoneType]
    if get_origin(hint) is tuple:
        if words is not None:
            return lambda items: tuple(value for value, word in words.items() if word in items)
        if get_origin(options[0]) is tuple:  # a map of names
            read = _reader(get_args(options[0])[1])
            return lambda items: tuple((name, read({} if value is None else value)) for name, value in items.items())
        read = _reader(options[0])
        return lambda items: tuple(read(item) for item in items)
    if words is not None and field is not None:
        spelled = {word: value for value, word in words.items()}
        return lambda value: spelled.get(str(value).lower(), field.default)
    return _reader_of(options[0] if options else hint)


def _reader_of(kind: Any) -> Callable[[Any], object]:  # noqa: ANN401
    if kind is Predicate:
        return _predicate
    if kind in (date, time):
        reading: Callable[[str], object] = kind.fromisoformat
        return reading
    if dataclasses.is_dataclass(kind):
        needed = [field_key(one) for one in dataclasses.fields(kind) if one.default is one.default_factory]
        part: Callable[..., object] = kind  # type: ignore[assignment]
        whole = partial(policy_part, part)

        def read_part(value: Any) -> object:  # noqa: ANN401
            data = value if isinstance(value, Mapping) else {"": value}
            return once(whole(data)) if all(data.get(key) not in (None, "") for key in needed) else None

        return read_part
    return kind if kind is float or (isinstance(kind, type) and issubclass(kind, enum.Enum)) else lambda value: value


def _seconds(value: str | int) -> int:
    """Read a duration, if it was not read before."""
    return parse_duration(value) if isinstance(value, str) else value


_QUANTITIES: dict[str, Callable[[Any], object]] = {"size": parse_size, "duration": _seconds}


_predicate = lru_cache(maxsize=1024)(parse_predicate)
"""Reads a predicate; equal texts share one, they are frozen."""
