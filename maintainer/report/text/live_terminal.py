"""Text that is redrawn on a terminal, by rich; rich is imported when something is drawn.

Our own colour codes pass through; everything else in a text has been made printable before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, OverflowMethod
    from rich.text import Text


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
