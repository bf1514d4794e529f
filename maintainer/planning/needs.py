"""List what planning a table must still know. The caller reads it, adds it to the facts, and asks again.

Each need says what is read at most; a healthy table has none. Footers and removed files are not asked for where this
run purges or deletes nothing in the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.errors import MaintainerError
from maintainer.model.plan.plan import TablePlan
from maintainer.model.table.table_facts import DataFile
from maintainer.planning.budget.other_writers import LOOK_BACK_MS, MAX_COMMITS, quiet_seconds, updates_since_ms
from maintainer.planning.operations.full_zorder import history_wanted, values_wanted
from maintainer.planning.operations.purge import files_to_check
from maintainer.planning.plan_input import TableInput
from maintainer.planning.schedule import held_back, vacuum_is_due
from maintainer.planning.selection.decision import Partition
from maintainer.planning.selection.supported_features import check_supported
from maintainer.planning.vacuum.deletion_limits import vacuum_horizon
from maintainer.planning.vacuum.vacuum_plan import cannot_be_sure, listing_wanted, untracked_before_ms
from maintainer.planning.zorder.zorder_options import ranges_wanted, sample_wanted
from maintainer.planning.zorder.zorder_revision import SAMPLE_ROWS

MAX_NEEDS = 10
"""More than there are kinds: an end whatever happens."""


@dataclass(frozen=True, slots=True)
class ZOrderHistoryNeed:
    """Which files a Z-order by these columns wrote: ``zordered_paths``."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RewrittenFilesNeed:
    """Which files rewrites added since a moment: ``rewritten_paths``."""

    since_ms: int


@dataclass(frozen=True, slots=True)
class ColumnRangesNeed:
    """Smallest and largest values of these columns in each file: ``column_ranges``."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnSampleNeed:
    """Values of these columns in so many rows: ``column_sample``."""

    columns: tuple[str, ...]
    max_rows: int


@dataclass(frozen=True, slots=True)
class DroppedColumnsNeed:
    """Which of these files hold dropped columns: ``files_with_dropped_columns``."""

    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class RemovalHistoryNeed:
    """Where the consumers' checkpoints are, and how long writes took: ``history``.

    ``checkpoints`` are names and paths. With ``removed_before_ms`` the answer also says whether anything that was
    removed before it can still be there; None where the folder is listed anyway.
    """

    checkpoints: tuple[tuple[str, str], ...]
    removed_before_ms: int | None


@dataclass(frozen=True, slots=True)
class RemovedFilesNeed:
    """Files on storage that were removed before a moment: ``removed_files`` and ``storage``.

    With ``untracked_before_ms`` the folder is listed for files that are not in the log and did not change since.
    """

    removed_before_ms: int
    untracked_before_ms: int | None


@dataclass(frozen=True, slots=True)
class WritersNeed:
    """The newest commits of the table, as ``CommitsWanted`` has them: what others do, and ``doubtful_files``."""

    limit: int
    since_ms: int
    also_since_ms: int | None


@dataclass(frozen=True, slots=True)
class UpdatesNeed:
    """Updates by others since a moment: ``updates``."""

    since_ms: int


Need = (
    ZOrderHistoryNeed
    | RewrittenFilesNeed
    | ColumnRangesNeed
    | ColumnSampleNeed
    | DroppedColumnsNeed
    | RemovalHistoryNeed
    | RemovedFilesNeed
    | WritersNeed
    | UpdatesNeed
)
"""Closed: who answers matches over it and ends in ``assert_never``."""


def next_need(table: TableInput) -> Need | None:
    """Return the next thing that planning must know of the table; None when it can be planned.

    Of a table to which nothing is done only its layout is read, which people are shown.
    """
    if table.record.quarantined is not None or held_back(table) is not None:
        return _layout_need(table)
    return _column_need(table) or _rewritten_need(table) or _dropped_columns_need(table) or _storage_need(table)


def writers_need(table: TableInput, plan: TablePlan) -> Need | None:
    """Return what must be known of other writers before a plan's rewrites are believed; None when nothing is left."""
    facts = table.facts
    if facts.updates is not None or not plan.rewrites:
        return None
    if facts.writers is None:
        every_ms = 0 if table.options.ignore_every else table.policy.optimize.every_seconds * 1000
        return WritersNeed(MAX_COMMITS, table.now_ms - LOOK_BACK_MS, table.now_ms - every_ms if every_ms else None)
    if not table.policy.optimize.quiet_after_updates_seconds:
        return None
    return UpdatesNeed(updates_since_ms(table.policy, facts.writers, table.now_ms))


def _layout_need(table: TableInput) -> ColumnRangesNeed | None:
    columns = () if table.options.by_commands else ranges_wanted(table.policy, table.facts)
    return ColumnRangesNeed(columns) if columns and table.facts.column_ranges is None else None


def _column_need(table: TableInput) -> Need | None:
    policy, facts = table.policy, table.facts
    if facts.zordered_paths is None and (columns := history_wanted(policy, facts)):
        return ZOrderHistoryNeed(columns)
    # Incremental Z-order is left alone where an engine only issues commands.
    columns = (() if table.options.by_commands else ranges_wanted(policy, facts)) or values_wanted(policy, facts)
    if not columns:
        return None
    if facts.column_ranges is None:
        return ColumnRangesNeed(columns)
    if facts.column_sample is None and (sampled := sample_wanted(policy, facts)):
        return ColumnSampleNeed(sampled, SAMPLE_ROWS)
    return None


def _rewritten_need(table: TableInput) -> RewrittenFilesNeed | None:
    """Ask only where something looks as if it was written lately, and its name does not say that we did it."""
    seconds = max(table.policy.optimize.quiet_for_seconds, quiet_seconds(table.record, table.now_ms))
    since_ms = table.now_ms - seconds * 1000
    if not seconds or table.facts.rewritten_paths is not None:
        return None
    whole = Partition((), table.facts.files)
    return RewrittenFilesNeed(since_ms) if whole.is_written_after(since_ms, None) else None


def _dropped_columns_need(table: TableInput) -> DroppedColumnsNeed | None:
    if table.facts.files_with_dropped_columns is not None or table.options.by_commands:
        return None
    try:
        check_supported(table.facts)
        files = files_to_check(table)
    except MaintainerError:
        return None
    return DroppedColumnsNeed(files) if files else None


def _storage_need(table: TableInput) -> RemovalHistoryNeed | RemovedFilesNeed | None:
    """Ask for the history first (a lower bound of the retention), then for the files (the exact retention)."""
    facts = table.facts
    if facts.removed_files is not None or not table.options.deletes or not vacuum_is_due(table):
        return None
    try:
        check_supported(facts)
        horizon = vacuum_horizon(table)
    except MaintainerError:
        return None
    if cannot_be_sure(table.policy, facts):
        return None
    listed = listing_wanted(table)
    if facts.history is None:
        consumers = table.policy.consumers
        checkpoints = tuple((consumer.name, consumer.checkpoint) for consumer in consumers if consumer.checkpoint)
        return RemovalHistoryNeed(checkpoints, None if listed else horizon.removed_before_ms)
    before_ms = untracked_before_ms(table.policy, horizon, table.now_ms) if listed else None
    return RemovedFilesNeed(horizon.removed_before_ms, before_ms)
