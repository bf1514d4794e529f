"""Find how long removed files are kept: the longest time that the policy, the table or the engine asks for."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.planning.plan_input import TableInput
from maintainer.planning.properties.property_plan import (
    DELETED_FILE_RETENTION,
    DELETED_FILE_RETENTION_DEFAULT_MS,
    interval_property_ms,
    property_of,
)
from maintainer.units import format_duration

FLOOR_SECONDS = 7 * 86_400
"""Files younger than this may belong to a writer that has not committed yet; as in Delta's own safety check."""

WRITES_KEPT = 2
"""So many times the longest write of the history is kept: the next one may take longer than any before."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Files removed strictly before it may go. ``decided_by`` names the policy line, property or consumer that won."""

    removed_before_ms: int
    retention_seconds: int
    decided_by: str


def vacuum_horizon(table: TableInput) -> Horizon:
    """Return the horizon: the longest of everything that asks for files to be kept.

    That is the policy's retention, the table property ``delta.deletedFileRetentionDuration`` as it is now (seven
    days where it is not set), seven days unless ``allowShortRetention``, the lag of every consumer, declared or read
    from its checkpoint, and twice the longest write that the log knows of. What the log and the checkpoints say is in
    ``facts.history``; without it the horizon is the least that will be kept. Of equal ones the first in this order is
    named.

    Raises:
        TableError: T418, the table property cannot be read.
        ValueError: The policy has no ``vacuum``.
    """
    policy, facts, vacuum = table.policy, table.facts, table.policy.vacuum
    if vacuum is None:
        raise ValueError("the policy has no vacuum")
    retention = policy.place_of("vacuum.retention")
    property_ms = interval_property_ms(facts, DELETED_FILE_RETENTION, DELETED_FILE_RETENTION_DEFAULT_MS)
    unset = " (Delta's default)" if property_of(facts, DELETED_FILE_RETENTION) is None else ""
    wishes = [
        (vacuum.retention_seconds, f"vacuum.retention ({retention})"),
        (-(-property_ms // 1000), f"table property {DELETED_FILE_RETENTION}{unset}"),
    ]
    if not vacuum.allow_short_retention:
        wishes.append((FLOOR_SECONDS, "the floor of seven days"))
    for consumer in policy.consumers:
        if consumer.max_lag_seconds is not None:
            wishes.append((consumer.max_lag_seconds, f"consumer {consumer.name} ({policy.origin('consumers')})"))
    wishes.extend(_wishes_of_history(table))
    seconds = max(wish for wish, _ in wishes)
    decided_by = next(name for wish, name in wishes if wish == seconds)
    return Horizon(table.now_ms - seconds * 1000, seconds, decided_by)


def _wishes_of_history(table: TableInput) -> list[tuple[int, str]]:
    history = table.facts.history
    if history is None:
        return []
    origin = table.policy.origin("consumers")
    wishes = [
        (
            max(0, -(-(table.now_ms - position.needed_since_ms) // 1000)),
            f"consumer {position.consumer}, whose checkpoint is at version {position.version} ({origin})",
        )
        for position in history.positions
        if position.needed_since_ms is not None
    ]
    if history.longest_write_ms:
        longest = format_duration(-(-history.longest_write_ms // 1000))
        text = f"{WRITES_KEPT} times the longest write in the log ({longest}, version {history.longest_write_version})"
        wishes.append((WRITES_KEPT * -(-history.longest_write_ms // 1000), text))
    return wishes
