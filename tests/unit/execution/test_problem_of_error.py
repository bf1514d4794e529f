"""An exception as data: nothing that its message says to a person is dropped on the way to records and reports."""

from __future__ import annotations

from maintainer.errors import TableError
from maintainer.errors.missing_files import missing_before
from maintainer.execution.run_context import problem_of
from maintainer.model.plan.plan import Problem
from maintainer.model.run.exit_codes import BUG_CODE


def test_an_error_of_ours_keeps_what_was_found_and_what_is_allowed() -> None:
    error = TableError("too new", code="T410", where="orders", found="writer 9", allowed="at most 7", help="upgrade")
    assert problem_of(error) == Problem("T410", "too new (found: writer 9; allowed: at most 7)", "orders", "upgrade")


def test_any_other_exception_is_a_bug_of_ours_on_one_line() -> None:
    assert problem_of(ValueError("a\n  b")) == Problem(
        BUG_CODE, "a bug in maintainer: ValueError: a b", help="report it with traceback.txt"
    )


def test_a_list_of_what_was_found_is_one_sentence() -> None:
    """Where a step ends its line said `a\\nb`."""
    problem = problem_of(missing_before(["s3://lake/a", "s3://lake/b"], "t"))
    assert problem.what == (
        "2 live files of the table are missing, before anything was done (found: s3://lake/a, s3://lake/b)"
    )
