"""Count requests to object stores as they are sent.

obstore pages through a listing, and sends a large file in parts, without a word: these are counted by their sizes, as
S3 has them. What it sends again by itself is not known.
"""

from __future__ import annotations

import threading

from maintainer.model.table.store_requests import LISTED_AT_ONCE, StoreRequests

OBSTORE_PART_BYTES = 5 << 20
"""obstore sends a larger body in parts of this size, unless it is told another one."""


class RequestCount:
    """Counts requests to all stores together. Used by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = StoreRequests()

    def add(self, requests: StoreRequests) -> None:
        """Count requests that are sent."""
        with self._lock:
            self._sent += requests

    @property
    def so_far(self) -> StoreRequests:
        """Those that were sent until now."""
        with self._lock:
            return self._sent


REQUEST_COUNT = RequestCount()


def lists_of(num_names: int) -> StoreRequests:
    """Return the requests that a listing of so many names takes."""
    return StoreRequests(lists=max(1, -(-num_names // LISTED_AT_ONCE)))


def writes_of(
    size_bytes: int, one_put_bytes: int = OBSTORE_PART_BYTES, part_bytes: int = OBSTORE_PART_BYTES
) -> StoreRequests:
    """Return the requests that write an object: one, or its parts with one before and one after them."""
    return StoreRequests(writes=1 if size_bytes <= one_put_bytes else 2 - -size_bytes // part_bytes)
