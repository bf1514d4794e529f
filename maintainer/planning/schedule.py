"""Is it time? ``every``, ``suspend``, windows: reasons to leave a table or a step for another run."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone

from maintainer.model.reasons import Reason, ReasonCode
from maintainer.model.table import TableRecord
from maintainer.planning import windows
from maintainer.policy.resolved import ResolvedPolicy
from maintainer.units import format_duration

MAX_SLACK_SECONDS = 3600


def is_due(every_seconds: int, last_at_ms: int | None, now_ms: int) -> bool:
    """Whether a step that runs at most once in ``every_seconds`` may run again.

    A nightly job does not start at the same second each night, so the interval is cut by 1/24, at most one
    hour: ``every: 1d`` is due 23 hours after the last time. Otherwise a run that starts a little earlier than
    yesterday's would find nothing due, and the table would be maintained every other night.
    """
    if last_at_ms is None or every_seconds <= 0:
        return True
    return now_ms >= due_at_ms(every_seconds, last_at_ms)


def due_at_ms(every_seconds: int, last_at_ms: int) -> float:
    """Return when a step that ran at ``last_at_ms`` may run again, the slack taken off."""
    return last_at_ms + (every_seconds - min(every_seconds / 24, MAX_SLACK_SECONDS)) * 1000


def not_due(what: str, key: str, policy: ResolvedPolicy, every_seconds: int, last_at_ms: int, now_ms: int) -> Reason:
    """Say that a step is not due, and when it will be: ``compaction ran 5h ago, at most every 1d: due in 18h``."""
    ago = format_duration(max(0, (now_ms - last_at_ms) // 1000))
    wait_seconds = max(60, math.ceil((due_at_ms(every_seconds, last_at_ms) - now_ms) / 60_000) * 60)
    text = (
        f"{what} ran {ago} ago, at most every {format_duration(every_seconds)}: due in {format_duration(wait_seconds)}"
    )
    return Reason(ReasonCode.NOT_DUE, text, str(policy.origin(key)))


def held_back(policy: ResolvedPolicy, *, now_ms: int, today: date, ignore_windows: bool) -> Reason | None:
    """Return why nothing at all is done to the table in this run; None when work may go on.

    A quarantined table is not held back but blocked: that needs a person.
    """
    suspend = policy.suspend
    if suspend is not None and (suspend.until is None or today < suspend.until):
        until = f" until {suspend.until.isoformat()}" if suspend.until else ""
        return Reason(ReasonCode.SUSPENDED, f"suspended{until}: {suspend.reason}", str(policy.origin("suspend")))
    if ignore_windows or windows.is_open(policy.windows, now_ms):
        return None
    opens = windows.opens_at_ms(policy.windows, now_ms)
    text = f"outside the window {'; '.join(windows.describe(window) for window in policy.windows)}"
    if opens is not None:
        text += f", opens {datetime.fromtimestamp(opens / 1000, tz=timezone.utc):%Y-%m-%d %H:%M} UTC"
    return Reason(ReasonCode.OUTSIDE_WINDOW, text, str(policy.origin("window")))


def vacuum_wanted(
    policy: ResolvedPolicy, record: TableRecord, *, now_ms: int, today: date, ignore_every: bool = False
) -> bool:
    """Whether planning needs to know the table's removed files: only then are they looked for on storage.

    Windows do not enter: a plan may be asked for whatever the window.
    """
    return (
        policy.vacuum is not None
        and record.quarantined is None
        and held_back(policy, now_ms=now_ms, today=today, ignore_windows=True) is None
        and (ignore_every or is_due(policy.vacuum.every_seconds, record.last_vacuum_at_ms, now_ms))
    )
