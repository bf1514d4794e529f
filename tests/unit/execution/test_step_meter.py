"""The meter of a step: what it shows after what it heard."""

from __future__ import annotations

import threading

import pytest

from maintainer.engine import step_meter
from maintainer.engine.step_meter import StepMeter, polled
from maintainer.model.run.progress import Phase, StepProgress


def test_reading_becomes_writing_when_something_is_written() -> None:
    meter = StepMeter()
    assert meter.progress() == StepProgress()
    meter.begin(Phase.READING, 100)
    meter.read(0, 30)
    meter.read(1, 20)
    assert meter.progress() == StepProgress(Phase.READING, 50, 100)
    meter.written_as_read(1)
    assert meter.progress() == StepProgress(Phase.WRITING, 20, 100)
    meter.written(0, 90)
    assert meter.progress() == StepProgress(Phase.WRITING, 100, 100)  # never more than there is
    assert meter.progress().bytes_rewritten == 100


def test_a_part_that_is_done_in_another_way_begins_anew() -> None:
    meter = StepMeter()
    meter.begin(Phase.READING, 100)
    meter.read(0, 30)
    meter.written(0, 30)
    meter.restart(0)
    meter.restart(5)
    assert meter.progress() == StepProgress(Phase.READING, 0, 100)


def test_a_new_phase_forgets_the_figures_of_the_one_before() -> None:
    meter = StepMeter()
    meter.begin(Phase.READING, 100)
    meter.tasks(3, 8)
    assert meter.progress() == StepProgress(Phase.READING, 0, 100, 3, 8)
    meter.begin(Phase.DELETING)
    meter.files(2, 9)
    assert meter.progress() == StepProgress(Phase.DELETING, num_files_done=2, num_files=9)


@pytest.mark.parametrize(
    ("phase", "rewritten"),
    [(Phase.READING, 0), (Phase.WRITING, 40), (Phase.PROVING, 100), (Phase.COMMITTING, 100), (Phase.CHECKING, 0)],
)
def test_what_is_rewritten(phase: Phase, rewritten: int) -> None:
    assert StepProgress(phase, 40, 100).bytes_rewritten == rewritten


def test_a_look_that_fails_or_hangs_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_meter, "POLL_SECONDS", 0.001)
    looked, release, calls = threading.Event(), threading.Event(), []

    def look() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("gone")
        looked.set()
        release.wait(30)

    with polled(look):
        assert looked.wait(30)
    assert not release.is_set()  # the block has ended while the look hangs
    release.set()
