"""What writers did, one line before and one after each operation, on the disk before anything else happens."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ACKNOWLEDGED = "acknowledged"
REFUSED = "refused"
UNKNOWN = "unknown"
CONFLICTS = ("Concurrent", "CommitFailedError", "MetadataChanged", "ProtocolChanged")
"""Parts of the names of errors by which an engine says that another writer was first and nothing was committed."""


@dataclass(frozen=True)
class Operation:
    """One statement of a writer.

    Args:
        name: Unique; the commit carries it, and each row in `note`.
        writer: Who does it.
        table: Name of the table.
        kind: `append`, `delete` or `merge`.
        low: First id that is appended, deleted or inserted.
        high: Last one, inclusive.
        part: Partition of what is written.
        salt: What the values of its rows are computed with.
        updated: Ids that a merge updates, if they are there, and inserts if not.
    """

    name: str
    writer: str
    table: str
    kind: str
    low: int
    high: int
    part: int = 0
    salt: int = 0
    updated: tuple[int, ...] = ()


@dataclass
class OperationRecord:
    """An operation, and what its writer knows about it."""

    operation: Operation
    begun_ms: int
    ended_ms: int = 0
    outcome: str = UNKNOWN
    error: str = ""


@dataclass
class OperationLedger:
    """The ledger of one writer."""

    path: Path
    operations: int = field(default=0)

    def begin(self, operation: Operation) -> None:
        """Note an operation before it is tried."""
        self.operations += 1
        self._append({"begin": asdict(operation), "ms": _now_ms()})

    def end(self, operation: Operation, error: BaseException | None = None) -> None:
        """Note what the engine said."""
        outcome, text = ACKNOWLEDGED, ""
        if error is not None:
            text = f"{type(error).__name__}: {error}"[:4000]
            outcome = REFUSED if any(name in text for name in CONFLICTS) else UNKNOWN
        self._append({"end": operation.name, "ms": _now_ms(), "outcome": outcome, "error": text})

    def _append(self, entry: dict[str, Any]) -> None:
        with self.path.open("ab") as stream:
            stream.write(json.dumps(entry).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())


@dataclass
class LedgerReader:
    """Reads all ledgers of a folder on, from where it stopped."""

    folder: Path
    records: dict[str, OperationRecord] = field(default_factory=dict)
    _offsets: dict[Path, int] = field(default_factory=dict)

    def read_on(self) -> list[OperationRecord]:
        """Return the records that ended since the last call."""
        ended = []
        for path in sorted(self.folder.glob("*.jsonl")):
            with path.open("rb") as stream:
                stream.seek(self._offsets.get(path, 0))
                data = stream.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._offsets[path] = self._offsets.get(path, 0) + len(whole)
            for line in whole.splitlines():
                entry = json.loads(line)
                if "begin" in entry:
                    values = {**entry["begin"], "updated": tuple(entry["begin"]["updated"])}
                    self.records[values["name"]] = OperationRecord(Operation(**values), entry["ms"])
                else:
                    record = self.records[entry["end"]]
                    record.ended_ms, record.outcome, record.error = entry["ms"], entry["outcome"], entry["error"]
                    ended.append(record)
        return ended


def _now_ms() -> int:
    return int(time.time() * 1000)
