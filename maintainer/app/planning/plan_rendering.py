"""What a rendering of a plan knows beside the plan: the project, and what past runs took and lost to others."""

from __future__ import annotations

from maintainer.app.planning.run_statistics import learn, past_lessons
from maintainer.app.project_folders import Project, local_zone
from maintainer.model.plan.plan import Plan
from maintainer.model.run.auto_compaction import AutoCompactSwitch
from maintainer.planning.budget.expected_time import expected_time
from maintainer.planning.budget.run_budget import Learned, expected_losses
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.plan.plan_text import PlanOptions
from maintainer.report.plan.why_text import render_why
from maintainer.report.style import PLAIN, Style


def plan_options(project: Project, plan: Plan) -> PlanOptions:
    """Return what a plan is shown with: the project's name and policies, and what its past runs teach."""
    learned = _learned(project, plan)
    return PlanOptions(
        project=project.root.name,
        num_policies=project.loaded.policy_count,
        tz=local_zone(),
        expected_time=expected_time(plan, learned),
        lost_ratios=expected_losses(plan, learned),
    )


def decisions_text(
    project: Project,
    policy: ResolvedPolicy,
    plan: Plan,
    auto_compact: AutoCompactSwitch | str | None,
    *,
    verbose: bool = False,
    style: Style = PLAIN,
) -> str:
    """Return every decision about the one table of a plan as text, ending in a newline.

    Args:
        project: The project, for its past runs.
        policy: The table's effective policy.
        plan: The plan of this table alone.
        auto_compact: Whether the table's writers compact by themselves, or why nobody can say.
        verbose: Name each partition that is left alone.
        style: Colour or none.
    """
    options = PlanOptions(verbose=verbose, tz=local_zone(), lost_ratios=expected_losses(plan, _learned(project, plan)))
    table = plan.tables[0]
    return render_why(table, policy, options, style, auto_compact=auto_compact, at_ms=plan.created_at_ms)


def _learned(project: Project, plan: Plan) -> Learned:
    """Return what past runs teach; a plan without changes needs nothing of it, and reads no run."""
    return learn(past_lessons(project.runs_dir), plan) if plan.has_changes else Learned()
