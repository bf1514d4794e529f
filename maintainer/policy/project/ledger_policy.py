"""Give the ledger a policy of its own: every run appends to it, so it needs compaction and vacuum as well.

It holds when the ledger exists and no file names it. A file that names it replaces this policy as a whole, with
defaults, rules and profiles as for any table. Without such a file none of them applies to the ledger.
"""

from __future__ import annotations

import os
from pathlib import Path

from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.merge import built_in_layer
from maintainer.policy.resolve.resolve import Resolution, resolve
from maintainer.policy.resolve.resolved import BUILT_IN
from maintainer.policy.select.table_names import table_ref

LEDGER_POLICY = BUILT_IN.file
"""What stands where other tables have the name of their policy file."""

_LAYER = built_in_layer(
    {
        "description": "maintainer's ledger: one row for each step of each run",
        "tags": ["maintainer-ledger"],
        "optimize.maxFileSize": "128MiB",
        "optimize.when.minSmallFiles": 20,
        # What Delta keeps by default: a longer one would have to be set on the table first.
        "vacuum.retention": "7d",
        "vacuum.every": "7d",
    }
)


def ledger_ref(state: str, root: Path) -> TableRef:
    """Return the ledger as a table of the project at ``root``."""
    return table_ref(state, root)


def may_be_there(ref: TableRef) -> bool:
    """Whether the ledger was made already; of one on other storage only the engine can tell."""
    place = ref.location
    if not os.path.isabs(place):
        return True
    try:
        # A run that died in its first append leaves a log without a commit: the next append makes the table.
        return any(name[:20].isdigit() for name in os.listdir(os.path.join(place, "_delta_log")))
    except OSError:
        return False


def ledger_resolution(ref: TableRef, root: Path, timezone: str) -> Resolution:
    """Return the effective policy of the ledger."""
    return resolve(ref, LEDGER_POLICY, [_LAYER], root=root, timezone=timezone, named_by_file=False)
