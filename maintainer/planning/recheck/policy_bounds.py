"""Say what a saved plan would do that no plan by the policy does.

The digest of a plan says that it was not changed on its way. It does not keep anybody from writing another plan with a
digest of its own. So each step is held against the policy as it is now: deletions, table properties, the checks, and
which kind of rewrite it is, to which size, in which order and by how many threads. Which files a rewrite takes is not
asked: files come and go since the plan, and a rewrite commits only files with the same rows, whatever the plan says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import (
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    RewriteStep,
    SetPropertiesStep,
    StepKind,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.revision import PROPERTY_PREFIX
from maintainer.planning.operations.partition_rewrite import describe_request, read_request
from maintainer.planning.operations.rewrite_choice import layout_kind
from maintainer.planning.planner import checks_of
from maintainer.planning.property_plan import plan_properties
from maintainer.planning.zorder.zorder_revision import zorder_columns
from maintainer.policy.resolve.resolved import ResolvedPolicy, ZOrderMode
from maintainer.units import format_duration, format_size


def beyond_policy(table: TablePlan, policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return what the plan of a table would delete, set, rewrite or leave unchecked against its policy; or nothing.

    Args:
        table: What a saved plan does to one table.
        policy: The policy of that table as it is now.
        facts: The table as it is now.

    Raises:
        TableError: The policy asks for columns that the table does not have; see ``zorder_columns``.
    """
    reasons: list[str] = []
    if table.steps and table.checks != checks_of(policy):
        reasons.append("it would check the work by other checks than the policy's `verify:`")
    for step in table.steps:
        match step:
            case SetPropertiesStep():
                reasons.extend(_properties_beyond(step, table, policy, facts))
            case VacuumStep():
                reasons.extend(_vacuum_beyond(step, policy))
            case PurgeStep():
                if policy.optimize.purge is None:
                    reasons.append("it would purge files, and the policy has no `optimize.purge:`")
                reasons.extend(_size_beyond(step, policy))
            case CompactStep() | ZOrderStep() | PartitionRewriteStep() | ClusterStep():
                reasons.extend(_layout_beyond(step, policy, facts))
            case _:
                assert_never(step)
    return tuple(reasons)


def _layout_beyond(
    step: CompactStep | ZOrderStep | PartitionRewriteStep | ClusterStep, policy: ResolvedPolicy, facts: TableFacts
) -> Iterator[str]:
    asked = layout_kind(policy, facts)
    # A Z-order whose columns hold one value is planned as a compaction.
    instead = isinstance(step, CompactStep) and asked is StepKind.ZORDER
    if step.kind is not asked and not instead:
        yield f"its rewrite is of the kind {step.kind}, the policy asks for {asked}"
        return
    yield from _size_beyond(step, policy)
    if isinstance(step, ZOrderStep):
        yield from _zorder_beyond(step, policy, facts)
    elif isinstance(step, PartitionRewriteStep) and step.request != (request := read_request(policy, facts)):
        yield f"it would write {describe_request(step.request)}, the policy asks for {describe_request(request)}"
    elif isinstance(step, ClusterStep):
        cluster = policy.optimize.cluster
        planned = (step.min_cube_size_bytes, step.target_cube_size_bytes, step.full)
        if planned != (cluster.min_cube_size_bytes, cluster.target_cube_size_bytes, cluster.full):
            yield "it would cluster by other settings than the policy's `optimize.cluster:`"


def _zorder_beyond(step: ZOrderStep, policy: ResolvedPolicy, facts: TableFacts) -> Iterator[str]:
    """Name another mode, and other columns of a full Z-order; a turn's columns are those of its revision."""
    zorder = policy.optimize.zorder
    full = zorder is not None and zorder.mode is ZOrderMode.FULL
    if full is not (step.planned_turn is None):
        yield "its Z-order is of another mode than the policy's `optimize.zorder.mode`"
    elif full and step.columns != (columns := tuple(column.quoted for column in zorder_columns(policy, facts))):
        yield f"it would put rows in order of {', '.join(step.columns)}, the policy asks for {', '.join(columns)}"


def _size_beyond(step: RewriteStep, policy: ResolvedPolicy) -> Iterator[str]:
    optimize = policy.optimize
    if step.max_threads > optimize.max_threads:
        yield f"it would use {step.max_threads} threads, the policy {optimize.max_threads}"
    if not isinstance(step, PartitionRewriteStep) and step.max_file_size_bytes != optimize.max_file_size_bytes:
        planned, asked = format_size(step.max_file_size_bytes), format_size(optimize.max_file_size_bytes)
        yield f"it would write files of up to {planned}, the policy asks for {asked}"


def _vacuum_beyond(step: VacuumStep, policy: ResolvedPolicy) -> Iterator[str]:
    vacuum = policy.vacuum
    if vacuum is None:
        yield "it would delete files, and the policy has no `vacuum:`"
        return
    if step.retention_seconds < vacuum.retention_seconds:
        planned, asked = format_duration(step.retention_seconds), format_duration(vacuum.retention_seconds)
        yield f"it would keep removed files for {planned}, the policy for {asked}"
    if step.files and step.trash_seconds < vacuum.trash_seconds:
        yield "it would delete files that the policy moves into the trash"
    if not vacuum.delete_untracked and any(file.kind == "untracked" for file in step.files):
        yield "it would delete files that the log does not know, which the policy does not allow"


def _properties_beyond(
    step: SetPropertiesStep, table: TablePlan, policy: ResolvedPolicy, facts: TableFacts
) -> Iterator[str]:
    """Name properties that the policy does not ask for. A Z-order keeps its revision in one; a set one is no change."""
    asked_for = plan_properties(policy, facts)
    wanted = dict(asked_for.after) if asked_for is not None else {}
    has_turn = any(isinstance(planned, ZOrderStep) and planned.planned_turn is not None for planned in table.steps)
    for name, value in step.after:
        is_revision = has_turn and policy.optimize.zorder is not None and name.startswith(PROPERTY_PREFIX)
        if not is_revision and value not in (wanted.get(name), facts.property_map.get(name)):
            yield f"it would set the table property {name} to {value}, which the policy does not ask for"
    for name in step.unset:  # no policy asks for a removal
        yield f"it would remove the table property {name}, which the policy does not ask for"
