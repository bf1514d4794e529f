"""Say what a saved plan would do that no plan by the policy does.

The digest of a plan says that it was not changed on its way. It does not keep anybody from writing another plan with a
digest of its own. So what could lose something is held against the policy as it is now: deletions, table properties,
and the checks. Which files a rewrite takes is not: it commits only files with the same rows, whatever the plan says.
"""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import SetPropertiesStep, VacuumStep, ZOrderStep
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.revision import PROPERTY_PREFIX
from maintainer.planning.planner import checks_of
from maintainer.planning.properties.property_plan import plan_properties
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import format_duration


def beyond_policy(table: TablePlan, policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return what the plan of a table would delete, set or leave unchecked against its policy; empty for nothing.

    Args:
        table: What a saved plan does to one table.
        policy: The policy of that table as it is now.
        facts: The table as it is now.
    """
    reasons: list[str] = []
    if table.steps and table.checks != checks_of(policy):
        reasons.append("it would check the work by other checks than the policy's `verify:`")
    for step in table.steps:
        if isinstance(step, SetPropertiesStep):
            reasons.extend(_properties_beyond(step, table, policy, facts))
        elif isinstance(step, VacuumStep):
            reasons.extend(_vacuum_beyond(step, policy))
    return tuple(reasons)


def _vacuum_beyond(step: VacuumStep, policy: ResolvedPolicy) -> Iterator[str]:
    vacuum = policy.vacuum
    if vacuum is None:
        yield "it would delete files, and the policy has no `vacuum:`"
        return
    if step.retention_seconds < vacuum.retention_seconds:
        planned, asked = format_duration(step.retention_seconds), format_duration(vacuum.retention_seconds)
        yield f"it would keep removed files for {planned}, the policy for {asked}"
    if step.trash_seconds < vacuum.trash_seconds:
        yield "it would delete files that the policy moves into the trash"
    if not vacuum.delete_untracked and any(file.kind == "untracked" for file in step.files):
        yield "it would delete files that the log does not know, which the policy does not allow"


def _properties_beyond(
    step: SetPropertiesStep, table: TablePlan, policy: ResolvedPolicy, facts: TableFacts
) -> Iterator[str]:
    """Name properties that the policy does not ask for. A Z-order keeps its revision in one; a set one is no change."""
    asked_for = plan_properties(policy, facts)
    wanted = dict(asked_for.after) if asked_for is not None else {}
    has_turn = any(isinstance(planned, ZOrderStep) and planned.turn is not None for planned in table.steps)
    for name, value in step.after:
        is_revision = has_turn and policy.optimize.zorder is not None and name.startswith(PROPERTY_PREFIX)
        if not is_revision and value not in (wanted.get(name), facts.property_map.get(name)):
            yield f"it would set the table property {name} to {value}, which the policy does not ask for"
    for name in step.unset:  # no policy asks for a removal
        yield f"it would remove the table property {name}, which the policy does not ask for"
