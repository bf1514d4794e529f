"""Standard output and standard error of this process, whose readers may go away: ``maintainer plan 2>&1 | head``.

A command goes on without them: what was begun is done and recorded, and the exit code is what it would be. So it does
where they are a file on a full disk; then the exit code is not 0.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _MaybeUnread(io.FileIO):
    """A stream of the process. Once nobody reads it, what is written is dropped, also what others write to it."""

    has_no_reader = False
    failure: OSError | None = None
    """What kept a reader from the whole of it, such as a full disk."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.has_no_reader = True
            if error.errno not in (errno.EPIPE, errno.EIO):  # a pipe, a terminal that was closed
                self.failure = error
            _to_nowhere(self.fileno())
            return memoryview(data).nbytes


def open_standard_streams() -> None:
    """Let this process write to streams that nobody reads, and to those that it was started without."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # the next file that is opened would have its number, and Java's warnings in it
            _to_nowhere(descriptor)
    sys.stdout, sys.stderr = _opened(1, sys.stdout), _opened(2, sys.stderr)


def has_no_reader(stream: TextIO) -> bool:
    """Tell whether the reader of standard output or standard error was seen to have gone away."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return isinstance(raw, _MaybeUnread) and raw.has_no_reader


def lost_output() -> OSError | None:
    """Return what kept the end of standard output from being written; None where that is all there."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _MaybeUnread) else None


def _opened(descriptor: int, stream: TextIO | None) -> TextIO:
    """Open a stream again, in the encoding that it had."""
    if stream is not None:
        with suppress(OSError):
            stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_MaybeUnread(descriptor, "w", closefd=False)),
        encoding="utf-8" if stream is None else stream.encoding,
        # A name may have letters that the encoding lacks: it is shown, and nothing fails.
        errors="backslashreplace" if stream is None or stream.errors == "strict" else stream.errors,
        line_buffering=descriptor == 2 or os.isatty(descriptor),
    )


def _to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
