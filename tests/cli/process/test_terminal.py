"""Colour is for terminals: shown on one, not in a pipe; NO_COLOR, FORCE_COLOR and --color decide otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.policies.projects import write_project
from tests.support.pseudo_terminal import MAINTAINER, on_terminal, terminal_environment

ESCAPE = "\x1b["


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"policies/a.yml": "table: s.a\nlimit: {}\n"})


def on_a_terminal(root: Path, *arguments: str, **given: str) -> str:
    """Run without standard input and return what appears on the terminal."""
    with on_terminal(
        [*MAINTAINER, *arguments], cwd=root, environment=terminal_environment(**given), stdin=subprocess.DEVNULL
    ) as terminal:
        terminal.read_to_end()
        return terminal.text


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
    assert "unknown key `limit`" in seen
    assert (ESCAPE in seen) is colored


@pytest.mark.parametrize(
    ("given", "colored"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False)]
)
def test_in_a_pipe(root: Path, given: dict[str, str], colored: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maintainer", "validate"],
        cwd=root,
        env=terminal_environment(**given),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, ESCAPE in done.stdout.decode()) == (1, colored)


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    for number in range(300):
        (root / "policies" / f"t{number}.yml").write_text(f"version: 1\ntable: s.t{number}\nlimit: {{}}\n")
    shell = f"{sys.executable} -m maintainer validate; echo $? >&2"
    done = subprocess.run(
        ["sh", "-c", f"({shell}) | head -1"],
        cwd=root,
        env=terminal_environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith(b"error[P201]")
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
