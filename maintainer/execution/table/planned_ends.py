"""What a plan alone says of a table's end: its status where no step runs, and why less is done than could be."""

from __future__ import annotations

from maintainer.errors import TableAltered, TableHot
from maintainer.execution.table.step_runs import LIFT_HELP
from maintainer.model.plan.plan import Problem, TablePlan, TableState
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.run.outcome import TableStatus
from maintainer.planning.recheck.staleness import PLAN_AGAIN
from maintainer.units import count_of

_LIMIT_HELP = "raise the limit in a reviewed change, or choose less of the table with `optimize.where`"

_HOT_HELP = (
    "the next apply does it when the writers are quiet; a table that is never quiet needs a `window:` or partitions"
)
_REST_HELP = "the first apply after that does it; set `quietAfterUpdates: 0s` if nobody else updates the table"

_CODE_OF_BLOCKED = {ReasonCode.QUARANTINED: "A411", ReasonCode.PLAN_STALE: "A403"}

_HELP_OF_BLOCKED = {
    ReasonCode.PLAN_STALE: PLAN_AGAIN,
    ReasonCode.QUARANTINED: LIFT_HELP,
    ReasonCode.LARGE_DELETE: (
        "look first whether these files were meant to be removed: `maintainer history TABLE`; then allow it in a "
        "reviewed change"
    ),
    ReasonCode.CANNOT_BE_SURE: (
        "nothing is deleted until this is known: bring back what is named above, set the clock, or take a consumer "
        "that is gone for good out of the policy"
    ),
}
"""What to do about a table that a person has to decide about; for limits of a rewrite, ``_LIMIT_HELP``."""


def status_without_steps(plan: TablePlan) -> TableStatus:
    """Return the status of a table whose plan has no steps."""
    match plan.state:
        case TableState.PROBLEM:
            return TableStatus.FAILED
        case TableState.UNSUPPORTED:
            return TableStatus.UNSUPPORTED
        case TableState.BLOCKED:
            return TableStatus.BLOCKED
        case TableState.WAITING:
            return TableStatus.WAITING
        case TableState.CHANGES | TableState.UP_TO_DATE:
            return TableStatus.UP_TO_DATE


def planned_problem(plan: TablePlan) -> Problem | None:
    """Return why nothing, or not all that was planned, is done to a table; None where there is no problem."""
    if plan.state is TableState.WAITING and plan.hot is not None:
        help_text = _REST_HELP if plan.hot.code is ReasonCode.RESTING else _HOT_HELP
        return Problem(TableHot.default_code, plan.hot.text, plan.hot.origin, help_text)
    if not plan.blocked:
        return plan.problem or _left_out(plan)
    reason = plan.blocked[0]
    code, help_text = _CODE_OF_BLOCKED.get(reason.code, "A420"), _HELP_OF_BLOCKED.get(reason.code, _LIMIT_HELP)
    return Problem(code, "; ".join(reason.text for reason in plan.blocked), reason.origin, help_text)


def _left_out(plan: TablePlan) -> Problem | None:
    """Say which bins of a saved plan are not rewritten, as other writers changed files of them after it was made."""
    bins = [entry for entry in plan.left_alone if entry.reason.code is ReasonCode.NO_LONGER_LIVE]
    if not bins:
        return None
    left_out = f"{count_of(len(bins), 'bin')} with {count_of(sum(entry.num_files for entry in bins), 'file')}"
    what = f"left out: {left_out}, some of which others changed after the plan was made"
    return Problem(TableAltered.default_code, what, help=PLAN_AGAIN)
