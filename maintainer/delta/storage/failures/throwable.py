"""What the recognizers of failures are given: one throwable of a chain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """One throwable: simple class name, error class (or empty), message without stack trace."""

    type_name: str
    condition: str
    message: str
