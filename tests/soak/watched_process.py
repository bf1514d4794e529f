"""`maintainer watch` as a process of its own, which is killed now and then and started again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.process_memory import MemorySample, is_running, jvm_below, sample
from tests.soak.soak_settings import WATCH_INTERVAL_SECONDS, WATCH_MEMORY, SoakSettings
from tests.support.checker.contradictions import contradictions

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE_SECONDS = 10.0
END_SECONDS = 60.0
INTENT_SECONDS = 15.0
SIGTERM_CODE = 143
RULES_ABOUT_FILES_OF_OTHERS = ("no_unknown_files", "no_checksum_alone")


@dataclass(frozen=True)
class Kill:
    """One kill: when, how, whether right after the watch had noted what it was about to commit, and how it ended."""

    seconds: float
    kind: str
    after_intent: bool
    exit_code: int | None
    end_seconds: float
    jvm_end_seconds: float | None


@dataclass
class WatchLife:
    """Everything that happened to the watch."""

    starts: int = 0
    kills: list[Kill] = field(default_factory=list)
    samples: list[MemorySample] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def environment() -> dict[str, str]:
    """Return the environment of processes that run this checkout."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}


def command(settings: SoakSettings, *arguments: str) -> list[str]:
    """Return a command line of `maintainer` with little memory."""
    # The heap is resident from the beginning: what grows lies outside of it, and a heap that leaks ends in an error.
    heap = f"spark.driver.extraJavaOptions=-Xms{WATCH_MEMORY} -XX:+AlwaysPreTouch"
    options = ("--master", "local[1]", "--conf", f"spark.driver.memory={WATCH_MEMORY}", "--conf", heap)
    return [sys.executable, "-m", "maintainer", "--project", settings.folder, *arguments, *options]


class WatchedProcess:
    """Starts the watch, kills it by the seed, and starts it again."""

    def __init__(self, settings: SoakSettings, begun: float) -> None:
        self.life = WatchLife()
        self._settings, self._begun = settings, begun
        self._random = random.Random(f"{settings.seed} kills")
        self._kinds: list[str] = []
        self._stop = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._threads = [
            threading.Thread(target=self._live, daemon=True),
            threading.Thread(target=self._sample, daemon=True),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the watch by SIGTERM, as a scheduler would."""
        self._stop.set()
        for thread in self._threads:
            thread.join(3 * END_SECONDS)

    def _live(self) -> None:
        while not self._stop.is_set():
            process = self._start()
            pause = self._settings.life_seconds * self._random.uniform(0.7, 1.3)
            until = time.monotonic() + pause
            kill = until - self._begun < self._settings.kill_seconds
            while not self._stop.wait(0.2) and process.poll() is None and (not kill or time.monotonic() < until):
                pass
            if process.poll() is not None:
                self._complain(f"the watch ended by itself with exit code {process.returncode}")
            elif self._stop.is_set():
                self._end(process, "SIGTERM at the end", after_intent=False)
            else:
                if not self._kinds:
                    self._kinds = ["SIGKILL of Python", "SIGKILL of the JVM", "SIGTERM"]
                    self._random.shuffle(self._kinds)
                after_intent = self._random.random() < 0.6 and self._wait_for_intent()
                self._end(process, self._kinds.pop(), after_intent=after_intent)
                self._check_truth()
        process = self._process or self._start()
        if process.poll() is None:
            process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        self.life.starts += 1
        folder = self._settings.root / "soak"
        with (folder / f"watch-{self.life.starts:03d}.log").open("wb") as log:
            self._process = subprocess.Popen(
                command(self._settings, "watch", "--yes", "--interval", f"{WATCH_INTERVAL_SECONDS}s"),
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment(), cwd=REPOSITORY,
            )  # fmt: skip
        return self._process

    def _wait_for_intent(self) -> bool:
        """Return once the watch has written down what it is about to do, False where it does nothing for a while."""
        before = self._intents()
        deadline = time.monotonic() + INTENT_SECONDS
        while time.monotonic() < deadline and not self._stop.is_set():
            if self._intents() > before:
                time.sleep(self._random.uniform(0.0, 0.05))
                return True
            time.sleep(0.01)
        return False

    def _intents(self) -> int:
        runs = self._settings.root / ".maintainer" / "runs"
        try:
            newest = sorted(os.listdir(runs))[-2:]
        except OSError:
            return 0
        count = 0
        for name in newest:
            with contextlib.suppress(OSError):
                text = (runs / name / "events.jsonl").read_text(encoding="utf-8", errors="replace")
                count += text.count('"intent"')
        return len(os.listdir(runs)) * 1000 + count

    def _end(self, process: subprocess.Popen[bytes], kind: str, *, after_intent: bool) -> None:
        java = jvm_below(process.pid)
        now = time.monotonic()
        if kind == "SIGKILL of the JVM":
            if java is not None:
                os.kill(java, signal.SIGKILL)
        else:
            process.send_signal(signal.SIGKILL if kind == "SIGKILL of Python" else signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._complain(f"the watch still ran {END_SECONDS:.0f} s after {kind}")
            process.kill()
            process.wait()
        ended = time.monotonic()
        while java is not None and is_running(java) and time.monotonic() < ended + END_SECONDS:
            time.sleep(0.05)
        if java is not None and is_running(java):
            self._complain(f"the JVM still ran {END_SECONDS:.0f} s after {kind}")
            os.kill(java, signal.SIGKILL)
        if kind.startswith("SIGTERM") and process.returncode != SIGTERM_CODE:
            self._complain(f"after SIGTERM the watch ended with exit code {process.returncode}")
        jvm_seconds = None if java is None else time.monotonic() - now
        self.life.kills.append(
            Kill(now - self._begun, kind, after_intent, process.returncode, ended - now, jvm_seconds)
        )

    def _check_truth(self) -> None:
        """Look at what the dead watch left, while others go on writing: their files have no commit yet."""
        for text in contradictions(self._settings.root, but_not=RULES_ABOUT_FILES_OF_OTHERS):
            self._complain(f"the checker of truth, after a kill: {text}")

    def _complain(self, text: str) -> None:
        self.life.complaints.append(f"{time.monotonic() - self._begun:.0f} s: {text}")

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            process = self._process
            if process is not None and process.poll() is None:
                root = self._settings.root
                self.life.samples.append(sample(self._begun, process.pid, root / "lake", root / ".maintainer"))
