"""The first line of a command on a terminal comes before whatever it waits for. By order, not by a clock."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from maintainer.cli.main import COMMANDS
from maintainer.cli.stage_lines import FIRST_STAGES
from tests.support.policies.projects import write_project

LIMIT_SECONDS = 120.0

BLOCKED_IMPORT = """
import sys

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            open(sys.argv[2]).read()  # waits until the test opens it: it has read the first line then
        return None

sys.meta_path.insert(0, Gate())
from maintainer.cli.main import run
sys.exit(run(sys.argv[3:]))
"""


class Terminal:
    """What a process writes to its terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.text = ""

    def wait_for(self, wanted: str) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while wanted not in self.text:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {wanted!r} in {self.text!r}"
            try:
                read = os.read(self._descriptor, 4096)
            except OSError:  # Linux: the other side is closed
                read = b""
            assert read, f"it ended without {wanted!r}: {self.text!r}"
            self.text += read.decode()


@contextmanager
def on_terminal(arguments: list[str], **environment: str) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **environment}
    process = subprocess.Popen([sys.executable, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    try:
        yield Terminal(ours), process
    finally:
        process.kill()
        process.wait(LIMIT_SECONDS)
        os.close(ours)


def fifo_at(path: Path) -> Path:
    os.mkfifo(path)
    return path


def test_the_first_line_comes_before_the_command_is_loaded(tmp_path: Path) -> None:
    write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    gate, module = fifo_at(tmp_path / "gate"), "maintainer.cli.act.plan_command"
    arguments = ["-c", BLOCKED_IMPORT, module, str(gate), "--project", str(tmp_path), "plan", "-s", "nothing.like.it"]
    with on_terminal(arguments) as (terminal, process):
        terminal.wait_for("reading the policies ...\r\n")
        assert terminal.text == "reading the policies ...\r\n"
        gate.write_text("go on")
        terminal.wait_for("E623")
        assert process.wait(LIMIT_SECONDS) == 2


def test_java_is_named_before_it_is_waited_for(tmp_path: Path) -> None:
    write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    gate, java = fifo_at(tmp_path / "gate"), tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\nread line < '{gate}'\nexit 1\n")
    java.chmod(0o755)
    arguments = ["-m", "maintainer", "--project", str(tmp_path), "plan"]
    with on_terminal(arguments, JAVA_HOME=str(java.parents[1])) as (terminal, process):
        terminal.wait_for("starting Java ...\r\n")
        assert terminal.text == "reading the policies ...\r\nstarting Java ...\r\n"
        gate.write_text("go on\n")
        terminal.wait_for("E60")
        assert process.wait(LIMIT_SECONDS) == 2


@pytest.mark.parametrize("arguments", [["plan", "--help"], ["list"], ["-q", "plan", "-s", "nothing.like.it"]])
def test_help_quick_commands_and_quiet_say_nothing(tmp_path: Path, arguments: list[str]) -> None:
    write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    with on_terminal(["-m", "maintainer", "--project", str(tmp_path), *arguments]) as (terminal, process):
        terminal.wait_for("\n")
        assert not terminal.text.startswith("reading")
        process.wait(LIMIT_SECONDS)


def test_every_command_that_is_named_exists() -> None:
    assert FIRST_STAGES.keys() <= COMMANDS.keys()
