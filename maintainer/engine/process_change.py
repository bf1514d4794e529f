"""A change of the whole process, which stands for as long as anybody needs it: runs on several threads may overlap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ProcessChange:
    """The first who begins makes the change, the last who ends takes it back.

    If each saved and restored for himself, one would restore what the other had set.

    Args:
        make: Makes the change and returns what takes it back.
    """

    def __init__(self, make: Callable[[], Callable[[], None]]) -> None:
        self._make = make
        self._take_back: Callable[[], None] | None = None
        self._num_users = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Have the change until ``end``."""
        with self._lock:
            if self._take_back is None:
                self._take_back = self._make()
            self._num_users += 1

    def end(self) -> None:
        """Need it no longer."""
        with self._lock:
            self._num_users -= 1
            if self._num_users == 0 and self._take_back is not None:
                take_back, self._take_back = self._take_back, None
                take_back()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the change within the block."""
        self.begin()
        try:
            yield
        finally:
            self.end()
