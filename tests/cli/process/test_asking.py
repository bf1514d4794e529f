"""Who is asked: on a whole pseudo-terminal, on one with stderr in a file, and on none."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from maintainer.cli.main import run
from tests.support.policies.projects import write_project

CHANGES_TABLES = {
    "apply": ["apply"],
    "retry": ["retry"],
    "watch": ["watch"],
    "undelete": ["undelete", "lake/t", "--run", "20261121T210000Z-dead"],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", {"policies/t.yml": "table: lake/t\n"})


def on_a_terminal(root: Path, arguments: list[str], answer: bytes, stderr: Path | None = None) -> tuple[int, str]:
    """Run with a pseudo-terminal for everything, or with stderr in a file; return the exit code and what was shown."""
    ours, theirs = os.openpty()
    os.write(ours, answer)
    with (
        open(theirs, encoding="utf-8") as stdin,
        open(theirs, "w", encoding="utf-8", closefd=False) as stdout,
        open(stderr or os.devnull, "w", encoding="utf-8") as file,
        pytest.MonkeyPatch.context() as patches,
    ):
        patches.chdir(root)  # nothing is shown while this waits: it is less than a terminal holds
        for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", file if stderr else stdout)):
            patches.setattr(sys, name, stream)
        code = run(arguments)
    shown = b""
    with open(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):  # at its end, on Linux
        while piece := terminal.read(65_536):
            shown += piece
    return code, shown.decode() + ("" if stderr is None else stderr.read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", CHANGES_TABLES)
def test_with_stderr_in_a_file_nobody_could_read_the_question(command: str, root: Path, tmp_path: Path) -> None:
    before = sorted(root.rglob("*"))
    code, shown = on_a_terminal(root, CHANGES_TABLES[command], b"y\n", tmp_path / "log")
    assert (code, f"error[E628]: `maintainer {command}` changes tables" in shown) == (2, True)
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("command", CHANGES_TABLES)
def test_without_a_terminal_nothing_is_done(
    command: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(root.rglob("*"))
    monkeypatch.chdir(root)
    with open(os.devnull, encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        code = run(CHANGES_TABLES[command])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(f"error[E628]: `maintainer {command}` changes tables")
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    ("command", "question"),
    [("watch", "Watch 1 table, and apply what is due without asking again?"), ("undelete", "Bring back what run ")],
)
@pytest.mark.parametrize(
    ("answer", "end"), [(b"n\n", 1), (b"\n", 1), (b"\x04", 130)], ids=["no", "enter", "end of input"]
)
def test_on_a_terminal_it_asks_and_a_no_changes_nothing(
    command: str, question: str, answer: bytes, end: int, root: Path
) -> None:
    before = sorted(root.rglob("*"))
    code, shown = on_a_terminal(root, CHANGES_TABLES[command], answer)
    assert question in shown
    assert code == end, shown
    assert sorted(root.rglob("*")) == before
