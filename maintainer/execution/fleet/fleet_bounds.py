"""Limits of a run, which the fleet and its workers keep, and the batches of tables that it is cut into.

The next batch starts only when every table before it has ended, and none failed. As with Ansible's ``serial``, each
size is a number of tables or a share of all, and the last size is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from maintainer.execution.cancellation import StopSwitch
from maintainer.units import UnitError

BatchSize = int | str
"""A number of tables, or a share of all such as ``"20%"``."""

MAX_SIZES = 20
MAX_TABLES = 1_000_000

_T = TypeVar("_T")
_SHARE = re.compile(r"(100|[1-9][0-9]?)%")


def parse_batches(text: str) -> tuple[BatchSize, ...]:
    """Read ``1,5,20%``.

    Raises:
        UnitError: Not a list of sizes, or too long.
    """
    sizes = [size.strip() for size in text.split(",")]
    if len(sizes) > MAX_SIZES:
        raise UnitError(f"{len(sizes)} batches", f"at most {MAX_SIZES}; the last size is repeated anyway")
    return tuple(_size(size) for size in sizes)


def _size(text: str) -> BatchSize:
    if _SHARE.fullmatch(text):
        return text
    if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_TABLES)) and 1 <= int(text) <= MAX_TABLES:
        return int(text)
    raise UnitError(f"`{text[:20]}` is not the size of a batch", "write tables or a share of them, such as 1,5,20%")


def in_batches(tasks: Sequence[_T], sizes: Sequence[BatchSize]) -> list[list[_T]]:
    """Cut tasks into batches, in their order; one batch without sizes.

    A share is of all tasks, rounded down, and at least one.
    """
    if not sizes:
        return [list(tasks)] if tasks else []
    batches: list[list[_T]] = []
    start = 0
    while start < len(tasks):
        size = sizes[min(len(batches), len(sizes) - 1)]
        number = size if isinstance(size, int) else max(1, len(tasks) * int(size[:-1]) // 100)
        batches.append(list(tasks[start : start + number]))
        start += number
    return batches


@dataclass(frozen=True, slots=True)
class FleetBounds:
    """Limits of a run. Times in seconds.

    ``max_failures`` tables that fail while they run keep further ones from being started (None: no bound).
    Tables that could not even be planned are not counted.
    ``batches`` are sizes of the batches in which tables are started (see ``in_batches``); a table that failed keeps the
    next batch from being opened, unless ``max_failures`` allows more.
    After a stop, running commits get ``stop_grace_seconds`` to end by themselves, then their Spark jobs are cancelled;
    what has not ended ``hang_grace_seconds`` after that is given up and reported as such. At the end the ledger has
    ``ledger_seconds``, after a stop the grace period. After SIGTERM the two periods are ``terminate_...`` and the
    ledger is left to the next run: whoever sends it kills what is still there, Kubernetes after 30 seconds. When
    asked twice the first period is over, the second is that of SIGTERM, and the ledger is left, too.
    """

    jobs: int = 1
    max_failures: int | None = None
    run_timeout_seconds: float | None = None
    batches: tuple[BatchSize, ...] = ()
    heartbeat_seconds: float = 1.0
    stop_grace_seconds: float = 10.0
    hang_grace_seconds: float = 30.0
    terminate_grace_seconds: float = 5.0
    terminate_hang_seconds: float = 4.0
    tick_seconds: float = 0.2
    ledger_seconds: float = 300.0

    def __post_init__(self) -> None:
        if self.jobs < 1 or (self.max_failures is not None and self.max_failures < 1):
            raise ValueError("jobs and max_failures are at least 1")

    def grace_after(self, switch: StopSwitch) -> float:
        """Return how long running tables may go on after a stop; 0 when asked twice."""
        if switch.urgent:
            return 0.0
        return self.terminate_grace_seconds if switch.terminated else self.stop_grace_seconds

    def hang_after(self, switch: StopSwitch) -> float:
        """Return how long a cancelled table may take to end before it is given up; asked twice as after SIGTERM."""
        return self.terminate_hang_seconds if switch.terminated or switch.urgent else self.hang_grace_seconds

    def ledger_after(self, switch: StopSwitch) -> float:
        """Return how long the append to the ledger may take; by SIGTERM or when asked twice it is left."""
        if switch.stop_reason is None:
            return self.ledger_seconds
        return 0.0 if switch.terminated or switch.urgent else self.stop_grace_seconds
