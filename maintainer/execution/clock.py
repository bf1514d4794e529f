"""The clock of a run: given from outside, so that tests need no waiting and plans no second clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """``now_ms`` for records (milliseconds since 1970 UTC), ``monotonic`` for durations (seconds)."""

    now_ms: Callable[[], int] = _wall_ms
    monotonic: Callable[[], float] = time.monotonic
