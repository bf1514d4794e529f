"""A table in memory: a list of versions, each a mapping from file path to rows, which are integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from maintainer.errors import NoTable
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import DataFile, TableFacts
from tests.support.tables.builders import NOW_MS, make_facts

ROW_BYTES = 8


@dataclass(slots=True)
class Version:
    """One version: its live files, the stamp of the commit that made it, and when that was; 0 is long ago."""

    files: dict[str, tuple[int, ...]]
    stamp: CommitStamp | None = None
    at_ms: int = 0


@dataclass(slots=True)
class FakeTable:
    """A table's history and its storage."""

    name: str
    table_id: str
    versions: list[Version]
    storage: set[str]
    properties: dict[str, str] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=lambda: {"id": "long"})
    exists: bool = True
    written: int = 0
    stuck: set[str] = field(default_factory=set)
    log_begins: int = 0
    """Commits below this version were cleaned."""

    @property
    def live(self) -> dict[str, tuple[int, ...]]:
        """Files of the newest version."""
        return self.versions[-1].files

    @property
    def rows(self) -> list[int]:
        """Rows of the newest version, sorted."""
        return sorted(row for rows in self.live.values() for row in rows)

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.versions) - 1

    def commit(self, remove: set[str], add: dict[str, tuple[int, ...]], stamp: CommitStamp | None = None) -> int:
        """Add a version, as any writer does."""
        files = {path: rows for path, rows in self.live.items() if path not in remove}
        self.storage |= set(add)
        self.versions.append(Version({**files, **add}, stamp))
        return self.version

    def append(self, *rows: int) -> int:
        """Another writer appends a file."""
        self.written += 1
        return self.commit(set(), {f"appended-{self.written}": rows})

    def delete_file(self, path: str, *, at_ms: int = 0) -> int:
        """Another writer deletes all rows of a file."""
        version = self.commit({path}, {})
        self.versions[-1].at_ms = at_ms
        return version

    @property
    def location(self) -> str:
        """Canonical URI."""
        return f"mem:/lake/{self.name}"

    def facts(self) -> TableFacts:
        """The newest version as planning sees it."""
        if not self.exists:
            raise NoTable("no such table", where=self.name)
        files = [
            DataFile(path, len(rows) * ROW_BYTES, NOW_MS, physical_records=len(rows))
            for path, rows in sorted(self.live.items())
        ]
        facts = make_facts(
            files=files, columns=self.columns, properties=self.properties, name=self.name, version=self.version,
            table_id=self.table_id, location=self.location,
        )  # fmt: skip
        return facts
