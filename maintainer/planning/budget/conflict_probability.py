"""Estimate how likely another writer commits during a rewrite, and find partitions where that happened before.

Commits that take files are a Poisson process. Its rate depends on the hour of the day, because pipelines run by the
clock. The rate of an hour is the posterior mean of a gamma prior that weighs as much as one hour at the table's mean
rate (Gelman and others, *Bayesian Data Analysis*, third edition, section 2.6), so a few observations change little. The
probability of at least one commit is 1 - exp(-expected commits). This is an upper bound: a commit that takes files of
another partition conflicts with none of ours. The results of our own rewrites weigh more the more there are; see
``budget.expected_loss``.

A partition is *hot* when our rewrites of it lost against another writer. Its newest files are left alone for a while,
so that a rewrite does not lose every night against the same writer. A person can set the same by ``quietFor`` and
``skipNewestPartitions``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.commit_records import HOURS, CommitsRead, WriterRhythm
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord
from maintainer.planning.selection.decision import count_of, leave_partitions
from maintainer.planning.selection.file_selection import group_by_partition
from maintainer.units import format_duration

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


def rhythm_of(read: CommitsRead, now_ms: int) -> WriterRhythm:
    """Return the rhythm of a table's other writers.

    Args:
        read: The newest commits, asked for with ``MAX_COMMITS`` and from ``now_ms - LOOK_BACK_MS`` on.
        now_ms: The time of planning, milliseconds since 1970 UTC.
    """
    since_ms = now_ms - LOOK_BACK_MS
    if read.commits:
        oldest = read.commits[-1]
        if len(read.commits) >= MAX_COMMITS or oldest.version == read.oldest_version:
            since_ms = max(since_ms, min(now_ms, oldest.at_ms))
    others = [commit for commit in read.commits if commit.stamp is None]
    by_hour = [0] * HOURS
    for other in others:
        if other.takes_files:
            by_hour[_hour(min(other.at_ms, now_ms))] += 1
    return WriterRhythm(since_ms, now_ms, len(others), tuple(by_hour) if any(by_hour) else ())


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
    expected = days * sum(rates)
    at, end = float(start_ms), start_ms + rest_ms
    while at < end:  # at most 25 times
        until = min(end, (at // _HOUR_MS + 1) * _HOUR_MS)
        expected += rates[_hour(at)] * (until - at) / _HOUR_MS
        at = until
    return expected


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
    at, end = rhythm.since_ms, rhythm.since_ms + rest_ms
    while at < end:
        until = min(end, (at // _HOUR_MS + 1) * _HOUR_MS)
        hours[_hour(at)] += (until - at) / _HOUR_MS
        at = until
    return hours


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
    """Split off the files of partitions that were written too lately for a table that loses.

    Returns:
        The files that may be rewritten, and the reasons for the others. A table without partitions is one.
    """
    seconds = quiet_seconds(record, now_ms)
    if not seconds:
        return facts.files, ()
    quiet_since_ms = now_ms - seconds * 1000
    hot = [partition for partition in group_by_partition(facts.files) if partition.modified_at_ms > quiet_since_ms]
    if not hot:
        return facts.files, ()
    runs = count_of(record.lost_in_a_row, "run")
    won = f"written less than {format_duration(seconds)} ago, and another writer won in {runs} in a row"

    def text(files: int, partitions: int) -> str:
        return count_of(files, "file") + (f" of {partitions:,} partitions" if partitions > 1 else "") + f" {won}"

    values = {partition.values for partition in hot}
    cool = tuple(file for file in facts.files if file.partition_values not in values)
    return cool, leave_partitions(ReasonCode.HOT_PARTITION, text, hot)
