"""How a partition value is spelled: two spellings of one value are one partition. Pure.

The protocol reads an empty text as null. A timestamp may be written as ``2000-01-01 12:00:00`` (in the zone of our
sessions, UTC) or as ``2000-01-01T12:00:00.000000Z``; OPTIMIZE groups files by the typed value since Delta 4.3.
"""

from __future__ import annotations

from maintainer.policy.predicate_time import read_timestamp

TIMES = ("timestamp", "timestamp_ntz")
"""Types with more than one spelling."""


def one_spelling(value: str | None, *, time: bool = False) -> str | None:
    """The one way in which a partition value is spelled; None for null. What is no time at all stays as it is."""
    if not value:
        return None
    moment = read_timestamp(value) if time else None
    return value if moment is None else moment.replace(tzinfo=None).isoformat(sep=" ")
