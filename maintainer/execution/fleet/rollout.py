"""Cut a run into batches of tables; the next batch starts only when every table before it ended well.

As with Ansible's ``serial``, each size is a number of tables or a share of all, and the last size is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from maintainer.units import UnitError

BatchSize = int | str
"""A number of tables, or a share of all such as ``"20%"``."""

MAX_SIZES = 20
MAX_TABLES = 1_000_000

_T = TypeVar("_T")
_SHARE = re.compile(r"(100|[1-9][0-9]?)%")


def parse_batches(text: str) -> tuple[BatchSize, ...]:
    """Read ``1,5,20%``.

    Raises:
        UnitError: Not a list of sizes, or too long.
    """
    sizes = [size.strip() for size in text.split(",")]
    if len(sizes) > MAX_SIZES:
        raise UnitError(f"{len(sizes)} batches", f"at most {MAX_SIZES}; the last size is repeated anyway")
    return tuple(_size(size) for size in sizes)


def _size(text: str) -> BatchSize:
    if _SHARE.fullmatch(text):
        return text
    if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_TABLES)) and 1 <= int(text) <= MAX_TABLES:
        return int(text)
    raise UnitError(f"`{text[:20]}` is not the size of a batch", "write tables or a share of them, such as 1,5,20%")


def in_batches(tasks: Sequence[_T], sizes: Sequence[BatchSize]) -> list[list[_T]]:
    """Cut tasks into batches, in their order; one batch without sizes.

    A share is of all tasks, rounded down, and at least one.
    """
    if not sizes:
        return [list(tasks)] if tasks else []
    batches: list[list[_T]] = []
    start = 0
    while start < len(tasks):
        size = sizes[min(len(batches), len(sizes) - 1)]
        number = size if isinstance(size, int) else max(1, len(tasks) * int(size[:-1]) // 100)
        batches.append(list(tasks[start : start + number]))
        start += number
    return batches
