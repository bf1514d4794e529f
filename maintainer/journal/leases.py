"""Leases: one maintainer a table, with an expiry and a fencing token, in the project's state.

A lease is a small document beside the run folders, on this machine or on an object store. A run holds the lease of
each table it works on, renews it, and checks
right before each commit that it still holds it. The lease of a killed run ends when it is not renewed, or at once where
the run's own lock shows that it is dead. The token grows with every holder: a run that overslept its lease finds
another token and commits nothing.

Leases only save work. Delta's own commit protocol keeps tables whole, also where two projects maintain one table.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from maintainer.errors import Refused
from maintainer.journal.event_log import EVENTS_FILE, is_alive
from maintainer.journal.folder.atomic_files import FolderUnwritable, LockHeld
from maintainer.journal.folder.documents import (
    Documents,
    LocalDocuments,
    StoredDocument,
    abreast,
    data_of,
    replaced,
    value_in,
)
from maintainer.journal.folder.run_folder import LEASES, file_name

LEASE_SECONDS = 120
"""A lease that was not renewed for so long has ended."""

LONGEST_SECONDS = LEASE_SECONDS + 600
"""Nobody writes a lease that ends later than this from now, also where two machines' clocks differ by ten minutes."""

RENEWALS = 4
"""Renewals within the life of a lease: so many may fail to happen in time, less one."""


FORGOTTEN_AFTER_DAYS = 30
"""The lease of a table that nobody had for so long is deleted: the table may be gone. Tokens begin anew then; a lease
is that of a run, too, so nobody's old one counts again.
"""

RELEASES = 3
"""Tries to give a lease back: a single failure of the storage leaves none behind."""


