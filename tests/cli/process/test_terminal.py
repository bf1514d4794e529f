"""Colour is for terminals: shown on one, not in a pipe; NO_COLOR, FORCE_COLOR and --color decide otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.policies.projects import write_project

ROOT = Path(__file__).resolve().parents[3]
ESCAPE = b"\x1b["


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"policies/a.yml": "table: s.a\nlimit: {}\n"})


def environment(**given: str) -> dict[str, str]:
    known = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return {**known, "TERM": "xterm", "PYTHONPATH": str(ROOT), **given}


def on_a_terminal(root: Path, *arguments: str, **given: str) -> bytes:
    """Run with stdout on a pseudo-terminal and return what appears there."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "maintainer", *arguments]
    with subprocess.Popen(
        command, cwd=root, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment(**given)
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            seen += piece
        process.wait(timeout=60)
    os.close(ours)
    return seen


@pytest.mark.parametrize(
    ("arguments", "given", "colored"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        ((), {"TERM": "dumb"}, False),
        ((), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
    ],
)
def test_on_a_terminal(root: Path, arguments: tuple[str, ...], given: dict[str, str], colored: bool) -> None:
    seen = on_a_terminal(root, *arguments, "validate", **given)
    assert b"unknown key `limit`" in seen
    assert (ESCAPE in seen) is colored


@pytest.mark.parametrize(
    ("given", "colored"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False)]
)
def test_in_a_pipe(root: Path, given: dict[str, str], colored: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maintainer", "validate"],
        cwd=root,
        env=environment(**given),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, ESCAPE in done.stdout) == (1, colored)


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    for number in range(300):
        (root / "policies" / f"t{number}.yml").write_text(f"version: 1\ntable: s.t{number}\nlimit: {{}}\n")
    shell = f"{sys.executable} -m maintainer validate; echo $? >&2"
    done = subprocess.run(
        ["sh", "-c", f"({shell}) | head -1"], cwd=root, env=environment(), capture_output=True, timeout=60, check=False
    )
    assert done.stdout.startswith(b"error[P201]")
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
