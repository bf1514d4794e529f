"""Define the built-in defaults, which hold where no file says anything.

``maxFileSize`` is 256 MiB and not Delta's 1 GiB: a bin is rewritten by one task, so its size is what one core
must read, hold and write before anything is proven, and what a failure throws away. ``minFileSize`` has no
value here: it follows the effective ``maxFileSize`` (`min_file_size_of`). Deletion is never a default: the
values of ``vacuum`` hold only once some level has written a ``vacuum`` map.
"""

from __future__ import annotations

from maintainer.policy.resolve.merge import built_in_layer

ALWAYS = built_in_layer(
    {
        "optimize.maxFileSize": "256MiB",
        "optimize.maxThreads": 8,
        "optimize.maxDeletedRowsRatio": 0.05,
        "optimize.batchSize": "10GiB",
        "optimize.skipNewestPartitions": 0,
        "optimize.quietFor": "0s",
        "optimize.quietAfterUpdates": "10m",
        "optimize.every": "0s",
        "verify.rowCount": "scan",
        "verify.content": "fingerprint",
        "verify.files": True,
        "limits.timeout": "3h",
    }
)
"""The lowest level of every table."""

VACUUM = built_in_layer(
    {
        "vacuum.retention": "7d",
        "vacuum.allowShortRetention": False,
        "vacuum.every": "0s",
        "vacuum.mode": "auto",
        "vacuum.deleteUntracked": False,
        "vacuum.untrackedAge": "30d",
        "vacuum.untrackedEvery": "7d",
        "vacuum.allowLargeDelete": False,
    }
)
"""The lowest level of a table for which some level writes ``vacuum``."""

ZORDER = built_in_layer(
    {
        "optimize.zorder.mode": "incremental",
        "optimize.zorder.strategies": ["unindexed", "leveled", "pieces"],
        "optimize.zorder.batchBytes": 10_000_000_000,
        "optimize.zorder.tableProperties": "ignore",
    }
)
"""The lowest level of a table for which some level writes ``optimize.zorder``."""


def min_file_size_of(max_file_size_bytes: int) -> int:
    """Return the default ``minFileSize``: 3/4 of ``maxFileSize``, at least one byte.

    With Delta's own default (all of it) nearly every file that a rewrite wrote would count as small again.
    """
    return max(max_file_size_bytes * 3 // 4, 1)
