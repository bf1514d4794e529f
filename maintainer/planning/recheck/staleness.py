"""Check whether a plan still holds, right before each table's steps run, and say what changed in the table. Pure.

A plan that a person approved is refused when its table, schema, protocol or policy changed. When only files changed
it is reduced: bins whose files are all live run exactly as planned, the others are dropped. Nothing new is ever
added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from maintainer.errors import Refused
from maintainer.model.plan.plan import Observed, Plan, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    ClusterStep,
    SetPropertiesStep,
    Step,
)
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.planning.properties.property_plan import property_of, same_value
from maintainer.planning.recheck.live_steps import reduce_step
from maintainer.planning.recheck.table_differences import (
    column_changes,
    names_changed,
    policy_changes_since,
    protocol_changes,
)
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.policy.resolve.policy_values import PolicyValues
from maintainer.units import by_cause, format_duration, named

PLAN_AGAIN = "make the plan again: `maintainer plan --out FILE`"

MAX_NAMES = 5
"""Tables named where one reason is about many of them."""


@dataclass(frozen=True, slots=True)
class StaleReasons:
    """Why a table's plan must not be applied: sentences, never none."""

    ref: TableRef
    reasons: tuple[str, ...]


def check_age(plan: Plan, now_ms: int) -> None:
    """Refuse a plan that is too old, or that was made in the future by a clock that disagrees with ours.

    Raises:
        Refused: A404.
    """
    if plan.created_at_ms <= now_ms <= plan.expires_at_ms:
        return
    late = now_ms > plan.expires_at_ms
    away = format_duration(abs(now_ms - (plan.expires_at_ms if late else plan.created_at_ms)) // 1000)
    raise Refused(
        "the plan is too old" if late else "the plan was made in the future",
        code="A404",
        found=f"it expired {away} ago" if late else f"by {away}: the clocks of two machines differ",
        help=PLAN_AGAIN,
    )


def refused_alone(plan: TablePlan, stale: StaleReasons) -> TablePlan:
    """Return the plan of a table that is not touched for these reasons, while the others of its plan are done."""
    reason = Reason(ReasonCode.PLAN_STALE, f"not as planned: {'; '.join(stale.reasons)}")
    return replace(plan, steps=(), blocked=(reason,))


def refusal(stale: Iterable[StaleReasons]) -> Refused:
    """Make one refusal (A403) that says everything that is stale; what holds for several tables is said once."""
    said = [(str(table.ref), reason) for table in stale for reason in table.reasons]
    found = []
    for group in by_cause(said, lambda of_table: of_table[1]):
        names = [name for name, _ in group]
        tables = names[0] if len(names) == 1 else f"{len(names):,} tables ({named(names, MAX_NAMES)})"
        found.append(f"{tables}: {group[0][1]}")
    return Refused("the plan is stale", code="A403", found="\n".join(found), help=PLAN_AGAIN)


def recheck(
    plan: TablePlan,
    facts: TableFacts,
    policy_digest_now: str | None,
    *,
    policy_values_now: PolicyValues = (),
    exact: bool = False,
) -> StaleReasons | TablePlan:
    """Check a table's plan against the table as it is now.

    Args:
        plan: The plan of one table.
        facts: The table now.
        policy_digest_now: Digest of the table's effective policy now; None where no policy matches it any more.
        policy_values_now: What that policy says, to name what changed where the digest is another one.
        exact: Demand the very version that was planned (``apply --exact``).

    Returns:
        The reasons for which it is refused, all at once; or the plan, reduced to what is still there: dropped
        bins and files are in ``left_alone``. A property that already has its planned value is no difference,
        so a plan of which a part was applied can be applied again.
    """
    if plan.observed is None or not plan.steps:
        return plan
    if policy_digest_now is None:
        policy_reasons: tuple[str, ...] = ("no policy matches the table any more",)
    elif plan.policy_digest != policy_digest_now:
        policy_reasons = policy_changes_since(plan, policy_values_now)
    else:
        policy_reasons = ()
    reasons = (*policy_reasons, *_differences(plan, plan.observed, facts, exact))
    if reasons:
        return StaleReasons(plan.ref, reasons)
    steps: list[Step] = []
    left_alone = list(plan.left_alone)
    for step in plan.steps:
        reduced, dropped = reduce_step(step, facts)
        if reduced is not None:
            steps.append(reduced)
        left_alone += dropped
    return replace(plan, steps=tuple(steps), left_alone=tuple(left_alone))


def _differences(plan: TablePlan, observed: Observed, facts: TableFacts, exact: bool) -> Iterator[str]:
    if observed.table_id != facts.table_id:
        yield f"the table was dropped and made again (table id {observed.table_id}, now {facts.table_id})"
    if observed.location != facts.location:
        yield f"the table is at another place ({observed.location}, now {facts.location})"
    yield from column_changes(observed.columns, planned_columns(facts))
    if observed.partition_columns != facts.partition_columns:
        yield names_changed("the partition columns", observed.partition_columns, facts.partition_columns)
    yield from protocol_changes(observed.protocol, facts.protocol)
    columns = next((step.columns for step in plan.steps if isinstance(step, ClusterStep)), None)
    if columns is not None and columns != facts.clustering_columns:
        yield names_changed("the clustering columns", columns, facts.clustering_columns)
    if facts.version < observed.version:
        yield f"the table went back from version {observed.version} to {facts.version}"
    elif exact and facts.version > observed.version:
        yield f"the table is at version {facts.version}, the plan was made at version {observed.version} (--exact)"
    targets = {name: value for step in plan.steps if isinstance(step, SetPropertiesStep) for name, value in step.after}
    for name, before in observed.managed_properties:
        now = property_of(facts, name)
        done = name in targets and same_value(name, now, targets[name])
        if not done and not same_value(name, before, now):
            yield f"table property {name} was {before or 'not set'}, now {now or 'not set'}"
