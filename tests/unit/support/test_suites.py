"""What `make test` leaves out, what `make nightly` draws, and what a run says at its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.model.plan.steps import CompactStep
from tests.support.runs.sample_plans import full_plan
from tests.support.suites.drawn_cells import SEED, draw
from tests.support.suites.first_difference import pytest_assertrepr_compare
from tests.support.suites.spark_apart import SparkApart
from tests.support.suites.suite_summary import counted, summary_lines

pytest_plugins = ["pytester"]

CELLS = [f"test_pair[{letter}]" for letter in "abcdefghij"]

MATRIX = """
import pytest

CELLS = [
    pytest.param("once failed", marks=pytest.mark.every_run),
    pytest.param("dear", marks=pytest.mark.long),
    *"abcdefgh",
]

@pytest.mark.sampled(3)
@pytest.mark.parametrize("cell", CELLS)
def test_pair(cell):
    pass

def test_plain():
    pass

@pytest.mark.long
def test_whole():
    pass
"""
POOL = """
import pytest

pytestmark = pytest.mark.sampled(1)

def test_first():
    pass

def test_second():
    pass

def test_third():
    pass
"""
CONFTEST = """
from tests.support.suites.spark_apart import SparkApart
from tests.support.suites.suite_summary import (
    pytest_collection_modifyitems, pytest_deselected, pytest_report_header, pytest_sessionfinish,
    pytest_terminal_summary, pytest_testnodedown,
)
"""
NIGHT = """
import pytest

pytestmark = pytest.mark.nightly

def test_at_night():
    pass

@pytest.mark.every_run
def test_always():
    pass
"""
MARKERS = "[pytest]\nmarkers =\n  sampled: n\n  nightly: n\n  every_run: n\n  long: n\n"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makeini(MARKERS)
    pytester.makeconftest(CONFTEST)
    pytester.mkdir("tests").joinpath("plain").mkdir()
    (pytester.path / "tests" / "plain" / "test_matrix.py").write_text(MATRIX, encoding="utf-8")
    (pytester.path / "tests" / "plain" / "test_pool.py").write_text(POOL, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    return pytester


def test_a_seed_draws_the_same_cells_whatever_their_order() -> None:
    first = draw(CELLS, 3, "test_pair", "1")
    assert first == draw(reversed(CELLS), 3, "test_pair", "1")
    assert len(first) == 3
    assert first <= set(CELLS)
    assert draw(CELLS, 99, "test_pair", "1") == set(CELLS)


def test_seeds_draw_other_cells_until_each_was_drawn() -> None:
    drawn = [draw(CELLS, 3, "test_pair", str(seed)) for seed in range(40)]
    assert len(set(drawn)) > 20
    assert frozenset().union(*drawn) == set(CELLS)


def test_two_matrices_are_drawn_apart() -> None:
    assert any(draw(CELLS, 3, "first", str(seed)) != draw(CELLS, 3, "second", str(seed)) for seed in range(5))


def test_what_shares_a_spark_session_goes_to_one_process_and_the_rest_by_file() -> None:
    apart = SparkApart.__new__(SparkApart)
    scopes = {
        name: apart._split_scope(f"tests/{name}.py::test_a[x::y]")
        for name in ("contract/test_x", "integration/vacuum/test_y", "integration/object_stores/test_z", "unit/test_u")
    }
    assert scopes["contract/test_x"] == scopes["integration/vacuum/test_y"] != "tests/contract/test_x.py"
    for name in ("integration/object_stores/test_z", "unit/test_u"):
        assert scopes[name] == f"tests/{name}.py"


def test_tests_are_counted_by_suite() -> None:
    ids = ["tests/unit/a/test_x.py::test_a", "tests/unit/test_y.py::test_b[1/2]", "tests/fault/test_z.py::test_c"]
    assert counted(ids) == "3: fault 1, unit 2"
    assert summary_lines([], {}, "7") == []


def runs(suite: pytest.Pytester, seed: str, *args: str) -> tuple[list[str], list[str]]:
    """Names of the cells that ran, and the lines at the end."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setenv(SEED, seed)
        result = suite.runpytest_inprocess("-v", "-p", "no:cacheprovider", *args, "tests")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    ran = [line.split("::")[1].split(" PASSED")[0] for line in result.outlines if " PASSED" in line and "::" in line]
    end = next(place for place, line in enumerate(result.outlines) if " what ran " in line)
    return ran, [line for line in result.outlines[end + 1 : -1] if line]


def test_without_a_seed_nothing_is_drawn(suite: pytest.Pytester) -> None:
    (suite.path / "tests" / "plain" / "test_night.py").write_text(NIGHT, encoding="utf-8")
    ran, lines = runs(suite, "", "-m", "not long")
    assert sorted(ran) == ["test_always", "test_pair[once failed]", "test_plain"]
    assert lines == ["tests that ran   3: plain 3", "other runs have  14: plain 14"]


def test_a_matrix_is_drawn_at_night_and_the_whole_of_it_is_long(suite: pytest.Pytester) -> None:
    (suite.path / "tests" / "plain" / "test_night.py").write_text(NIGHT, encoding="utf-8")
    ran, lines = runs(suite, "7", "-m", "(nightly or sampled) and not long and not every_run")
    assert len(ran) == 5  # three cells, one of the pool, what is nightly
    assert "test_at_night" in ran
    assert not {"test_always", "test_pair[once failed]", "test_pair[dear]", "test_plain"} & set(ran)
    assert lines == [
        "tests that ran   5: plain 5",
        f"drawn            pair 4 of 10, pool 1 of 3; the same again with {SEED}=7",
        "other runs have  9: plain 9",
    ]
    whole, _ = runs(suite, "", "-m", "long or sampled or nightly")
    assert len(whole) == 16  # ten cells, the pool, both of the night, and what is long by itself
    fixed, _ = runs(suite, "", "-m", "not long")
    assert {*whole, *fixed} == {*whole, "test_plain"}


def test_workers_draw_the_same_and_the_end_is_said_once(suite: pytest.Pytester) -> None:
    with pytest.MonkeyPatch.context() as patches:
        patches.setenv(SEED, "7")
        result = suite.runpytest_subprocess("-n", "2", "-m", "not long", "-p", "no:cacheprovider", "tests")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["tests that ran   6: plain 6", "*pair 4 of 10*=7", "*have  9: plain 9"])
    assert result.stdout.str().count("what ran") == 1


def test_a_difference_of_two_plans_is_named_by_its_path() -> None:
    plan = full_plan()
    number, place, step = next(
        (number, place, step)
        for number, table in enumerate(plan.tables)
        for place, step in enumerate(table.steps)
        if isinstance(step, CompactStep)
    )
    tables = list(plan.tables)
    steps = list(tables[number].steps)
    steps[place] = replace(step, max_threads=99)
    tables[number] = replace(tables[number], steps=tuple(steps))
    said = f"[{number}].steps[{place}].max_threads: {step.max_threads} != 99"
    other = replace(plan, tables=tuple(tables))
    assert pytest_assertrepr_compare("==", plan, other) == ["two values of Plan", f".tables{said}"]
    assert pytest_assertrepr_compare("==", plan.tables, other.tables) == ["two values of tuple", said]
    assert pytest_assertrepr_compare("==", plan.tables, ()) == ["two values of tuple", f"value: {plan.tables!r} != ()"]
    assert pytest_assertrepr_compare("==", "a", "b") is None
    assert pytest_assertrepr_compare("in", plan, plan) is None
