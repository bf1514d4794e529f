"""When other writers of a table commit what can make a rewrite lose."""

from __future__ import annotations

from dataclasses import dataclass

HOURS = 24


@dataclass(frozen=True, slots=True)
class WriterRhythm:
    """What the newest commits of a table's log say about its other writers.

    Times are milliseconds since 1970 UTC. A commit *takes files* when it removes live files or hides rows of them:
    DELETE, UPDATE, MERGE, overwriting. Blind appends take none and make no rewrite lose.

    Args:
        since_ms: From when on commits were looked at.
        until_ms: Up to when: the time of planning.
        num_commits: Commits of others in that time, appends included.
        taking_by_hour: How many of them took files, in each hour of the day in UTC; empty where none did.
    """

    since_ms: int
    until_ms: int
    num_commits: int
    taking_by_hour: tuple[int, ...] = ()

    @property
    def num_taking(self) -> int:
        """Commits of others that took files."""
        return sum(self.taking_by_hour)

    @property
    def seconds(self) -> float:
        """How long was looked at."""
        return max(0, self.until_ms - self.since_ms) / 1000
