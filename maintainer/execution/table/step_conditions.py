"""Reduce or refuse a step right before it runs, on a table that may have changed since it was planned. Pure.

The rules are those of ``planning.staleness``: another table, schema, partitioning or protocol refuses; missing files
drop their bins; nothing is ever added. The window is checked before each step and commit, so that a long run does not
outlast it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import TypeVar

from maintainer.errors import WindowClosed
from maintainer.execution.table.commit_attempt import Worker
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import SetPropertiesStep, Step
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.staleness import StaleReasons, recheck, refusal

AnyStep = TypeVar("AnyStep", bound=Step)


def step_now(plan: TablePlan, step: AnyStep, facts: TableFacts) -> AnyStep | None:
    """Return the part of the step that still holds; None when nothing of it is left.

    Args:
        plan: The table's plan.
        step: One of its steps, or a part of one (a single batch).
        facts: The table now.

    Raises:
        Refused: A403, the table is not the one that was planned for; all differences at once.
    """
    # Properties that the plan itself sets are no difference, so these steps come along; the others cost time.
    own: list[Step] = [planned for planned in plan.steps if isinstance(planned, SetPropertiesStep) and planned != step]
    now = recheck(replace(plan, steps=(*own, step)), facts, plan.policy_digest)
    if isinstance(now, StaleReasons):
        raise refusal((now,))
    return next(
        (current for current in now.steps if isinstance(current, type(step)) and current.kind == step.kind), None
    )


def check_window(worker: Worker) -> None:
    """End here if the window in which the table was planned has closed.

    Raises:
        WindowClosed: C716; what is left is found again by the next plan.
    """
    closes = worker.plan.window_closes_ms
    if closes is not None and worker.context.clock.now_ms() >= closes:
        at = datetime.fromtimestamp(closes / 1000, tz=timezone.utc)
        raise WindowClosed(
            f"the window closed at {at:%Y-%m-%d %H:%M} UTC",
            where=worker.plan.ref.identifier,
            help="the rest is planned again in the next window; `--ignore-window` does it now",
        )
