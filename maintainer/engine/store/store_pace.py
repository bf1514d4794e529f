"""How fast one store is asked: all threads of the process slow down together when it says that it is too much.

A store that throttles answers every client so. If each thread repeats its own request, as many requests come again as
were refused; so the first refusal holds all of them back, halves how many may wait for an answer side by side, and
each answer lets a few more through.

Each request is counted as it is sent (``request_count``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from maintainer.engine.store.request_count import REQUEST_COUNT
from maintainer.engine.store.store_failures import BUSY, StoreFailure
from maintainer.model.table.store_requests import StoreRequests

_Answer = TypeVar("_Answer")

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 5.0
SILENT_TRIES = 2
"""So often is a request sent that gets no whole answer. obstore repeats it as well, but for most that break off."""

ANSWERS_FOR_ONE_MORE = 4
"""Answers after which one request more is let through at once."""


class StorePace:
    """Lets through so many requests of one store at once. Used by all threads that ask it.

    Args:
        abreast: How many wait for an answer side by side while the store does not throttle.
        retry_seconds: How long a request that is throttled, or gets no answer, is sent again; 0 for never. One whose
            answer breaks off is in any case.
    """

    def __init__(self, abreast: int, retry_seconds: float) -> None:
        self._most, self._retry_seconds = abreast, retry_seconds
        self._changed = threading.Condition()
        self._allowed, self._waiting, self._num_answers = abreast, 0, 0
        self._pause_seconds, self._goes_on_at, self._slowed_at = FIRST_PAUSE_SECONDS, 0.0, 0.0

    def asked(self, ask: Callable[[], _Answer], requests: StoreRequests) -> _Answer:
        """Ask, and again while the store throttles.

        Args:
            ask: Asks once.
            requests: What that sends, for the count.

        Raises:
            StoreFailure: The store failed, or throttled too long.
        """
        until, num_silent = time.monotonic() + self._retry_seconds, 0
        while True:
            with self._let_through() as sent_at:
                REQUEST_COUNT.add(requests)
                try:
                    answer = ask()
                except StoreFailure as failure:
                    num_silent += failure.gave_no_answer
                    if failure.code == BUSY:
                        again = self._slow_down(sent_at, until)
                    else:
                        in_time = failure.broke_off or time.monotonic() < until
                        again = failure.gave_no_answer and num_silent < SILENT_TRIES and in_time
                    if not again:
                        raise
                    continue
            self._answered()
            return answer

    @contextmanager
    def _let_through(self) -> Iterator[float]:
        """Wait until a request may be sent, and count it; yields when that was. Held only by what can end."""
        with self._changed:
            while (rest := self._goes_on_at - time.monotonic()) > 0 or self._waiting >= self._allowed:
                self._changed.wait(rest if rest > 0 else None)
            self._waiting += 1
        try:
            yield time.monotonic()
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def _slow_down(self, sent_at: float, until: float) -> bool:
        """Hold all requests back, once for those that were sent together; False when this one waited too long."""
        with self._changed:
            now = time.monotonic()
            if sent_at >= self._slowed_at:
                self._allowed = max(1, self._allowed // 2)
                self._slowed_at = self._goes_on_at = now + self._pause_seconds
                self._pause_seconds = min(LONGEST_PAUSE_SECONDS, 2 * self._pause_seconds)
            return self._goes_on_at < until

    def _answered(self) -> None:
        with self._changed:
            self._num_answers += 1
            if self._allowed < self._most and self._num_answers % ANSWERS_FOR_ONE_MORE == 0:
                self._allowed += 1
                self._changed.notify_all()
            elif self._allowed == self._most:
                self._pause_seconds = FIRST_PAUSE_SECONDS
