"""What a user may say about the Spark session that does the work, and what a command waits for before it has one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


class StageListener:
    """Hears what is waited for. This one says nothing. Its methods may be called from any thread and must not raise."""

    def began(self, stage: str) -> None:
        """Hear that something begins that may take seconds: ``reading 12 tables``."""

    @contextmanager
    def waiting(self, stage: str) -> Iterator[None]:
        """Hear that the block is one long wait, of which nothing else can be said: ``starting Spark``."""
        self.began(stage)
        yield

    @contextmanager
    def lasting(self, stage: str) -> Iterator[None]:
        """Hear of the block only once it has gone on for long, and then how long it lasts."""
        yield

    def lasts(self, stage: str, seconds: float) -> None:
        """Hear, several times a second, for how long a part of a stage goes on: ``reading sales.orders``."""

    def counted(self, stage: str, number: int, total: int) -> None:
        """Hear, several times a second, how far a stage has come that began."""


SILENT = StageListener()
"""For the Python API, and for looks that are repeated."""

STARTING_JAVA, STARTING_SPARK = "starting Java", "starting Spark"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What the user may say about the session.

    Args:
        master: A Spark master; None means ``local[*]``, or whatever a borrowed session has.
        conf: Settings from the project, then from ``--conf``; later ones win.
        log_path: Where Spark's own words go; None keeps them in a private folder that is removed at the end.
        app_name: The name that shows in Spark's UI and history.
        long_work: Let the JVM compile for hours of work. Else it starts and warms up in half the CPU, and what it
            runs for long is slower.
        record_classes: Record an archive of classes when the session ends, a new one where there is one.
        remote: A Spark Connect server, ``sc://host:port``; only the command engine can use one.
        stages: Hears when Java and Spark start.
        storage: Kinds of object store (``s3``, ``azure``, ``gcs``) that tables lie on, whose connectors are needed.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    log_path: Path | None = None
    app_name: str = "maintainer"
    long_work: bool = False
    record_classes: bool = False
    remote: str | None = None
    stages: StageListener = field(default=SILENT, compare=False)
    storage: tuple[str, ...] = ()

    @property
    def conf_map(self) -> dict[str, str]:
        """The settings as a mapping; a later one replaces an earlier one."""
        return dict(self.conf)
