"""Hot partitions as our own past shows them: where another writer won, what was just written is left alone for a while.

``quietFor`` and ``skipNewestPartitions`` are what a person knows of a table's writers. Without them a rewrite that
loses every night against the same writer would lose the next night, too.
"""

from __future__ import annotations

from maintainer.model.plan import LeftAlone
from maintainer.model.reasons import ReasonCode
from maintainer.model.table import DataFile, TableFacts, TableRecord
from maintainer.planning.decision import count_of, leave_partitions
from maintainer.planning.selection import group_by_partition
from maintainer.units import format_duration

FIRST_QUIET_SECONDS = 3600
LONGEST_QUIET_SECONDS = 86_400
"""How long a partition must be quiet after one lost run: doubled with each further one in a row, up to a day."""

FIRST_REMEMBERED_SECONDS = 36 * 3600
LONGEST_REMEMBERED_SECONDS = 7 * 86_400
"""How long one lost run is remembered, over the next night: doubled as well, up to a week. Then all is tried again."""


def quiet_seconds(record: TableRecord, now_ms: int) -> int:
    """How long a partition must not have been written to be rewritten now; 0 where nothing was lost lately."""
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
    hot = [one for one in group_by_partition(facts.files) if one.modified_at_ms > quiet_since_ms]
    if not hot:
        return facts.files, ()
    runs = count_of(record.lost_in_a_row, "run")
    won = f"written less than {format_duration(seconds)} ago, and another writer won in {runs} in a row"

    def text(files: int, partitions: int) -> str:
        return count_of(files, "file") + (f" of {partitions:,} partitions" if partitions > 1 else "") + f" {won}"

    values = {one.values for one in hot}
    cool = tuple(file for file in facts.files if file.partition_values not in values)
    return cool, leave_partitions(ReasonCode.HOT_PARTITION, text, hot)
