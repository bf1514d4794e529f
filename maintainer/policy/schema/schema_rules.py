"""JSON Schema (the part of draft-07 that our schemas use) compiled into plain objects that are quick to walk.

The jsonschema package takes several times as long per file and reports one error for several unknown keys. It
is the reference that a property test holds this against. A keyword that is not known here is refused when
compiling: a rule in a schema is never ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from maintainer.policy.schema.schema_keys import JsonObject, load_schema, resolve_reference

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}

_FOR_PEOPLE = frozenset({"$schema", "$id", "title", "description", "default", "examples", "definitions"})
"""Keywords without a rule; so are those that begin with ``x-``."""

_FOR_EDITORS = frozenset({"not", "dependencies"})
"""Keywords of the top level only, checked by `maintainer.policy.schema.schema_check` in its own words."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one value may be. Bounds are inclusive; None means unbounded."""

    type_names: tuple[str, ...]
    python_types: frozenset[type]
    properties: dict[str, Rule] = field(default_factory=dict)
    additional: Rule | bool = True
    required: tuple[str, ...] = ()
    name_pattern: re.Pattern[str] | None = None
    name_max_length: int | None = None
    items: Rule | None = None
    unique: bool = False
    enum: tuple[object, ...] | None = None
    pattern: re.Pattern[str] | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    format: str | None = None
    example: object = None


@lru_cache(maxsize=8)
def compiled(name: str) -> Rule:
    """Return the rules of a schema file, compiled once per process."""
    return _compile(load_schema(name), name, top=True)


def _compile(schema: JsonObject, name: str, *, top: bool = False) -> Rule:
    if "$ref" in schema:
        target, name = resolve_reference(schema["$ref"], name)
        return _compile(target, name)
    _check_keywords(schema, name, top)
    types = schema.get("type", list(_PYTHON_TYPES))
    type_names = (types,) if isinstance(types, str) else tuple(types)
    additional = schema.get("additionalProperties", True)
    names: JsonObject = schema.get("propertyNames", {})
    return Rule(
        type_names=type_names,
        python_types=frozenset(python for one in type_names for python in _PYTHON_TYPES[one]),
        properties={key: _compile(inner, name) for key, inner in schema.get("properties", {}).items()},
        additional=_compile(additional, name) if isinstance(additional, dict) else additional,
        required=tuple(schema.get("required", ())),
        name_pattern=_pattern(names),
        name_max_length=names.get("maxLength"),
        items=_compile(schema["items"], name) if "items" in schema else None,
        unique=schema.get("uniqueItems", False),
        enum=_allowed_values(schema),
        pattern=_pattern(schema),
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        min_length=schema.get("minLength"),
        max_length=schema.get("maxLength"),
        min_items=schema.get("minItems"),
        max_items=schema.get("maxItems"),
        min_properties=schema.get("minProperties"),
        max_properties=schema.get("maxProperties"),
        format=schema.get("x-format"),
        example=next(iter(schema.get("examples", ())), None),
    )


_KEYWORDS = frozenset(
    {
        "type",
        "enum",
        "const",
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "items",
        "minItems",
        "maxItems",
        "uniqueItems",
        "properties",
        "additionalProperties",
        "required",
        "propertyNames",
        "minProperties",
        "maxProperties",
    }
)


def _check_keywords(schema: JsonObject, name: str, top: bool) -> None:
    allowed = _KEYWORDS | _FOR_PEOPLE | (_FOR_EDITORS if top else frozenset())
    unknown = [key for key in schema if key not in allowed and not key.startswith("x-")]
    if unknown:
        raise ValueError(f"{name} uses keywords that are not checked: {', '.join(unknown)}")


def _allowed_values(schema: JsonObject) -> tuple[object, ...] | None:
    if "const" in schema:
        return (schema["const"],)
    return tuple(schema["enum"]) if "enum" in schema else None


def _pattern(schema: JsonObject) -> re.Pattern[str] | None:
    """Compile a pattern; ``$`` must not match before a final line feed, as in ECMAScript."""
    pattern: Any = schema.get("pattern")
    return None if pattern is None else re.compile(re.sub(r"(?<!\\)\$(?=\)*$)", r"\\Z", pattern))
