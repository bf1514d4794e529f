"""Measure the time before a run: starting the engine, and planning or checking a saved plan."""

from __future__ import annotations

import time

from maintainer.model.run.outcome import Preparation


class PreparationClock:
    """Runs from the moment in which it is made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._started = self._began

    def started(self) -> None:
        """Record that the engine is up and planning begins."""
        self._started = time.monotonic()

    def planned(self) -> Preparation:
        """Record that planning is over, and return what both took."""
        return Preparation(self._started - self._began, time.monotonic() - self._started)
