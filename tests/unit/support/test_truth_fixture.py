"""The fixture fails a test that leaves a contradiction behind, unless the test says that it does so on purpose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CONFTEST = "from tests.support.checker.truth_fixture import pytest_runtest_makereport, truth_is_left_behind\n"
TESTS = """
import pytest
import maintainer.cli.main as command_line
from tests.unit.support.forged_project import NEW
from tests.unit.support.forged_project import TABLE
from tests.unit.support.forged_project import forged_project

def leave(tmp_path, damaged):
    project = forged_project(tmp_path)
    if damaged:
        project.files[f"{TABLE}/{NEW}"] -= 1
    project.write()
    # Without policies `history` is not asked: it reads more of a run than a forged one has.
    (tmp_path / "maintainer.yml").unlink()

def test_true(tmp_path):
    leave(tmp_path, False)

def test_untrue(tmp_path):
    leave(tmp_path, True)

@pytest.mark.contradicts("live_files_are_there", reason="the file is cut off on purpose")
def test_on_purpose(tmp_path):
    leave(tmp_path, True)

@pytest.mark.contradicts("live_files_are_there")
def test_without_a_reason(tmp_path):
    leave(tmp_path, False)

def test_exit_code(tmp_path, monkeypatch):
    monkeypatch.setitem(command_line.COMMANDS, "forge", ("forged_command:command", "Leave one run behind."))
    assert command_line.run(["forge", str(tmp_path)]) == 4

def test_that_fails_is_asked_nothing_more(tmp_path):
    leave(tmp_path, True)
    assert False
"""

COMMAND = """
from pathlib import Path
import click
from tests.unit.support.forged_project import OLD
from tests.unit.support.forged_project import OLD_BYTES
from tests.unit.support.forged_project import TABLE
from tests.unit.support.forged_project import VACUUMED
from tests.unit.support.forged_project import forged_project

@click.command()
@click.argument("root")
def command(root):
    project = forged_project(Path(root))
    del project.runs[VACUUMED], project.log[2], project.log[3], project.rows[1]
    project.files |= {f"{TABLE}/{name}": OLD_BYTES for name in OLD}
    project.write()
    (Path(root) / "maintainer.yml").unlink()
    return 4
"""


def test_a_test_that_leaves_a_contradiction_behind_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_forged.py").write_text(TESTS)
    (tmp_path / "forged_command.py").write_text(COMMAND)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT} .\nmarkers = contradicts: see tests/support\n")
    options = ["-q", "-rA", "--import-mode=importlib", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    summary = done.stdout.rpartition("short test summary info")[2].splitlines()
    ends = sorted(line.split(" - ")[0] for line in summary if line.startswith(("ERROR", "FAILED")))
    assert ends == [
        "ERROR test_forged.py::test_exit_code",
        "ERROR test_forged.py::test_untrue",
        "ERROR test_forged.py::test_without_a_reason",
        "FAILED test_forged.py::test_that_fails_is_asked_nothing_more",
    ], done.stdout + done.stderr
    assert "1 failed, 5 passed, 3 errors" in summary[-1], summary[-1]
    assert "ended with 4, its results mean 0" in done.stdout
    assert "live_files_are_there" in done.stdout
    assert "`contradicts` needs the rules that are left out, and a reason" in done.stdout
