"""Say on stderr what a command waits for, so that the first line comes before the first wait.

On a terminal each stage is a line when it begins, and a wait of which nothing else can be said (starting Spark) counts
its seconds. Elsewhere such a wait is a line, and of the other stages only those that last are said. ``main`` prints the
very first line before it imports the command, with what this module imports: nothing heavy. It is said to last
until the next stage begins, or the command ends. One command has one ``StageLines``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TextIO

import click

from maintainer.engine.session_options import StageListener
from maintainer.errors.foreign_text import printable
from maintainer.report.style import Role, Style, cursor_wanted, is_terminal
from maintainer.units import format_duration

_READING, _CHECKING = "reading the policies", "looking at this machine"
FIRST_STAGES = {
    **dict.fromkeys(("plan", "apply", "retry", "watch", "status", "why", "verify", "undelete", "inventory"), _READING),
    "ledger": _READING,
    "doctor": _CHECKING,
    "demo": "preparing the demo",
}
"""Commands that may start Spark or read many tables, and what they do first."""

_READ_POLICIES = frozenset({"explain", "history", "leases", "list", "report", "stop", "validate"})
"""Commands that are quick as a rule: of these only a first stage that lasts is said."""

_SPEAK = frozenset({"ledger", "undelete"})
"""Commands that ask, or say by themselves how far they are, once the policies are read."""

_ASKS_FOR_HELP = frozenset({"-h", "--help"})


STILL_WAITING_SECONDS = (30.0, 120.0, 600.0)
"""Where the cursor cannot move, a wait is said when it begins and again after so long, and then no more."""


FIRST_WORD_SECONDS = {True: 5.0, False: 30.0}
"""How long a stage that can be counted, or a part of one, goes on without a word on a terminal, and elsewhere."""


@contextmanager
def _beside(follow: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Have a thread of this name follow the block, and end with it."""
    ended = threading.Event()
    thread = threading.Thread(target=follow, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class StageLines(StageListener):
    """Prints stages. A stage is said once, however often it begins: ``status --watch`` looks again and again.

    Args:
        stream: Where to print; stderr.
        style: Colour or none.
        quiet: Say nothing.
        tick_seconds: How often a terminal shows how long a wait lasts.
    """

    def __init__(self, stream: TextIO, style: Style, *, quiet: bool, tick_seconds: float = 1.0) -> None:
        self._stream = stream
        self._is_stderr = stream is sys.stderr
        self._style = style
        self._quiet = quiet
        self._tick_seconds = tick_seconds
        self._said: set[str] = set()
        self._counts: dict[str, tuple[float, float]] = {}
        self._lasts = -STILL_WAITING_SECONDS[-1]
        self._last_word = time.monotonic()
        self._until_next = ExitStack()
        self._waits: list[str] = []
        self._lock = threading.Lock()

    def began(self, stage: str) -> None:
        """Print a stage on a terminal."""
        self._until_next.close()
        if self._is_new(stage):
            self._counts[stage] = (time.monotonic(), time.monotonic())
            if is_terminal(self._stream):
                self._print(f"{printable(stage)} ...")

    def counted(self, stage: str, number: int, total: int) -> None:
        """Print how far a stage has come: after five seconds on a terminal, else after thirty; later less often."""
        now = time.monotonic()
        began, said = self._counts.get(stage, (now, now))
        if number == total:
            self._counts.pop(stage, None)
        elif now - said >= max(FIRST_WORD_SECONDS[is_terminal(self._stream)], (now - began) / 4):
            self._counts[stage] = (began, now)
            self._print(f"still {printable(stage)}: {number:,} of {total:,}, {format_duration(round(now - began))}")

    @contextmanager
    def waiting(self, stage: str) -> Iterator[None]:
        """Print a wait at once. A terminal counts seconds, of the inner one; elsewhere few lines say that it lasts."""
        self._until_next.close()
        if not self._is_new(stage):
            yield
            return
        started = time.monotonic()
        ticks = cursor_wanted(self._stream, os.environ) and not self._is_redirected()
        if ticks:
            self._write(self._ticking(stage, 0))
        else:
            self._print(f"{printable(stage)} ...")
        follow = self._tick if ticks else self._remind
        self._waits.append(stage)
        try:
            with _beside(partial(follow, stage, started), "maintainer-wait"):
                yield
        finally:
            self._waits.remove(stage)
            if ticks:
                self._write(self._ticking(stage, time.monotonic() - started).rstrip("\r") + "\n")

    @contextmanager
    def lasting(self, stage: str) -> Iterator[None]:
        """Print how long the block lasts, once nothing was said for as long as ``lasts`` waits."""
        with _beside(partial(self._follow, stage, time.monotonic()), "maintainer-stage"):
            yield

    def lasts(self, stage: str, seconds: float) -> None:
        """Print how long it has been, as ``counted``: of parts side by side one at a time, and none beside a wait."""
        self._say_lasting(stage, seconds, seconds)

    def until_next(self, stage: str) -> None:
        """Print how long a stage lasts, as ``lasting``, until another one begins."""
        self._until_next.enter_context(self.lasting(stage))

    def end(self) -> None:
        """End the stage that lasts until the next one."""
        self._until_next.close()

    def _say_lasting(self, stage: str, seconds: float, silent_seconds: float) -> None:
        now, first = time.monotonic(), FIRST_WORD_SECONDS[is_terminal(self._stream)]
        with self._lock:
            if self._quiet or self._waits or silent_seconds < first or now - self._lasts < max(first, seconds / 4):
                return
            self._lasts = now
        self._still(stage, seconds)

    def _is_new(self, stage: str) -> bool:
        with self._lock:
            is_new = not self._quiet and stage not in self._said
            self._said.add(stage)
            return is_new

    def _tick(self, stage: str, started: float, ended: threading.Event) -> None:
        while not ended.wait(self._tick_seconds):
            if self._waits[-1] == stage:
                self._write(self._ticking(stage, time.monotonic() - started))

    def _follow(self, stage: str, started: float, ended: threading.Event) -> None:
        while not ended.wait(self._tick_seconds):
            now = time.monotonic()
            self._say_lasting(stage, now - started, silent_seconds=now + self._tick_seconds - self._last_word)

    def _remind(self, stage: str, started: float, ended: threading.Event) -> None:
        for seconds in STILL_WAITING_SECONDS:
            if ended.wait(max(0.0, started + seconds - time.monotonic())):
                return
            self._still(stage, seconds)

    def _ticking(self, stage: str, seconds: float) -> str:
        """Return a line that leaves the cursor at its beginning, so that whatever is printed meanwhile covers it."""
        count = f" {format_duration(int(seconds))}" if seconds >= 1 else ""
        return self._style.paint(f"{printable(stage)} ...{count}", Role.DIM) + "\r"

    def _still(self, stage: str, seconds: float) -> None:
        self._print(f"still {printable(stage)}, {format_duration(round(seconds))}")

    def _is_redirected(self) -> bool:
        """Whether the live lines of a run hold stderr: what is printed must stand above them."""
        return self._is_stderr and sys.stderr is not self._stream

    def _print(self, line: str) -> None:
        self._write(self._style.paint(line, Role.DIM) + "\n")

    def _write(self, text: str) -> None:
        stream = sys.stderr if self._is_redirected() else self._stream
        self._last_word = time.monotonic()
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError):
            self._quiet = True  # a closed stream: what is waited for goes on


