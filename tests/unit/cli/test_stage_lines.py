"""What is said of a wait: its seconds on a terminal, few lines elsewhere, and nothing that others' lines run into."""

from __future__ import annotations

import io
import itertools
import sys
import threading
import time

import pytest

from maintainer.cli import stage_lines
from maintainer.cli.stage_lines import StageLines
from maintainer.report.style import PLAIN


class Screen(io.StringIO):
    """A terminal that says when so many texts were written to it."""

    def __init__(self, wanted: int = 0) -> None:
        super().__init__()
        self.enough, self._wanted = threading.Event(), wanted

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._wanted -= 1
        if self._wanted == 0:
            self.enough.set()
        return super().write(text)


def test_a_terminal_counts_and_leaves_the_cursor_where_the_next_line_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen(wanted=3)
    lines = StageLines(screen, PLAIN, quiet=False, tick_seconds=0.5)
    with lines.waiting("starting Spark"):
        assert screen.getvalue() == "starting Spark ...\r"
        assert screen.enough.wait(20)
    shown = screen.getvalue()
    assert "starting Spark ... 1s\r" in shown
    assert shown.endswith("s\n")
    assert shown.count("\n") == 1


def test_of_waits_within_one_another_the_innermost_counts_and_then_the_outer_one_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen(wanted=5)
    lines = StageLines(screen, PLAIN, quiet=False, tick_seconds=0.05)
    with lines.waiting("verifying 1 table"):
        with lines.waiting("starting Spark"):
            assert screen.enough.wait(20)
        inner = screen.getvalue()
        assert "verifying" not in inner.partition("starting Spark")[2]
        deadline = time.monotonic() + 20
        while "verifying" not in screen.getvalue()[len(inner) :]:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_what_fails_ends_its_line_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    with pytest.raises(RuntimeError), StageLines(screen, PLAIN, quiet=False).waiting("starting Java"):
        raise RuntimeError("no Java")
    assert screen.getvalue() == "starting Java ...\rstarting Java ...\n"


def test_in_a_pipe_a_wait_is_one_line_and_a_bounded_number_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_lines, "STILL_WAITING_SECONDS", (0.0, 0.01, 0.02))
    pipe, reminded = io.StringIO(), threading.Event()

    class Lines(StageLines):
        def _still(self, stage: str, seconds: float) -> None:
            super()._still(stage, seconds)
            if seconds == 0.02:
                reminded.set()

    with Lines(pipe, PLAIN, quiet=False).waiting("starting Spark"):
        assert pipe.getvalue().startswith("starting Spark ...\n")
        assert reminded.wait(20)
    assert pipe.getvalue().splitlines() == ["starting Spark ...", *["still starting Spark, 0s"] * 3]


def test_a_short_wait_in_a_pipe_is_one_line_and_is_said_once() -> None:
    pipe = io.StringIO()
    lines = StageLines(pipe, PLAIN, quiet=False)
    for _ in range(2):
        with lines.waiting("starting Java"):
            pass
    assert pipe.getvalue() == "starting Java ...\n"


def test_quiet_says_nothing() -> None:
    screen = Screen()
    with StageLines(screen, PLAIN, quiet=True).waiting("starting Java"):
        pass
    assert screen.getvalue() == ""


def test_above_the_live_lines_of_a_run_it_is_a_plain_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen, above = Screen(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    lines = StageLines(screen, PLAIN, quiet=False)
    monkeypatch.setattr(sys, "stderr", above)
    with lines.waiting("starting Spark"):
        pass
    assert (screen.getvalue(), above.getvalue()) == ("", "starting Spark ...\n")


def test_a_closed_stream_is_no_error() -> None:
    pipe = io.StringIO()
    lines = StageLines(pipe, PLAIN, quiet=False)
    pipe.close()
    with lines.waiting("starting Java"):
        pass


@pytest.mark.parametrize("says", ["counted", "lasts"])
@pytest.mark.parametrize(("terminal", "first"), [(True, 5.0), (False, 30.0)], ids=["terminal", "log"])
def test_a_stage_that_takes_long_is_said_in_time_and_less_often_the_longer_it_takes(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, first: float, says: str
) -> None:
    stream = Screen() if terminal else io.StringIO()
    seconds = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: seconds)
    lines = StageLines(stream, PLAIN, quiet=False)
    lines.began("reading 900 tables")
    said_at = []
    for second in range(601):
        before, seconds = stream.getvalue(), float(second)
        if says == "counted":
            lines.counted("reading 900 tables", second, 900)
        else:
            lines.lasts("reading a", second)
            lines.lasts("reading b", second)
        if stream.getvalue() != before:
            said_at.append(second)
    assert said_at[0] == first
    pauses = [later - earlier for earlier, later in itertools.pairwise(said_at)]
    assert pauses == sorted(pauses)
    assert len(said_at) < 25
    part = "a" if says == "lasts" else f"900 tables: {said_at[1]} of 900"
    assert f"still reading {part}, " in stream.getvalue()
    assert "reading b" not in stream.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_of_a_block_only_that_it_lasts_is_said(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    monkeypatch.setitem(stage_lines.FIRST_WORD_SECONDS, is_terminal, 0.05)
    stream = Screen(wanted=1) if is_terminal else io.StringIO()
    lines = StageLines(stream, PLAIN, quiet=False, tick_seconds=0.01)
    with lines.lasting("looking for tables"):
        deadline = time.monotonic() + 20
        while not stream.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    said = stream.getvalue()
    assert said.startswith("still looking for tables, ")
    monkeypatch.setitem(stage_lines.FIRST_WORD_SECONDS, is_terminal, 1000.0)
    with lines.lasting("a short one"), pytest.raises(RuntimeError), lines.lasting("a failure"):
        raise RuntimeError("its thread ends, too")
    assert stream.getvalue() == said
    assert all(thread.name != "maintainer-stage" for thread in threading.enumerate())


def test_a_stage_until_the_next_one_is_said_after_silence_and_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(stage_lines.FIRST_WORD_SECONDS, True, 0.3)
    screen = Screen(wanted=3)
    lines = StageLines(screen, PLAIN, quiet=False, tick_seconds=0.01)
    lines.began("reading the policies")
    lines.until_next("getting ready")
    with lines.lasting("looking for tables"):  # it began later, and has been silent for as long
        assert screen.enough.wait(20)
    said = screen.getvalue()
    assert said.startswith("reading the policies ...\nstill ")
    lines.began("reading 12 tables")
    assert all(thread.name != "maintainer-stage" for thread in threading.enumerate())
    lines.until_next("getting ready")
    with lines.waiting("starting Java"):
        assert all(thread.name != "maintainer-stage" for thread in threading.enumerate())


def test_a_stage_that_is_over_is_said_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, stream = 0.0, Screen()
    monkeypatch.setattr(time, "monotonic", lambda: seconds)
    lines = StageLines(stream, PLAIN, quiet=False)
    lines.began("reading 900 tables")
    before = stream.getvalue()
    lines.counted("reading 900 tables", 900, 900)
    seconds += 1000
    lines.began("reading 900 tables")  # the next look of `status --watch`
    lines.counted("reading 900 tables", 1, 900)
    quiet = StageLines(stream, PLAIN, quiet=True)
    quiet.began("other")
    seconds += 1000
    quiet.counted("other", 1, 900)
    quiet.lasts("reading a", 1000)
    assert stream.getvalue() == before
