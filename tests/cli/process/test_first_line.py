"""The first line of a command on a terminal comes before whatever it waits for. By order, not by a clock."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.selection.managed_search import search_tables
from maintainer.cli.act import ledger_and_leases
from maintainer.cli.inspect import policy_commands
from maintainer.cli.main import COMMANDS, run
from maintainer.cli.stage_lines import FIRST_STAGES
from tests.support.policies.projects import write_project
from tests.support.pseudo_terminal import MAINTAINER, on_terminal, terminal_environment

PLAIN = terminal_environment(NO_COLOR="1")

BLOCKED_IMPORT = """
import sys

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            open(sys.argv[2]).read()  # waits until the test opens it: it has read the first line then
        return None

sys.meta_path.insert(0, Gate())
from maintainer.cli.main import run
from maintainer.cli.stage_lines import FIRST_WORD_SECONDS
FIRST_WORD_SECONDS[True] = 0.5
sys.exit(run(sys.argv[3:]))
"""


def fifo_at(path: Path) -> Path:
    os.mkfifo(path)
    return path


def test_the_first_line_comes_before_the_command_is_loaded(tmp_path: Path) -> None:
    write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    gate, module = fifo_at(tmp_path / "gate"), "maintainer.cli.act.plan_command"
    program = [sys.executable, "-c", BLOCKED_IMPORT, module, str(gate)]
    with on_terminal([*program, "--project", str(tmp_path), "plan", "-s", "x.y"], environment=PLAIN) as terminal:
        terminal.wait_for("reading the policies ...\r\n")
        assert terminal.text == "reading the policies ...\r\n"
        terminal.wait_for("still getting ready, 1s\r\n")
        gate.write_text("go on")
        assert terminal.read_to_end() == 2
        assert "E623" in terminal.text


@pytest.mark.parametrize(("arguments", "lasts"), [(("list",), True), (("ledger", "rebuild", "--dry-run"), False)])
def test_the_first_stage_lasts_until_the_command_ends_or_speaks_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], lasts: bool
) -> None:
    write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    threads: dict[str, bool] = {}

    def noted(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def noting(*given: object) -> object:
            threads[name] = any(thread.name == "maintainer-stage" for thread in threading.enumerate())
            return call(*given)

        return noting

    monkeypatch.setattr(Project, "load", noted(Project.load, "load"))
    for module in (policy_commands, ledger_and_leases):
        monkeypatch.setattr(module, "search_tables", noted(search_tables, "search"))
    run(["--project", str(tmp_path), *arguments, "-s", "nothing.like.it"])
    assert threads == {"load": True, "search": lasts}
    assert all(thread.name != "maintainer-stage" for thread in threading.enumerate())


def test_java_is_named_before_it_is_waited_for_and_its_seconds_are_counted(tmp_path: Path) -> None:
    write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    protocol = {"minReaderVersion": 99, "minWriterVersion": 99}  # only Spark can say what is wrong with it
    log = tmp_path / "lake" / "a" / "_delta_log" / f"{0:020d}.json"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps({"protocol": protocol}) + "\n", encoding="utf-8")
    gate, java = fifo_at(tmp_path / "gate"), tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    # Java is asked a second time where it fails: only the first call waits.
    java.write_text(f"#!/bin/sh\nmkdir '{tmp_path / 'asked'}' 2>/dev/null && read line < '{gate}'\nexit 1\n")
    java.chmod(0o755)
    environment = {**PLAIN, "JAVA_HOME": str(java.parents[1])}
    with on_terminal([*MAINTAINER, "--project", str(tmp_path), "plan"], environment=environment) as terminal:
        terminal.wait_for("starting Java ...\r")
        said = re.sub(r"still .*\r\n", "", terminal.text)  # on a busy machine
        assert said == "reading the policies ...\r\nreading 1 table ...\r\nstarting Java ...\r"
        terminal.wait_for("starting Java ... 2s\r")
        gate.write_text("go on\n")
        assert terminal.read_to_end() == 2
        assert re.search(r"starting Java \.\.\. \d+s\r\nerror\[E60", terminal.text), terminal.text


@pytest.mark.parametrize("arguments", [["plan", "--help"], ["list"], ["-q", "plan", "-s", "nothing.like.it"]])
def test_help_quick_commands_and_quiet_say_nothing(tmp_path: Path, arguments: list[str]) -> None:
    write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"})
    with on_terminal([*MAINTAINER, "--project", str(tmp_path), *arguments], environment=PLAIN) as terminal:
        terminal.read_to_end()
        assert terminal.text
        assert not terminal.text.startswith("reading")


def test_every_command_that_is_named_exists() -> None:
    assert FIRST_STAGES.keys() <= COMMANDS.keys()
