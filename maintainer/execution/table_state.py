"""What is left of a step right before it runs, on a table that others may have changed since it was planned. Pure.

The rules are those of ``planning.staleness``: another table, schema, partitioning or protocol refuses; files that are
gone drop their bins; nothing is ever added.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from maintainer.model.plan import TablePlan
from maintainer.model.steps import SetPropertiesStep, Step
from maintainer.model.table import TableFacts
from maintainer.planning.staleness import StaleReasons, recheck, refusal

AnyStep = TypeVar("AnyStep", bound=Step)


def step_now(plan: TablePlan, step: AnyStep, facts: TableFacts) -> AnyStep | None:
    """The step as it still holds; None when nothing of it is left.

    Args:
        plan: The table's plan.
        step: One of its steps, or a part of one (a single batch).
        facts: The table now.

    Raises:
        Refused: A403, the table is not the one that was planned for; all differences at once.
    """
    # Properties that the plan itself sets are no difference, so these steps come along; the others cost time.
    own: list[Step] = [one for one in plan.steps if isinstance(one, SetPropertiesStep) and one != step]
    now = recheck(replace(plan, steps=(*own, step)), facts, plan.policy_digest)
    if isinstance(now, StaleReasons):
        raise refusal((now,))
    return next((one for one in now.steps if isinstance(one, type(step)) and one.kind == step.kind), None)
