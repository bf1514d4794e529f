"""The end of every ``match`` over a closed union (``typing.assert_never`` exists only since Python 3.11)."""

from __future__ import annotations

from typing import NoReturn


def assert_never(value: NoReturn) -> NoReturn:
    """Make the type checker prove that a ``match`` is complete.

    Raises:
        AssertionError: The value is of a kind that the ``match`` does not know: a bug of ours.
    """
    raise AssertionError(f"not handled: {value!r}")
