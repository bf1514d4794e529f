"""The command engine: one session for each worker, classic or over Spark Connect."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from maintainer.delta.commands.command_facts import CommandTableReader
from maintainer.delta.commands.command_session import CommandSession
from maintainer.delta.commands.command_versions import CommandVersionReader
from maintainer.delta.commands.command_writer import CommandTableWriter
from maintainer.delta.log.s3_write_safety import SINGLE_WRITER
from maintainer.delta.log.table_place import SpelledPlaces
from maintainer.engine.step_meter import StepMeter

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

FaultHook = Callable[[int], None]


class CommandTableEngine:
    """Implements ``TableEngine``: one worker's session."""

    def __init__(self, session: CommandSession, *, between_commit_and_proof: FaultHook | None = None) -> None:
        self.session = session
        self.meter = StepMeter()
        self.reader = CommandTableReader(session)
        self.versions = CommandVersionReader(session)
        self.writer = CommandTableWriter(
            session, self.reader, between_commit_and_proof=between_commit_and_proof, meter=self.meter
        )

    def begin_table(self) -> None:
        """See ``TableEngine``: an interrupt reaches only what runs at that moment."""


class CommandEngine:
    """Implements ``Engine`` on whatever opens a session for a worker's name."""

    deletes = False
    places = SpelledPlaces()

    def __init__(
        self,
        open_session: Callable[[str], AbstractContextManager[CommandSession]],
        *,
        between_commit_and_proof: FaultHook | None = None,
        single_writer: bool = False,
    ) -> None:
        self._single_writer = single_writer
        self._open = open_session
        self._between = between_commit_and_proof
        self._lock = threading.Lock()
        self._running: dict[str, CommandSession] = {}

    @contextmanager
    def worker(self, name: str) -> Iterator[CommandTableEngine]:
        """A worker with a session of its own; enter it on the thread that uses it."""
        with self._open(name) as session:
            if self._single_writer:
                session.spark.conf.set(SINGLE_WRITER, "true")
            with self._lock:
                self._running[name] = session
            try:
                yield CommandTableEngine(session, between_commit_and_proof=self._between)
            finally:
                with self._lock:
                    self._running.pop(name, None)

    def cancel(self, name: str) -> None:
        """Cancel what runs in the worker's session; nothing happens if the worker has ended."""
        with self._lock:
            session = self._running.get(name)
        if session is not None:
            with contextlib.suppress(Exception):  # the server may be gone, and then nothing runs
                session.interrupt()
