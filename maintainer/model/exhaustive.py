"""The end of a ``match`` over a closed union."""

from __future__ import annotations

from typing import NoReturn


def assert_never(value: NoReturn) -> NoReturn:
    """Make the type checker prove that a ``match`` is complete (in ``typing`` only since Python 3.11)."""
    raise AssertionError(f"not handled: {value!r}")
