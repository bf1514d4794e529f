"""How long a plan's rewrites are expected to take: by the speed of past runs, and how far that was off before.

A speed is known for a kind of step in a lane, else for the kind. What a run took against what the runs before it made
one expect is its miss. The range of the last misses is the range that is said. A first guess says that it is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import Batch
from maintainer.planning.budget.ranking import Timed, pace_of
from maintainer.planning.budget.run_budget import Learned

MAX_MISSES = 10
"""Newest runs whose misses count: machines and tables change."""

MIN_MISSES = 3
"""With fewer nobody can say how far an estimate is off."""


@dataclass(frozen=True, slots=True)
class ExpectedTime:
    """Seconds that a plan's rewrites take one by one, and what that rests on.

    ``least_seconds`` and ``most_seconds`` are None for a first guess. ``num_commits`` were timed. ``misses`` are the
    least and the greatest of the times that past runs took, as multiples of what was expected of them.
    """

    seconds: float
    num_commits: int
    least_seconds: float | None = None
    most_seconds: float | None = None
    misses: tuple[float, float] | None = None


def speed_key(kind: str, lanes: Sequence[str]) -> str:
    """Return what a speed is remembered by: ``compact/local``, or the kind alone where lanes are mixed or unknown."""
    return f"{kind}/{lanes[0]}" if len(lanes) == 1 else kind


def kind_of(key: str) -> str:
    """Return the kind of step of a speed's key."""
    return key.partition("/")[0]


def added_up(runs: Sequence[Mapping[str, Timed]]) -> dict[str, Timed]:
    """Add up what was timed, by key and by kind."""
    sums: dict[str, Timed] = {}
    for run in runs:
        _add(sums, run)
    return sums


def _add(sums: dict[str, Timed], run: Mapping[str, Timed]) -> None:
    for key, timing in run.items():
        for name in dict.fromkeys((key, kind_of(key))):
            sums[name] = sums.get(name, Timed()) + timing


def misses_of(runs: Sequence[Mapping[str, Timed]]) -> tuple[float, ...]:
    """Return what runs took as multiples of what the runs before them made one expect, newest first.

    Args:
        runs: What each run timed, newest first.
    """
    sums: dict[str, Timed] = {}
    misses: list[float] = []
    for run in reversed(runs):
        expected = took = 0.0
        for key, timing in run.items():
            known = sums.get(key) or sums.get(kind_of(key))
            if known is not None and known.seconds > 0:
                pace = pace_of(known)
                expected += pace.commit_seconds * timing.num_commits + timing.size_bytes / pace.bytes_per_second
                took += timing.seconds
        if expected > 0:
            misses.append(took / expected)
        _add(sums, run)
    return tuple(reversed(misses))[:MAX_MISSES]


def expected_time(plan: Plan, learned: Learned) -> ExpectedTime | None:
    """Return how long the plan's rewrites take at the speed of past runs, one by one; None without such runs."""
    batches = [(_key_of(step.kind, batch, learned), batch) for step in plan.rewrites for batch in step.batches]
    known = [key for key, _ in batches if key in learned.bytes_per_second]
    if not known:
        return None
    seconds = sum(learned.seconds_of(key, batch.size_bytes) for key, batch in batches)
    if len(learned.misses) < MIN_MISSES or len(known) < len(batches):
        return ExpectedTime(seconds, learned.num_commits)
    least, most = min(learned.misses), max(learned.misses)
    return ExpectedTime(seconds, learned.num_commits, seconds * least, seconds * most, (least, most))


def _key_of(kind: str, batch: Batch, learned: Learned) -> str:
    key = speed_key(kind, sorted({bin_.lane.lane.value for bin_ in batch.bins}))
    return key if key in learned.bytes_per_second else kind
