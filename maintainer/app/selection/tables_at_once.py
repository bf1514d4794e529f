"""Decide how many tables are looked at, or worked on, side by side where nobody said.

A table on a disk keeps a processor busy. One on a store mostly waits for answers, so many of them can wait together;
what they ask for is bounded for the process by its client, and what they compute by its processors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from maintainer.delta.spark.start_conf import machine_memory_bytes
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.table_facts import TableRef

LOOKS_ON_DISK, LOOKS_ON_STORE = 2, 16
MOST_WORKED_ON = 8
"""More get Delta and this process to wait for each other."""

TABLE_BYTES = 512 << 20
"""Memory for each table that is worked on: what its files take in this process and in Spark."""


def looked_at_at_once(tables: Iterable[TableRef]) -> int:
    """Return how many tables are looked at side by side."""
    return LOOKS_ON_STORE if _any_on_store(tables) else LOOKS_ON_DISK


def worked_on_at_once(tables: Iterable[TableRef]) -> int:
    """Return how many tables are rewritten and cleaned side by side."""
    most = MOST_WORKED_ON if _any_on_store(tables) else min(2, os.cpu_count() or 1)
    return max(1, min(most, machine_memory_bytes() // TABLE_BYTES))


def _any_on_store(tables: Iterable[TableRef]) -> bool:
    """Whether some lie where each file is asked for over the network; a name's place is not known yet."""
    return any(not table.is_path or store_kind(table.location).asks_by_request for table in tables)
