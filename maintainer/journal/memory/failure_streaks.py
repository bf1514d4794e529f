"""Count runs in a row of one table in which it failed, lost to another writer, or was left to its writers."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.progress import TableFinished


@dataclass(frozen=True, slots=True)
class Streak:
    """Runs in a row. ``lost`` and ``hot`` end with a rewrite that lands, ``failed`` with a run in which it ended well.

    ``hot`` counts runs that left the table to its writers, and ends as well when nothing is left to rewrite. Runs in
    which nothing was tried change nothing else. ``last_at_ms`` is the last run that was counted. Times are milliseconds
    since 1970 UTC.
    """

    lost: int = 0
    last_lost_at_ms: int | None = None
    failed: int = 0
    failing_since_ms: int | None = None
    hot: int = 0
    hot_since_ms: int | None = None
    last_at_ms: int = 0

    @property
    def matters(self) -> bool:
        """Whether there is anything to remember."""
        return bool(self.lost or self.failed or self.hot)

    def after(self, event: TableFinished) -> Streak:
        """Return the streak after another end of the table."""
        at_ms, status = event.at_ms, event.outcome.status
        lost, last = self.lost, self.last_lost_at_ms
        hot, hot_since = self.hot, self.hot_since_ms
        if event.lost:
            lost, last = lost + 1, at_ms
        elif event.rewritten:
            lost, last = 0, None
        if event.rewritten or status is TableStatus.UP_TO_DATE:
            hot, hot_since = 0, None
        elif event.hot:
            hot, hot_since = hot + 1, at_ms if hot_since is None else hot_since
        failed, failing_since = self.failed, self.failing_since_ms
        if status in (TableStatus.FAILED, TableStatus.VERIFY_FAILED):
            failed, failing_since = failed + 1, at_ms if failing_since is None else failing_since
        elif status in (TableStatus.DONE, TableStatus.UP_TO_DATE):
            failed, failing_since = 0, None
        return Streak(lost, last, failed, failing_since, hot, hot_since, at_ms)
