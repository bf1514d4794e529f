"""Find hot tables: somebody else updated them a moment ago, or is about to. They are not rewritten.

A rewrite that lands during a DELETE, UPDATE or MERGE of the same files makes that command fail; one that lands after it
is lost itself. The log shows an update only when it is over, so running updates are guessed from earlier ones: an
update within ``optimize.quietAfterUpdates``, or a rhythm that makes another one in that time more likely than not.
Appends conflict with no rewrite and never make a table hot.

An update that lost against our rewrite is in no log, and a writer who tries again loses again where we rewrite often.
So after our rewrite a table rests until another writer's update lands, or for ``quietAfterUpdates``; twice and three
times as long after the second and third run in a row. A table with only appends in the last week needs no rest.
"""

from __future__ import annotations

from itertools import takewhile

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.commit_records import CommitsRead, OwnRewrites, WriterRhythm
from maintainer.model.table.table_facts import DataFile, TableFacts, Update
from maintainer.planning.budget.conflict_probability import LEAST_HOURS, MAX_COMMITS, conflict_ratio
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Partition, count_of, leave_files, leave_partitions
from maintainer.planning.selection.file_selection import group_by_partition
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import format_duration

LIKELY = 0.5
"""From here on the next update is more likely than not."""

RHYTHM_LOOK_BACK_MS = 6 * 3_600_000
"""Where the rhythm makes a table hot, so far back is looked for the partitions that the updates meet."""

RESTS = "our last rewrite was"
"""What the reason of a table that rests begins with."""

LONGEST_REST = 3
"""A table rests for so many quiet times at most: half an hour by default, less than any nightly or hourly pace."""


def own_rewrites_of(read: CommitsRead, now_ms: int) -> OwnRewrites | None:
    """Return our rewrites since the last update by others; None where there is none.

    Args:
        read: The newest commits, asked for with ``MAX_COMMITS`` and a week back.
        now_ms: The time of planning: a commit's clock may run ahead.
    """
    taking = [commit for commit in read.commits if commit.takes_files]
    ours = list(takewhile(lambda commit: commit.stamp is not None, taking))
    if not ours:
        return None
    whole = len(read.commits) < MAX_COMMITS or read.commits[-1].version == read.oldest_version
    runs = {commit.stamp.run_id for commit in ours if commit.stamp is not None}
    return OwnRewrites(len(runs), min(ours[0].at_ms, now_ms), whole and len(ours) == len(taking))


def updates_since_ms(policy: ResolvedPolicy, rhythm: WriterRhythm, now_ms: int) -> int:
    """Return from when on planning must know of updates by others."""
    quiet_ms = policy.optimize.quiet_after_updates_seconds * 1000
    return now_ms - (max(quiet_ms, RHYTHM_LOOK_BACK_MS) if _next_is_likely(policy, rhythm, now_ms) else quiet_ms)


def without_updated(table: TableInput) -> tuple[tuple[DataFile, ...], tuple[LeftAlone, ...]]:
    """Split off the files that a rewrite would take from an update by somebody else.

    Args:
        table: With ``writers``, ``updates`` and ``own_rewrites``; ``optimize.quietAfterUpdates`` of 0 splits off
            nothing.

    Returns:
        The files that may be rewritten, and the reasons for the others: the whole table where an update may have read
        all of it or it rests, else the partitions that the updates met.
    """
    policy, facts, now_ms = table.policy, table.facts, table.now_ms
    quiet_ms = policy.optimize.quiet_after_updates_seconds * 1000
    origin = policy.place_of("optimize.quietAfterUpdates")
    rest = _rest(policy, facts, now_ms)
    if rest is not None:
        return (), (leave_files(ReasonCode.HOT, f"hot: {rest}", facts.files, origin),)
    if not quiet_ms or not facts.updates:
        return facts.files, ()
    recent = tuple(update for update in facts.updates if update.at_ms > now_ms - quiet_ms)
    likely = _next_is_likely(policy, facts.writers, now_ms)
    hot = facts.updates if likely else recent
    if not hot:
        return facts.files, ()
    why = _why(facts, hot, now_ms, policy.optimize.quiet_after_updates_seconds, likely=not recent)
    if any(update.partitions is None for update in hot):
        whole = ", and may have read every partition" if facts.partition_columns else ""
        return (), (leave_files(ReasonCode.HOT, f"hot: {why}{whole}", facts.files, origin),)
    partitions = [
        partition
        for partition in group_by_partition(facts.files)
        if any(update.meets((partition.values,)) for update in hot)
    ]

    def text(files: int, number: int) -> str:
        return count_of(files, "file") + (f" of {number:,} partitions" if number > 1 else "") + f" hot: {why}"

    return _without(facts, partitions), leave_partitions(ReasonCode.HOT_PARTITION, text, partitions, origin)


def _next_is_likely(policy: ResolvedPolicy, rhythm: WriterRhythm | None, now_ms: int) -> bool:
    """Whether the rhythm of the log's updates brings the next one within the quiet time; a short log has none."""
    quiet_seconds = policy.optimize.quiet_after_updates_seconds
    if rhythm is None or rhythm.seconds < LEAST_HOURS * 3600:
        return False
    return conflict_ratio(rhythm, now_ms, quiet_seconds) >= LIKELY


def _rest(policy: ResolvedPolicy, facts: TableFacts, now_ms: int) -> str | None:
    """Why the table rests after our own rewrites; None where it does not."""
    own, quiet_seconds = facts.own_rewrites, policy.optimize.quiet_after_updates_seconds
    if own is None or own.others_only_append:
        return None
    rest_seconds = quiet_seconds * min(own.num_runs, LONGEST_REST)
    if now_ms - own.last_at_ms >= rest_seconds * 1000:
        return None
    ago = format_duration(max(0, now_ms - own.last_at_ms) // 1000)
    in_a_row = f", {own.num_runs} runs in a row" if own.num_runs > 1 else ""
    return (
        f"{RESTS} {ago} ago{in_a_row}; it rests for {format_duration(rest_seconds)}, so that a writer who lost to us "
        f"can finish (quietAfterUpdates {format_duration(quiet_seconds)})"
    )


def _why(facts: TableFacts, hot: tuple[Update, ...], now_ms: int, quiet_seconds: int, *, likely: bool) -> str:
    newest = hot[0]
    ago = format_duration(max(0, now_ms - newest.at_ms) // 1000)
    quiet = format_duration(quiet_seconds)
    if not likely or facts.writers is None:
        return f"{newest.operation} by another writer {ago} ago (quietAfterUpdates {quiet})"
    span = format_duration(max(1, round(facts.writers.seconds)))
    updates = f"{count_of(facts.writers.num_taking, 'update')} by others in {span}, the last {ago} ago"
    return f"{updates}; the next one is likely within {quiet} (quietAfterUpdates)"


def _without(facts: TableFacts, partitions: list[Partition]) -> tuple[DataFile, ...]:
    values = {partition.values for partition in partitions}
    return tuple(file for file in facts.files if file.partition_values not in values)
