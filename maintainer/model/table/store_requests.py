"""What a run asked of object stores, by kind, and what that cost."""

from __future__ import annotations

from dataclasses import dataclass, fields

LISTED_AT_ONCE, MOST_LISTED = 1000, 200_000
"""Objects that one LIST request returns, and up to how many are kept in memory to spare requests."""


@dataclass(frozen=True, slots=True)
class StoreRequests:
    """Requests of one client, each one counted that was sent again.

    ``reads`` fetch an object or a part of it (GET), ``looks`` ask for its size and tag (HEAD), ``lists`` return up to a
    thousand names, ``writes`` make an object or a part (PUT, and POST for the begin and end of an upload in parts),
    ``deletions`` delete one or up to a thousand.
    """

    reads: int = 0
    looks: int = 0
    lists: int = 0
    writes: int = 0
    deletions: int = 0

    def __add__(self, other: StoreRequests) -> StoreRequests:
        return StoreRequests(*(mine + theirs for mine, theirs in zip(self.by_kind, other.by_kind, strict=True)))

    def __sub__(self, other: StoreRequests) -> StoreRequests:
        return StoreRequests(*(mine - theirs for mine, theirs in zip(self.by_kind, other.by_kind, strict=True)))

    def __mul__(self, times: int) -> StoreRequests:
        return StoreRequests(*(each * times for each in self.by_kind))

    @property
    def by_kind(self) -> tuple[int, ...]:
        """The figures in the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def total(self) -> int:
        return sum(self.by_kind)


@dataclass(frozen=True, slots=True)
class RunRequests:
    """What a run asked of stores from its first look until its record was closed, by the process that ran it.

    ``ours`` are those of our own client; what its library repeats by itself is not known. ``hadoops`` are those of
    Hadoop's client in the JVM of the session, for Spark and Delta; None where it does not count them. Those of
    executors on other machines are in neither. ``expected`` is how many its plan said, about; None where it said
    none. ``cost`` is by the prices of maintainer.yml, in its ``currency``; None without prices.
    """

    ours: StoreRequests = StoreRequests()
    hadoops: StoreRequests | None = None
    cost: float | None = None
    currency: str = ""
    expected: int | None = None

    @property
    def counted(self) -> StoreRequests:
        """Those of both clients."""
        return self.ours + (self.hadoops or StoreRequests())
