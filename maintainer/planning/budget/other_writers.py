"""Estimate how likely another writer commits during a rewrite, and find partitions and tables that are hot.

Commits that take files are a Poisson process. Its rate depends on the hour of the day, because pipelines run by the
clock. The rate of an hour is the posterior mean of a gamma prior that weighs as much as one hour at the table's mean
rate (Gelman and others, *Bayesian Data Analysis*, third edition, section 2.6), so a few observations change little.
The probability of at least one commit is 1 - exp(-expected commits). This is an upper bound: a commit that takes
files of another partition conflicts with none of ours. The results of our own rewrites weigh more the more there are;
see ``run_budget.expected_loss``.

A partition is *hot* when our rewrites of it lost against another writer. Its newest files are left alone for a while,
so that a rewrite does not lose every night against the same writer. A person can set the same by ``quietFor`` and
``skipNewestPartitions``.

A hot table was updated by somebody else a moment ago, or is about to be. It is not rewritten.

A rewrite that lands during a DELETE, UPDATE or MERGE of the same files makes that command fail; one that lands after
it is lost itself. The log shows an update only when it is over, so running updates are guessed from earlier ones: an
update within ``optimize.quietAfterUpdates``, or a rhythm that makes another one in that time more likely than not.
Appends conflict with no rewrite and never make a table hot.

An update that lost against our rewrite is in no log, and a writer who tries again loses again where we rewrite often.
So after our rewrite a table rests until another writer's update lands, or for ``quietAfterUpdates``; twice and three
times as long after the second and third run in a row. A table with only appends in the last week needs no rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.commit_records import HOURS, CommitsRead, OwnRewrites, WriterRhythm
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord, Update
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Partition, files_text, leave_files, leave_partitions
from maintainer.planning.selection.file_selection import group_by_partition
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import count_of, format_duration

LOOK_BACK_MS = 7 * 86_400_000
"""A week, so that weekdays and weekends are in it."""

MAX_COMMITS = 100
"""So many commits are read at most: on object storage each is a request. A busy table shows its rhythm in less."""

PRIOR_HOURS = 1.0
"""An hour of the day is believed to be as the mean until it was seen so often."""

LEAST_HOURS = 1.0
"""A table that is minutes old is looked at as if it were an hour old: two commits in a minute are no rate yet."""

LIKELIEST = 0.99
"""Upper bound, so that a busy table is still scheduled."""

_HOUR_MS = 3_600_000
_DAY_MS = 86_400_000


def newest_of(read: CommitsRead, now_ms: int) -> CommitsRead:
    """Return of the newest commits at most ``MAX_COMMITS``, and those of a week."""
    week = takewhile(lambda commit: commit.at_ms >= now_ms - LOOK_BACK_MS, read.commits[:MAX_COMMITS])
    return replace(read, commits=tuple(week))


def rhythm_of(read: CommitsRead, now_ms: int) -> WriterRhythm:
    """Return the rhythm of a table's other writers.

    Args:
        read: The newest commits, as ``newest_of`` gives them.
        now_ms: The time of planning, milliseconds since 1970 UTC.
    """
    since_ms = now_ms - LOOK_BACK_MS
    if read.commits:
        oldest = read.commits[-1]
        if len(read.commits) >= MAX_COMMITS or oldest.version == read.oldest_version:
            since_ms = max(since_ms, min(now_ms, oldest.at_ms))
    others = [commit for commit in read.commits if commit.stamp is None]
    taking = Counter(_hour(min(other.at_ms, now_ms)) for other in others if other.takes_files)
    return WriterRhythm(since_ms, now_ms, len(others), tuple(taking[hour] for hour in range(HOURS)) if taking else ())


def conflict_ratio(rhythm: WriterRhythm | None, start_ms: int, seconds: float) -> float:
    """Return the probability, 0 to 0.99, that a commit of another writer takes files in the time given.

    Args:
        rhythm: None where nobody looked: 0.
        start_ms: When our own commit is begun, milliseconds since 1970 UTC.
        seconds: How long it is expected to take.
    """
    if rhythm is None or not rhythm.num_taking or seconds <= 0:
        return 0.0
    return min(LIKELIEST, 1 - math.exp(-_expected(rhythm, start_ms, seconds)))


def lost_ratio(rhythm: WriterRhythm | None, start_ms: int, work: Iterable[tuple[float, int]]) -> float:
    """Return the share of the bytes of a table's rewrites that is expected to be lost to other writers.

    Args:
        rhythm: Of the table's other writers.
        start_ms: When the first batch is begun.
        work: Seconds and bytes of each batch, in order. Each is a commit of its own: what is done is not lost.
    """
    total = lost = 0.0
    for seconds, size_bytes in work:
        total += size_bytes
        lost += size_bytes * conflict_ratio(rhythm, start_ms, seconds)
        start_ms += int(seconds * 1000)
    return lost / total if total else 0.0


def _expected(rhythm: WriterRhythm, start_ms: int, seconds: float) -> float:
    """Commits that take files and are expected from ``start_ms`` on, for so long."""
    rates = _rates(rhythm)
    days, rest_ms = divmod(seconds * 1000, _DAY_MS)
    rest = (rates[hour] * ms / _HOUR_MS for hour, ms in _hours(start_ms, start_ms + rest_ms))
    return sum(rest, days * sum(rates))


def _rates(rhythm: WriterRhythm) -> list[float]:
    """Commits that take files an hour, for each hour of the day."""
    exposures = _exposures(rhythm)
    mean = rhythm.num_taking / max(LEAST_HOURS, sum(exposures))
    return [
        (num_commits + PRIOR_HOURS * mean) / (hours + PRIOR_HOURS)
        for num_commits, hours in zip(rhythm.taking_by_hour, exposures, strict=True)
    ]


def _exposures(rhythm: WriterRhythm) -> list[float]:
    """For how many hours each hour of the day was looked at."""
    days, rest_ms = divmod(max(0, rhythm.until_ms - rhythm.since_ms), _DAY_MS)
    hours = [float(days)] * HOURS
    for hour, ms in _hours(rhythm.since_ms, rhythm.since_ms + rest_ms):
        hours[hour] += ms / _HOUR_MS
    return hours


def _hours(at: float, end: float) -> Iterator[tuple[int, float]]:
    """Yield the hours of the day between two moments that are less than a day apart, and how much is in each."""
    while at < end:
        until = min(end, (at // _HOUR_MS + 1) * _HOUR_MS)
        yield _hour(at), until - at
        at = until


def _hour(at_ms: float) -> int:
    return int(at_ms // _HOUR_MS) % HOURS


FIRST_QUIET_SECONDS = 3600
LONGEST_QUIET_SECONDS = 86_400
"""How long a partition must be quiet after one lost run: doubled with each further one in a row, up to a day."""

FIRST_REMEMBERED_SECONDS = 36 * 3600
LONGEST_REMEMBERED_SECONDS = 7 * 86_400
"""How long one lost run is remembered, over the next night: doubled as well, up to a week. Then all is tried again."""


def quiet_seconds(record: TableRecord, now_ms: int) -> int:
    """Return how long a partition must be unchanged to be rewritten now; 0 where nothing was lost lately."""
    if not record.lost_in_a_row or record.last_lost_at_ms is None:
        return 0
    doubled = 2 ** min(record.lost_in_a_row - 1, 16)
    remembered = min(LONGEST_REMEMBERED_SECONDS, FIRST_REMEMBERED_SECONDS * doubled)
    if now_ms - record.last_lost_at_ms >= remembered * 1000:
        return 0
    return int(min(LONGEST_QUIET_SECONDS, FIRST_QUIET_SECONDS * doubled))


def without_hot(
    facts: TableFacts, record: TableRecord, now_ms: int
) -> tuple[tuple[DataFile, ...], tuple[LeftAlone, ...]]:
    """Split off the files of partitions to which data was written too lately for a table that loses.

    Returns:
        The files that may be rewritten, and the reasons for the others. A table without partitions is one.
    """
    seconds = quiet_seconds(record, now_ms)
    if not seconds:
        return facts.files, ()
    quiet_since_ms = now_ms - seconds * 1000
    hot = [
        partition
        for partition in group_by_partition(facts.files)
        if partition.is_written_after(quiet_since_ms, facts.rewritten_paths)
    ]
    if not hot:
        return facts.files, ()
    runs = count_of(record.lost_in_a_row, "run")
    won = f"where data was written less than {format_duration(seconds)} ago, and another writer won in {runs} in a row"
    return _without(facts, hot, ReasonCode.LOST_TO_WRITER, won)


def _without(
    facts: TableFacts, hot: list[Partition], code: ReasonCode, why: str, origin: str | None = None
) -> tuple[tuple[DataFile, ...], tuple[LeftAlone, ...]]:
    values = {partition.values for partition in hot}
    cool = tuple(file for file in facts.files if file.partition_values not in values)
    return cool, leave_partitions(code, lambda files, partitions: f"{files_text(files, partitions)} {why}", hot, origin)


LIKELY = 0.5
"""From here on the next update is more likely than not."""

RHYTHM_LOOK_BACK_MS = 6 * 3_600_000
"""Where the rhythm makes a table hot, so far back is looked for the partitions that the updates meet."""

LONGEST_REST = 3
"""A table rests for so many quiet times at most: half an hour by default, less than any nightly or hourly pace."""


def own_rewrites_of(read: CommitsRead, now_ms: int) -> OwnRewrites | None:
    """Return our rewrites since the last update by others; None where there is none.

    Args:
        read: The newest commits, as ``newest_of`` gives them.
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
        return (), (leave_files(ReasonCode.RESTING, f"resting: {rest}", facts.files, origin),)
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
    return _without(facts, partitions, ReasonCode.UPDATED_PARTITION, f"updated: {why}", origin)


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
        f"our last rewrite was {ago} ago{in_a_row}; it rests for {format_duration(rest_seconds)}, so that a writer "
        f"who lost to us can finish (quietAfterUpdates {format_duration(quiet_seconds)})"
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
