"""Expectations after a commit: which are run, on which version, and what counts against the commit."""

from __future__ import annotations

import json

from maintainer.model.plan.plan import CheckedExpectation
from maintainer.model.run.outcome import Assertion
from maintainer.model.run.receipts import Verdict
from maintainer.verification.expectation_checks import CheckedExpectations, Verdicts, check_expectations
from maintainer.verification.great_expectations_suite import Validated


def expectation(name: str) -> CheckedExpectation:
    return CheckedExpectation(name, json.dumps({"column": "id"}))


HOLDS, FAILS, ERRS = expectation("holds"), expectation("fails"), expectation("errs")
INCREASING = expectation("expect_column_values_to_be_increasing")
EVERYTHING = (HOLDS, FAILS, ERRS, INCREASING)
OUTCOMES = {HOLDS: Verdict.PASS, FAILS: Verdict.FAIL, ERRS: Verdict.ERROR, INCREASING: Verdict.FAIL}


class Runs:
    """Stands for Great Expectations: answers from a table of outcomes, and notes what it was asked."""

    def __init__(self, outcomes: dict[int, dict[CheckedExpectation, Verdict]]) -> None:
        self.outcomes = outcomes
        self.asked: list[tuple[int, tuple[str, ...], str]] = []

    def __call__(self, version: int, expectations: tuple[CheckedExpectation, ...], name: str) -> Validated:
        self.asked.append((version, tuple(each.type for each in expectations), name))
        assertions = tuple(
            Assertion(each.type, self.outcomes[version][each], version, error="why" if each is ERRS else None)
            for each in expectations
        )
        return Validated(assertions, {"success": all(each.outcome == Verdict.PASS for each in assertions)})


def check(runs: Runs, version: int, judged: Verdicts, *, has_same_rows: bool) -> CheckedExpectations:
    return check_expectations(EVERYTHING, (version - 1, version), runs, judged, has_same_rows=has_same_rows)


def test_without_a_proof_whatever_does_not_pass_is_run_on_the_version_before() -> None:
    before = {**OUTCOMES, FAILS: Verdict.PASS}
    runs = Runs({0: before, 1: OUTCOMES})
    done = check(runs, 1, {HOLDS: Assertion("holds", Verdict.FAIL, 0)}, has_same_rows=False)
    names = tuple(each.type for each in EVERYTHING)
    assert runs.asked == [(1, names, "expectations"), (0, names[1:], "expectations-before")]
    assert [each.error for each in done.assertions] == [
        None,
        None,  # it held before: this commit's fault
        "not this commit's: could not be checked before as well, at version 0: why",
        "not this commit's: failed before as well, at version 0",
    ]
    assert done.notes == (
        "errs could not be checked before as well, at version 0",
        "expect_column_values_to_be_increasing failed before as well, at version 0",
    )
    assert [name for name, _ in done.documents] == ["expectations", "expectations-before"]


def test_with_a_proof_verdicts_are_carried_and_the_evidence_says_so() -> None:
    runs = Runs(dict.fromkeys(range(4), OUTCOMES))
    first = check(runs, 1, {}, has_same_rows=True)
    # What fails need not be run on the version before, which has the same rows; their order may be another.
    assert runs.asked[1:] == [(0, ("errs", INCREASING.type), "expectations-before")]
    assert first.notes[0] == "fails failed before as well: version 0 has the same rows by proof"
    assert set(first.verdicts) == {HOLDS, FAILS, INCREASING}, "what could not be checked is no verdict"

    runs.asked.clear()
    second = check(runs, 2, first.verdicts, has_same_rows=True)
    assert runs.asked[0] == (2, ("errs", INCREASING.type), "expectations")
    assert [(each.outcome, each.version, each.carried_from) for each in second.assertions[:3]] == [
        (Verdict.PASS, 2, 1), (Verdict.FAIL, 2, 1), (Verdict.ERROR, 2, None)]  # fmt: skip
    document = dict(second.documents)["expectations"]
    assert (document["success"], document["carried_because"]) == (False, "versions 1 and 2 hold the same rows by proof")
    assert [(each["expectation"], each["run_at_version"]) for each in document["carried"]] == [
        ("holds", 1),
        ("fails", 1),
    ]

    third = check(runs, 3, second.verdicts, has_same_rows=True)
    assert third.assertions[0].carried_from == 1, "where it was run, and not where it was carried to"


def test_a_verdict_of_version_0_is_carried_as_such_and_none_after_a_commit_without_a_proof() -> None:
    runs = Runs(dict.fromkeys(range(3), OUTCOMES))
    at_zero = {HOLDS: Assertion("holds", Verdict.PASS, 0)}
    first = check(runs, 1, at_zero, has_same_rows=True)
    assert first.assertions[0].carried_from == 0
    assert check(runs, 2, first.verdicts, has_same_rows=True).assertions[0].carried_from == 0
    assert check(runs, 2, first.verdicts, has_same_rows=False).assertions[0].carried_from is None


def test_a_validation_that_could_not_run_is_said_as_it_is() -> None:
    def broken(version: int, expectations: tuple[CheckedExpectation, ...], name: str) -> Validated:
        document = {"success": False, "error": "no room"}
        return Validated((Assertion(name, Verdict.ERROR, version, error="no room"),), document)

    for expectations in (EVERYTHING, (HOLDS,)):
        done = check_expectations(expectations, (0, 1), broken, {}, has_same_rows=True)
        assert [(each.error, each.failed_before) for each in done.assertions] == [("no room", False)]
        assert done.verdicts == {}


def test_a_validation_that_could_not_run_on_the_version_before_excuses_nothing() -> None:
    def broken_before(version: int, expectations: tuple[CheckedExpectation, ...], name: str) -> Validated:
        if version == 1:
            return Runs({1: OUTCOMES})(version, expectations, name)
        return Validated((Assertion(name, Verdict.ERROR, version, error="no room"),), {"error": "no room"})

    done = check_expectations((ERRS, FAILS), (0, 1), broken_before, {}, has_same_rows=False)
    assert [each.failed_before for each in done.assertions] == [False, False]
