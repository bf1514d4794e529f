"""The list of guards: each stands in the code once, and the tests that decide about it are in `make test`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.suites.drawn_cells import SEED
from tools.mutation.planted import Guard, outcomes_of, read_guards, try_all

ROOT = Path(__file__).resolve().parents[4]
GUARDS = read_guards()
PROMISES = range(2, 8)
"""The first rests on no line that could be taken out: its commands are given no writer."""


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_it_stands_in_its_file_once(guard: Guard) -> None:
    assert guard.removed(ROOT) != (ROOT / guard.file).read_text(encoding="utf-8")


def test_each_promise_has_guards() -> None:
    table = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    assert all(f"\n| {number} | " in table for number in PROMISES)
    assert {guard.promise for guard in GUARDS} == set(PROMISES)


FIXED_SET = "not long"
"""How `make test` chooses."""


def is_in(test: str, collected: Iterable[str]) -> bool:
    return any(f"{one}[".startswith(f"{test}[") for one in collected)


def test_what_decides_is_in_the_fixed_set(request: pytest.FixtureRequest) -> None:
    deciding = sorted({test for guard in GUARDS for test in guard.tests})
    if request.config.option.markexpr == FIXED_SET and SEED not in os.environ:
        # What this run collects itself needs no second look, which takes a tenth of a minute.
        ours = {item.nodeid for item in request.session.items}
        deciding = [test for test in deciding if not is_in(test, ours)]
    collected = collected_of_the_fixed_set(deciding) if deciding else []
    assert [test for test in deciding if not is_in(test, collected)] == []


def collected_of_the_fixed_set(tests: list[str]) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", FIXED_SET]
    environ = {name: value for name, value in os.environ.items() if name != SEED}
    done = subprocess.run(
        [*command, *tests], cwd=ROOT, env={**environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_guard_that_no_test_misses_and_a_test_that_fails_anyway_are_told(tmp_path: Path) -> None:
    (tmp_path / "code_under_test.py").write_text("def low(n):\n    if n < 0:\n        return True\n    return n < 5\n")
    (tmp_path / "test_code.py").write_text(
        "import pytest\nfrom code_under_test import low\n\n"
        "@pytest.mark.parametrize('n', [-1, 1])\ndef test_low(n):\n    assert low(n)\n\n"
        "def test_high():\n    assert not low(7)\n\n"
        "class TestMore:\n    def test_broken(self):\n        assert low(6)\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True, timeout=60)

    def guard(text: str, becomes: str, *tests: str) -> Guard:
        return Guard(1, text, "code_under_test.py", text, becomes, tuple(f"test_code.py::{test}" for test in tests))

    below = guard("n < 5", "n < 9", "test_high")
    unneeded = guard("    if n < 0:\n        return True\n", "", "test_low")
    assert outcomes_of(tmp_path, ["test_code.py::test_low", "test_code.py::TestMore::test_broken"]) == {
        "test_code.py::test_low": False,
        "test_code.py::TestMore::test_broken": True,
    }
    said: list[str] = []
    assert try_all([below, unneeded], tmp_path, 1, said.append) == ["test_code.py::test_low passes without it"]
    assert said[1:] == [
        "noticed: n < 5 (test_code.py::test_high)",
        f"NOT NOTICED: {unneeded.name} test_code.py::test_low passes without it",
    ]
    broken, gone = guard("n < 5", "n < 9", "TestMore::test_broken"), guard("n < 5", "n < 9", "test_gone")
    assert [try_all([one], tmp_path, 1, said.append) for one in (broken, gone)] == [
        ["test_code.py::TestMore::test_broken fails with all guards in place"],
        ["test_code.py::test_gone did not run with all guards in place"],
    ]
    with pytest.raises(ValueError, match="0 times, not once"):
        guard("n > 5", "", "test_high").removed(tmp_path)
