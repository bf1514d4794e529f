from __future__ import annotations

import io
import re
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.report.style import Role, Style, color_wanted, cursor_wanted, full_screen
from maintainer.report.text_layout import columns, display_width, iso_utc, pad, partition, printable, when
from maintainer.units import count_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "environ", "on_a_terminal", "in_a_pipe"),
    [
        ("auto", {}, True, False),
        ("always", {"NO_COLOR": "1"}, True, True),
        ("never", {"FORCE_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": ""}, True, False),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"TERM": "dumb"}, False, False),
    ],
)
def test_who_decides_about_colour(choice: str, environ: dict[str, str], on_a_terminal: bool, in_a_pipe: bool) -> None:
    assert color_wanted(choice, Terminal(), environ) is on_a_terminal
    assert color_wanted(choice, io.StringIO(), environ) is in_a_pipe


def test_the_cursor_moves_on_a_terminal_only() -> None:
    assert cursor_wanted(Terminal(), {"FORCE_COLOR": "1"}) is True
    assert cursor_wanted(Terminal(), {"TERM": "dumb"}) is False
    assert cursor_wanted(io.StringIO(), {"FORCE_COLOR": "1"}) is False
    closed = io.StringIO()
    closed.close()
    assert cursor_wanted(closed, {}) is False


def test_paint() -> None:
    assert Style(color=True).paint("x", Role.BAD) == "\x1b[1;31mx\x1b[0m"
    assert Style(color=True).paint("", Role.BAD) == ""
    assert Style().paint("x", Role.BAD) == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("größe 日本", "größe 日本"),
        ("a\tb\nc\rd", r"a\tb\nc\rd"),
        ("\x1b[31m\x7f\x9b", r"\x1b[31m\x7f\x9b"),
        ("a\u202eb\u2028c\ufeff", r"a\u202eb\u2028c\ufeff"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_printable(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(st.text(alphabet=st.characters()))
def test_nothing_that_is_not_visible_gets_through(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=6))
def test_columns_begin_at_the_same_cell(rows: list[tuple[str, str, str]]) -> None:
    safe = [tuple(printable(cell) + "." for cell in row) for row in rows]
    lines = columns(safe, right=frozenset({1}))
    assert len(lines) == len(rows)
    starts = set()
    for row, line in zip(safe, lines, strict=True):
        assert all(cell in line for cell in row)
        starts.add(display_width(line) - display_width(row[2]))
    assert len(starts) <= 1


def test_widths() -> None:
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1
    assert display_width("\x1b[1;31mx\x1b[0m") == 1
    assert pad("日", 4) == "日  "


def test_numbers_and_times() -> None:
    assert count_of(1, "file") == "1 file"
    assert count_of(1204, "file") == "1,204 files"
    assert count_of(2, "policy", "policies") == "2 policies"
    assert when(0, UTC) == "1970-01-01 00:00 UTC"
    assert iso_utc(1_795_298_405_123) == "2026-11-21T22:00:05.123Z"
    assert when(10**18, UTC).startswith("9999-12-31")
    assert iso_utc(-(10**18)) == "0001-01-01T00:00:00.000Z"


def test_partitions() -> None:
    assert partition(()) == "(whole table)"
    assert partition((("day", "2026-11-20"), ("region", None))) == "day=2026-11-20/region=null"
    assert partition((("a", "null"), ("b", "x/y=z"), ("c", "it's"))) == "a='null'/b='x/y=z'/c='it''s'"


def test_a_screen_shows_what_fits_and_keeps_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    with full_screen(stream, color=True) as show:
        show(
            "\n".join(["heading", *(f"row {n}" for n in range(9)), f"{Style(color=True).paint('9 tables', Role.BAD)}"])
        )
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    lines = [line.rstrip() for line in shown.splitlines()]
    assert lines == ["heading", "row 0", "... 8 more lines: make the window higher, or select less", "9 tables"]
    assert "\x1b[1;31m9 tables" in stream.getvalue()
