"""Colour and symbols, decided in one place.

Words and symbols carry the meaning; colour only repeats it. Every text reads the same with the colour taken away,
which the tests check by taking it away.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO


class Role(str, enum.Enum):
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
        """Return the text in the role's colour; the codes have no width, see `layout.display_width`."""
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
    if environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)


def cursor_wanted(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Decide whether a stream takes cursor movement: a terminal that is not dumb, whatever the colour."""
    return environ.get("TERM") != "dumb" and is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a terminal; a closed or half-made stream is none."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError, OSError):
        return False
