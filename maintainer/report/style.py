"""Colour, symbols and redrawn lines of a terminal, decided in one place.

Words and symbols carry the meaning; colour only repeats it. Every text reads the same with the colour taken away,
which the tests check by taking it away. rich redraws lines; it is imported when something is drawn. Our own colour
codes pass through; everything else in a text has been made printable before.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, OverflowMethod
    from rich.text import Text


class Role(enum.StrEnum):
    """What a piece of text is; the value is its SGR parameter."""

    GOOD = "32"
    BAD = "1;31"
    WARN = "33"
    CHANGE = "36"
    DELETE = "35"
    BOLD = "1"
    DIM = "2"


class Symbol:
    """First character of a line: what happens to the thing it names."""

    CHANGE = "~"
    WRITE = "+"
    DELETE = "-"
    SAME = "="
    BLOCKED = "!"
    PROBLEM = "x"
    LEFT = "."


ROLE_OF_SYMBOL: Mapping[str, Role] = {
    Symbol.CHANGE: Role.CHANGE,
    Symbol.WRITE: Role.GOOD,
    Symbol.DELETE: Role.DELETE,
    Symbol.SAME: Role.DIM,
    Symbol.BLOCKED: Role.WARN,
    Symbol.PROBLEM: Role.BAD,
    Symbol.LEFT: Role.DIM,
}


@dataclass(frozen=True, slots=True)
class Style:
    """Paints text, or leaves it as it is."""

    color: bool = False

    def paint(self, text: str, role: Role) -> str:
        """Return the text in the role's colour; the codes have no width, see `text_layout.display_width`."""
        return f"\x1b[{role.value}m{text}\x1b[0m" if self.color and text else text

    def symbol(self, symbol: str) -> str:
        """Return the symbol in its own colour."""
        return self.paint(symbol, ROLE_OF_SYMBOL[symbol])


PLAIN = Style(color=False)
"""For files, pipes and tests."""


def color_wanted(choice: str, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Decide whether a stream takes colour.

    The first that is set decides: ``--color always|never`` (the ``choice``), ``NO_COLOR`` (not empty), ``FORCE_COLOR``
    (not empty, not ``0``), ``TERM=dumb``, and last whether the stream is a terminal.
    """
    if choice in ("always", "never"):
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return cursor_wanted(stream, environ)


def cursor_wanted(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Decide whether a stream takes cursor movement: a terminal that is not dumb, whatever the colour."""
    return environ.get("TERM") != "dumb" and is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a terminal; a closed or half-made stream is none."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError, OSError):
        return False


class QuietStream:
    """A stream that falls silent when it cannot be written, and escapes what its encoding cannot spell."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._silent = False
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write and flush. Never raises."""
        if not self._silent:
            try:
                self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
                self._stream.flush()
            except (OSError, ValueError):
                self._silent = True
        return len(text)

    def flush(self) -> None:
        """Do nothing: each write is flushed."""


class LiveLines:
    """Lines at the bottom of a terminal that are drawn anew once a second; what is printed stands above them.

    ``lines`` returns them for a height of the terminal. ``close`` takes them away.
    """

    def __init__(self, stream: TextIO, *, color: bool, lines: Callable[[int], Sequence[str]]) -> None:
        from rich.live import Live

        console = _console(stream, color=color)
        self._live = Live(
            console=console,
            get_renderable=lambda: _text(lines(console.height), "ellipsis"),
            refresh_per_second=1,
            transient=True,
            redirect_stdout=False,
        )
        self._live.start()

    def print(self, lines: Sequence[str]) -> None:
        """Print lines above the live ones, and draw those anew."""
        for line in lines:
            self._live.console.print(_text([line], "fold"), soft_wrap=True)
        self._live.refresh()

    def close(self) -> None:
        """Take the live lines away."""
        self._live.stop()


@contextmanager
def full_screen(stream: TextIO, *, color: bool) -> Iterator[Callable[[str], None]]:
    """Take the terminal's second screen, and yield what shows a text there in the place of the one before."""
    from rich.live import Live

    console = _console(stream, color=color)
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        yield lambda text: live.update(_text(_fitted(text, console.height), "crop"), refresh=True)


def _fitted(text: str, height: int) -> list[str]:
    """Leave out lines that do not fit, and say how many; the last line (the totals) stays."""
    rows = text.rstrip("\n").split("\n")
    if len(rows) <= height:
        return rows
    hidden = len(rows) - height + 1
    return [*rows[: height - 2], f"... {hidden:,} more lines: make the window higher, or select less", rows[-1]]


def _console(stream: TextIO, *, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=QuietStream(stream),  # type: ignore[arg-type] # rich writes and flushes, no more
        force_terminal=True,
        force_interactive=True,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
    )


def _text(lines: Sequence[str], overflow: OverflowMethod) -> Text:
    from rich.text import Text

    return Text.from_ansi("\n".join(lines), no_wrap=overflow != "fold", overflow=overflow)
