"""The run as a whole while it goes on, as the last live line on a terminal: how far, and what is left of its budget."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.model.outcome import StepOutcome, TableOutcome, TableStatus
from maintainer.model.progress import RunStarted
from maintainer.units import format_duration, format_size

_FAILED = frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED})


@dataclass(slots=True)
class WholeRun:
    """Counts what ended. Bytes are those that rewrites read."""

    started: RunStarted | None = None
    tables_ended: int = 0
    tables_failed: int = 0
    rewritten_bytes: int = 0

    def step(self, outcome: StepOutcome) -> None:
        """A step ended."""
        self.rewritten_bytes += sum(one.bytes_removed for one in outcome.commits)

    def table(self, outcome: TableOutcome) -> None:
        """A table ended; our own ledger is none of those that are counted."""
        if outcome.is_ledger:
            return
        self.tables_ended += 1
        self.tables_failed += outcome.status in _FAILED

    def line(self, now_ms: int) -> str | None:
        """The line; None for a run of one table, whose own line says it all."""
        started = self.started
        if started is None or started.num_tables < 2:
            return None
        failed = f", {self.tables_failed:,} failed" if self.tables_failed else ""
        parts = [f"{self.tables_ended:,} of {started.num_tables:,} tables{failed}"]
        if started.planned_bytes:
            parts.append(f"{format_size(self.rewritten_bytes)} of {format_size(started.planned_bytes)} rewritten")
        seconds = max(0, now_ms - started.at_ms) // 1000
        if started.timeout_seconds is not None:
            left = max(0, round(started.timeout_seconds) - seconds)
            parts.append(f"{_short(seconds)}, {_short(left)} left")
        else:
            parts.append(_short(seconds))
        return "   ".join(parts)


def _short(seconds: int) -> str:
    return format_duration(seconds).replace(" ", "")
