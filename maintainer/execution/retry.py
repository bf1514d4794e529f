"""How often something is tried again after another writer won, and how long we wait in between.

Customers' writers win. Trying again at once and for ever would hurt them: each of our commits can make their DELETE or
MERGE fail. So few attempts, growing pauses with jitter, then the batch yields and the next plan takes it up.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryBounds:
    """Bounds of one table's retries.

    ``attempts`` counts tries of one batch in all. ``max_yields`` batches of a step may yield before the step is left:
    the table is hot, and what is left would meet the same writers. Pauses are ``first_pause_seconds`` doubled each
    time, at most ``max_pause_seconds``, times 0.5 to 1.5.
    """

    attempts: int = 3
    max_yields: int = 3
    first_pause_seconds: float = 0.5
    max_pause_seconds: float = 10.0
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.max_yields < 1:
            raise ValueError("at least one attempt and one yield")

    def pause_seconds(self, attempt: int) -> float:
        """The pause after the failed attempt of that number (from 1)."""
        pause = min(self.max_pause_seconds, self.first_pause_seconds * 2.0 ** min(attempt - 1, 30))
        return float(pause * (0.5 + self.random()))
