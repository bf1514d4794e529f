"""Build jsonschema's validators of our schemas; keywords of our own begin with ``x-``.

jsonschema is imported late: most commands end before they need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from maintainer.policy.schema.formats import check_format, is_zero
from maintainer.policy.schema.schema_keys import JsonObject, load_schema, resolve_reference

if TYPE_CHECKING:
    from jsonschema import ValidationError

_FOR_PEOPLE = frozenset({"$schema", "$id", "title", "description", "default", "definitions"})
"""Keywords without a rule, which messages do not need either."""

_FOR_EDITORS = frozenset({"not", "dependencies"})
"""Keywords that editors need; `schema_check` says the same for each kind of file in better words."""

_KEYWORDS = (
    {"type", "enum", "const", "examples"}
    | {"pattern", "minimum", "maximum", "minLength", "maxLength"}
    | {"items", "minItems", "maxItems", "uniqueItems"}
    | {"properties", "additionalProperties", "required", "propertyNames", "minProperties", "maxProperties"}
)
"""Keywords for which `schema_check` has words; so it has for those that begin with ``x-``."""


@lru_cache(maxsize=8)
def schema_validator(name: str) -> Any:  # noqa: ANN401 (jsonschema's own class, imported late)
    """Return jsonschema's validator of one of our schema files. An integer is never a boolean or ``1.0``.

    Raises:
        ValueError: The schema has a keyword for which we have no words.
    """
    import jsonschema

    draft = jsonschema.Draft7Validator
    strict = draft.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    # Untyped in the stubs; what comes out is a class like the one that went in.
    extend: Any = jsonschema.validators.extend
    keywords = {"x-format": _check_format, "x-notSupported": _refuse, "x-aboveZero": _check_above_zero}
    validator = extend(draft, keywords, type_checker=strict)
    return validator(_without_references(load_schema(name), name))


def _without_references(schema: JsonObject, name: str) -> JsonObject:
    """Put what each ``$ref`` names in its place: following them takes as long as all other checks together."""
    if "$ref" in schema:
        target, home = resolve_reference(schema["$ref"], name)
        return _without_references(target, home)
    inlined: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in _FOR_PEOPLE | _FOR_EDITORS:
            continue
        if keyword in ("pattern", "minimum") and schema.get("x-format") in ("size", "duration"):
            # For editors, which know no ``x-format``: ours accepts a little more, and says what is wrong.
            continue
        if keyword not in _KEYWORDS and not keyword.startswith("x-"):
            raise ValueError(f"{name} uses a keyword that is not known: {keyword}")
        if keyword == "properties":
            value = {key: _without_references(inner, name) for key, inner in value.items()}
        elif keyword == "pattern":
            # `$` must not match before a final line feed, as in ECMAScript.
            value = re.sub(r"(?<!\\)\$(?=\)*$)", r"\\Z", value)
        elif isinstance(value, dict):
            value = _without_references(value, name)
        inlined[keyword] = value
    return inlined


def _check_format(_: object, format: str, value: object, __: JsonObject) -> Iterator[ValidationError]:
    """Check the keyword ``x-format``; whoever shows the error asks `check_format` for the words."""
    from jsonschema import ValidationError

    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        problem = check_format(format, value)
        if problem is not None:
            yield ValidationError(problem.message)


def _refuse(_: object, help: str, value: object, __: JsonObject) -> Iterator[ValidationError]:
    """Check the keyword ``x-notSupported``: the key is in the language, and this version does not do it."""
    from jsonschema import ValidationError

    if value is not None:
        yield ValidationError(help)


def _check_above_zero(_: object, help: str, value: object, schema: JsonObject) -> Iterator[ValidationError]:
    """Check the keyword ``x-aboveZero``: a size or duration of nothing. It holds what to write instead."""
    from jsonschema import ValidationError

    if isinstance(value, (str, int)) and is_zero(schema["x-format"], value):
        yield ValidationError(help)
