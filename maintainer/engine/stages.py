"""What a command waits for before a run shows its own progress: starting Spark, reading tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StageListener:
    """Hears what is waited for. This one says nothing. Its methods may be called from any thread and must not raise."""

    def began(self, stage: str) -> None:
        """Hear that something begins that may take seconds: ``reading 12 tables``."""

    @contextmanager
    def waiting(self, stage: str) -> Iterator[None]:
        """Hear that the block is one long wait, of which nothing else can be said: ``starting Spark``."""
        self.began(stage)
        yield

    def lasts(self, stage: str, seconds: float) -> None:
        """Hear that it still goes on, now and again, with what is worked on: ``reading sales.orders``."""

    def counted(self, stage: str, number: int, total: int) -> None:
        """Hear, several times a second, how far a stage has come that began."""


SILENT = StageListener()
"""For the Python API, and for looks that are repeated."""

STARTING_JAVA, STARTING_SPARK = "starting Java", "starting Spark"
