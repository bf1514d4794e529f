"""Redraw a text in place on a terminal; in a pipe, print block after block."""

from __future__ import annotations

import re

from maintainer.report.text.text_layout import display_width

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""To the terminal's second screen with the cursor hidden, and back to what was there."""

_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")
_PLAIN = "\x1b[0m"


def frame(text: str, columns: int, lines: int) -> str:
    """Return what puts the text over the one before it, in one write and without clearing the screen first.

    Nothing flickers, for no cell is ever blank in between. What does not fit is left out, and the frame says how much;
    the last line (the totals) is always kept.

    Args:
        text: Lines, with our own colours at most.
        columns: Cells in a line of the terminal.
        lines: Lines of the terminal.
    """
    rows = text.rstrip("\n").split("\n")
    lines = max(2, lines)
    if len(rows) > lines:
        hidden = len(rows) - lines + 1
        rows = [*rows[: lines - 2], f"... {hidden:,} more lines: make the window higher, or select less", rows[-1]]
    shown = f"{_REST_OF_LINE}\r\n".join(clip(row, columns) for row in rows)
    return f"{_HOME}{shown}{_REST_OF_LINE}{_REST_OF_SCREEN}"


def clip(text: str, cells: int) -> str:
    """Cut a line with colours to a number of cells; a colour that is cut off ends there."""
    if display_width(text) <= cells:
        return text
    kept: list[str] = []
    room, colored = max(0, cells), False
    for part in _COLOR.split(text):
        if _COLOR.fullmatch(part):
            kept.append(part)
            colored = part != _PLAIN
            continue
        for character in part:
            room -= display_width(character)
            if room < 0:
                return "".join(kept) + (_PLAIN if colored else "")
            kept.append(character)
    return "".join(kept)
