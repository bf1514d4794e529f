"""Plan auto compaction from the log: partitions with enough small files, and the bins for them. Pure.

Delta counts files in the memory of one driver. It misses what other drivers wrote, forgets everything at a restart
and then compacts each partition at its first write (delta issue 4043), and without ``minFileSize`` it also counts
large files (4045). Here the live files of the snapshot are counted, and only small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from maintainer.model.plan.layout_tags import has_row_order
from maintainer.model.plan.plan import ContentCheck, RowCountCheck
from maintainer.model.plan.steps import CompactStep
from maintainer.model.run.auto_compaction import (
    DEFAULT,
    DEFAULT_MAX_FILE_SIZE_BYTES,
    DEFAULT_MIN_NUM_FILES,
    DEFAULT_QUIET_SECONDS,
    MAX_FILE_SIZE,
    MAX_PARTITIONS,
    MIN_FILE_SIZE,
    MIN_NUM_FILES,
    MODIFIED_PARTITIONS_ONLY,
    OWN_PREFIX,
    QUIET_AFTER_UPDATES,
    SESSION_PREFIX,
    AutoCompactSettings,
)
from maintainer.model.table.table_facts import PartitionValues, TableFacts, TableRecord
from maintainer.planning.budget.other_writers import without_updated
from maintainer.planning.operations.compaction import plan_compaction
from maintainer.planning.plan_input import TableInput
from maintainer.planning.property_plan import property_of
from maintainer.planning.selection.decision import Partition, partition_text
from maintainer.planning.selection.file_selection import group_by_partition
from maintainer.planning.selection.partition_texts import without_lost_values
from maintainer.planning.selection.supported_features import check_supported
from maintainer.policy.resolve.resolved import (
    LimitsPolicy,
    OptimizePolicy,
    ResolvedPolicy,
    VerifyPolicy,
)
from maintainer.units import count_of, format_size, parse_duration, parse_size

BATCH_SIZE_BYTES = 10 << 30


@dataclass(frozen=True, slots=True)
class AutoCompactArguments:
    """What the caller said; None where nothing. Sizes as text (``64MiB``) or bytes, times as text (``10m``)."""

    min_num_files: int | None = None
    min_file_size: str | int | None = None
    max_file_size: str | int | None = None
    modified_partitions_only: bool | None = None
    quiet_after_updates: str | None = None


@dataclass(frozen=True, slots=True)
class AutoCompactDecision:
    """The step, None where nothing qualifies; the partitions that qualified; and why, in words.

    ``hot`` says that what would qualify is left to others, who update it.
    """

    step: CompactStep | None
    partitions: tuple[str, ...]
    reason: str
    hot: bool = False


def settings_of(
    arguments: AutoCompactArguments, facts: TableFacts, session_value: Callable[[str], str | None]
) -> AutoCompactSettings:
    """Work out the settings: arguments, else the table's own properties, else the session's, else Delta's defaults.

    Args:
        arguments: What the caller said.
        facts: The table, for its properties ``maintainer.autoCompact.*``.
        session_value: Returns a setting of the writer's session, such as
            ``spark.databricks.delta.autoCompact.minNumFiles``; None where it is not set.

    Raises:
        ValueError: A value that cannot be read, or values that do not go together.
    """

    def setting(argument: object | None, name: str, session_name: str) -> str | None:
        own = property_of(facts, name)
        if argument is not None:
            return str(argument)
        return own if own not in (None, DEFAULT) else session_value(session_name)

    def number(argument: object | None, name: str, read: Callable[[str], int], default: int) -> int:
        key = name.removeprefix(OWN_PREFIX)
        text = setting(argument, name, SESSION_PREFIX + key)
        try:
            return default if text is None else read(text)
        except ValueError as error:
            raise ValueError(f"{key} is `{text}`: {error}") from error

    count = number(arguments.min_num_files, MIN_NUM_FILES, int, DEFAULT_MIN_NUM_FILES)
    largest = number(arguments.max_file_size, MAX_FILE_SIZE, parse_size, DEFAULT_MAX_FILE_SIZE_BYTES)
    smallest = number(arguments.min_file_size, MIN_FILE_SIZE, parse_size, max(largest // 2, 1))
    quiet = number(arguments.quiet_after_updates, QUIET_AFTER_UPDATES, parse_duration, DEFAULT_QUIET_SECONDS)
    only = setting(
        arguments.modified_partitions_only, MODIFIED_PARTITIONS_ONLY, SESSION_PREFIX + "modifiedPartitionsOnly.enabled"
    )
    if only is not None and only.lower() not in ("true", "false"):
        raise ValueError(f"modifiedPartitionsOnly is `{only}`, neither true nor false")
    return AutoCompactSettings(
        min_num_files=count,
        min_file_size_bytes=smallest,
        max_file_size_bytes=largest,
        modified_partitions_only=only is None or only.lower() == "true",
        quiet_after_updates_seconds=quiet,
    )


def plan_auto_compact(
    facts: TableFacts, settings: AutoCompactSettings, written: Collection[PartitionValues] | None, *, now_ms: int
) -> AutoCompactDecision:
    """Decide what is compacted.

    Args:
        facts: The table at its newest version; with ``updates`` and ``own_rewrites`` where others may be at work.
        settings: When a partition qualifies.
        written: Partitions that were written since the last auto compaction; None where the log does not reach back
            so far, and then every partition counts as written.
        now_ms: The time of the decision.

    Raises:
        TableError: The table cannot be maintained: T404, T406, T407.
    """
    check_supported(facts, clustered=False)
    today = datetime.fromtimestamp(now_ms / 1000, tz=UTC).date()
    table = TableInput(_as_policy(facts, settings), facts, TableRecord(), now_ms, today)
    whole = without_lost_values(facts)[0]
    table = table.with_files(tuple(file for file in whole if not has_row_order(file.tags)))
    free, updated = without_updated(table)
    decision = _choose(table.with_files(free), settings, written)
    if decision.step is None and updated:
        return AutoCompactDecision(None, decision.partitions, updated[0].reason.text, hot=True)
    return decision


def _choose(
    table: TableInput, settings: AutoCompactSettings, written: Collection[PartitionValues] | None
) -> AutoCompactDecision:
    partitions, where = group_by_partition(table.facts.files), ""
    if settings.modified_partitions_only and written is not None:
        partitions = tuple(partition for partition in partitions if partition.values in written)
        where = " in a partition written since the last auto compaction"
    full = [partition for partition in partitions if _small_files(partition, settings) >= settings.min_num_files]
    most = max((_small_files(partition, settings) for partition in partitions), default=0)
    small = f"{count_of(most, 'file')} under {format_size(settings.min_file_size_bytes)}"
    least = f"minNumFiles is {settings.min_num_files:,}"
    if not full:
        return AutoCompactDecision(None, (), f"at most {small}{where}, {least}")
    # Not only modified ones: as in Delta, one partition with enough small files opens the whole table.
    chosen = full if settings.modified_partitions_only else list(partitions)
    chosen = sorted(chosen, key=lambda partition: -_small_files(partition, settings))[:MAX_PARTITIONS]
    files = tuple(file for partition in chosen for file in partition.files)
    decision = plan_compaction(table.with_files(files))
    names = tuple(partition_text(partition.values) for partition in chosen)
    if not isinstance(decision.step, CompactStep):
        most_bytes = format_size(settings.max_file_size_bytes)
        said = f"no two small files together are at most {most_bytes} (maxFileSize), or none of them is new"
        return AutoCompactDecision(None, names, said)
    return AutoCompactDecision(replace(decision.step, auto=True), names, f"{small} in one partition, {least}")


def _small_files(partition: Partition, settings: AutoCompactSettings) -> int:
    return sum(file.size_bytes < settings.min_file_size_bytes for file in partition.files)


def _as_policy(facts: TableFacts, settings: AutoCompactSettings) -> ResolvedPolicy:
    """The settings as a policy, so that bins are made by the one rule that there is.

    What they do not say is as a policy has it by default; so is the ratio of deleted rows, which Delta's hook uses too.
    """
    optimize = OptimizePolicy(
        min_file_size_bytes=settings.min_file_size_bytes,
        max_file_size_bytes=settings.max_file_size_bytes,
        batch_size_bytes=max(BATCH_SIZE_BYTES, settings.max_file_size_bytes),
        quiet_after_updates_seconds=settings.quiet_after_updates_seconds,
    )
    return ResolvedPolicy(
        table=facts.ref,
        file="",
        digest="",
        optimize=optimize,
        verify=VerifyPolicy(RowCountCheck.OFF, ContentCheck.OFF, False),
        limits=LimitsPolicy(timeout_seconds=0),
    )
