"""Write files that survive a power cut: whole or not at all, and on the disk when the call returns.

A temporary file is written, synced and renamed over the old one, so that a reader never sees half a document. The
rename is durable once the folder is synced as well.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from maintainer.errors import EnvironmentUnfit, ProjectError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: runs there cannot see whether another one is alive
    fcntl = None  # type: ignore[assignment] # the module is absent, which every use below asks for

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

ABANDONED_AFTER_SECONDS = 3600
"""A temporary file is renamed within milliseconds; an hour later its process was killed, whatever a clock says."""

LOCK_SECONDS = 10.0
"""A lock is held for milliseconds: whoever holds it for so long is paused, or its disk hangs."""

_LOCK_TRY_SECONDS = 0.01

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")


class LockHeld(TimeoutError):
    """Another process has held a lock for too long. ``filename`` is the lock file."""

    def __init__(self, path: Path) -> None:
        why = f"another process has held the lock {path} for {LOCK_SECONDS:g} s, and may be paused"
        super().__init__(errno.ETIMEDOUT, why, str(path))


class FolderUnwritable(EnvironmentUnfit):
    """A file of the run folder or the state could not be written: full disk, permission, read-only storage.

    ``E650`` before anything was touched, ``E651`` in the middle of a run (no further commit is tried).
    """

    default_code = "E650"

    @staticmethod
    def at(path: Path, error: OSError, *, code: str = "E650") -> FolderUnwritable:
        """Say which path could not be written and why, in words of the operating system."""
        what = "the run folder cannot be written" if code == "E650" else "the run folder can no longer be written"
        remedy = "make the folder writable and give it space"
        if isinstance(error, LockHeld):
            remedy = f"wake up or end the process that holds the lock (`fuser {error.filename}` names it)"
        found, help = error.strerror or str(error), f"{remedy}; nothing is committed without a record of it"
        return FolderUnwritable(what, code=code, where=str(path), found=found, help=help)


@contextlib.contextmanager
def recording(path: Path, *, code: str = "E651") -> Iterator[None]:
    """Turn a failure to write a part of the run folder or the state into our error.

    Raises:
        FolderUnwritable: With the code.
    """
    try:
        yield
    except OSError as error:
        raise FolderUnwritable.at(path, error, code=code) from error


@contextlib.contextmanager
def reading_runs(path: Path) -> Iterator[None]:
    """Turn an OSError inside into an error for people.

    Args:
        path: The folder of runs that is listed, or whose records are read.

    Raises:
        EnvironmentUnfit: E641.
    """
    try:
        yield
    except OSError as error:
        what, found = "the run folders cannot be read", error.strerror or str(error)
        help = "let this user read the folder; what earlier runs left open is found there"
        raise EnvironmentUnfit(what, code="E641", where=str(path), found=found, help=help) from error


UNREADABLE = "what earlier runs recorded cannot be read, so nothing is rewritten or deleted"


def unreadable_state(path: Path, found: str, help: str, *, what: str = UNREADABLE) -> EnvironmentUnfit:
    """Return the error for a part of the state that is there and not understood: nothing is acted on without it."""
    return EnvironmentUnfit(what, code="E641", where=str(path), found=found, help=help)


@contextlib.contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """Turn a failure to write a file that the user asked for into our error; ``what`` names the file's content.

    Raises:
        ProjectError: E640, it cannot be written there.
    """
    try:
        yield
    except OSError as error:
        why, help = error.strerror or error, "name a file in a folder that exists and that you may write to"
        raise ProjectError(f"{what} cannot be written: {why}", code="E640", where=str(path), help=help) from error


def sync_folder(folder: Path) -> None:
    """Make renames and new names in the folder durable. Storage that cannot sync a folder is left alone."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomically(path: Path, data: bytes | Iterable[bytes], *, durable: bool = True) -> None:
    """Put ``data``, or its pieces, at ``path`` so that a reader sees the old content or the new one, never a part.

    Raises:
        OSError: It could not be written; the old content still stands.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                view = memoryview(piece)
                while view:
                    view = view[os.write(handle, view) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except Exception:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def remove_abandoned(folder: Path, now_ms: int) -> None:
    """Delete the temporary files of ``write_atomically`` that killed processes left in a folder; never raises.

    Args:
        folder: Where they lie; folders in it are not looked into.
        now_ms: Milliseconds since 1970 UTC. Files younger than ``ABANDONED_AFTER_SECONDS`` may be at work.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # gone already, or not ours to delete
                    if entry.stat(follow_symlinks=False).st_mtime < now_ms / 1000 - ABANDONED_AFTER_SECONDS:
                        os.unlink(entry.path)


def read_document(path: Path) -> str:
    """Return the text of a document of ours; a name in it that is text in no encoding was written with surrogates.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is something else.
    """
    with open_document(path) as file:
        return file.read()


def open_document(path: Path) -> TextIO:
    """Open such a document, for whoever reads it piece by piece."""
    return path.open(encoding="utf-8", errors="surrogatepass", newline="")


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Take an advisory lock that ends with the process; False when another one holds it.

    Any number of processes may hold one that is ``shared``, beside none that is not: so who looks whether it is held
    does not look like its holder.

    Storage without locks counts as lockable: then a run that is still alive looks dead, which costs a second look
    at the table's log and nothing else.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file while a shared file is read and rewritten; wait for at most ``LOCK_SECONDS``.

    The lock is never taken from a process that is paused: when it wakes up it would write what it read long ago.

    Raises:
        LockHeld: Another process did not let go of it in time.
        OSError: The lock file cannot be made.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        give_up_at = time.monotonic() + LOCK_SECONDS
        while not try_lock(handle):
            if time.monotonic() >= give_up_at:
                raise LockHeld(path)
            time.sleep(_LOCK_TRY_SECONDS)
        yield
    finally:
        os.close(handle)
