"""How long rewrites are expected to take, and how far that was off: with recorded runs, never with a clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import BatchedStep, ZOrderStep
from maintainer.planning.budget.ranking import Timed, pace_of
from maintainer.planning.budget.run_budget import (
    MAX_MISSES,
    ExpectedTime,
    Learned,
    added_up,
    expected_time,
    misses_of,
    speed_key,
)
from maintainer.report.plan.plan_text import PlanTextOptions, render_plan
from tests.unit.planning.budget.test_run_budget import MIB, made, table

PLAN = made(table("a", 30, 30), table("b", 20, 20))
"""100 MiB of compactions."""


def run(seconds: float, size_mib: int = 100, key: str = "compact", num_commits: int = 2) -> dict[str, Timed]:
    return {key: Timed.of_step(num_commits, size_mib * MIB, seconds)}


def in_lane(plan: Plan, lane: Lane) -> Plan:
    tables = []
    for planned in plan.tables:
        steps = []
        for step in planned.steps:
            if not isinstance(step, BatchedStep):
                continue
            batches = tuple(
                replace(batch, bins=tuple(replace(bin_, lane=LaneChoice(lane, "asked for")) for bin_ in batch.bins))
                for batch in step.batches
            )
            steps.append(replace(step, batches=batches))
        tables.append(replace(planned, steps=tuple(steps)))
    return replace(plan, tables=tuple(tables))


def learned_of(*runs: dict[str, Timed]) -> Learned:
    """What these runs teach, the newest first, as ``learn`` puts it together."""
    paces = {key: pace_of(timed) for key, timed in added_up(runs).items()}
    return Learned(
        {key: pace.bytes_per_second for key, pace in paces.items()},
        commit_seconds={key: pace.commit_seconds for key, pace in paces.items()},
        num_commits=sum(timed.num_commits for each in runs for timed in each.values()),
        misses=misses_of(runs),
    )


def test_without_past_runs_of_such_steps_nothing_is_said() -> None:
    assert expected_time(PLAN, Learned()) is None
    assert expected_time(PLAN, Learned({"zorder": 1.0})) is None
    assert expected_time(made(), Learned({"compact": 1.0})) is None
    assert "Rewriting" not in render_plan(PLAN)


def test_a_first_guess_says_that_it_is_one() -> None:
    expected = expected_time(PLAN, Learned({"compact": 10.0 * MIB}, num_commits=1))
    assert expected == ExpectedTime(10.0, 1)
    text = render_plan(PLAN, PlanTextOptions(expected_time=expected))
    assert "Rewriting takes roughly 10s, by 1 past commit and one table at a time: a first guess." in text


def test_an_estimate_with_a_kind_that_was_never_timed_is_a_first_guess() -> None:
    learned = Learned({"compact": 10.0 * MIB}, misses=(1.0, 1.0, 1.0))
    assert expected_time(PLAN, learned) == ExpectedTime(10.0, 0, 10.0, 10.0, (1.0, 1.0))
    in_order = ZOrderStep(PLAN.rewrites[0].batches, ("id",), 1 << 30, 1, ())
    both = replace(PLAN, tables=(PLAN.tables[0], replace(PLAN.tables[1], steps=(in_order,))))
    expected = expected_time(both, learned)
    assert expected is not None
    assert expected.misses is None


def test_how_far_past_estimates_were_off() -> None:
    # The first run has nothing before it. The second took twice what the first made one expect, and so on.
    newest_first = [run(30.0), run(15.0), run(20.0), run(10.0)]
    assert list(misses_of(newest_first)) == pytest.approx([30 / 15, 15 / 15, 20 / 10])
    expected = expected_time(PLAN, learned_of(*newest_first))
    assert expected is not None
    assert expected.misses is not None
    assert expected.least_seconds is not None
    assert expected.most_seconds is not None
    assert list(expected.misses) == pytest.approx([1.0, 2.0])
    assert expected.least_seconds == pytest.approx(expected.seconds)
    assert expected.most_seconds == pytest.approx(2 * expected.seconds)
    text = render_plan(PLAN, PlanTextOptions(expected_time=expected))
    assert "past runs took 1.0 to 2.0 times what was expected." in text


def test_the_range_holds_what_a_busy_machine_does_next() -> None:
    quiet, busy = run(40.0), run(240.0)
    before = [quiet, busy, quiet, quiet, quiet]
    expected = expected_time(PLAN, learned_of(*before))
    assert expected is not None
    assert expected.least_seconds is not None
    assert expected.most_seconds is not None
    assert expected.least_seconds <= 40.0 < 240.0 <= expected.most_seconds
    assert expected.seconds == pytest.approx(80.0)  # the sharp figure alone would have been off by more than twice


def test_a_steady_machine_is_expected_to_stay_so() -> None:
    expected = expected_time(PLAN, learned_of(*[run(20.0)] * 8))
    assert expected is not None
    line = "Rewriting is expected to take 20s, by 16 past commits and one table at a time: past runs took 1.0 to 1.0"
    assert line in render_plan(PLAN, PlanTextOptions(expected_time=replace(expected, seconds=20.0, least_seconds=20.0,
                                                                       most_seconds=20.0)))  # fmt: skip


def test_a_lane_has_a_speed_of_its_own_and_lends_that_of_its_kind() -> None:
    runs = [run(50.0, key="compact/spark"), run(5.0, key="compact/copy")]
    learned = learned_of(*runs)
    assert set(learned.bytes_per_second) == {"compact", "compact/copy", "compact/spark"}
    copy, spark, local = (expected_time(in_lane(PLAN, lane), learned) for lane in (Lane.COPY, Lane.SPARK, Lane.LOCAL))
    assert copy is not None
    assert spark is not None
    assert local is not None
    assert copy.seconds < local.seconds < spark.seconds
    assert speed_key("compact", ["copy", "local"]) == speed_key("compact", []) == "compact"


def test_only_the_newest_misses_count_and_what_took_no_time_teaches_nothing() -> None:
    assert len(misses_of([run(float(number)) for number in range(1, 40)])) == MAX_MISSES
    assert misses_of([run(5.0), run(0.0)]) == ()
    assert misses_of([run(5.0, key="zorder"), run(5.0)]) == ()
