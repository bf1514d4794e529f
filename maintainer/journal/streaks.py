"""Runs in a row: how often a table lost against other writers, and how often it failed. By the table's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maintainer.journal.events import Event

_FAILED = frozenset({"failed", "verify_failed"})
_WELL = frozenset({"done", "up_to_date"})


@dataclass(frozen=True, slots=True)
class Streak:
    """Runs in a row. ``lost`` ends with a rewrite that lands, ``failed`` with a run in which the table ended well.

    Runs in which nothing was tried change neither. Times are milliseconds since 1970 UTC.
    """

    lost: int = 0
    last_lost_at_ms: int | None = None
    failed: int = 0
    failing_since_ms: int | None = None

    @property
    def matters(self) -> bool:
        """Whether there is anything to remember."""
        return bool(self.lost or self.failed)

    def after(self, event: Event) -> Streak:
        """The streak after a ``table_finished`` event."""
        at_ms, status = int(event.get("at_ms", 0)), event.get("status")
        lost, last = self.lost, self.last_lost_at_ms
        if event.get("lost") is True:
            lost, last = lost + 1, at_ms
        elif event.get("rewritten") is True:
            lost, last = 0, None
        if status in _FAILED:
            return Streak(
                lost, last, self.failed + 1, at_ms if self.failing_since_ms is None else self.failing_since_ms
            )
        if status in _WELL:
            return Streak(lost, last)
        return Streak(lost, last, self.failed, self.failing_since_ms)

    def to_json(self) -> dict[str, Any]:
        """As ``state.json`` keeps it."""
        return {
            "lost": self.lost,
            "last_lost_at_ms": self.last_lost_at_ms,
            "failed": self.failed,
            "failing_since_ms": self.failing_since_ms,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Streak:
        """Read it back.

        Raises:
            KeyError: A field is missing.
            TypeError: A field is no number.
            ValueError: A field is no number.
        """

        def time(name: str) -> int | None:
            return None if value[name] is None else int(value[name])

        return Streak(int(value["lost"]), time("last_lost_at_ms"), int(value["failed"]), time("failing_since_ms"))
