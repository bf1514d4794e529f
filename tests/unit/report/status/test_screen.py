"""A status that is drawn over itself: nothing blank in between, nothing left of the frame before, nothing too wide."""

from __future__ import annotations

import re

import pytest

from maintainer.report.status.screen import clip, frame
from maintainer.report.text.style import Role, Style
from maintainer.report.text.text_layout import display_width


class Terminal:
    """As much of a terminal as a frame uses: rows of cells, and where the cursor is."""

    def __init__(self, lines: int) -> None:
        self.rows = [""] * lines
        self.at = 0
        self.blank_seen = False

    def write(self, text: str) -> None:
        for part in re.split(r"(\x1b\[[HKJ]|\r\n)", text):
            if part == "\x1b[H":
                self.at, self.column = 0, 0
            elif part == "\x1b[K":
                self.rows[self.at] = self.rows[self.at][: self.column]
            elif part == "\x1b[J":
                self.rows[self.at + 1 :] = [""] * (len(self.rows) - self.at - 1)
            elif part == "\r\n":
                self.at, self.column = self.at + 1, 0
                assert self.at < len(self.rows), "the terminal scrolls"
            elif part:
                row = self.rows[self.at]
                self.rows[self.at] = row[: self.column] + part + row[self.column + len(part) :]
                self.column += len(part)
                self.blank_seen |= not any(self.rows)


def test_a_frame_replaces_the_one_before_it_and_nothing_is_blank_in_between() -> None:
    terminal = Terminal(4)
    terminal.write(frame("heading\nfirst row\nsecond row\ntotals of it\n", 40, 4))
    terminal.write(frame("heading\nrow\n3 totals\n", 40, 4))
    assert terminal.rows == ["heading", "row", "3 totals", ""]
    assert not terminal.blank_seen
    assert "\x1b[2J" not in frame("x", 40, 4)


def test_what_does_not_fit_is_counted_and_the_totals_stay() -> None:
    terminal = Terminal(4)
    terminal.write(frame("\n".join(["heading", *(f"row {n}" for n in range(9)), "9 tables"]), 80, 4))
    assert terminal.rows == ["heading", "row 0", "... 8 more lines: make the window higher, or select less", "9 tables"]


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "abcd"),
        ("日本語", 5, "日本"),
        ("\x1b[1;31mfailed\x1b[0m x", 4, "\x1b[1;31mfail\x1b[0m"),
        ("\x1b[1;31mbad\x1b[0m xyz", 5, "\x1b[1;31mbad\x1b[0m x"),
        ("abc", 0, ""),
    ],
)
def test_a_line_is_cut_by_cells_and_its_colour_ends(text: str, cells: int, expected: str) -> None:
    assert clip(text, cells) == expected
    assert display_width(clip(text, cells)) <= cells


def test_colours_of_ours_count_for_nothing() -> None:
    painted = Style(color=True).paint("failed", Role.BAD)
    assert clip(painted, 6) == painted
