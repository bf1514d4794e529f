"""`status --watch`: block after block in a pipe, over itself on a terminal, and 130 on Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.app import operations
from maintainer.app.selection import chosen_tables
from maintainer.app.status.status_look import StatusLook
from maintainer.cli.main import run
from maintainer.model.plan.plan import Problem
from maintainer.model.run.history_rows import StatusRow
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.tables.builders import NOW_MS

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
"""To the terminal's second screen, and back to what was there."""


class Looks:
    """Stands for the engine: each look finds one more version; after some, somebody presses Ctrl-C."""

    def __init__(self, *, stop_after: int | None = None, by: signal.Signals = signal.SIGINT) -> None:
        self.number = 0
        self.ledger: Problem | None = None
        self._stop_after, self._by = stop_after, by

    @contextmanager
    def open(self, options: object) -> Iterator[Any]:
        yield SimpleNamespace()

    def look(self, *args: object, **more: object) -> StatusLook:
        self.number += 1
        if self.number == self._stop_after:
            os.kill(os.getpid(), self._by)
        return StatusLook(
            NOW_MS, sample_plans.plan(), (StatusRow("lake/t", "due", next=f"look {self.number}"),), (), self.ledger
        )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})


def watch(monkeypatch: pytest.MonkeyPatch, root: Path, looks: Looks, *args: str) -> int:
    monkeypatch.setattr(chosen_tables, "open_engine", looks.open)
    monkeypatch.setattr(operations, "look_at_all", looks.look)
    return run(["--project", str(root), "status", "--watch", "--interval", "1s", *args])


def test_in_a_pipe_looks_are_plain_blocks_and_are_bounded(
    monkeypatch: pytest.MonkeyPatch, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = Looks()
    assert watch(monkeypatch, root, looks, "--looks", "2") == 0
    blocks = capsys.readouterr().out.split("\n\n")
    assert [block.splitlines()[0][:10] for block in blocks] == ["status at "] * 2
    assert [block.splitlines()[2].split()[-1] for block in blocks] == ["1", "2"]
    assert "\x1b" not in "".join(blocks)
    assert looks.number == 2


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_after_the_look_with_its_own_code(
    monkeypatch: pytest.MonkeyPatch, root: Path, by: signal.Signals, code: int
) -> None:
    before = signal.getsignal(by)
    looks = Looks(stop_after=1, by=by)
    assert watch(monkeypatch, root, looks) == code
    assert looks.number == 1
    assert signal.getsignal(by) is before


def test_on_a_terminal_it_draws_over_itself_and_leaves_the_last_look(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("TERM", "xterm")
    assert watch(monkeypatch, root, Looks(), "--looks", "2") == 0
    shown, _, kept = screen.getvalue().rpartition(LEAVE)
    assert shown.startswith(ENTER)
    frames = [frame for frame in shown.split("\x1b[H") if "status at" in frame]
    assert [frame.partition("look ")[2][:1] for frame in frames][-2:] == ["1", "2"]
    assert "\x1b[2J" not in shown
    assert kept.startswith("status at ")
    assert "look 2" in kept


def test_a_look_that_fails_gives_the_terminal_back(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def fail(*args: object, **more: object) -> StatusLook:
        raise KeyboardInterrupt

    screen, looks = Terminal(), Looks()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(looks, "look", fail)
    assert watch(monkeypatch, root, looks) == 130
    assert screen.getvalue().rpartition(LEAVE)[1] == LEAVE


@pytest.mark.parametrize(
    "args",
    [["--watch", "-o", "json"], ["--looks", "3"], ["--watch", "--interval", "0s"], ["--watch", "--interval", "2d"]],
)
def test_options_that_do_not_go_together(root: Path, args: list[str]) -> None:
    assert run(["--project", str(root), "status", *args]) == 2


def test_a_ledger_that_is_gone_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = Looks()
    looks.ledger = Problem("E655", "the ledger is gone (no Delta table)", "l", "run `maintainer ledger rebuild`")
    line = "warning[E655]: the ledger is gone (no Delta table); run `maintainer ledger rebuild`"
    assert watch(monkeypatch, root, looks, "--looks", "1") == 1
    assert capsys.readouterr().out.splitlines()[-1] == line
    assert run(["--project", str(root), "status"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == line
    assert run(["--project", str(root), "status", "-o", "json"]) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [line]
    assert [problem["code"] for problem in json.loads(printed.out)["problems"]] == ["E655"]
