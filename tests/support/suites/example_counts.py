"""How many examples a property is tried with: a quarter in `make test`, all where ``HYPOTHESIS_PROFILE`` says so."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
SHARE = 4 if PROFILE == "ci" else 1


def examples(number: int) -> int:
    """Return how many of ``number`` examples this run tries."""
    return max(1, number // SHARE)
