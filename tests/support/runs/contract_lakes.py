"""Tables of one column for the contract of engines: in memory, and real ones that delta-rs writes beside the engine.

A test changes a table as other writers do and looks at it by means that the engine has no part in.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import deltalake
import pyarrow
import pyarrow.parquet as pq

from maintainer.engine.protocols import TableEngine
from maintainer.model.table.table_facts import TableRef
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.fake_table import FakeTable
from tests.support.tables.delta_tables import bytes_of
from tests.support.writers.writers import Fault


@dataclass
class MemoryTable:
    """A table of the lake in memory, with a column ``id`` and a file for each tuple of rows."""

    lake: FakeLake
    table: FakeTable

    @property
    def ref(self) -> TableRef:
        return TableRef(self.table.name)

    def append(self, *rows: int) -> None:
        self.table.append(*rows)

    def delete(self, row: int) -> None:
        path, rows = next((path, rows) for path, rows in self.table.live.items() if row in rows)
        left = tuple(other for other in rows if other != row)
        self.table.commit({path}, {f"{path}-without-{row}": left} if left else {})

    def create_again(self) -> None:
        old = self.table
        self.table = self.lake.table(old.name, *old.live.values())
        self.table.table_id = f"{old.table_id} again"

    def restore(self, version: int) -> None:
        old = self.table.versions[version].files
        self.table.commit(set(self.table.live), dict(old))

    def lose(self, path: str) -> None:
        self.table.storage.discard(path)

    def rows(self) -> list[int]:
        return self.table.rows

    def state(self) -> object:
        return copy.deepcopy((self.table.versions, self.table.storage, self.table.properties))


class MemoryLake:
    """The engine in memory. ``proves_first``: before it commits, and not afterwards."""

    proves_first = True

    def __init__(self, engine: TableEngine, lake: FakeLake) -> None:
        self.engine = engine
        self._lake = lake

    def table(self, *files: tuple[int, ...]) -> MemoryTable:
        return MemoryTable(self._lake, self._lake.table("t", *files))

    @contextmanager
    def losing_a_row(self, table: ContractTable) -> Iterator[TableEngine]:
        """A worker that loses a row of the table when it writes, and does not know it."""

        def lose(at: Station) -> None:
            assert at.rows is not None
            at.rows.pop()

        self._lake.at("write", lose)
        yield self.engine
        self._lake.clear_hooks()


@dataclass
class DeltaRsTable:
    """A real table, written and read by delta-rs."""

    path: Path
    files: tuple[tuple[int, ...], ...] = field(default=())

    @property
    def ref(self) -> TableRef:
        return TableRef(str(self.path))

    def append(self, *rows: int) -> None:
        properties = None if self.path.exists() else {"delta.deletedFileRetentionDuration": "interval 0 hours"}
        rows_of_file = pyarrow.table({"id": list(rows)})
        deltalake.write_deltalake(str(self.path), rows_of_file, mode="append", configuration=properties)

    def delete(self, row: int) -> None:
        deltalake.DeltaTable(str(self.path)).delete(f"id = {row}")

    def create_again(self) -> None:
        shutil.rmtree(self.path)
        for rows in self.files:
            self.append(*rows)

    def restore(self, version: int) -> None:
        deltalake.DeltaTable(str(self.path)).restore(version)

    def lose(self, path: str) -> None:
        (self.path / unquote(path)).unlink()

    def rows(self) -> list[int]:
        return sorted(deltalake.DeltaTable(str(self.path)).to_pyarrow_table()["id"].to_pylist())

    def state(self) -> object:
        return bytes_of(self.path)


class DeltaLake:
    """One of the engines for real tables. ``make_engine`` makes a worker, with a fault where it proves."""

    def __init__(
        self,
        engine: TableEngine,
        root: Path,
        make_engine: Callable[[Fault, Path], AbstractContextManager[TableEngine]],
        *,
        proves_first: bool,
    ) -> None:
        self.engine = engine
        self.proves_first = proves_first
        self._root = root
        self._make_engine = make_engine

    def table(self, *files: tuple[int, ...]) -> DeltaRsTable:
        table = DeltaRsTable(self._root / "t 1%", files)
        for rows in files:
            table.append(*rows)
        return table

    @contextmanager
    def losing_a_row(self, table: ContractTable) -> Iterator[TableEngine]:
        with self._make_engine(_lose_a_row, Path(table.ref.identifier)) as engine:
            yield engine


def _lose_a_row(file: Path) -> None:
    rows = pq.read_table(file)
    pq.write_table(rows.slice(1), file)
    for checksum in file.parent.glob(f".{file.name}.crc"):
        checksum.unlink()


ContractTable = MemoryTable | DeltaRsTable
ContractLake = MemoryLake | DeltaLake
