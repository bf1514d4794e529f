"""Check whether it is time: ``every``, ``suspend`` and windows give reasons to leave a table or a step for another run.

Windows say when steps may start, in local wall-clock time of the window's own zone. A window from 22:00 to 04:00
follows the clocks through both changes of the year: a skipped hour is not in the window, a repeated hour is in it
twice.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.commit_records import DELETING, REWRITING, TableCommit
from maintainer.planning.plan_input import TableInput
from maintainer.policy.resolve.resolved import WEEKDAYS, ResolvedPolicy, Window
from maintainer.units import format_duration, format_size

MAX_SLACK_SECONDS = 3600


def is_due(every_seconds: int, last_at_ms: int | None, now_ms: int) -> bool:
    """Return whether a step that runs at most once in ``every_seconds`` may run again.

    A nightly job does not start at the same second each night, so the interval is cut by 1/24, at most one
    hour: ``every: 1d`` is due 23 hours after the last time. Otherwise a run that starts a little earlier than
    yesterday's would find nothing due, and the table would be maintained every other night. For the same reason the
    last time by us is when that run began: it may have come to the table hours later.
    """
    if last_at_ms is None or every_seconds <= 0:
        return True
    return now_ms >= due_at_ms(every_seconds, last_at_ms)


def due_at_ms(every_seconds: int, last_at_ms: int) -> float:
    """Return when a step that ran at ``last_at_ms`` may run again, the slack taken off."""
    return last_at_ms + (every_seconds - min(every_seconds / 24, MAX_SLACK_SECONDS)) * 1000


def last_rewrite(table: TableInput) -> tuple[int | None, str]:
    """Return when anybody last rewrote the table, as far as its records and its log tell, and what happened then.

    Of ours it is the beginning of the run. An auto compaction orders nothing and purges nothing: it puts off nothing
    but a compaction.
    """
    optimize, facts = table.policy.optimize, table.facts
    does_more = optimize.zorder or optimize.rewrite or optimize.purge or facts.clustering_columns
    by_others = facts.newest_by_others(REWRITING, with_auto=not does_more)
    return _last(table, table.record.last_optimize_at_ms, "rewrite", by_others)


def last_vacuum(table: TableInput) -> tuple[int | None, str]:
    """The same of deletions."""
    return _last(table, table.record.last_vacuum_at_ms, "vacuum", table.facts.newest_by_others(DELETING))


def _last(table: TableInput, ours_ms: int | None, ours: str, by_others: TableCommit | None) -> tuple[int | None, str]:
    if by_others is None or by_others.at_ms <= (ours_ms or 0):
        return ours_ms, f"a run with a {ours} began"
    # The clock of another writer may run ahead.
    return min(by_others.at_ms, table.now_ms), f"{by_others.activity} ran"


def optimize_is_due(table: TableInput) -> bool:
    """Return whether ``optimize.every`` lets a rewrite run now."""
    last_at_ms, _ = last_rewrite(table)
    return table.options.ignore_every or is_due(table.policy.optimize.every_seconds, last_at_ms, table.now_ms)


def vacuum_is_due(table: TableInput) -> bool:
    """Return whether ``vacuum.every`` lets a deletion run now; never without ``vacuum``."""
    vacuum, (last_at_ms, _) = table.policy.vacuum, last_vacuum(table)
    if vacuum is None:
        return False
    return table.options.ignore_every or is_due(vacuum.every_seconds, last_at_ms, table.now_ms)


def not_due(what: str, key: str, policy: ResolvedPolicy, every_seconds: int, last_at_ms: int, now_ms: int) -> Reason:
    """Say that a step is not due, and when it will be: ``OPTIMIZE by X ran 5h ago, at most every 1d: due in 18h``."""
    ago = format_duration(max(0, (now_ms - last_at_ms) // 1000))
    wait_seconds = max(60, math.ceil((due_at_ms(every_seconds, last_at_ms) - now_ms) / 60_000) * 60)
    text = f"{what} {ago} ago, at most every {format_duration(every_seconds)}: due in {format_duration(wait_seconds)}"
    return Reason(ReasonCode.NOT_DUE, text, policy.place_of(key))


def held_back(table: TableInput) -> Reason | None:
    """Return why nothing at all is done to the table in this run; None when work may go on.

    A quarantined table is not held back but blocked: that needs a person.
    """
    policy, now_ms = table.policy, table.now_ms
    if policy.managed_from is not None:
        least, origin = policy.managed_from
        size = format_size(table.facts.size_bytes)
        text = f"no rule manages the table below match.minSize, {format_size(least)}; it has {size}"
        return Reason(ReasonCode.BELOW_MIN_SIZE, text, str(origin))
    suspended = _suspended(table)
    if suspended is not None:
        return suspended
    if table.options.ignore_windows or is_open(policy.windows, now_ms):
        return None
    opens = opens_at_ms(policy.windows, now_ms)
    text = f"outside the window {'; '.join(describe(window) for window in policy.windows)}"
    if opens is not None:
        text += f", opens {datetime.fromtimestamp(opens / 1000, tz=UTC):%Y-%m-%d %H:%M} UTC"
    return Reason(ReasonCode.OUTSIDE_WINDOW, text, policy.place_of("window"))


def _suspended(table: TableInput) -> Reason | None:
    policy = table.policy
    suspend = policy.suspend and policy.suspend.on(table.today)
    if suspend is not None:
        until = f" until {suspend.until.isoformat()}" if suspend.until else ""
        return Reason(ReasonCode.SUSPENDED, f"suspended{until}: {suspend.reason}", policy.place_of("suspend"))
    return None


_LONGEST_GAP_MINUTES = 180
_MINUTE_MS = 60_000
_MINUTES_A_DAY = 1440


def is_open(windows: tuple[Window, ...], now_ms: int) -> bool:
    """Return whether steps may start now. Without any window they always may.

    A window includes its start and excludes its end. One whose end is not after its start crosses midnight and
    belongs to the day on which it starts; equal times are a whole day.
    """
    return not windows or any(_is_open(window, now_ms) for window in windows)


def _is_open(window: Window, now_ms: int) -> bool:
    local = _local(now_ms, window)
    today, yesterday = local.isoweekday(), (local - timedelta(days=1)).isoweekday()
    time = local.time()
    if window.start < window.end:
        return today in window.days and window.start <= time < window.end
    return (today in window.days and time >= window.start) or (yesterday in window.days and time < window.end)


def opens_at_ms(windows: tuple[Window, ...], now_ms: int) -> int | None:
    """Return when the next window opens, None where one is open now or none ever will (within eight days)."""
    if is_open(windows, now_ms):
        return None
    starts = (start for window in windows for start in _starts(window, now_ms) if start > now_ms)
    return min((start for start in starts if is_open(windows, start)), default=None)


def closes_at_ms(windows: tuple[Window, ...], now_ms: int) -> int | None:
    """Return when the window that is open closes; None where none is open, or none closes within a day.

    Several windows that touch are one. Looked for minute by minute, so that both changes of the clock are seen.
    """
    return _closes_at_ms(windows, now_ms // _MINUTE_MS) if windows and is_open(windows, now_ms) else None


@lru_cache(maxsize=256)
def _closes_at_ms(windows: tuple[Window, ...], minute: int) -> int | None:
    later = ((minute + number) * _MINUTE_MS for number in range(1, _MINUTES_A_DAY + 1))
    return next((moment for moment in later if not is_open(windows, moment)), None)


def _local(now_ms: int, window: Window) -> datetime:
    moment = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    return moment.astimezone(ZoneInfo(window.timezone)).replace(tzinfo=None)


def _starts(window: Window, now_ms: int) -> list[int]:
    zone, today = ZoneInfo(window.timezone), _local(now_ms, window).date()
    starts: list[int] = []
    for days in range(9):
        day = today + timedelta(days=days)
        if day.isoweekday() not in window.days:
            continue
        starts += [_ms(datetime.combine(day, window.start, zone).replace(fold=fold)) for fold in (0, 1)]
        # The start may lie in an hour that the clock skips: then the window opens at the first minute after it.
        begin = min(starts[-2:])
        if _local(starts[-1], window).time() != window.start:
            starts += [begin + minute * 60_000 for minute in range(_LONGEST_GAP_MINUTES)]
    return starts


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def describe(window: Window) -> str:
    """Print a window as a policy writes it: ``mon-fri 22:00-04:00 Europe/Berlin``."""
    days = sorted(window.days)
    names = [WEEKDAYS[day] for day in days]
    in_a_row = len(days) > 2 and days == list(range(days[0], days[-1] + 1))
    text = f"{names[0]}-{names[-1]}" if in_a_row else ",".join(names)
    return f"{text} {window.start:%H:%M}-{window.end:%H:%M} {window.timezone}"
