"""Refuse tables and steps that are not supported, with the reason.

A table with a feature that we do not know is named and left alone. So is a step that an engine cannot do which only
issues Delta's commands.
"""

from __future__ import annotations

from dataclasses import replace

from maintainer.errors import TableError
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import BatchedStep, ClusterStep, CompactStep, ZOrderStep
from maintainer.model.table.table_facts import TableFacts
from maintainer.model.table.table_features import NOT_PERMITTED, NOT_PERMITTED_HELP, WHY_NOT, unsupported_features
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Decision, leave_files
from maintainer.planning.selection.schema_columns import at_version, dropped_columns_digest
from maintainer.policy.resolve.resolved import ResolvedPolicy

MAX_READER_VERSION = 3
MAX_WRITER_VERSION = 7

_CATALOG_MANAGED = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})


def check_supported(facts: TableFacts, *, clustered: bool = True) -> None:
    """Refuse a table that cannot be maintained safely.

    ``delta.appendOnly`` is no hindrance: it forbids commits that take rows away, and a rewrite with
    ``dataChange=false`` and a deletion of files the log already removed do not.

    Args:
        facts: The table.
        clustered: Whether the caller can keep a clustered table clustered.

    Raises:
        TableError: T404 a feature or version outside what is tested, T406 liquid clustering, T407 catalog-managed.
    """
    protocol, where = facts.protocol, at_version(facts)
    unsupported = unsupported_features(protocol)
    leave_it = "the table is left as it is; remove it from the policies to silence this"
    managed = [feature for feature in unsupported if feature in _CATALOG_MANAGED]
    if managed:
        found = f"table feature {', '.join(managed)}"
        raise TableError(NOT_PERMITTED, code="T407", where=where, found=found, help=NOT_PERMITTED_HELP)
    if facts.clustering_columns and not clustered:
        what = "a table with liquid clustering is not compacted after a write"
        found = f"clustering columns {', '.join(facts.clustering_columns)}"
        help = "`maintainer apply` clusters it; compaction would undo that"
        raise TableError(what, code="T406", where=where, found=found, help=help)
    if unsupported:
        named = [f"{feature} ({WHY_NOT[feature]})" if feature in WHY_NOT else feature for feature in unsupported]
        what = "the table has a feature that this version of maintainer is not tested with"
        raise TableError(what, code="T404", where=where, found=f"table feature {', '.join(named)}", help=leave_it)
    if protocol.min_reader_version > MAX_READER_VERSION or protocol.min_writer_version > MAX_WRITER_VERSION:
        what = "the table's protocol is newer than this version of maintainer"
        found = f"reader version {protocol.min_reader_version}, writer version {protocol.min_writer_version}"
        allowed = f"at most reader version {MAX_READER_VERSION}, writer version {MAX_WRITER_VERSION}"
        raise TableError(what, code="T404", where=where, found=found, allowed=allowed, help=leave_it)


_HELP = "apply with --engine transaction beside the storage"


def without_commands(policy: ResolvedPolicy, layout: Decision) -> Decision:
    """Leave a rewrite of partitions alone: OPTIMIZE joins files and puts them on a curve, nothing else."""
    step = layout.step
    if not isinstance(step, BatchedStep) or isinstance(step, CompactStep | ZOrderStep | ClusterStep):
        return layout
    text = f"{step.kind}: no command writes files of a number, a size or an order; {_HELP}"
    unsupported = leave_files(ReasonCode.NOT_BY_ENGINE, text, step.files, policy.place_of(f"optimize.{step.kind}"))
    return Decision(None, (*layout.left_alone, unsupported))


def zorder_left_by_commands(table: TableInput) -> Decision:
    """Leave an incremental Z-order alone: OPTIMIZE puts whole partitions in order, and tags no file."""
    text = (
        "incremental Z-order: no command puts some files of a partition in order and leaves the others; "
        f"set `mode: full`, or {_HELP}"
    )
    files, origin = table.without_purged(table.facts.files), table.policy.place_of("optimize.zorder")
    return Decision(None, (leave_files(ReasonCode.NOT_BY_ENGINE, text, files, origin),))


def left_by_commands(policy: ResolvedPolicy, facts: TableFacts, purge: Decision) -> Decision:
    """Say that nobody looked for dropped columns, where there may be any."""
    purges_columns = policy.optimize.purge is not None and policy.optimize.purge.dropped_columns
    if not purges_columns or dropped_columns_digest(facts) is None:
        return purge
    text = f"dropped columns: the command engine opens no file to look for them; {_HELP}"
    origin = policy.place_of("optimize.purge.droppedColumns")
    return replace(purge, left_alone=(*purge.left_alone, LeftAlone(Reason(ReasonCode.NOT_BY_ENGINE, text, origin))))
