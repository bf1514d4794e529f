"""Ask a run to stop, from any machine that sees the state of its project; the run looks every few seconds."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from maintainer.journal.folder.documents import Documents, data_of, replaced, value_in

STOPS = "stops"
"""The folder of the state with a document for each run that was asked."""

LOOK_SECONDS = 4.0

STOPPED = "maintainer stop"
"""The stop reason of a run that was asked so; who asked, and why, is a note in its record."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Who asked a run to stop, when (milliseconds since 1970 UTC), and why."""

    by: str
    at_ms: int
    reason: str | None = None


def ask_to_stop(documents: Documents, run_id: str, request: StopRequest) -> None:
    """Write the request where the run looks for it; one that was written before is replaced.

    Raises:
        OSError: It cannot be written.
    """
    replaced(documents, f"{run_id}.json", lambda _: data_of(request))


@contextlib.contextmanager
def stopped_on_request(documents: Documents, run_id: str, stop: Callable[[StopRequest], None]) -> Iterator[None]:
    """Call ``stop`` once, on a thread of its own, when the run is asked to stop while inside.

    The request is removed at the end: who asked, and why, is in the run's record.
    """
    ended, name = threading.Event(), f"{run_id}.json"

    def poll() -> None:
        while not ended.wait(LOOK_SECONDS):
            # A store that is away, or a document that is damaged, stops nothing: it is looked at again.
            with contextlib.suppress(OSError):
                if (request := value_in(documents.read(name), StopRequest)) is not None:
                    stop(request)
                    return

    threading.Thread(target=poll, name="maintainer-stop", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        # One that stays is read by nobody.
        with contextlib.suppress(OSError):
            documents.remove(name)
