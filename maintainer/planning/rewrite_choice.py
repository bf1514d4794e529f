"""The rewrites of a table: the one that gives it its layout, and the purge of what that one does not take."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.steps import RewriteStep, VacuumStep, ZOrderStep
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.planning.budget.conflict_probability import without_hot
from maintainer.planning.budget.hot_tables import without_updated
from maintainer.planning.operations.clustering import plan_clustering
from maintainer.planning.operations.compaction import plan_compaction
from maintainer.planning.operations.full_zorder import plan_zorder
from maintainer.planning.operations.partition_rewrite import plan_rewrite
from maintainer.planning.operations.purge import plan_purge
from maintainer.planning.schedule import is_due, not_due
from maintainer.planning.selection.decision import Decision, PropertyChange, leave_files
from maintainer.planning.selection.supported_features import left_by_commands, without_commands
from maintainer.planning.zorder.incremental_zorder import plan_incremental
from maintainer.policy.resolve.resolved import ResolvedPolicy, ZOrderMode


def plan_rewrites(
    policy: ResolvedPolicy,
    facts: TableFacts,
    record: TableRecord,
    *,
    now_ms: int,
    today: date,
    ignore_every: bool,
    by_commands: bool,
) -> tuple[tuple[RewriteStep, ...], tuple[LeftAlone, ...], PropertyChange | None]:
    """Plan the rewrite that gives the table its layout, and the purge of files which that one does not take.

    Files to be purged are planned for twice, the second time without them: so each file is in one bin of one step,
    or counted in one reason why it is left alone.

    Args:
        policy: The effective policy.
        facts: The table.
        record: What the ledger remembers of it.
        now_ms: The time of planning.
        today: What ``current_date()`` in ``where`` means.
        ignore_every: Whether ``optimize.every`` is set aside.
        by_commands: Whether the engine only issues Delta's commands.

    Returns:
        The steps in order, what is left alone, and a table property that a step needs first.

    Raises:
        TableError: The policy asks for what the table does not have; see the kinds of rewrites.
    """
    files, updated = without_updated(policy, facts, now_ms)
    facts = replace(facts, files=files) if updated else facts
    files, hot = without_hot(facts, record, now_ms)
    facts = replace(facts, files=files) if hot else facts
    due = ignore_every or is_due(policy.optimize.every_seconds, record.last_optimize_at_ms, now_ms)
    layout = _layout(policy, facts, record, now_ms, today, due=due)
    purge = plan_purge(policy, facts, _keys(layout.step), now_ms=now_ms, today=today) if due else Decision()
    if purge.step is not None:
        purged = _keys(purge.step)
        rest = replace(facts, files=tuple(file for file in facts.files if file.key not in purged))
        layout = _layout(policy, rest, record, now_ms, today, due=due)
    if by_commands:
        layout, purge = without_commands(policy, layout), left_by_commands(policy, facts, purge)
    steps = tuple(step for step in (layout.step, purge.step) if isinstance(step, RewriteStep))
    return steps, (*updated, *hot, *layout.left_alone, *purge.left_alone), layout.property_change


def _keys(step: RewriteStep | VacuumStep | None) -> frozenset[tuple[str, str]]:
    if not isinstance(step, RewriteStep):
        return frozenset()
    return frozenset(file.key for file in step.files)


def _layout(
    policy: ResolvedPolicy, facts: TableFacts, record: TableRecord, now_ms: int, today: date, *, due: bool
) -> Decision:
    if not facts.files:
        return Decision()
    optimize, last = policy.optimize, record.last_optimize_at_ms
    if facts.clustering_columns:
        decision, name = plan_clustering(policy, facts, now_ms=now_ms, today=today), "clustering"
    elif optimize.zorder is not None:
        plan = plan_zorder if optimize.zorder.mode is ZOrderMode.FULL else plan_incremental
        decision, name = plan(policy, facts, now_ms=now_ms, today=today), "Z-order"
    elif optimize.rewrite is not None:
        decision, name = plan_rewrite(policy, facts, now_ms=now_ms, today=today), "rewrite"
    else:
        decision, name = plan_compaction(policy, facts, now_ms=now_ms, today=today), "compaction"
    # Planned also when it is not due, so that what is wrong with the policy is found before its day comes.
    if decision.step is None or due:
        return decision
    if isinstance(decision.step, ZOrderStep) and decision.step.settings is not None and decision.step.settings.request:
        return decision
    assert last is not None
    reason = not_due(name, "optimize.every", policy, optimize.every_seconds, last, now_ms)
    assert isinstance(decision.step, RewriteStep)
    files = decision.step.files
    later = leave_files(reason.code, reason.text, files, reason.origin)
    return Decision(None, (*decision.left_alone, later))
