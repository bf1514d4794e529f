"""Limit how much one vacuum deletes, and check that a table's storage allows a trash.

A mistake upstream (an overwrite with nothing, a DELETE without WHERE) becomes final when the old files are deleted.
Deleting more than the limit needs a line in the policy that allows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from maintainer.errors import TableError
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.planning.selection.decision import count_of
from maintainer.policy.resolve.resolved import ResolvedPolicy
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
    reasons: list[Reason] = []
    limit = policy.limits.max_deletes
    if limit is not None and len(files) > limit:
        text = f"would delete {count_of(len(files), 'file')}, limits.maxDeletes is {limit:,}; {_allows('true')}"
        reasons.append(Reason(ReasonCode.LARGE_DELETE, text, policy.place_of("limits.maxDeletes")))
    all_bytes = sum(file.size_bytes for file in files)
    lost_bytes = sum(file.size_bytes for file in files if not file.replaced)
    counted = lost_bytes if policy.vacuum.allow_rewritten else all_bytes
    origin = policy.place_of("vacuum")
    for cap_bytes, words in _caps_on_bytes(facts.size_bytes + all_bytes, record.vacuumed_bytes):
        if counted > cap_bytes:
            line = "rewritten" if lost_bytes <= cap_bytes else "true"
            what = f"would delete {_amount(counted, all_bytes - lost_bytes, policy.vacuum.allow_rewritten)}"
            reasons.append(Reason(ReasonCode.LARGE_DELETE, f"{what}, {words}; {_allows(line)}", origin))
    return tuple(reasons)


def _caps_on_bytes(stored_bytes: int, past: Sequence[int]) -> Iterator[tuple[float, str]]:
    """What may go at most, in bytes, and the words for more than that."""
    yield stored_bytes / 2, f"more than half of the {format_size(stored_bytes)} that the table holds on storage"
    if len(past) >= MIN_RUNS_COMPARED:
        middle = median(past)
        text = f"more than {TIMES_MEDIAN} times the median of the last {len(past)} vacuums, {format_size(int(middle))}"
        yield TIMES_MEDIAN * middle, text


def _amount(counted: int, replaced_bytes: int, rewritten_allowed: bool) -> str:
    """Say how much would be deleted, and how much of it a rewrite replaced."""
    if rewritten_allowed:
        return f"{format_size(counted)} that no rewrite replaced"
    if replaced_bytes == 0:
        return format_size(counted)
    part = "all" if replaced_bytes == counted else format_size(replaced_bytes)
    return f"{format_size(counted)} ({part} of it replaced by rewrites)"


def _allows(value: str) -> str:
    return f"`vacuum.allowLargeDelete: {value}` allows it"


CHEAP_RENAMES = ("file", "hdfs", "viewfs")
"""Schemes on which moving a file costs no copy. On object stores a rename copies every byte."""


def rename_is_cheap(location: str) -> bool:
    """Return whether moving a file costs no copy where a table lies, by the scheme of its URI."""
    return location.partition(":")[0].lower() in CHEAP_RENAMES


def refuse_trash(location: str, where: str) -> None:
    """Refuse a trash where every file would have to be copied.

    Raises:
        TableError: T431.
    """
    if not rename_is_cheap(location):
        raise TableError(
            "there is no trash on an object store: moving a file there copies all its bytes",
            code="T431",
            where=where,
            found=location.partition(":")[0] + ":",
            allowed=", ".join(f"{scheme}:" for scheme in CHEAP_RENAMES),
            help="remove `vacuum.trash`, and switch on versioning of the bucket",
        )
