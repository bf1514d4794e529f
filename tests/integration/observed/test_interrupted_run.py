"""Ctrl-C in a run on a terminal: what is under way ends well, what is left is done by `retry`, no row is lost."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.faults.held_apply import GO, HELD
from tests.support.policies.projects import write_project
from tests.support.pseudo_terminal import MAINTAINER, Terminal, on_terminal

pytestmark = [pytest.mark.spark, pytest.mark.long]

NAMES = ("a", "b", "c")
NUM_FILES = 4


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in NAMES:
        for number in range(NUM_FILES):
            rows = pa.table({"id": [number * 2, number * 2 + 1]})
            write_deltalake(str(tmp_path / "lake" / name), rows, mode="append")
    policies = {f"policies/{name}.yml": f"table: lake/{name}\n" for name in NAMES}
    return write_project(tmp_path, {"maintainer.yml": "state: state\n", **policies})


def num_files(project: Path) -> list[int]:
    return [len(DeltaTable(str(project / "lake" / name)).file_uris()) for name in NAMES]


def rows(project: Path) -> list[Counter[int]]:
    tables = (DeltaTable(str(project / "lake" / name)) for name in NAMES)
    return [Counter(table.to_pyarrow_table()["id"].to_pylist()) for table in tables]


def words(terminal: Terminal) -> str:
    """What the terminal shows, without colours and moves of the cursor."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.text).split())


@contextmanager
def held_apply(project: Path) -> Iterator[Terminal]:
    """Run an apply, one table at a time, that waits where the files of the first rewrite are written."""
    folder = project / "held"
    folder.mkdir()
    command = (sys.executable, "-m", "tests.support.faults.held_apply")
    with on_terminal((*command, str(project), "files written", "0", str(folder), "-j", "1")) as terminal:
        terminal.wait_for_file(folder / HELD)
        yield terminal


def go_on(project: Path) -> None:
    (project / "held" / GO).touch()


def maintainer(project: Path, *arguments: str) -> str:
    """Run a command on a terminal, and return what it shows."""
    with on_terminal((*MAINTAINER, "--project", str(project), *arguments)) as terminal:
        code = terminal.read_to_end()
    assert code == 0, words(terminal)
    return words(terminal)


def test_ctrl_c_lets_a_commit_end_and_retry_does_the_rest(project: Path) -> None:
    before = rows(project)
    with held_apply(project) as terminal:
        terminal.interrupt()
        terminal.wait_for("SIGINT: no further table is started")
        go_on(project)
        code = terminal.read_to_end()
    shown = words(terminal)
    assert code == 130, shown
    assert "Interrupted by SIGINT" in shown
    assert "1 step succeeded" in shown, shown
    assert sorted(num_files(project)) == [1, NUM_FILES, NUM_FILES]
    assert rows(project) == before
    assert "No run works on a table now." in maintainer(project, "leases", "list")

    maintainer(project, "retry", "--yes")
    assert num_files(project) == [1, 1, 1]
    assert rows(project) == before
    ledger = DeltaTable(str(project / "state" / "ledger")).to_pyarrow_table().to_pylist()
    assert Counter((row["kind"], row["status"]) for row in ledger) == {("compact", "succeeded"): 3}


def test_a_second_ctrl_c_ends_the_run_without_the_step_that_hangs_and_nothing_is_committed(project: Path) -> None:
    before = rows(project)
    with held_apply(project) as terminal:
        terminal.interrupt()
        terminal.wait_for("SIGINT: no further table is started")
        terminal.interrupt()
        code = terminal.read_to_end()
    assert code == 130, words(terminal)
    assert num_files(project) == [NUM_FILES] * 3
    assert rows(project) == before
    maintainer(project, "apply", "--yes")
    assert num_files(project) == [1, 1, 1]
    assert rows(project) == before
