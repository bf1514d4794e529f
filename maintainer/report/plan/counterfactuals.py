"""Name for each decision the change that would reverse it.

Thresholds are the effective policy's. Where a figure of the table decides (the smallest file, the oldest removal), it
is named, so that the sentence can be checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import (
    ClusterStep,
    CompactStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.run.auto_compaction import AUTO_COMPACT, LEGACY_AUTO_OPTIMIZE, OWN_PROPERTIES
from maintainer.model.table.table_facts import DataFile
from maintainer.planning.property_plan import DELETED_FILE_RETENTION
from maintainer.planning.selection.file_selection import has_many_deleted_rows, is_small
from maintainer.planning.vacuum.deletion_limits import FLOOR_SECONDS
from maintainer.planning.zorder.zorder_options import FROM_TIMESTAMP, REQUEST
from maintainer.policy.property_names import canonical_name
from maintainer.policy.resolve.resolved import ResolvedPolicy, policy_values
from maintainer.report.plan.step_text import reason_words, step_word
from maintainer.units import count_of, exact_size, format_duration, format_size, round_duration_up, round_size_down


def what_would_change(table: TablePlan, policy: ResolvedPolicy, at_ms: int) -> list[tuple[str, str]]:
    """Return (step or reason, what would change it) for every decision about a table, in their order.

    Args:
        table: What planning decided.
        policy: The table's effective policy.
        at_ms: When it was planned, milliseconds since 1970 UTC.
    """
    rows = [(step_word(step.kind), text) for step in table.steps if (text := of_step(step, policy, at_ms))]
    entries: dict[ReasonCode, list[LeftAlone]] = {reason.code: [] for reason in table.blocked}
    for entry in table.left_alone:
        entries.setdefault(entry.reason.code, []).append(entry)
    # What blocks alone is an entry, too: a reason counts with its line.
    alone = {reason.code: [LeftAlone(reason)] for reason in reversed(table.blocked)}
    return rows + [(code.value, of_reason(code, policy, left or alone[code])) for code, left in entries.items()]


def of_step(step: Step, policy: ResolvedPolicy, at_ms: int) -> str:
    """Say what would keep a step from being taken."""
    match step:
        case SetPropertiesStep():
            return _of_properties(step, policy)
        case CompactStep():
            return _of_compaction(step, policy)
        case ZOrderStep():
            return _of_zorder(step, policy)
        case ClusterStep():
            least = _threshold(policy.optimize.cluster.min_cube_size_bytes)
            return f"left alone once the files are in cubes; cubes of {least} or more stay as they are"
        case VacuumStep():
            return _of_vacuum(step, at_ms)
        case _:
            return f"left alone once {step.done_when}"


def _of_zorder(step: ZOrderStep, policy: ResolvedPolicy) -> str:
    """Say it by what chose the files: only a full Z-order and the strategy unindexed ask ``optimize.when``."""
    by_hand = step.settings is not None and step.settings.request
    if step.planned_turn is not None and step.planned_turn.strategy is not Strategy.UNINDEXED:
        what = f"the table property {REQUEST}" if by_hand else f"the strategy `{step.planned_turn.strategy}`"
        return f"left alone without {what}"
    done = f"left alone after a Z-order by {', '.join(step.columns)}"
    if step.planned_turn is not None:
        done = "left alone once our Z-order has put them on its curve"
    purges = any(has_many_deleted_rows(file, policy.optimize.max_deleted_rows_ratio) for file in step.files)
    return done if purges or by_hand else f"{done}, or when optimize.when asks for more than there is"


def _of_properties(step: SetPropertiesStep, policy: ResolvedPolicy) -> str:
    pairs = zip(step.after, step.reasons, strict=False)  # a saved plan may have fewer
    parts = dict.fromkeys(filter(None, (_unasked(name, reason.code, policy) for (name, _), reason in pairs)))
    return f"not done once {', or '.join(('the table has the value', *parts))}"


def _unasked(name: str, code: ReasonCode, policy: ResolvedPolicy) -> str | None:
    """Say what would keep a property from being set, by why it is; several keys of a policy set what others name."""
    written = {canonical_name(key) for key, _ in policy.properties}
    match code:
        case ReasonCode.PROPERTY_DRIFT if name not in written and name in (AUTO_COMPACT, *OWN_PROPERTIES):
            return "the policy has no autoCompact"
        case ReasonCode.PROPERTY_DRIFT if name not in written and name == LEGACY_AUTO_OPTIMIZE:
            return "autoCompact is not false"
        case ReasonCode.PROPERTY_DRIFT:
            return "the policy no longer names it"
        case ReasonCode.RETENTION_TOO_SHORT_ON_TABLE if DELETED_FILE_RETENTION in written:
            return f"properties.{DELETED_FILE_RETENTION} is no longer than what the log keeps"
        case ReasonCode.RETENTION_TOO_SHORT_ON_TABLE:
            return "vacuum.retention is no longer than what the table keeps"
        case ReasonCode.NEW_REVISION:
            return "optimize.zorder is not set"
        case _:
            return None


def _of_compaction(step: CompactStep, policy: ResolvedPolicy) -> str:
    """Name what would leave all of its files alone. What purges deleted rows does not ask how many files are small."""
    optimize = policy.optimize
    small = [file for file in step.files if is_small(file, optimize)]
    no_small = f"optimize.minFileSize were {_smallest(small)}" if small else ""
    deleted = [file for file in step.files if has_many_deleted_rows(file, optimize.max_deleted_rows_ratio)]
    if not deleted:
        few = f"optimize.when.minSmallFiles were more than {len(small):,}"
        return f"left alone if {no_small}, or {few}" if small else ""
    ratios = [file.deleted_rows_ratio for file in deleted]
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < len(ratios):
        return "rewritten whatever the sizes are: no statistics say how many rows of a file are deleted"
    no_deleted = f"optimize.maxDeletedRowsRatio were {_ratio_from(max(known)):g} or more (now up to {max(known):.3g})"
    # A small file that is alone in its partition has no partner.
    partners = max(Counter(file.partition_values for file in small).values(), default=0) > 1
    return f"left alone if {no_small} and {no_deleted}" if partners else f"left alone if {no_deleted}"


def _smallest(small: Sequence[DataFile]) -> str:
    size_bytes = min(file.size_bytes for file in small)
    rounded = round_size_down(size_bytes)
    has = "" if rounded == size_bytes else f" has {format_size(size_bytes)}"
    return f"{_threshold(rounded)} or less (the smallest file{has})"


def _ratio_from(ratio: float) -> float:
    """Round a ratio up to three digits after the point."""
    rounded = round(ratio, 3)
    return rounded if rounded >= ratio else round(rounded + 0.001, 3)


def _threshold(size_bytes: int) -> str:
    """Print a size so that a policy may hold it, and always with a unit."""
    text = exact_size(size_bytes)
    digits = text.rstrip("KMGTPiB")
    return f"{digits} {text[len(digits) :] or 'B'}"


def _of_vacuum(step: VacuumStep, at_ms: int) -> str:
    if not step.files:
        return ""
    age_ms = max(0, at_ms - min(file.removed_at_ms for file in step.files))
    oldest = format_duration(round_duration_up(-(-age_ms // 1000)))
    retention = format_duration(step.retention_seconds)
    what = "nothing but the trash" if step.emptied else "nothing"
    return f"{what} is deleted if vacuum.retention were {oldest} or more (the oldest removal; now {retention} are kept)"


def of_reason(code: ReasonCode, policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    """Say what would bring on what is left alone for this reason."""
    if (change := _CHANGES.get(code)) is not None:
        return change(policy, entries)
    several = len(entries) > 1 or any(entry.partition_values is None for entry in entries)
    partitions = {"there": _there(entries), "partitions": "these partitions" if several else "the partition"}
    values = {**dict(policy_values(policy)), **partitions}
    return _VALUE.sub(lambda match: values[match[1]], reason_words()[code].change)


_VALUE = re.compile(r"\{([\w.]+)\}")

_Sentence = Callable[[ResolvedPolicy, Sequence[LeftAlone]], str]


def _at_target(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    """Say it for files of a partition rewrite, large files, and small ones as the last compaction left them."""
    optimize = policy.optimize
    least, most = _threshold(optimize.min_file_size_bytes), _threshold(optimize.max_file_size_bytes)
    if optimize.rewrite is not None:
        return "taken when their partition has another number of files, or optimize.rewrite asks for another"
    parts = []
    if any(entry.size_bytes >= entry.num_files * optimize.min_file_size_bytes for entry in entries):
        under = f"under {least} (optimize.minFileSize)"
        parts.append(f"taken when two files of a partition are {under} and fit into one of {most}")
    if any(entry.size_bytes < entry.num_files * optimize.min_file_size_bytes for entry in entries):
        parts.append("small ones are taken together with new files, or when optimize.maxFileSize is raised")
    return "; ".join(parts)


def _no_partner(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    if policy.optimize.zorder is not None:
        return "taken when the partition gets another file"
    most = f"{_threshold(policy.optimize.max_file_size_bytes)} (optimize.maxFileSize)"
    return f"taken when the partition gets a small file that fits beside it within {most}"


def _nothing_expired(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    vacuum = policy.vacuum
    by_retention = (
        vacuum is not None
        and not policy.consumers  # they may stand on the same line
        and all(entry.reason.origin == policy.place_of("vacuum.retention") for entry in entries)
        and (vacuum.allow_short_retention or vacuum.retention_seconds >= FLOOR_SECONDS)
    )
    if vacuum is not None and by_retention:
        kept = f"{format_duration(vacuum.retention_seconds)} (vacuum.retention)"
        return f"deletes as soon as a removed file is older than {kept}"
    return "deletes a file as soon as it was removed longer ago than that"


def _untracked(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    parts = []
    if any(entry.reason.origin is not None for entry in entries):
        vacuum = policy.vacuum
        age = "" if vacuum is None else f" once unchanged for {format_duration(vacuum.untracked_age_seconds)}"
        parts.append(f"deleted with vacuum.deleteUntracked: true,{age} (vacuum.untrackedAge)")
    if any(entry.reason.origin is None for entry in entries):
        parts.append("kept as long as the reason holds; the next listing looks again")
    return "; ".join(parts)


def _before_timestamp(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    by_policy = all(entry.reason.origin == policy.place_of("optimize.zorder") for entry in entries)
    key = "optimize.zorder.fromTimestamp" if by_policy else f"the table's {FROM_TIMESTAMP}"
    return f"taken when {key} is earlier, or not set"


def _waits_for_turn(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    limit = policy.limits.max_bytes
    room = "" if limit is None else f", as far as limits.maxBytes ({_threshold(limit)}) has room, else of a later one"
    return f"taken by a later turn of the same apply{room}"


def _large_delete(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    by_number = any(entry.reason.origin == policy.place_of("limits.maxDeletes") for entry in entries)
    higher = ", or a higher limits.maxDeletes" if by_number and policy.limits.max_deletes is not None else ""
    return (
        f"deleted with the line that the reason names{higher}; look first whether all of these files were meant to be "
        "removed: `maintainer history TABLE`"
    )


def _there(entries: Sequence[LeftAlone]) -> str:
    """Say where nothing may be written: a table without partitions has none, and of many only the count is known."""
    if any(entry.partition_values is None for entry in entries):
        return "there"
    return f"to {count_of(len(entries), 'partition') if len(entries) > 1 else 'the partition'}"


def _not_worth_it(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    when = policy.optimize.when
    parts = []
    if when.min_small_files is not None:
        parts.append(f"{when.min_small_files:,} files")
    if when.min_small_bytes is not None:
        parts.append(_threshold(when.min_small_bytes))
    return f"taken when there are {' and '.join(parts)} to rewrite, or optimize.when asks for less"


def _limit(policy: ResolvedPolicy, entries: Sequence[LeftAlone]) -> str:
    limits = policy.limits
    parts = [f"limits.maxBytes is {_threshold(limits.max_bytes)}"] if limits.max_bytes is not None else []
    parts += [f"limits.maxFiles is {limits.max_files:,}"] if limits.max_files is not None else []
    return f"planned again when the limit is raised, or optimize.where chooses fewer partitions ({', '.join(parts)})"


_CHANGES: Mapping[ReasonCode, _Sentence] = {
    ReasonCode.AT_TARGET: _at_target,
    ReasonCode.NO_PARTNER: _no_partner,
    ReasonCode.NOT_WORTH_IT: _not_worth_it,
    ReasonCode.NOTHING_EXPIRED: _nothing_expired,
    ReasonCode.WAITS_FOR_TURN: _waits_for_turn,
    ReasonCode.BEFORE_TIMESTAMP: _before_timestamp,
    ReasonCode.OVER_LIMIT: _limit,
    ReasonCode.UNTRACKED: _untracked,
    ReasonCode.LARGE_DELETE: _large_delete,
}
"""Reasons whose answer depends on the policy, or on what is left alone; ``reason_words`` has the others."""
