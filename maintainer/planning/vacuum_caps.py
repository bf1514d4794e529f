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
    """Return every cap that deleting the files would break; none where ``vacuum.allowLargeDelete`` is true.

    Where it is ``rewritten``, files that a rewrite replaced count for ``limits.maxDeletes`` only: their rows live on in
    other files, and after the first compaction of a table they are most of its bytes. What a rewrite of ours replaced
    that is not proven is no candidate in the first place.
    """
    if policy.vacuum is None or policy.vacuum.allow_large_delete:
        return ()
    found: list[Reason] = []
    limit = policy.limits.max_deletes
    if limit is not None and len(files) > limit:
        text = f"would delete {count_of(len(files), 'file')}, limits.maxDeletes is {limit:,}"
        found.append(Reason(ReasonCode.LARGE_DELETE, text, str(policy.origin("limits.maxDeletes"))))
    origin = str(policy.origin("vacuum"))
    replaced_bytes = sum(file.size_bytes for file in files if file.replaced)
    all_bytes = sum(file.size_bytes for file in files)
    counted = all_bytes - replaced_bytes if policy.vacuum.allow_rewritten else all_bytes
    stored_bytes = facts.size_bytes + all_bytes
    what = _what(counted, replaced_bytes, rewritten_allowed=policy.vacuum.allow_rewritten)
    if counted * 2 > stored_bytes:
        text = f"{what}, more than half of the {format_size(stored_bytes)} that the table holds on storage"
        found.append(Reason(ReasonCode.LARGE_DELETE, text, origin))
    past = record.vacuumed_bytes
    if len(past) >= MIN_RUNS_COMPARED and counted > TIMES_MEDIAN * median(past):
        text = (
            f"{what}, more than {TIMES_MEDIAN} times the median of the last {len(past)} vacuums, "
            f"{format_size(int(median(past)))}"
        )
        found.append(Reason(ReasonCode.LARGE_DELETE, text, origin))
    return tuple(found)


def _what(counted: int, replaced_bytes: int, *, rewritten_allowed: bool) -> str:
    """How much would go, and how much of it lives on in other files: that decides which line is the right one."""
    text = f"would delete {format_size(counted)}"
    if rewritten_allowed:
        return f"{text} that no rewrite replaced"
    if replaced_bytes == 0:
        return text
    part = "all" if replaced_bytes == counted else format_size(replaced_bytes)
    return f"{text} ({part} of it replaced by rewrites, which `allowLargeDelete: rewritten` allows)"
