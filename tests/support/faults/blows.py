"""Strike a process of `held_apply` from outside: kill it, its JVM or both, terminate it, or stop it for a while."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tests.support.faults.held_apply import GO, HELD

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_SECONDS = 120.0
SETTLE_SECONDS = 0.3
"""After SIGTERM, before the process goes on: its main thread must have seen the signal."""


class Blow(Enum):
    """What is done to the process while it is held."""

    PYTHON_KILLED = "python killed"
    JVM_KILLED = "jvm killed"
    BOTH_KILLED = "both killed"
    TERMINATED = "terminated"
    STOPPED = "stopped"


@dataclass
class Victim:
    """A running apply and the folder in which it says that it is held.

    ``commit`` is the table and the operation of the commit after which its JVM is held; None where Python itself is
    held at a point.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    commit: tuple[str, str] | None = None
    output: Path = field(init=False)
    _held: threading.Event = field(default_factory=threading.Event)
    _marker: Path | None = None

    def __post_init__(self) -> None:
        self.output = self.folder / "output.txt"
        threading.Thread(target=self._watch, daemon=True).start()

    def said(self) -> str:
        """Everything that the process has printed."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def wait_until_held(self) -> None:
        """Wait until the process is held at its point.

        Raises:
            AssertionError: It ended, or too much time went by.
        """
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self._held.wait(0.02):
            assert self.process.poll() is None, f"the process ended before its point\n{self.said()[-3000:]}"
            assert time.monotonic() < deadline, f"the point was not reached\n{self.said()[-3000:]}"

    def strike(self, blow: Blow, meanwhile: Callable[[], None]) -> int:
        """Do it, let the process go on if it can, and return what it ended with.

        Args:
            blow: What is done.
            meanwhile: Called while the process is stopped.
        """
        match blow:
            case Blow.PYTHON_KILLED:
                self.process.kill()
            case Blow.JVM_KILLED if self.java() is None:
                # It has not started yet: it dies as soon as it does.
                self._let_go()
                self._wait_for_java()
                self._kill_java()
            case Blow.JVM_KILLED:
                self._kill_java()
            case Blow.BOTH_KILLED:
                self._kill_java()
                self.process.kill()
            case Blow.TERMINATED:
                self.process.terminate()
                time.sleep(SETTLE_SECONDS)
            case Blow.STOPPED:
                os.killpg(self.process.pid, signal.SIGSTOP)
                try:
                    meanwhile()
                finally:
                    os.killpg(self.process.pid, signal.SIGCONT)
        self._let_go()
        return self.process.wait(DEADLINE_SECONDS)

    def java(self) -> int | None:
        """The process id of its JVM; None where there is none."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                if name == "java" and int(rest.split()[1]) == self.process.pid:
                    return int(entry.name)
        return None

    def _wait_for_java(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.java() is None and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)

    def _kill_java(self) -> None:
        java = self.java()
        if java is not None:
            os.kill(java, signal.SIGKILL)

    def _let_go(self) -> None:
        (self.folder / GO).touch()
        if self._marker is not None:
            self._marker.with_suffix(".go").touch()

    def _watch(self) -> None:
        """Notice the point, and let every commit go on that is not the one of the point."""
        seen: set[Path] = set()
        deadline = time.monotonic() + 2 * DEADLINE_SECONDS
        while time.monotonic() < deadline:
            for marker in sorted(set(self.folder.glob("*.held")) - seen, key=lambda path: path.stat().st_mtime_ns):
                seen.add(marker)
                if marker.name == HELD:
                    self._held.set()
                elif self._marker is None and _commit_of(marker) == self.commit:
                    self._marker = marker
                    self._held.set()
                else:
                    marker.with_suffix(".go").touch()
            time.sleep(0.01)


def _commit_of(marker: Path) -> tuple[str, str]:
    """The table and the operation of a commit that is held."""
    whole, version = (Path(line) for line in marker.read_text(encoding="utf-8").splitlines())
    actions = map(json.loads, (version if version.exists() else whole).read_text(encoding="utf-8").splitlines())
    operation = next(str(action["commitInfo"]["operation"]) for action in actions if "commitInfo" in action)
    return version.parent.parent.name, operation


@contextlib.contextmanager
def victim(
    project: Path,
    point: str,
    seed: int,
    folder: Path,
    *,
    environment: dict[str, str],
    commit: tuple[str, str] | None = None,
) -> Iterator[Victim]:
    """Start an apply that will be held at a point; whatever is left of it is killed at the end."""
    folder.mkdir()
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.faults.held_apply", str(project), point, str(seed), str(folder)],
            cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield Victim(process, folder, commit)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
