"""What a worker's step is doing now and how far it is: written by the threads that do it, read by whoever shows it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from maintainer.model.run.progress import Phase, StepProgress


class StepMeter:
    """The progress of one worker's current piece of work, a batch or a deletion. Used from any thread; never waits.

    Bytes are those of the files that are rewritten. Each part of the work (a bin) says how many of its own it has read
    and written so far, so that saying it twice changes nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin(Phase.READING_LOG, 0)

    def begin(self, phase: Phase, total_bytes: int = 0) -> None:
        """Begin a phase whose work has this many bytes, 0 where they are not counted."""
        with self._lock:
            self._begin(phase, total_bytes)

    def _begin(self, phase: Phase, total_bytes: int) -> None:
        self._phase, self._total_bytes = phase, total_bytes
        self._read: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._tasks, self._files = (0, 0), (0, 0)

    def read(self, part: int, size_bytes: int) -> None:
        """Say how many bytes of a part are read."""
        with self._lock:
            self._read[part] = size_bytes

    def written(self, part: int, size_bytes: int) -> None:
        """Say how many bytes of a part are written again, in bytes of the files that it was read from."""
        with self._lock:
            self._written[part] = size_bytes

    def written_as_read(self, part: int) -> None:
        """Say that all that was read of a part is written."""
        with self._lock:
            self._written[part] = self._read.get(part, 0)

    def restart(self, part: int) -> None:
        """Forget what a part said: it is done in another way."""
        with self._lock:
            self._read.pop(part, None)
            self._written.pop(part, None)

    def tasks(self, num_done: int, num_total: int) -> None:
        """Say how many tasks of the running Spark jobs are done."""
        with self._lock:
            self._tasks = (num_done, num_total)

    def files(self, num_done: int, num_total: int) -> None:
        """Say how many files are done."""
        with self._lock:
            self._files = (num_done, num_total)

    def progress(self) -> StepProgress:
        """Return what is known now."""
        with self._lock:
            read, written = sum(self._read.values()), sum(self._written.values())
            is_written = self._phase is Phase.READING and written > 0
            return StepProgress(
                phase=Phase.WRITING if is_written else self._phase,
                bytes_done=min(written if is_written else read, self._total_bytes),
                bytes_total=self._total_bytes,
                num_tasks_done=self._tasks[0],
                num_tasks=self._tasks[1],
                num_files_done=self._files[0],
                num_files=self._files[1],
            )


POLL_SECONDS = 1.0


@contextmanager
def polled(update: Callable[[], None]) -> Iterator[None]:
    """Call ``update`` each second within the block, on a thread of its own, about something that runs in one call.

    What it raises is not said: it only shows.
    """
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(POLL_SECONDS):
            with contextlib.suppress(Exception):
                update()

    threading.Thread(target=poll, name="maintainer-progress", daemon=True).start()
    try:
        yield
    finally:
        ended.set()  # not joined: a look at an engine that hangs must not hold the work up
