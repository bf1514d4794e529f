"""Choose the rewrites of a table: the one that gives its layout, and the purge of the files it does not take."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, assert_never

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import RewriteStep, SetPropertiesStep, StepKind, VacuumStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import FileKey, TableFacts
from maintainer.planning.budget.other_writers import without_hot, without_updated
from maintainer.planning.operations.clustering import plan_clustering
from maintainer.planning.operations.compaction import plan_compaction
from maintainer.planning.operations.full_zorder import plan_zorder
from maintainer.planning.operations.partition_rewrite import plan_rewrite
from maintainer.planning.operations.purge import plan_purge, with_purged
from maintainer.planning.plan_input import TableInput
from maintainer.planning.schedule import last_rewrite, not_due, optimize_is_due
from maintainer.planning.selection.decision import Decision, leave_files
from maintainer.planning.selection.lane_choice import with_lanes
from maintainer.planning.selection.partition_texts import without_lost_values, without_respelled
from maintainer.planning.selection.supported_features import (
    left_by_commands,
    without_commands,
    zorder_left_by_commands,
)
from maintainer.planning.zorder.incremental_zorder import plan_incremental
from maintainer.planning.zorder.zorder_revision import NothingToOrder, incremental_columns
from maintainer.policy.resolve.resolved import ResolvedPolicy, ZOrderMode


def plan_rewrites(
    table: TableInput,
) -> tuple[tuple[RewriteStep, ...], tuple[LeftAlone, ...], SetPropertiesStep | None]:
    """Plan the rewrite that gives the table its layout, and the purge of files which that one does not take.

    The layout is decided on all files, and leaves alone those that the purge does not take: so each file is in one bin
    of one step, or counted in one reason why it is left alone.

    Returns:
        The steps in order, what is left alone, and table properties that a step needs first.

    Raises:
        TableError: The policy asks for what the table does not have; see the kinds of rewrites.
    """
    files, lost = without_lost_values(table.facts)
    respelled: tuple[LeftAlone, ...] = ()
    if table.options.by_commands:
        files, respelled = without_respelled(table.facts, files)
    table = table.with_files(files) if lost or respelled else table
    files, updated = without_updated(table)
    table = table.with_files(files) if updated else table
    files, hot = without_hot(table.facts, table.record, table.now_ms)
    table = table.with_files(files) if hot else table
    table = with_purged(table)
    layout = _layout(table, due=optimize_is_due(table))
    purge = plan_purge(table, _keys(layout.step))
    if table.options.by_commands:
        layout = without_commands(table.policy, layout)
        purge = left_by_commands(table.policy, table.facts, purge)
    steps = tuple(with_lanes(table, step) for step in (layout.step, purge.step) if isinstance(step, RewriteStep))
    return steps, (*lost, *respelled, *updated, *hot, *layout.left_alone, *purge.left_alone), layout.properties


def _keys(step: RewriteStep | VacuumStep | None) -> frozenset[FileKey]:
    if not isinstance(step, RewriteStep):
        return frozenset()
    return frozenset(file.key for file in step.files)


LayoutKind = Literal[StepKind.CLUSTER, StepKind.ZORDER, StepKind.REWRITE, StepKind.COMPACT]


def layout_kind(policy: ResolvedPolicy, facts: TableFacts) -> LayoutKind:
    """Say which kind of rewrite gives a table its layout: what the table is made for comes before the policy."""
    if facts.clustering_columns:
        return StepKind.CLUSTER
    if policy.optimize.zorder is not None:
        return StepKind.ZORDER
    return StepKind.COMPACT if policy.optimize.rewrite is None else StepKind.REWRITE


def _plan_layout(table: TableInput) -> Decision:
    kind = layout_kind(table.policy, table.facts)
    match kind:
        case StepKind.CLUSTER:
            return plan_clustering(table)
        case StepKind.ZORDER:
            zorder = table.policy.optimize.zorder
            full = zorder is not None and zorder.mode is ZOrderMode.FULL
            if table.options.by_commands and not full:
                incremental_columns(table.policy, table.facts)
                return zorder_left_by_commands(table)
            try:
                return (plan_zorder if full else plan_incremental)(table)
            except NothingToOrder as equal:
                return _compaction_instead(table, str(equal))
        case StepKind.REWRITE:
            return plan_rewrite(table)
        case StepKind.COMPACT:
            return plan_compaction(table)
        case _:
            assert_never(kind)


def _compaction_instead(table: TableInput, why: str) -> Decision:
    compacted = plan_compaction(table)
    origin = table.policy.place_of("optimize.zorder.columns")
    line = LeftAlone(Reason(ReasonCode.NOTHING_TO_ORDER, f"nothing to order by, so compaction: {why}", origin))
    return replace(compacted, left_alone=(line, *compacted.left_alone))


def _follows_request(step: ZOrderStep) -> bool:
    """Whether a person asked for the turn; other work of the policy keeps its days while a request finds no files."""
    by_hand = step.settings is not None and step.settings.request
    return by_hand and step.planned_turn is not None and step.planned_turn.strategy is Strategy.LEVELED


def _layout(table: TableInput, *, due: bool) -> Decision:
    policy, facts = table.policy, table.facts
    if not facts.files:
        return Decision()
    optimize = policy.optimize
    decision = _plan_layout(table)
    # Planned also when it is not due, so that what is wrong with the policy is found before its day comes.
    if decision.step is None or due:
        return decision
    if isinstance(decision.step, ZOrderStep) and _follows_request(decision.step):
        return decision
    last, what = last_rewrite(table)
    assert last is not None
    reason = not_due(what, "optimize.every", policy, optimize.every_seconds, last, table.now_ms)
    assert isinstance(decision.step, RewriteStep)
    files = decision.step.files
    later = leave_files(reason.code, reason.text, files, reason.origin)
    return Decision(None, (*decision.left_alone, later))
