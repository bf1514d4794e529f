"""Great Expectations itself on frames of pandas: pass, fail, could not be checked; and what a broken one leads to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from maintainer.errors import EnvironmentUnfit, ProjectError
from maintainer.model.plan.plan import CheckedExpectation
from maintainer.model.run.receipts import Verdict
from maintainer.verification import great_expectations_suite as gx
from maintainer.verification.verification_result import Pair

FRAME = pd.DataFrame({"id": [1, 2, None], "day": ["a", "b", "b"]})


def expectation(name: str, **arguments: Any) -> CheckedExpectation:
    return CheckedExpectation(name, json.dumps(arguments))


NOT_NULL = expectation("expect_column_values_to_not_be_null", column="id")
THREE_ROWS = expectation("expect_table_row_count_to_equal", value=3)
NO_COLUMN = expectation("expect_column_values_to_not_be_null", column="none")


def test_what_holds_fails_or_cannot_be_checked_comes_in_the_order_asked() -> None:
    validated = gx.validate_frame(FRAME, "t", [NO_COLUMN, THREE_ROWS, NOT_NULL], version=3)
    error, passed, failed = validated.assertions
    assert [each.outcome for each in validated.assertions] == [Verdict.ERROR, Verdict.PASS, Verdict.FAIL]
    assert {each.version for each in validated.assertions} == {3}
    assert (failed.column, failed.observed, failed.error) == ("id", "1", None)
    assert error.error is not None
    assert '"none"' in error.error
    assert (passed.expected, passed.column) == ('{"value": 3}', None)
    assert validated.document["success"] is False
    assert len(validated.document["failed_in_detail"]) == 2, "what holds is not run again"


def test_what_holds_is_run_once() -> None:
    validated = gx.validate_frame(FRAME, "t", [THREE_ROWS], version=3)
    assert [each.outcome for each in validated.assertions] == [Verdict.PASS]
    assert validated.document["success"] is True
    assert "failed_in_detail" not in validated.document


@pytest.mark.parametrize("asked", [[THREE_ROWS], [THREE_ROWS, NOT_NULL]], ids=["one", "two"])
def test_a_validation_that_has_no_turn_is_one_error(
    asked: list[CheckedExpectation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a single expectation its one error was taken for an answer, and its document for one with results."""
    monkeypatch.setattr(gx, "LOCK_TIMEOUT_SECONDS", 0.01)
    with gx._lock:
        validated = gx.validate_frame(FRAME, "t", asked, version=3)
    assert [(each.outcome, each.error) for each in validated.assertions] == [
        (Verdict.ERROR, "waited 0 s for another validation")
    ]
    assert validated.document == {"success": False, "error": "waited 0 s for another validation"}
    assert gx.validate_frame(FRAME, "t", [THREE_ROWS], version=3).document["success"] is True


def test_a_validation_that_hangs_holds_up_no_other_one() -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    class Hanging(str):
        __slots__ = ()

        def __hash__(self) -> int:
            hangs.set()
            goes_on.wait(60)
            return super().__hash__()

    frame = pd.DataFrame({"id": [Hanging("b")]}, dtype=object)
    in_set = expectation("expect_column_values_to_be_in_set", column="id", value_set=["a"])
    first = list[gx.Validated]()
    others = list[gx.Validated]()
    hung = threading.Thread(target=lambda: first.append(gx.validate_frame(frame, "hung", [in_set], version=3)))
    hung.start()
    try:
        assert hangs.wait(60), "it came to no value"

        def validate() -> None:
            others.append(gx.validate_pairs((Pair("a", "1", "b", "1"),), "t"))
            others.append(gx.validate_frame(FRAME, "t", [THREE_ROWS, NOT_NULL], version=3))

        thread = threading.Thread(target=validate, daemon=True)
        thread.start()
        thread.join(30)
        assert [[each.outcome for each in validated.assertions] for validated in others] == [
            [Verdict.PASS], [Verdict.PASS, Verdict.FAIL]]  # fmt: skip
    finally:
        goes_on.set()
        hung.join(60)
    assert [(each.outcome, each.error) for each in first[0].assertions] == [(Verdict.FAIL, None)]


