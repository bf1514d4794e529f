"""Remember that the ledger exists, so that a missing or replaced one is reported and not silently created again."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from maintainer.errors import EnvironmentUnfit
from maintainer.journal.folder.atomic_files import write_atomically
from maintainer.model.codec import decode

MARK_FILE = "ledger.json"
REBUILD_HELP = "nothing is appended to it until then, the rows wait in the run folders: `maintainer ledger rebuild`"


@dataclass(frozen=True, slots=True)
class LedgerMark:
    """A ledger as it was once seen: where, the table's own id, and its version."""

    location: str
    table_id: str
    version: int


def read_mark(runs_dir: Path) -> LedgerMark | None:
    """Return the ledger as a run of this state last left it; None where no run has appended yet."""
    with contextlib.suppress(OSError, ValueError):
        document = json.loads((runs_dir.parent / MARK_FILE).read_text(encoding="utf-8"))
        return decode(LedgerMark, document, ignore_unknown=True)
    return None


def write_mark(runs_dir: Path, mark: LedgerMark | None) -> None:
    """Record the ledger's current table and version.

    Raises:
        OSError: The state cannot be written.
    """
    if mark is not None and mark != read_mark(runs_dir):
        write_atomically(runs_dir.parent / MARK_FILE, json.dumps(asdict(mark)).encode())


def check_mark(before: LedgerMark | None, now: LedgerMark | None, location: str) -> None:
    """Make sure that the ledger is still the one that rows were appended to.

    Args:
        before: As it was left.
        now: As it is; None where there is none.
        location: Where it is kept now: one that was moved on purpose is another ledger.

    Raises:
        EnvironmentUnfit: E655, it is gone, another table lies in its place, or it has lost versions.
    """
    if before is None or before.location != location:
        return
    if now is None:
        what, found = "the ledger is gone", f"no Delta table; it was there, at version {before.version}"
    elif now.table_id != before.table_id:
        what, found = "another table lies where the ledger was", f"table id {now.table_id}, not {before.table_id}"
    elif now.version < before.version:
        what, found = "the ledger has lost versions", f"version {now.version}; it was at version {before.version}"
    else:
        return
    raise EnvironmentUnfit(what, code="E655", where=location, found=found, help=REBUILD_HELP)
