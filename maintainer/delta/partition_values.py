"""How a partition value is spelled: two spellings of one value are one partition. Pure.

An empty text is null, but for a text column: there Spark reads it as it is. A timestamp may be written as
``2000-01-01 12:00:00`` (in the zone of our sessions, UTC) or as ``2000-01-01T12:00:00.000000Z``; OPTIMIZE groups files
by the typed value since Delta 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.policy.predicate_time import read_timestamp

_TIMES = ("timestamp", "timestamp_ntz")


def one_spelling(value: str | None, type_name: object) -> str | None:
    """The one way in which a partition value of a type is spelled; None for null.

    What cannot be read as its type stays as it is.
    """
    if not value:
        return value if type_name == "string" else None
    moment = read_timestamp(value) if type_name in _TIMES else None
    return value if moment is None else moment.replace(tzinfo=None).isoformat(sep=" ")


def one_value_of(values: Sequence[dict[str, str | None]]) -> dict[str, str | None] | None:
    """The partition values that all source files of a bin have in the log, letter for letter; None if they differ.

    New files keep them, so that no reader sees another value. Delta's writer would not: it fixes to UTC a timestamp
    without a zone, which readers take to be in their own.
    """
    first = values[0] if values else None
    return first if all(one == first for one in values) else None
