"""What the recognizers of failures are given: one throwable of a chain."""

from __future__ import annotations

from typing import Protocol


class Failure(Protocol):
    """One throwable of a chain."""

    @property
    def type_name(self) -> str:
        """The simple name of its class."""
        ...

    @property
    def condition(self) -> str:
        """Its error class, or empty."""
        ...

    @property
    def message(self) -> str:
        """What it says, without the stack."""
        ...
