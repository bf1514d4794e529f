"""Append a run's rows to the ledger, as its last act, within a time limit that a signal cuts short.

The rows are written to the run folder first. The next run appends what did not land in time; each append carries the
run as its token, so no row lands twice.
"""

from __future__ import annotations

import threading

from maintainer.execution.run.cancellation import StopSwitch
from maintainer.execution.run.run_context import Clock
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.journal.ledger.ledger_pending import LATER, flush
from maintainer.journal.ledger.ledger_rows import LedgerRow, LedgerSink
from maintainer.model.plan.plan import Problem

TICK_SECONDS = 0.1


def append_within(
    folder: RunFolder,
    rows: tuple[LedgerRow, ...],
    sink: LedgerSink | None,
    *,
    clock: Clock,
    switch: StopSwitch,
    limit_seconds: float,
    stop_grace_seconds: float,
) -> Problem | None:
    """Append a run's rows and those that wait from earlier runs, on a thread of its own.

    Args:
        folder: The run's folder.
        rows: The run's rows.
        sink: The ledger; None keeps the rows in the folder.
        clock: For the limits.
        switch: Once it is thrown, the append has ``stop_grace_seconds`` to end; by SIGTERM none, and it is not begun.
        limit_seconds: How long the append may take at most.
        stop_grace_seconds: How long it may take after a stop; nothing when asked twice.

    Returns:
        What went wrong, for the report; the run does not fail by it.
    """
    if switch.terminated and sink is not None:
        what = "the ledger was not written: after SIGTERM there is no time for it"
        unwritten = Problem("E652", what, str(folder.path), LATER) if rows else None
        return flush(folder, rows, None) or unwritten
    results: list[Problem | None] = []
    worker = threading.Thread(target=lambda: results.append(flush(folder, rows, sink)), name="ledger", daemon=True)
    started = clock.monotonic()
    stopped_at = started if switch.stop_reason is not None else None
    worker.start()
    while worker.is_alive():
        worker.join(TICK_SECONDS)
        now = clock.monotonic()
        if stopped_at is None and switch.stop_reason is not None:
            stopped_at = now
        grace = 0.0 if switch.urgent or switch.terminated else stop_grace_seconds
        if now - started > limit_seconds:
            return _given_up(f"not done within {limit_seconds:g} s", folder)
        if stopped_at is not None and now - stopped_at > grace and worker.is_alive():
            return _given_up(f"stopped: {switch.stop_reason}", folder)
    if not results:
        return _given_up("the ledger writer ended without a result", folder)
    return results[0]


def _given_up(why: str, folder: RunFolder) -> Problem:
    return Problem("E652", f"the ledger could not be written: {why}", str(folder.path), LATER)
