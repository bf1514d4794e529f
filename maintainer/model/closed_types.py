"""Closed sets: enums whose members are words, and the last branch of a ``match`` over a closed union."""

from __future__ import annotations

import enum
from typing import NoReturn


class TextEnum(str, enum.Enum):
    """An enum of words that prints as the word in every Python version (``enum.StrEnum`` came with 3.11)."""

    __str__ = str.__str__


def assert_never(value: NoReturn) -> NoReturn:
    """Make the type checker prove that a ``match`` is complete (in ``typing`` only since Python 3.11)."""
    raise AssertionError(f"not handled: {value!r}")
