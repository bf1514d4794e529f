"""Caps on deletion: what is too much to be deleted without a line in the policy that allows it.

A mistake upstream (an overwrite with nothing, a DELETE without WHERE) becomes final when its old files go. So much at
once is only deleted where somebody has said that it is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from maintainer.model.reasons import Reason, ReasonCode
from maintainer.model.table import RemovedFile, TableFacts, TableRecord
from maintainer.planning.decision import count_of
from maintainer.policy.resolved import ResolvedPolicy
from maintainer.units import format_size

MIN_RUNS_COMPARED = 3
"""With fewer vacuums in the records there is nothing to compare with."""

TIMES_MEDIAN = 3


def broken_caps(
    policy: ResolvedPolicy, facts: TableFacts, record: TableRecord, files: Sequence[RemovedFile]
) -> tuple[Reason, ...]:
    """Return every cap that deleting the files would break; none where ``vacuum.allowLargeDelete`` is set.

    Files that a rewrite replaced count for ``limits.maxDeletes`` only: their rows live on in other files, and after
    the first compaction of a table they are most of its bytes. For the two caps on bytes count files whose rows were
    deleted or overwritten, and untracked ones.
    """
    if policy.vacuum is None or policy.vacuum.allow_large_delete:
        return ()
    found: list[Reason] = []
    limit = policy.limits.max_deletes
    if limit is not None and len(files) > limit:
        text = f"would delete {count_of(len(files), 'file')}, limits.maxDeletes is {limit:,}"
        found.append(Reason(ReasonCode.LARGE_DELETE, text, str(policy.origin("limits.maxDeletes"))))
    origin = str(policy.origin("vacuum"))
    lost_bytes = sum(file.size_bytes for file in files if not file.replaced)
    all_bytes = facts.size_bytes + sum(file.size_bytes for file in files)
    if lost_bytes * 2 > all_bytes:
        text = (
            f"would delete {format_size(lost_bytes)} that no rewrite replaced, more than half of the "
            f"{format_size(all_bytes)} that the table holds on storage"
        )
        found.append(Reason(ReasonCode.LARGE_DELETE, text, origin))
    past = record.vacuumed_bytes
    if len(past) >= MIN_RUNS_COMPARED and lost_bytes > TIMES_MEDIAN * median(past):
        text = (
            f"would delete {format_size(lost_bytes)} that no rewrite replaced, more than {TIMES_MEDIAN} times the "
            f"median of the last {len(past)} vacuums, {format_size(int(median(past)))}"
        )
        found.append(Reason(ReasonCode.LARGE_DELETE, text, origin))
    return tuple(found)
