"""Fits a plan into the budgets of its project, with what past runs taught."""

from __future__ import annotations

from maintainer.app.learned import learn, past_lessons
from maintainer.app.project import Project
from maintainer.model.plan import Plan
from maintainer.planning.budget import within_budget
from maintainer.policy.budgets import Budget


def fit(project: Project, plan: Plan, given: Budget) -> Plan:
    """Return the plan with those rewrites that the budgets have room for; the plan itself without any budget.

    Args:
        project: With its own budgets.
        plan: Everything that could be done.
        given: The run's bounds as options say them; they win over the project's.
    """
    budgets = project.loaded.project.budgets.with_run(given)
    if not budgets.bounded:
        return plan
    return within_budget(plan, budgets, learn(past_lessons(project.runs_dir)))[0]
