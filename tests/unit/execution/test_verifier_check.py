"""A commit waits until it is known that it can be verified, and every table is told why not in an error of its own."""

from __future__ import annotations

import sys
import threading
from functools import partial
from threading import Event

import pytest

from maintainer.errors import EnvironmentUnfit, VerifierUnfit
from maintainer.execution import run_context
from maintainer.execution.run_context import VERIFIER_SWITCH_SECONDS, VerifierCheck


def test_without_a_check_nothing_is_waited_for() -> None:
    VerifierCheck().wait()


def test_a_commit_waits_for_the_check_and_the_interpreter_is_left_as_it_was() -> None:
    before, allowed, waited = sys.getswitchinterval(), threading.Event(), threading.Event()
    check = VerifierCheck()

    def slow() -> None:
        assert allowed.wait(60)

    check.start(slow)

    def commit() -> None:
        check.wait()
        waited.set()

    waiter = threading.Thread(target=commit)
    waiter.start()
    assert not waited.wait(0.05)
    allowed.set()
    assert waited.wait(60)
    waiter.join(60)
    assert sys.getswitchinterval() == before


def _wait(started: Event, end: Event) -> None:
    started.set()
    end.wait(60)


@pytest.mark.parametrize("first", [0, 1])
def test_checks_of_two_runs_that_overlap_leave_the_interpreter_as_it_was(first: int) -> None:
    before, checks, ends = sys.getswitchinterval(), (VerifierCheck(), VerifierCheck()), (Event(), Event())
    for check, end in zip(checks, ends, strict=True):
        started = Event()
        check.start(partial(_wait, started, end))
        assert started.wait(60)
    ends[first].set()
    checks[first].wait()
    assert sys.getswitchinterval() == pytest.approx(VERIFIER_SWITCH_SECONDS), "the other one is still at work"
    ends[1 - first].set()
    checks[1 - first].wait()
    assert sys.getswitchinterval() == before


def test_each_table_gets_an_error_of_its_own() -> None:
    def broken() -> None:
        raise VerifierUnfit("cannot be imported", found="ModuleNotFoundError", help="install it")

    check = VerifierCheck()
    check.start(broken)
    errors = []
    for _ in range(2):
        with pytest.raises(EnvironmentUnfit) as caught:
            check.wait()
        errors.append(caught.value)
        caught.value.help = "changed by whoever raised it on"
    assert errors[0] is not errors[1]
    assert [(error.code, error.what, error.found) for error in errors] == [
        ("E653", "cannot be imported", "ModuleNotFoundError")
    ] * 2


def test_a_check_that_fails_in_a_way_nobody_foresaw_is_e653() -> None:
    check = VerifierCheck()
    check.start(lambda: [][1])
    with pytest.raises(EnvironmentUnfit, match="does not work") as caught:
        check.wait()
    assert caught.value.code == "E653"
    assert "IndexError" in (caught.value.found or "")


def test_a_check_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_context, "VERIFIER_LIMIT_SECONDS", 0.01)
    end = threading.Event()
    check = VerifierCheck()

    def hangs() -> None:
        end.wait(60)

    check.start(hangs)
    with pytest.raises(EnvironmentUnfit) as caught:
        check.wait()
    end.set()
    assert caught.value.code == "E653"
    assert "no answer within" in (caught.value.found or "")
