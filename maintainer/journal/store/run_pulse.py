"""Signs of life: each run of a state on a store renews one, so that other machines see whether it still goes on.

A lock shows that only on the machine of the run. A run whose sign has stopped is ended by the next one, before that one
looks into what the first left open: it may only have slept, and then finds before its next commit that it was ended.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.journal.folder.documents import StoredDocument, abreast, data_of, documents_in, value_in
from maintainer.journal.leases import LEASE_SECONDS, RENEWALS

PULSE_SECONDS = LEASE_SECONDS - LEASE_SECONDS // RENEWALS
"""A run that gave no sign for so long counts as dead: by one renewal of a lease less than that lasts, so that whoever
takes the lease of a dead run settles what that left open.
"""

FOLDER = "alive"


@dataclass(frozen=True, slots=True)
class Pulse:
    """One run's sign of life. ``ended_by`` is the run that ended it."""

    run_id: str
    host: str
    expires_at_ms: int
    ended_by: str | None = None


class EndedByAnother(Exception):
    """Another run found no sign of life of this one, and settles what it left open."""


class RunPulse:
    """The sign of life of one run. Not for several threads at once.

    Args:
        storage: The state.
        run_id: The run.
        now_ms: The store's clock, milliseconds since 1970 UTC.
    """

    def __init__(self, storage: ObjectStorage, run_id: str, now_ms: Callable[[], int]) -> None:
        self._documents = documents_in(storage, FOLDER)
        self._name = f"{run_id}.json"
        self._run_id = run_id
        self._now_ms = now_ms
        self._renewed = 0.0
        self._renewed_ms = 0

    def begin(self) -> None:
        """Give the first sign.

        Raises:
            StoreFailure: It could not be written.
        """
        self._write(None)

    def renew(self) -> None:
        """Give another sign.

        Raises:
            EndedByAnother: It came too late.
            StoreFailure: It could not be written.
        """
        document = self._documents.read(self._name)
        pulse = value_in(document, Pulse)
        if pulse is None or pulse.ended_by is not None or not self._write(document):
            raise EndedByAnother(f"run {pulse.ended_by}" if pulse and pulse.ended_by else "another run")

    def renew_if_late(self) -> None:
        """Make sure that no other run can have ended this one; the same errors as ``renew``."""
        # While a machine sleeps its monotonic clock stands still.
        slept_seconds = (self._now_ms() - self._renewed_ms) / 1000
        if max(time.monotonic() - self._renewed, slept_seconds) > PULSE_SECONDS / 2:
            self.renew()

    def end(self) -> None:
        """Take the sign away: the run is over and its record published.

        Raises:
            StoreFailure: It could not be removed, and stops by itself.
        """
        self._documents.storage.remove(f"{FOLDER}/{self._name}")

    def _write(self, before: StoredDocument | None) -> bool:
        asked, asked_ms = time.monotonic(), self._now_ms()
        pulse = Pulse(self._run_id, socket.gethostname(), asked_ms + PULSE_SECONDS * 1000)
        written = self._documents.replace(self._name, data_of(pulse), before)
        if written:
            self._renewed, self._renewed_ms = asked, asked_ms
        return written


def living_runs(
    storage: ObjectStorage, now_ms: int, *, ended_by: str | None, but_for: Collection[str] = ()
) -> dict[str, bool]:
    """Return for each run that began whether it still gives signs of life.

    Args:
        storage: The state.
        now_ms: The store's clock, milliseconds since 1970 UTC.
        ended_by: The run that ends those that do not; None only looks.
        but_for: Runs that were looked at before.

    Raises:
        StoreFailure: The store cannot be read.
    """
    documents = documents_in(storage, FOLDER)

    def looked_at(name: str) -> tuple[str, bool] | None:
        document = documents.read(name)
        pulse = value_in(document, Pulse)
        if pulse is None or pulse.run_id == ended_by:
            return None
        alive = pulse.ended_by is None and pulse.expires_at_ms > now_ms
        if not alive and pulse.ended_by is None and ended_by is not None:
            ended = replace(pulse, expires_at_ms=0, ended_by=ended_by)
            alive = not documents.replace(name, data_of(ended), document)
        return pulse.run_id, alive

    names = (name for name in documents.names() if name.removesuffix(".json") not in {*but_for, ended_by})
    return dict(filter(None, abreast(looked_at, names)))


def forget_pulses(storage: ObjectStorage, run_ids: Iterable[str]) -> None:
    """Delete the pulses of runs that were ended, and of which nothing is left to do.

    Raises:
        StoreFailure: They cannot be deleted.
    """
    abreast(lambda run_id: storage.remove(f"{FOLDER}/{run_id}.json"), run_ids)
