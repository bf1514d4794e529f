"""Limits of a run, which the fleet and its workers keep."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.execution.fleet.rollout import BatchSize
from maintainer.execution.run.cancellation import StopSwitch


@dataclass(frozen=True, slots=True)
class FleetBounds:
    """Limits of a run. Times in seconds.

    ``max_failures`` tables that fail while they run keep further ones from being started (None: no bound;
    ``fail_fast`` means 1). Tables that could not even be planned are not counted.
    ``batches`` are sizes of the batches in which tables are started (see ``in_batches``); a table that failed keeps the
    next batch from being opened, unless ``max_failures`` allows more.
    After a stop, running commits get ``stop_grace_seconds`` to end by themselves, then their Spark jobs are cancelled;
    what has not ended ``hang_grace_seconds`` after that is given up and reported as such. At the end the ledger has
    ``ledger_seconds``, after a stop the grace period. After SIGTERM the two periods are ``terminate_...`` and the
    ledger is left to the next run: whoever sends it kills what is still there, Kubernetes after 30 seconds.
    """

    jobs: int = 1
    fail_fast: bool = False
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

    @property
    def failures_allowed(self) -> int | None:
        """Failed tables after which no further one is started."""
        return 1 if self.fail_fast else self.max_failures

    def grace_after(self, switch: StopSwitch) -> float:
        """Return how long running tables may go on after a stop; 0 when asked twice."""
        if switch.urgent:
            return 0.0
        return self.terminate_grace_seconds if switch.terminated else self.stop_grace_seconds

    def hang_after(self, switch: StopSwitch) -> float:
        """Return how long a cancelled table may take to end before it is given up."""
        return self.terminate_hang_seconds if switch.terminated else self.hang_grace_seconds