@dataclass(frozen=True, slots=True)
class Holder:
    """What a lease file says."""

    run_id: str
    table: str
    host: str
    token: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that was given, by the name of its document: proof of it is the token.

    ``previous_run`` held it before, None where nobody did: what that run recorded is not known to a run that began
    earlier.
    """

    name: str
    token: int
    previous_run: str | None = None


class Leases:
    """The leases of one run. Used from several threads.

    Args:
        runs_dir: The folder of all runs; leases lie beside it.
        run_id: The run that asks for them.
        now_ms: The clock, milliseconds since 1970 UTC.
        seconds: Life of a lease without renewal.
        documents: Where leases are kept that other machines share; None: beside the run folders.
    """

    def __init__(
        self,
        runs_dir: Path,
        run_id: str,
        now_ms: Callable[[], int],
        *,
        seconds: float = LEASE_SECONDS,
        documents: Documents | None = None,
    ) -> None:
        # A lock shows that a run is dead only where that run is one of this machine's.
        self._local_runs = runs_dir if documents is None else None
        self._documents = documents or local_leases(runs_dir)
        self._run_id = run_id
        self._now_ms = now_ms
        self._seconds = seconds
        self._host = socket.gethostname()
        self._held: dict[str, tuple[Lease, str]] = {}
        self._sharing: dict[str, int] = {}
        self._lock = threading.Lock()
        self._acquiring = threading.Lock()
        self._closed = threading.Event()
        self._renewer: threading.Thread | None = None

    def acquire(self, table_id: str, table: str) -> Lease:
        """Take the lease of a table.

        A run that works on two tables with one id, of which one is a copy, shares the lease between them.

        Args:
            table_id: The table's own id, which is the same whatever path leads to it.
            table: Its identifier, for messages.

        Raises:
            Refused: A406, another run holds it.
            FolderUnwritable: E651, the state cannot be written.
        """
        name = f"{file_name(table_id)}.json"
        with self._acquiring:
            with self._lock:
                if name in self._held:
                    self._sharing[name] += 1
                    return self._held[name][0]
            try:
                lease = self._take(name, table)
            except LockHeld as error:
                help = f"wake up or end that process (`fuser {error.filename}` names it), then use `maintainer retry`"
                raise _busy(table, error.strerror, help) from error
            except OSError as error:
                raise FolderUnwritable.at(Path(self._documents.place(name)), error, code="E651") from error
            with self._lock:
                self._held[name] = (lease, table)
                self._sharing[name] = 1
                if self._renewer is None:
                    self._renewer = threading.Thread(target=self._renew_all, name="maintainer-leases", daemon=True)
                    self._renewer.start()
        return lease

    def _take(self, name: str, table: str) -> Lease:
        def as_ours(document: StoredDocument | None) -> bytes:
            before = value_in(document, Holder)
            if before is not None and not self._ended(before):
                seconds_left = max(0, before.expires_at_ms - self._now_ms()) // 1000
                on = before.host if before.table == table else f"{before.host} at {before.table}, which has the same id"
                found = f"run {before.run_id} on {on}; its lease ends in {seconds_left} s if it is not renewed"
                help = "wait for that run, then use `maintainer retry`; if that run is dead: "
                raise _busy(table, found, f"{help}`maintainer leases break TABLE --reason TEXT`")
            return data_of(self._holder(table, 1 if before is None else before.token + 1))

        before = value_in(replaced(self._documents, name, as_ours), Holder)
        return Lease(name, 1, None) if before is None else Lease(name, before.token + 1, before.run_id)

    def check(self, lease: Lease, table: str) -> None:
        """Make sure, right before a commit, that the lease is still ours.

        Raises:
            Refused: A407, it ended and another run took it, or it cannot be read.
        """
        try:
            holder = value_in(self._documents.read(lease.name), Holder)
        except OSError as error:
            found = f"{self._documents.place(lease.name)}: {error.strerror or error}"
            help = "make the place readable; `maintainer retry` does the rest"
            raise _lost(table, "cannot be read", found, help) from error
        if not self._is_ours(holder, lease):
            found = f"run {holder.run_id} on {holder.host} has it now" if holder else "the lease was removed"
            help = "this process was paused for longer than a lease lasts, or somebody ended its lease; "
            raise _lost(table, "was lost", found, f"{help}`maintainer retry` does what is left")

    def release(self, lease: Lease) -> OSError | None:
        """Give a lease back; a failure is tried again. Never raises: one that stays behind ends by itself.

        Returns:
            Why it could not be given back; None where it was, where it is another's by now, or where it is shared.
        """
        with self._lock:
            sharing = self._sharing.pop(lease.name, 1) - 1
            if sharing > 0:
                self._sharing[lease.name] = sharing
                return None
            self._held.pop(lease.name, None)
        failure: OSError | None = None
        for _ in range(RELEASES):
            try:
                self._give_back(lease)
            except OSError as error:
                failure = error
            else:
                return None
        return failure

    def _give_back(self, lease: Lease) -> None:
        document = self._documents.read(lease.name)
        holder = value_in(document, Holder)
        if holder is None or not self._is_ours(holder, lease):
            return
        # Not removed: the next holder's token must be greater.
        ended = data_of(replace(holder, expires_at_ms=0))
        if not self._documents.replace(lease.name, ended, document, durable=False):
            raise OSError(0, "the lease was renewed meanwhile")  # and is tried again

    def close(self) -> None:
        """Give back whatever is still held, and renew no more. Leases that nobody had for long are deleted."""
        self._closed.set()
        with self._lock:
            held = [lease for lease, _ in self._held.values()]
            self._sharing.clear()
        for lease in held:
            self.release(lease)
        with contextlib.suppress(OSError):  # the next run does it
            for name in self._documents.names(self._now_ms() - FORGOTTEN_AFTER_DAYS * 86_400_000):
                self._documents.remove(name)

    def renew(self) -> None:
        """Renew every lease that is held, if it is still ours."""
        with self._lock:
            held = list(self._held.values())
        for lease, table in held:
            with contextlib.suppress(OSError):
                document = self._documents.read(lease.name)
                holder = value_in(document, Holder)
                if holder is not None and self._is_ours(holder, lease) and holder.expires_at_ms:
                    # Not where it was given back or taken since it was read.
                    self._documents.replace(lease.name, data_of(self._holder(table, lease.token)), document)

    def _renew_all(self) -> None:
        while not self._closed.wait(self._seconds / RENEWALS):
            self.renew()

    def _ended(self, holder: Holder) -> bool:
        """Whether a holder has given up; our own earlier lease never stands in our way."""
        return holder.run_id == self._run_id or _has_ended(holder, self._local_runs, self._now_ms())

    def _is_ours(self, holder: Holder | None, lease: Lease) -> bool:
        return holder is not None and (holder.token, holder.run_id) == (lease.token, self._run_id)

    def _holder(self, table: str, token: int) -> Holder:
        return Holder(self._run_id, table, self._host, token, self._now_ms() + int(self._seconds * 1000))


def _busy(table: str, found: str | None, help: str) -> Refused:
    what = "another run is working on the table"
    return Refused(what, code="A406", where=table, found=found, help=f"nothing was changed; {help}")


def _lost(table: str, how: str, found: str, help: str) -> Refused:
    what = f"the lease on the table {how}, so nothing more is committed to it"
    return Refused(what, code="A407", where=table, found=found, help=help)


def local_leases(runs_dir: Path) -> Documents:
    """Return the leases beside a folder of runs of this machine."""
    return LocalDocuments(runs_dir.parent / LEASES)


def current_holders(runs_dir: Path, now_ms: int, documents: Documents | None = None) -> dict[str, Holder]:
    """Return who works on which table now, by the table's identifier; nothing is locked or changed.

    Args:
        runs_dir: The folder of all runs; leases lie beside it.
        now_ms: Milliseconds since 1970 UTC.
        documents: Where leases are kept that other machines share; None: beside the run folders.

    Raises:
        OSError: The leases cannot be listed, or one of them not read.
    """
    local_runs = runs_dir if documents is None else None
    held = (holder for _, holder in all_leases(documents or local_leases(runs_dir)))
    return {holder.table: holder for holder in held if not _has_ended(holder, local_runs, now_ms)}


def all_leases(documents: Documents) -> list[tuple[str, Holder]]:
    """Return every lease that is whole, by the name of its document; whether it has ended is not looked at.

    Raises:
        OSError: The leases cannot be listed, or one of them not read.
    """
    names = documents.names()
    holders = zip(names, abreast(lambda name: value_in(documents.read(name), Holder), names), strict=True)
    return [(name, holder) for name, holder in holders if holder is not None]


def break_lease(documents: Documents, name: str, by_run: str) -> Holder | None:
    """End a lease, whoever holds it: its holder commits nothing more. None where there is none any more.

    Args:
        documents: The leases.
        name: The lease's document; see ``all_leases``.
        by_run: The run that records it; the holder's error names it.

    Raises:
        OSError: It cannot be written.
    """

    def ended(document: StoredDocument | None) -> bytes | None:
        broken = value_in(document, Holder)
        if broken is None:
            return None
        return data_of(Holder(by_run, broken.table, socket.gethostname(), broken.token + 1, 0))

    return value_in(replaced(documents, name, ended), Holder)


def _has_ended(holder: Holder, local_runs: Path | None, now_ms: int) -> bool:
    """Whether a lease was given back, was not renewed in time, or belongs to a run of this machine that is dead.

    A lease that ends later than any lease can was written by a wrong clock, and keeps nobody out.
    """
    if now_ms >= holder.expires_at_ms or holder.expires_at_ms > now_ms + LONGEST_SECONDS * 1000:
        return True
    if local_runs is None or holder.host != socket.gethostname():
        return False
    folder = local_runs / holder.run_id
    return folder.is_dir() and not is_alive(folder / EVENTS_FILE)
