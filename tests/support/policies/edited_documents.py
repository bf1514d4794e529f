"""JSON documents with one value changed."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from typing import Any

from maintainer.model.codec import canonical_json

Json = dict[str, Any]
Place = tuple[str | int, ...]


def leaves(value: object, place: Place = ()) -> Iterator[tuple[Place, object]]:
    """Every field of a document with a value of its own."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*place, index))
    else:
        yield place, value


def other(value: object) -> object:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return "x" if value is None else f"{value}x"


def edited(document: Json, place: Place, value: object) -> Json:
    """The document with another value in one place."""
    result = copy.deepcopy(document)
    node: Any = result
    for part in place[:-1]:
        node = node[part]
    node[place[-1]] = value
    return result


def digest_of(document: Json) -> str:
    """The digest that belongs to a plan's document, whatever digest is in it."""
    content = {key: value for key, value in document.items() if key != "digest"}
    return "sha256:" + hashlib.sha256(canonical_json(content).encode("utf-8", "surrogatepass")).hexdigest()
