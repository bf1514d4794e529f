"""Keep equal values as one object: most of what is said of one table of a fleet is said of thousands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from maintainer.model.codec import canonical_json

T = TypeVar("T")

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
