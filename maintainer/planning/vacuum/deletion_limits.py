"""Find how long removed files are kept, limit how much one vacuum deletes, and check that a trash is possible.

The longest time counts that the policy, the table or the engine asks for. A mistake upstream (an overwrite with
nothing, a DELETE without WHERE) becomes final when the old files are deleted. Deleting more than the limit needs a
line in the policy that allows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from maintainer.errors import TableError
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.store_kinds import CHEAP_RENAMES, store_kind
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.property_plan import (
    DELETED_FILE_RETENTION,
    DELETED_FILE_RETENTION_DEFAULT_MS,
    interval_property_ms,
    property_of,
)
from maintainer.policy.property_names import canonical_name, parse_interval_ms
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import count_of, format_duration, format_size

FLOOR_SECONDS = 7 * 86_400
"""Files younger than this may belong to a writer that has not committed yet; as in Delta's own safety check."""

WRITES_KEPT = 2
"""So many times the longest write of the history is kept: the next one may take longer than any before."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Files removed strictly before it may go. ``decided_by`` names the policy line, property or consumer that won.

    ``origin`` is the policy line of what won; None where no policy says it.
    """

    removed_before_ms: int
    retention_seconds: int
    decided_by: str
    origin: str | None = None


def vacuum_horizon(table: TableInput) -> Horizon:
    """Return the horizon: the longest of everything that asks for files to be kept.

    That is the policy's retention, the table property ``delta.deletedFileRetentionDuration`` as it is now (seven
    days where it is not set) or as the policy sets it, which comes first, seven days unless ``allowShortRetention``,
    the lag of every consumer, declared or read from its checkpoint, and twice the longest write that the log knows of.
    What the log and the checkpoints say is in ``facts.history``; without it the horizon is the least that will be kept.
    Of equal ones the first in this order is named.

    Raises:
        TableError: T418, the table property cannot be read.
    """
    policy, facts, vacuum = table.policy, table.facts, table.policy.vacuum
    assert vacuum is not None
    retention = policy.place_of("vacuum.retention")
    property_ms = interval_property_ms(facts, DELETED_FILE_RETENTION, DELETED_FILE_RETENTION_DEFAULT_MS)
    whose = " (Delta's default)" if property_of(facts, DELETED_FILE_RETENTION) is None else ""
    written = (value for key, value in policy.properties if canonical_name(key) == DELETED_FILE_RETENTION)
    if (set_ms := max((parse_interval_ms(value) or 0 for value in written), default=0)) > property_ms:
        property_ms, whose = set_ms, " (as the policy sets it)"
    wishes: list[_Wish] = [
        (vacuum.retention_seconds, f"vacuum.retention ({retention})", retention),
        (-(-property_ms // 1000), f"table property {DELETED_FILE_RETENTION}{whose}", None),
    ]
    if not vacuum.allow_short_retention:
        wishes.append((FLOOR_SECONDS, "the floor of seven days", policy.place_of("vacuum.allowShortRetention")))
    origin = policy.place_of("consumers")
    for consumer in policy.consumers:
        if consumer.max_lag_seconds is not None:
            wishes.append((consumer.max_lag_seconds, f"consumer {consumer.name} ({origin})", origin))
    wishes.extend(_wishes_of_history(table))
    seconds = max(wish for wish, _, _ in wishes)
    decided_by, origin_of_it = next((name, place) for wish, name, place in wishes if wish == seconds)
    return Horizon(table.now_ms - seconds * 1000, seconds, decided_by, origin_of_it)


_Wish = tuple[int, str, str | None]
"""For how many seconds files are to be kept, what asks for it, and the policy line that does."""


def _wishes_of_history(table: TableInput) -> list[_Wish]:
    history = table.facts.history
    if history is None:
        return []
    origin = table.policy.place_of("consumers")
    wishes: list[_Wish] = [
        (
            max(0, -(-(table.now_ms - position.needed_since_ms) // 1000)),
            f"consumer {position.consumer}, whose checkpoint is at version {position.version} ({origin})",
            origin,
        )
        for position in history.positions
        if position.needed_since_ms is not None
    ]
    if history.longest_write_ms:
        longest = format_duration(-(-history.longest_write_ms // 1000))
        text = f"{WRITES_KEPT} times the longest write in the log ({longest}, version {history.longest_write_version})"
        wishes.append((WRITES_KEPT * -(-history.longest_write_ms // 1000), text, None))
    return wishes


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
    yield stored_bytes / 2, f"more than half of the {format_size(stored_bytes)} that live files and these have together"
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


def refuse_trash(location: str, where: str) -> None:
    """Refuse a trash where every file would have to be copied.

    Raises:
        TableError: T431.
    """
    if not store_kind(location).renames_cheaply:
        what = "there is no trash on an object store: moving a file there copies all its bytes"
        allowed, found = ", ".join(f"{scheme}:" for scheme in CHEAP_RENAMES), location.partition(":")[0] + ":"
        help = "remove `vacuum.trash`; in an S3 bucket with versioning `maintainer undelete` brings files back"
        raise TableError(what, code="T431", where=where, found=found, allowed=allowed, help=help)
