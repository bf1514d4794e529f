"""How the process ends: a command waits for no thread; a good job returns, any other exits with its code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from maintainer.cli.main import job
from maintainer.errors import ExitCode

LIMIT_SECONDS = 30
HANGING = """
import atexit, sys, threading
from concurrent.futures import ThreadPoolExecutor
from maintainer.cli import main

ThreadPoolExecutor(1).submit(threading.Event().wait)  # a request that a store never answers
atexit.register(print, "cleaned up")
main.run = lambda arguments: int(arguments[0])
print("result", end=" ")
main.main()
"""


@pytest.mark.parametrize("code", [ExitCode.OK, ExitCode.FINDINGS, ExitCode.INTERRUPTED])
def test_a_command_waits_for_no_thread(code: ExitCode) -> None:
    command = [sys.executable, "-c", HANGING, str(int(code))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "result cleaned up\n", "")


def test_a_good_run_returns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["maintainer-job", "--version"])
    job()
    assert capsys.readouterr().out.startswith("maintainer")


def test_any_other_exits_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["maintainer-job", "plann"])
    with pytest.raises(SystemExit) as caught:
        job()
    assert caught.value.code == 2