def test_validations_side_by_side_answer_each_for_its_own_frame() -> None:
    wrong: list[str] = []

    def validate(rows: int) -> None:
        frame = pd.DataFrame({"id": range(rows)})
        counted = [expectation("expect_table_row_count_to_equal", value=value) for value in (rows, rows + 1)]
        for _ in range(3):
            right, not_right = gx.validate_frame(frame, "same name", counted, version=1).assertions
            if (right.outcome, not_right.outcome, not_right.observed) != (Verdict.PASS, Verdict.FAIL, str(rows)):
                wrong.append(f"{rows}: {right}, {not_right}")
            pairs = (Pair("a", str(rows), "b", "3"), Pair("c", "1", "d", "1"))
            equal = [each.outcome is Verdict.PASS for each in gx.validate_pairs(pairs, "same name").assertions]
            if equal != [rows == 3, True]:
                wrong.append(f"{rows}: {equal}")

    threads = [threading.Thread(target=validate, args=(rows,)) for rows in (3, 5, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_an_error_while_a_failure_is_looked_at_again_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, calls = gx._answered, []

    def gone_the_second_time(result: Any, num_asked: int, name: str, version: int | None) -> gx.Validated:
        calls.append(num_asked)
        if len(calls) == 2:
            raise OSError("the disk is gone")
        return answered(result, num_asked, name, version)

    monkeypatch.setattr(gx, "_answered", gone_the_second_time)
    validated = gx.validate_frame(FRAME, "t", [THREE_ROWS, NOT_NULL], version=3)
    assert calls == [2, 1]
    assert [(each.expectation, each.error) for each in validated.assertions] == [("t", "OSError: the disk is gone")]
    assert validated.document["success"] is False


def test_fewer_answers_than_questions_are_no_success() -> None:
    from great_expectations.core import ExpectationSuiteValidationResult  # takes seconds: not while tests are collected

    result = ExpectationSuiteValidationResult(success=True, results=[], suite_name="maintenance")
    validated = gx._answered(result, 2, "t", 3)
    assert [(each.expectation, each.outcome) for each in validated.assertions] == [("t", Verdict.ERROR)]
    assert validated.document["success"] is False
    assert validated.document["error"] == "2 expectations were run and only 0 answered"


def test_pairs_are_equal_texts_and_a_missing_figure_equals_nothing() -> None:
    pairs = (
        Pair("a", "36893488147419103232", "b", "36893488147419103232"),
        Pair("c", "1", "d", "01"),
        Pair("e", None, "f", None),
    )
    validated = gx.validate_pairs(pairs, "t", version=4)
    assert [each.outcome for each in validated.assertions] == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL]
    assert [(each.expected, each.observed) for each in validated.assertions[1:]] == [("1", "01"), (None, None)]
    assert validated.assertions[0].expectation == "expect_column_pair_values_to_be_equal: a = b"
    assert validated.document["figures"]["d"] == "01"
    equal = gx.validate_pairs(pairs[:1], "t")
    assert (equal.assertions[0].outcome, equal.document["success"]) == (Verdict.PASS, True)


def test_pairs_that_could_not_be_compared_keep_their_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gx, "LOCK_TIMEOUT_SECONDS", 0.01)
    with gx._lock:
        validated = gx.validate_pairs((Pair("a", "1", "b", "1"),), "t", version=4)
    assert [each.outcome for each in validated.assertions] == [Verdict.ERROR]
    assert validated.document["figures"] == {"a": "1", "b": "1"}


@pytest.mark.parametrize(
    ("result", "rows"),
    [
        ({"success": True}, frozenset()),
        ({"success": False, "result": {"unexpected_index_list": [2]}}, frozenset({2})),
        ({"success": False, "result": {"unexpected_index_list": []}}, None),
        ({"success": False, "result": None}, None),
        ({"success": False}, None),
    ],
)
def test_rows_that_differ_are_named_or_all_are(result: dict[str, Any], rows: frozenset[int] | None) -> None:
    assert gx._unequal_rows(result) == rows


@pytest.mark.parametrize(
    ("info", "error"),
    [
        (None, None),
        ({"raised_exception": False, "exception_message": "old"}, None),
        ({"raised_exception": True, "exception_message": "x" * 400}, "x" * 300),
        ({"m1": {"exception_message": "a"}, "m2": "b", "m3": {"exception_message": "c"}, "m4": "d"}, "a; b; c"),
        ({}, None),
    ],
)
def test_errors_of_metrics_come_in_two_shapes(info: dict[str, Any] | None, error: str | None) -> None:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    config = ExpectationConfiguration(
        type="expect_x", kwargs={"column": 7, "batch_id": "b", "value": {"k": 1}}, meta={"maintainer_position": 0}
    )
    result = ExpectationValidationResult(
        success=True, expectation_config=config, exception_info=info, result={"unexpected_count": 2}
    )
    asserted = gx._assertion(result, 5)
    assert (asserted.error, asserted.outcome) == (error, Verdict.PASS if error is None else Verdict.ERROR)
    assert (asserted.column, asserted.expected, asserted.observed) == ("7", '{"value": {"k": 1}}', "2")


def test_long_texts_are_cut() -> None:
    assert gx._text("x" * 3000) == "x" * 3000
    assert gx._text("x" * 3001) == "x" * 3000 + "..."


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (expectation("expect_nothing"), "does not accept the expectation expect_nothing"),
        (expectation("expect_table_row_count_to_equal", value="many"), "does not accept"),
        (expectation("unexpected_rows_expectation"), "carries a query or a condition"),
        (expectation("expect_column_values_to_not_be_null", column="a", row_condition="x"), "carries a query"),
    ],
)
def test_what_cannot_be_built_is_an_error_of_the_policy(asked: CheckedExpectation, says: str) -> None:
    with pytest.raises(ProjectError) as caught:
        gx.preflight((THREE_ROWS, asked))
    assert (caught.value.code, says in caught.value.what) == ("P316", True)
    gx.preflight((THREE_ROWS,))


def test_an_installation_that_does_not_work_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gx, "LOCK_TIMEOUT_SECONDS", 0.01)
    with gx._lock, pytest.raises(EnvironmentUnfit) as caught:
        gx.preflight()
    assert (caught.value.code, caught.value.found) == ("E653", "waited 0 s for another validation")
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    with pytest.raises(EnvironmentUnfit) as caught:
        gx.preflight()
    assert caught.value.code == "E653"
    assert "cannot be imported" in caught.value.what


@pytest.mark.parametrize(
    ("options", "advice"),
    [(("-OO",), "run without -OO"), (("-W", "error"), "run without -W error"), ((), "pip install")],
)
def test_options_of_python_that_the_package_cannot_bear_are_named(
    tmp_path: Path, options: tuple[str, ...], advice: str
) -> None:
    package = tmp_path / "great_expectations"
    package.mkdir()
    package.joinpath("__init__.py").write_text(
        "import sys, warnings\nwarnings.warn('old', DeprecationWarning)\nraise TypeError\n"
    )
    program = "from maintainer.verification import great_expectations_suite as gx\ntry:\n    gx.preflight()\n"
    program += "except Exception as error:\n    print(error.code, error.help)"
    path = os.pathsep.join([str(tmp_path), str(Path(gx.__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, *options, "-c", program], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert (done.stdout.startswith("E653 "), advice in done.stdout) == (True, True)
