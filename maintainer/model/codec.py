"""Convert frozen dataclasses to plain JSON values and back, by their annotations; strict in both directions.

It supports what our models use: dataclasses (unions of them are told apart by ``kind``), enums, tuples, optional
values and plain scalars. Any other type is an error when the codec is built, so a field that is written can be read.
A field with a default may be missing: run folders of earlier versions stay readable when a model grows.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import types
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

AS_TEXT = frozenset({"sums"})
"""Fields whose integers are written as decimal text: they go beyond what JSON readers hold exactly (2^53)."""

_SCALARS: tuple[type, ...] = (str, bool, int, float)


class DecodeError(ValueError):
    """A document that does not fit the model; ``path`` is where, in dots."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the document'}: {problem}")
        self.path = path
        self.problem = problem


def canonical_json(value: object) -> str:
    """Spell a JSON value in the one canonical way: sorted keys, no blanks, no infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def encode(value: object) -> Any:  # noqa: ANN401 (a JSON value)
    """Turn a model value into JSON values: dataclasses to dicts of all their fields, tuples to lists."""
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    cls: Any = type(value)
    names = _field_names(cls)
    if names is not None:
        return {
            key: [str(number) for number in getattr(value, name)] if name in AS_TEXT else encode(getattr(value, name))
            for name, key in names
        }
    raise TypeError(f"{type(value).__name__} is not part of a model")


def decode(cls: type[T], document: object) -> T:
    """Turn JSON values back into a model value.

    Raises:
        DecodeError: A key without a default is missing, a key is unknown or of the wrong type, or the model refuses
            the values.
    """
    hint: Any = cls
    value: T = _decoder(hint)(document, "")
    return value


@cache
def _field_names(cls: type) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, key_of(cls, field.name)) for field in dataclasses.fields(cls))


def key_of(cls: type, name: str) -> str:
    """Return the key under which a field stands in a document.

    It is the field's name, or, in a class that says ``DELTA_NAMES``, the name that Delta has for it:
    ``numFilesAdded`` for ``num_files_added``.
    """
    if not getattr(cls, "DELTA_NAMES", False):
        return name
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_Decoder = Callable[[Any, str], Any]


@cache
def _decoder(hint: Any) -> _Decoder:  # noqa: ANN401 (a type annotation)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass_decoder(hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _enum_decoder(hint)
    if hint in _SCALARS:
        return _scalar_decoder(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union_decoder(arguments)
    if origin is tuple:
        return _tuple_decoder(arguments)
    raise TypeError(f"{hint!r} cannot be written as JSON")


def _scalar_decoder(scalar: Any) -> _Decoder:  # noqa: ANN401
    def decode_scalar(value: Any, path: str) -> Any:  # noqa: ANN401
        # A bool is an int to Python and not to JSON; an int is a fine float.
        if type(value) is scalar or (scalar is float and type(value) is int):
            return scalar(value)
        raise DecodeError(path, f"expected {scalar.__name__}, found {type(value).__name__}")

    return decode_scalar


def _enum_decoder(cls: type[enum.Enum]) -> _Decoder:
    members = {member.value: member for member in cls}

    def decode_enum(value: Any, path: str) -> Any:  # noqa: ANN401
        if isinstance(value, str) and value in members:
            return members[value]
        raise DecodeError(path, f"{value!r} is not one of {', '.join(members)}")

    return decode_enum


def _union_decoder(arguments: tuple[Any, ...]) -> _Decoder:
    choices = [argument for argument in arguments if argument is not type(None)]
    optional = len(choices) < len(arguments)
    if len(choices) == 1:
        inner = _decoder(choices[0])
        return lambda value, path: None if value is None and optional else inner(value, path)
    by_kind = {_kind_of(choice): _decoder(choice) for choice in choices}

    def decode_union(value: Any, path: str) -> Any:  # noqa: ANN401
        if value is None and optional:
            return None
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in by_kind:
            raise DecodeError(path, f"kind is not one of {', '.join(by_kind)}")
        return by_kind[kind](value, path)

    return decode_union


def _kind_of(cls: type) -> str:
    kind = next((field.default for field in dataclasses.fields(cls) if field.name == "kind"), None)
    if not isinstance(kind, str):
        raise TypeError(f"{cls.__name__} is part of a union and has no kind")
    return kind


def _tuple_decoder(arguments: tuple[Any, ...]) -> _Decoder:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _decoder(arguments[0])

        def decode_items(value: Any, path: str) -> Any:  # noqa: ANN401
            if not isinstance(value, list):
                raise DecodeError(path, f"expected a list, found {type(value).__name__}")
            return tuple(item(inner, f"{path}[{index}]") for index, inner in enumerate(value))

        return decode_items
    items = [_decoder(argument) for argument in arguments]

    def decode_row(value: Any, path: str) -> Any:  # noqa: ANN401
        if not isinstance(value, list) or len(value) != len(items):
            raise DecodeError(path, f"expected a list of {len(items)}")
        return tuple(
            decode_item(inner, f"{path}[{index}]")
            for index, (decode_item, inner) in enumerate(zip(items, value, strict=True))
        )

    return decode_row


def _text_integers(value: Any, path: str) -> tuple[int, ...]:  # noqa: ANN401
    if isinstance(value, list) and all(isinstance(text, str) and text.lstrip("-").isdecimal() for text in value):
        return tuple(int(text) for text in value if len(text) < 100)
    raise DecodeError(path, "expected a list of integers as text")


def _dataclass_decoder(cls: type) -> _Decoder:
    hints = get_type_hints(cls, vars(sys.modules[cls.__module__]))
    fields = {
        key_of(cls, field.name): (
            field.name,
            _text_integers if field.name in AS_TEXT else _decoder(hints[field.name]),
            field.init,
        )
        for field in dataclasses.fields(cls)
    }
    # What an earlier version did not know yet, and wrote documents without: its default says the same.
    optional = {
        key_of(cls, field.name)
        for field in dataclasses.fields(cls)
        if field.init and not (field.default is field.default_factory is dataclasses.MISSING)
    }

    def decode_dataclass(value: Any, path: str) -> Any:  # noqa: ANN401
        if not isinstance(value, dict):
            raise DecodeError(path, f"expected an object, found {type(value).__name__}")
        wrong = sorted(str(key) for key in (value.keys() ^ fields.keys()) - (optional - value.keys()))
        if wrong:
            raise DecodeError(path, f"missing or unknown: {', '.join(wrong)}")
        made = {}
        for key, (name, inner, init) in fields.items():
            if key not in value:
                continue
            decoded = inner(value[key], f"{path}.{key}" if path else key)
            if init:
                made[name] = decoded
        try:
            return cls(**made)
        except ValueError as error:
            raise DecodeError(path, str(error)) from error

    return decode_dataclass


__all__ = ["DecodeError", "canonical_json", "decode", "encode", "key_of"]
