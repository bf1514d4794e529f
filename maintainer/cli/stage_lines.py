"""Say on stderr what a command waits for, so that the first line comes before the first wait.

On a terminal each stage is a line when it begins. Elsewhere only a stage that lasts is said, each half minute. ``main``
prints the very first line before it imports the command, with what this module imports: nothing heavy.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import TextIO

from maintainer.engine.stages import StageListener
from maintainer.errors.foreign_text import printable
from maintainer.report.style import Role, Style, is_terminal
from maintainer.units import format_duration

_READING, _CHECKING = "reading the policies", "looking at this machine"
FIRST_STAGES = {
    **dict.fromkeys(("plan", "apply", "retry", "watch", "status", "why", "verify", "undelete", "inventory"), _READING),
    "ledger": _READING,
    "doctor": _CHECKING,
}
"""Commands that may start Spark or read many tables, and what they do first."""

_ASKS_FOR_HELP = frozenset({"-h", "--help"})


class StageLines(StageListener):
    """Prints stages. A stage is said once, however often it begins: ``status --watch`` looks again and again.

    Args:
        stream: Where to print; stderr.
        style: Colour or none.
        quiet: Say nothing.
    """

    def __init__(self, stream: TextIO, style: Style, *, quiet: bool) -> None:
        self._stream = stream
        self._style = style
        self._quiet = quiet
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def began(self, stage: str) -> None:
        """Print a stage on a terminal."""
        with self._lock:
            if self._quiet or stage in self._said or not is_terminal(self._stream):
                return
            self._said.add(stage)
        self._print(f"{printable(stage)} ...")

    def lasts(self, stage: str, seconds: float) -> None:
        """Print how long it has been, also where no terminal is."""
        if not self._quiet:
            self._print(f"still {printable(stage)}, {format_duration(round(seconds))}")

    def _print(self, line: str) -> None:
        try:
            self._stream.write(self._style.paint(line, Role.DIM) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._quiet = True  # a closed stream: what is waited for goes on


def say_first_stage(command: str, arguments: Sequence[str], *, quiet: bool, color: bool) -> None:
    """Print the first stage of a command that will take a while, before anything else of it is loaded."""
    stage = FIRST_STAGES.get(command)
    if stage is not None and not _ASKS_FOR_HELP.intersection(arguments) and os.environ.get("TERM") != "dumb":
        StageLines(sys.stderr, Style(color), quiet=quiet).began(stage)
