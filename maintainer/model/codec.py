"""Convert frozen dataclasses to plain JSON values and back, by their annotations, with pydantic.

A document of ours is read strictly: a number is never a text, and an unknown key is an error. A field with a default
may be missing: run folders of earlier versions stay readable when a model grows. pydantic is imported late, because
most commands end before they need it; ``ClosedUnion`` and ``DecimalText`` are how a model annotates a field without it.

Equal values are kept as one object: most of what is said of one table of a fleet is said of thousands.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

MAX_DIGITS = 100
"""Digits of an integer that is written as text."""


class DecodeError(ValueError):
    """A document that does not fit the model; ``path`` is where, in dots."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the document'}: {problem}")
        self.path = path
        self.problem = problem


class ClosedUnion:
    """Annotate a union of dataclasses that ``kind`` tells apart."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:  # noqa: ANN401 (pydantic's protocol)
        """Return what pydantic checks such a value by."""
        from pydantic_core.core_schema import tagged_union_schema

        defaults = {choice: choice.__dataclass_fields__["kind"].default for choice in get_args(source)}
        choices = {kind.value: handler.generate_schema(choice) for choice, kind in defaults.items()}
        return tagged_union_schema(choices, "kind")


class DecimalText:
    """Annotate an integer that is written as decimal text: it goes beyond what JSON readers hold exactly (2^53)."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:  # noqa: ANN401 (pydantic's protocol)
        """Return what pydantic checks such a value by."""
        from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

        text = {"type": "string", "pattern": "^-?[0-9]+$"}
        reader, writer = BeforeValidator(_integer_of_text), PlainSerializer(str)
        return handler.generate_schema(Annotated[source, reader, writer, WithJsonSchema(text)])


def delta_name(name: str) -> str:
    """Return the name that Delta has for a field: ``numFilesAdded`` for ``num_files_added``."""
    first_word, *other_words = name.split("_")
    return first_word + "".join(part.capitalize() for part in other_words)


DELTA_NAMES = {"alias_generator": delta_name, "strict": True, "extra": "forbid"}
"""The ``__pydantic_config__`` of a class whose fields have Delta's names in documents; it takes the place of ours."""


def canonical_json(value: object) -> str:
    """Spell a JSON value in the one canonical way: sorted keys, no blanks, no infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def encode(value: object) -> Any:  # noqa: ANN401 (a JSON value)
    """Turn a model value into JSON values: dataclasses to dicts of all their fields, tuples to lists.

    Raises:
        TypeError: The value is not part of a model.
    """
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} is not part of a model")
    return type_adapter(type(value)).dump_python(value, mode="json", by_alias=True, warnings=False)


def decode(cls: type[T], document: object, *, ignore_unknown: bool = False) -> T:
    """Turn JSON values back into a model value.

    Args:
        cls: The model's class.
        document: JSON values, or what one gets by reading them.
        ignore_unknown: Leave out keys that a newer version wrote; they are an error otherwise.

    Raises:
        DecodeError: A key without a default is missing, a key is unknown or of the wrong type, or the model refuses
            the values.
    """
    from pydantic import ValidationError

    if not isinstance(document, dict):
        raise DecodeError("", f"expected an object, found {type(document).__name__}")
    model: Any = cls
    adapter = type_adapter(model, ignore_unknown=ignore_unknown)
    try:
        # As JSON, because there a list is strictly a tuple, and a word strictly a member of an enum.
        text = json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        # A path that is not text in any encoding arrives with surrogates, which pydantic reads from no JSON text.
        text = None
    except ValueError as error:
        raise DecodeError("", "a number is not finite, and JSON has only those that are") from error
    try:
        value: T = adapter.validate_json(text) if text else adapter.validate_python(document, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
        raise DecodeError(_dotted(first["loc"], document), problem) from error
    return value


@cache
def type_adapter(cls: type, *, ignore_unknown: bool = False) -> TypeAdapter[Any]:
    """Return pydantic's reader and writer of a model class, which also derives its JSON Schema."""
    from pydantic import ConfigDict, TypeAdapter

    # A dataclass takes its settings from itself alone, and an optional one from here, down to the last field.
    optional: Any = cls | None
    return TypeAdapter(optional, config=ConfigDict(strict=True, extra="ignore" if ignore_unknown else "forbid"))


def _integer_of_text(text: object) -> int:
    if not isinstance(text, str) or not text.removeprefix("-").isdecimal() or len(text) > MAX_DIGITS:
        raise ValueError("expected an integer as text")
    return int(text)


def _dotted(location: tuple[int | str, ...], document: object) -> str:
    """Spell a place in a document, without the kinds that pydantic counts as parts of it."""
    path, value = "", document
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif isinstance(value, dict) and part not in value and part == value.get("kind"):
            continue
        else:
            path += f".{part}" if path else part
        try:
            value = value[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            value = None
    return path


MAX_VALUES = 4096
"""So many different values are known at once."""


_first: Any = lru_cache(maxsize=MAX_VALUES)(lambda value: value)
_read = lru_cache(maxsize=MAX_VALUES)(json.loads)


def once(value: T) -> T:
    """Return the first value that was equal to this one; both are frozen, down to the last part.

    One with a part that has no hash is returned as it is. So are arguments of expectations, in which 1 and true differ.
    """
    try:
        first: T = _first(value)
    except TypeError:
        return value
    return first


def document_once(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an equal JSON document, the same object for all that are equal; nobody may change it."""
    read: Mapping[str, Any] = _read(canonical_json(document))
    return read
