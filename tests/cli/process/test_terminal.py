"""Colour is for terminals: shown on one, not in a pipe; NO_COLOR, FORCE_COLOR and --color decide otherwise.

Nor is a reader needed: a command goes on without one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

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


def run_unread(folder: Path, *arguments: str, names: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    """Run a command some of whose streams are a pipe that nobody reads any more."""
    ours, theirs = os.pipe()
    os.close(ours)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **dict.fromkeys(names, theirs)}
    try:
        return subprocess.run(
            [*MAINTAINER, *arguments], cwd=folder, env=terminal_environment(), timeout=60, check=False,
            stdout=streams["stdout"], stderr=streams["stderr"],
        )  # fmt: skip
    finally:
        os.close(theirs)


UNREAD = (("stdout",), ("stderr",), ("stdout", "stderr"))


@pytest.mark.parametrize("names", UNREAD)
def test_a_command_whose_output_nobody_reads_ends_as_it_would(
    root: Path, tmp_path_factory: pytest.TempPathFactory, names: tuple[str, ...]
) -> None:
    lake, plan = tmp_path_factory.mktemp("lake"), tmp_path_factory.mktemp("plans") / "plan.json"
    for name in ("a", "b"):
        write_deltalake(str(lake / name), pa.table({"id": [1]}))
    tables = write_project(lake / "project", {f"policies/{name}.yml": f"table: {lake / name}\n" for name in "ab"})
    for folder, arguments, code in (
        (root, ("validate",), 1),
        (tables, ("plan", "--out", str(plan)), 0),
        (tables, ("status",), 0),
    ):
        done = run_unread(folder, *arguments, names=names)
        assert (done.returncode, b"Traceback" in (done.stderr or b"")) == (code, False)
    assert plan.exists()


def test_looks_that_nobody_reads_end(root: Path) -> None:
    root.joinpath("policies/a.yml").write_text("version: 1\ntable: /nowhere/a\n")
    done = run_unread(root, "status", "--watch", "--interval", "1h", names=("stdout",))
    assert done.returncode == 1


def test_no_file_takes_the_place_of_a_stream_that_was_closed(tmp_path: Path) -> None:
    program = """
import sys
from maintainer.cli.standard_streams import open_standard_streams
open_standard_streams()
print("said", flush=True), print("said", file=sys.stderr)
with open("number", "w") as file:
    file.write(str(file.fileno() > 2))
"""
    shell = f"exec {sys.executable} program.py <&- >&- 2>&-"
    tmp_path.joinpath("program.py").write_text(program)
    subprocess.run(["sh", "-c", shell], cwd=tmp_path, env=terminal_environment(), timeout=60, check=True)
    assert tmp_path.joinpath("number").read_text() == "True"


def test_a_name_with_letters_that_the_encoding_lacks_is_shown_without_them(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "lake" / "é😀"), pa.table({"id": [1]}))
    root = write_project(tmp_path, {"policies/a.yml": "table: lake/é😀\n"})
    done = subprocess.run(
        [*MAINTAINER, "list"], cwd=root, env=terminal_environment(PYTHONIOENCODING="latin-1"),
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, "lake/é\\U0001f600".encode("latin-1") in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("plan",), 2), (("plan", "-o", "json"), 2), (("apply", "--yes"), 2), (("validate", "x"), 2)],
)
def test_a_command_whose_output_fills_the_disk_goes_on_and_says_so(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    write_deltalake(str(tmp_path / "lake"), pa.table({"id": [1]}))
    root = write_project(tmp_path / "p", {"policies/a.yml": f"table: {tmp_path / 'lake'}\n"})
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*MAINTAINER, *arguments], cwd=root, env=terminal_environment(), stdout=full, stderr=subprocess.PIPE,
            timeout=60, check=False,
        )  # fmt: skip
        unseen = subprocess.run(
            [*MAINTAINER, *arguments], cwd=root, env=terminal_environment(), stdout=subprocess.PIPE, stderr=full,
            timeout=60, check=False,
        )  # fmt: skip
    said = b"error[E640]: the output cannot be written: No space left on device"
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False)
    assert said in done.stderr or arguments[0] == "validate"
    assert unseen.returncode == (2 if arguments[0] == "validate" else 0)


def test_a_folder_that_was_removed_is_no_bug(tmp_path: Path) -> None:
    shell = f"mkdir gone && cd gone && rmdir ../gone && exec {sys.executable} -m maintainer plan"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env=terminal_environment(), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, b"error[E611]: the current folder was removed" in done.stderr) == (2, True)


def test_a_run_ends_as_it_would_where_the_current_folder_was_removed(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "lake"), pa.table({"id": [1]}))
    root = write_project(tmp_path / "p", {"policies/a.yml": f"table: {tmp_path / 'lake'}\n"})
    command = f"{sys.executable} -m maintainer --project {root} apply --yes"
    shell = f"mkdir gone && cd gone && rmdir ../gone && exec {command}"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env=terminal_environment(), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, b"E657" in done.stderr) == (0, False)
    assert str(root / ".maintainer/runs").encode() in done.stdout


WARNED = """
import warnings
from maintainer.cli import main

def warned(arguments):
    for module in ("pyspark.testing.utils", "others"):
        warnings.warn_explicit("of " + module, FutureWarning, "file.py", 1, module=module)
    return 0

main.run = warned
main.main()
"""


def test_what_pyspark_says_of_pandas_is_not_shown() -> None:
    done = subprocess.run([sys.executable, "-c", WARNED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == ["file.py:1: FutureWarning: of others"]
