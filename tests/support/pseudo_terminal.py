"""A process on a pseudo-terminal, as a person would run it: what it shows, what is typed, and how it ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tests.support.suites.package_path import PACKAGE_PATH

LIMIT_SECONDS = 120.0
MAINTAINER = (sys.executable, "-m", "maintainer")


def terminal_environment(**given: str) -> dict[str, str]:
    """The environment of a process on a terminal, in which nothing but the terminal decides about colour."""
    known = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return {**known, "TERM": "xterm", "PYTHONPATH": PACKAGE_PATH, **given}


class Terminal:
    """The other side of a process's terminal. ``text`` is all that it has shown so far."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self._descriptor = descriptor
        self.process = process
        self.text = ""

    def wait_for(self, wanted: str, limit_seconds: float = LIMIT_SECONDS) -> None:
        """Read until a text was shown; fails when the process ends without it, or the time is over."""
        deadline = time.monotonic() + limit_seconds
        while wanted not in self.text:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {wanted!r} in {self.text!r}"
            assert self._read(), f"it ended without {wanted!r}: {self.text!r}"

    def wait_for_file(self, path: Path, limit_seconds: float = LIMIT_SECONDS) -> None:
        """Read until the process, or what it started, has made a file."""
        deadline = time.monotonic() + limit_seconds
        while not path.exists():
            assert time.monotonic() < deadline, f"no {path.name} after {limit_seconds} s: {self.text!r}"
            if select.select([self._descriptor], [], [], 0.05)[0]:
                assert self._read(), f"it ended without {path.name}: {self.text!r}"

    def type(self, keys: bytes) -> None:
        """Type something; ``b"\\x03"`` is Ctrl-C."""
        os.write(self._descriptor, keys)

    def interrupt(self) -> None:
        """Send SIGINT to the process and everything that it started, as a terminal does for Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def read_to_end(self, limit_seconds: float = LIMIT_SECONDS) -> int:
        """Read all that is shown until the process ends; return its exit code."""
        deadline = time.monotonic() + limit_seconds
        while True:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"still there after {limit_seconds} s: {self.text!r}"
            if not self._read():
                return self.process.wait(limit_seconds)

    def _read(self) -> bool:
        try:
            piece = os.read(self._descriptor, 65_536)
        except OSError:  # Linux: the other side is closed
            return False
        self.text += piece.decode(errors="replace")
        return bool(piece)


@contextmanager
def on_terminal(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stderr: BinaryIO | None = None,
) -> Iterator[Terminal]:
    """Run a command in a session of its own on a pseudo-terminal; whatever is left of it in the end is killed.

    Args:
        command: Program and arguments.
        cwd: Its working folder.
        environment: Its environment; without one ``terminal_environment()``.
        stdin: Another standard input than the terminal.
        stderr: Another standard error than the terminal.
    """
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        list(command), cwd=cwd, stdin=theirs if stdin is None else stdin, stdout=theirs, stderr=stderr or theirs,
        env=dict(environment or terminal_environment()), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LIMIT_SECONDS)
        os.close(ours)
