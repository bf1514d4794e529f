"""What past runs teach: rates by kind, lost races, and since when a table waits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from maintainer.app.insight import PastRun
from maintainer.app.learned import learn
from maintainer.model.outcome import StepStatus
from maintainer.model.plan import LeftAlone, Plan
from maintainer.model.reasons import Reason, ReasonCode
from tests.unit.report import samples


def run(created_at_ms: int, *, waits: bool, status: StepStatus = StepStatus.SUCCEEDED) -> PastRun:
    plan: Plan = replace(samples.plan(samples.orders()), created_at_ms=created_at_ms)
    if waits:
        left = LeftAlone(Reason(ReasonCode.OVER_BUDGET, "waits"))
        plan = replace(plan, tables=(replace(plan.tables[0], left_alone=(left,), steps=()),))
    good = samples.good_run()
    step = replace(
        samples.compact_done(), status=status, commits=(samples.receipt(1, 5, 1, 1000),), duration_seconds=4.0
    )
    return PastRun(Path("x"), plan, replace(good, tables=(replace(good.tables[0], steps=(step,)),)))


def test_rates_and_lost_races() -> None:
    yielded = run(1, waits=False, status=StepStatus.YIELDED)
    learned = learn([run(3, waits=False), (Path("broken"), "why"), yielded])
    assert learned.bytes_per_second == {"compact": 250.0}
    assert learned.yielded == {"sales.orders": (2, 1)}


def test_waiting_counts_from_the_first_night_of_an_unbroken_row() -> None:
    assert learn(
        [run(5, waits=True), run(4, waits=True), run(3, waits=False), run(2, waits=True)]
    ).waiting_since_ms == {"sales.orders": 4}
    assert learn([run(5, waits=False), run(4, waits=True)]).waiting_since_ms == {}
