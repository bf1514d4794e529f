"""Says where two values of the model differ: by the path to the field, since a plan's own text is short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import islice

MAX_DIFFERENCES = 10


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain ``==`` of two dataclasses of one type, or of tuples and lists with some in them."""
    items = left if isinstance(left, (tuple, list)) else [left]
    if op != "==" or type(left) is not type(right) or not any(map(is_dataclass, items)):
        return None
    return [f"two values of {type(left).__name__}", *islice(differences(left, right, ""), MAX_DIFFERENCES)]


def differences(left: object, right: object, path: str) -> Iterator[str]:
    """Name each innermost field that differs, with both values."""
    if left == right:
        return
    if is_dataclass(left) and type(left) is type(right):
        for field in fields(left):
            if field.compare:
                name = field.name
                yield from differences(getattr(left, name), getattr(right, name), f"{path}.{name}")
    elif isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)) and len(left) == len(right):
        for number, pair in enumerate(zip(left, right, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    else:
        yield f"{path or 'value'}: {left!r} != {right!r}"
