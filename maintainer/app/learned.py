"""What past runs teach about the next one: how long a byte takes, who yields often, and who waits since when."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from maintainer.app.insight import PastRun
from maintainer.model.outcome import StepStatus
from maintainer.model.reasons import ReasonCode
from maintainer.model.steps import RewriteStep
from maintainer.planning.budget import Learned

MAX_RUNS_LEARNED_FROM = 60


def learn(runs: Iterable[PastRun | tuple[Path, str]]) -> Learned:
    """Look through past runs, newest first; those that cannot be read are passed over."""
    learned = Learned()
    timed: dict[str, tuple[int, float]] = {}
    settled: set[str] = set()
    for number, run in enumerate(runs):
        if number >= MAX_RUNS_LEARNED_FROM:
            break
        if not isinstance(run, PastRun):
            continue
        for table in run.outcome.tables:
            for step in table.steps:
                size = sum(one.bytes_removed for one in step.commits)
                if size and step.status is StepStatus.SUCCEEDED:
                    before = timed.get(step.kind, (0, 0.0))
                    timed[step.kind] = (before[0] + size, before[1] + step.duration_seconds)
                if step.kind not in ("set_properties", "vacuum"):
                    tries, lost = learned.yielded.get(table.ref.identifier, (0, 0))
                    lost += step.status is StepStatus.YIELDED
                    learned.yielded[table.ref.identifier] = (tries + 1, lost)
        for plan in run.plan.tables:
            name = plan.ref.identifier
            if name in settled:
                continue
            # A table whose own budget cut its rewrites short is worked on every night: it does not wait.
            left_out = any(left.reason.code is ReasonCode.OVER_BUDGET for left in plan.left_alone)
            if left_out and not any(isinstance(step, RewriteStep) for step in plan.steps):
                learned.waiting_since_ms[name] = run.plan.created_at_ms
            else:
                settled.add(name)
    learned.bytes_per_second = {kind: size / seconds for kind, (size, seconds) in timed.items() if seconds > 0}
    return learned
