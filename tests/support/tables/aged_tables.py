"""Delta tables of any age, made by writing their log, without Spark.

Logs are written with past timestamps and files get past modification times, so a table of a year is made in
milliseconds.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import uuid
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from maintainer.delta.storage.file_store import java_quote
from maintainer.model.table.table_facts import TableRef

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
TODAY = date(2026, 11, 21)
SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]},
    separators=(",", ":"),
)


def parquet_bytes(*ids: int) -> bytes:
    """A small Parquet file with one column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), sink)
    return sink.getvalue()


def now_ms() -> int:
    """This machine's clock."""
    return int(time.time() * 1000)


def touch(path: Path, moment_ms: int) -> None:
    """Set a file's times."""
    os.utime(path, (moment_ms / 1000, moment_ms / 1000), follow_symlinks=False)


def tree(root: Path) -> dict[str, str]:
    """Every file and link below a folder with its content's hash; links by where they point."""
    digests: dict[str, str] = {}
    for folder, folders, names in os.walk(root):
        for name in (*names, *(child for child in folders if os.path.islink(os.path.join(folder, child)))):
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            if os.path.islink(path):
                digests[relative] = f"-> {os.readlink(path)}"
            else:
                digests[relative] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return digests


@dataclass
class AgedTable:
    """A table on disk whose commits lie in the past. Ages are in days before ``made_at_ms``."""

    path: Path
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    partition_columns: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    created_days_ago: float = 100.0
    made_at_ms: int = field(default_factory=now_ms)
    writer_features: tuple[str, ...] | None = None

    @classmethod
    def at_path(cls, path: Path) -> AgedTable:
        """A table that is there already, reached by another path."""
        table = cls.__new__(cls)
        table.path, table.made_at_ms = path, now_ms()
        return table

    def __post_init__(self) -> None:
        (self.path / "_delta_log").mkdir(parents=True)
        protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
        if self.writer_features is not None:
            protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": list(self.writer_features)}
        metadata = {
            "id": self.table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": SCHEMA,
            "partitionColumns": list(self.partition_columns),
            "configuration": self.properties,
            "createdTime": self.at(self.created_days_ago),
        }
        self.commit(self.created_days_ago, {"protocol": protocol}, {"metaData": metadata}, operation="CREATE TABLE")

    @property
    def ref(self) -> TableRef:
        """How a policy names it."""
        return TableRef(str(self.path))

    @property
    def head(self) -> int:
        """The newest version."""
        return max(int(file.name[:20]) for file in (self.path / "_delta_log").glob("*.json"))

    def at(self, days_ago: float) -> int:
        """A moment so many days ago."""
        return self.made_at_ms - int(days_ago * DAY_MS)

    def commit(
        self, days_ago: float, *actions: dict[str, Any], operation: str = "WRITE", info: dict[str, Any] | None = None
    ) -> int:
        """Write the next commit as if it had been made then; returns its version."""
        log = self.path / "_delta_log"
        version = self.head + 1 if any(log.glob("*.json")) else 0
        said = {"timestamp": self.at(days_ago), "operation": operation, **(info or {})}
        lines = [{"commitInfo": said}, *actions]
        file = log / f"{version:020}.json"
        file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        touch(file, self.at(days_ago))
        return version

    def file(self, name: str, days_ago: float, content: bytes | None = None) -> Path:
        """Put a file into the table's folder, last changed then. ``name`` is as on disk."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(parquet_bytes(len(name)) if content is None else content)
        touch(path, self.at(days_ago))
        return path

    def add_action(self, name: str, days_ago: float, *, vector: dict[str, Any] | None = None) -> dict[str, Any]:
        """The add of a file that is on disk."""
        path = self.path / name
        body: dict[str, Any] = {
            "path": java_quote(name),
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": self.at(days_ago),
            "dataChange": True,
            "stats": '{"numRecords":1}',
        }
        if vector:
            body["deletionVector"] = vector
        return {"add": body}

    def remove_action(
        self, name: str, days_ago: float, *, rewrite: bool = False, vector: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The remove of a file."""
        path = self.path / name
        body: dict[str, Any] = {
            "path": java_quote(name),
            "deletionTimestamp": self.at(days_ago),
            "dataChange": not rewrite,
            "extendedFileMetadata": True,
            "size": path.stat().st_size if path.exists() else 1,
        }
        if vector:
            body["deletionVector"] = vector
        return {"remove": body}

    def append(self, days_ago: float, *names: str) -> int:
        """Write files and commit them."""
        for name in names:
            self.file(name, days_ago)
        return self.commit(days_ago, *(self.add_action(name, days_ago) for name in names))

    def rewrite(self, days_ago: float, new: str, *old: str) -> int:
        """Replace files by one, as a compaction does."""
        self.file(new, days_ago)
        add = self.add_action(new, days_ago)
        add["add"]["dataChange"] = False
        removes = [self.remove_action(name, days_ago, rewrite=True) for name in old]
        return self.commit(days_ago, add, *removes, operation="OPTIMIZE")

    def delete(self, days_ago: float, *names: str) -> int:
        """Delete files' rows."""
        return self.commit(days_ago, *(self.remove_action(name, days_ago) for name in names), operation="DELETE")
