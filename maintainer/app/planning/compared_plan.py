"""Plan what the policies of a Git commit would do to the same tables, and name the policies that are new since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from maintainer.app.planning.make_plan import NewPolicies, PlanRequest, make_plan
from maintainer.app.project_folders import Project
from maintainer.engine.protocols import Engine
from maintainer.model.plan.plan import Plan
from maintainer.policy.project.policy_changes import policy_changes, shared_values_at
from maintainer.policy.project.shared_changes import shared_changes, shared_values
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import identity
from maintainer.policy.yaml.discovery import find_files
from maintainer.report.plan.comparison_markdown import Comparison


def new_policies(project: Project, before: Sequence[ResolvedPolicy], ref: str) -> NewPolicies:
    """Return the tables that have a policy now and had none at a commit.

    Args:
        project: The project as it is now.
        before: The policies at the commit.
        ref: The commit, for messages.
    """
    known = {identity(policy.table) for policy in before}
    return NewPolicies(ref, frozenset(identity(policy.table) for policy in project.policies) - known)


def compare_plan(
    project: Project, engine: Engine, request: PlanRequest, made: Plan, before: Sequence[ResolvedPolicy], ref: str
) -> Comparison:
    """Plan the tables of a plan by the policies as they were; a table whose policy is the same is not read again.

    Args:
        project: The project as it is now.
        engine: Reads the tables.
        request: What ``made`` was made from.
        made: The plan by the policies as they are now.
        before: The policies at the commit.
        ref: The commit.
    """
    now = {identity(policy.table): policy.digest for policy in project.policies}
    planned = {identity(table.ref): table for table in made.tables}
    in_plan = {identity(policy.table): policy for policy in before if identity(policy.table) in planned}
    changed = tuple(policy for key, policy in in_plan.items() if now.get(key) != policy.digest)
    request = replace(request, purpose=f" by the policies of {ref}")
    plan_before = make_plan(project, engine, replace(request, policies=changed, on_table=None, problems=()))
    same = tuple(planned[key] for key, policy in in_plan.items() if now.get(key) == policy.digest)
    root = project.root
    shared = shared_changes(
        shared_values_at(project.loaded, ref), shared_values(find_files(root), root), before, project.policies
    )
    whole = replace(plan_before, tables=(*plan_before.tables, *same))
    return Comparison(ref, policy_changes(before, project.policies), whole, shared)
