"""A table's window is asked again before each step and each commit: a long run must not outlast it."""

from __future__ import annotations

from datetime import datetime, timezone

from maintainer.errors import WindowClosed
from maintainer.execution.attempt import Worker


def check_window(worker: Worker) -> None:
    """End here if the window in which the table was planned has closed.

    Raises:
        WindowClosed: C716; what is left is found again by the next plan.
    """
    closes = worker.plan.window_closes_ms
    if closes is not None and worker.context.clock.now_ms() >= closes:
        at = datetime.fromtimestamp(closes / 1000, tz=timezone.utc)
        raise WindowClosed(
            f"the window closed at {at:%Y-%m-%d %H:%M} UTC",
            where=worker.plan.ref.identifier,
            help="the rest is planned again in the next window; `--ignore-window` does it now",
        )