_LINES, _ENDS_WITH_POLICIES = "maintainer.stages", "maintainer.first_stage"
"""Where a context keeps the lines of its command, and those whose first stage ends when the policies are read."""


def say_first_stage(context: click.Context, arguments: Sequence[str], *, quiet: bool, color: bool) -> None:
    """Print the first stage of a command that will take a while, before anything else of it is loaded."""
    command, *rest = arguments
    stage = FIRST_STAGES.get(command)
    if _ASKS_FOR_HELP.intersection(rest) or os.environ.get("TERM") == "dumb":
        return
    lines = context.meta[_LINES] = StageLines(sys.stderr, Style(color), quiet=quiet)
    if stage is not None:
        lines.began(stage)
    if stage == _READING or command in _READ_POLICIES:
        lines.until_next("getting ready")
        context.call_on_close(lines.end)
        if command in _SPEAK:
            context.meta[_ENDS_WITH_POLICIES] = lines


def lines_of(context: click.Context, *, quiet: bool, color: bool) -> StageLines:
    """Return the one ``StageLines`` of a command."""
    lines = context.meta.setdefault(_LINES, StageLines(sys.stderr, Style(color), quiet=quiet))
    assert isinstance(lines, StageLines)
    return lines


def policies_are_read() -> None:
    """End the first stage of the running command, if no other one follows."""
    context = click.get_current_context(silent=True)
    lines = None if context is None else context.meta.get(_ENDS_WITH_POLICIES)
    if isinstance(lines, StageLines):
        lines.end()
