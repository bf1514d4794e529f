"""Calls something once a second beside the work, so that durations on a terminal go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERVAL_SECONDS = 1.0


@contextmanager
def ticking(call: Callable[[], None]) -> Iterator[None]:
    """While inside, call it once a second from a thread of its own. What it raises ends the ticking, nothing else."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(INTERVAL_SECONDS):
            call()

    thread = threading.Thread(target=tick, name="ticking", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=INTERVAL_SECONDS)
