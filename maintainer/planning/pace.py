"""How long a rewrite takes: so much for each commit, however small it is, and so much for each byte.

One rate alone is wrong twice: learned from small tables it makes a large one last all night, learned from a large one
it makes a thousand small ones free. Both figures are fitted to past steps by least squares, from five sums for each
kind of step, so that runs can be added up.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_BYTES_PER_SECOND = 20 * 1024 * 1024
"""Until steps of different sizes have been timed: reading, writing and proving on a small machine."""

FASTEST_BYTES_PER_SECOND = 1024 * 1024 * 1024
"""No byte is believed to cost less: steps whose time seems to fall with their size say nothing of larger ones."""

_LEAST_SPREAD = 1e-6
"""Sizes that differ by less, as a share of their squares, are the same size."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Past steps of one kind as sums over their commits.

    ``squares`` is the sum of the squares of the commits' bytes, ``products`` that of bytes times seconds. A step of
    several commits counts as so many equal ones.
    """

    num_commits: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    @staticmethod
    def of_step(num_commits: int, size_bytes: int, seconds: float) -> Timed:
        """One step: its commits (at least one), the bytes they took and the seconds of the whole."""
        squares, products = float(size_bytes) ** 2 / num_commits, size_bytes * seconds / num_commits
        return Timed(num_commits, size_bytes, seconds, squares, products)

    def __add__(self, other: Timed) -> Timed:
        return Timed(
            self.num_commits + other.num_commits,
            self.size_bytes + other.size_bytes,
            self.seconds + other.seconds,
            self.squares + other.squares,
            self.products + other.products,
        )


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds for each commit (0 or more), and bytes a second beyond that."""

    commit_seconds: float
    bytes_per_second: float


def pace_of(timed: Timed) -> Pace:
    """Fit a pace to past steps. For those steps together it always gives the time that they took.

    Args:
        timed: At least one commit, with bytes and time.
    """
    number, size, seconds = timed.num_commits, timed.size_bytes, timed.seconds
    spread = number * timed.squares - float(size) ** 2
    if number > 1 and spread > _LEAST_SPREAD * number * timed.squares:
        for_byte = (number * timed.products - size * seconds) / spread
        for_byte = max(for_byte, 1 / FASTEST_BYTES_PER_SECOND)
    else:
        for_byte = 1 / DEFAULT_BYTES_PER_SECOND
    rest = seconds - for_byte * size
    if rest < 0:
        return Pace(0.0, size / seconds)
    return Pace(rest / number, 1 / for_byte)
