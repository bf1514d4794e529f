"""Appends by delta-rs."""

from __future__ import annotations

import deltalake
import pyarrow as pa

from tests.soak.soak_lake import NUM_PARTITIONS, TABLES, value_of
from tests.soak.soak_settings import SoakSettings
from tests.soak.traffic.operation_ledger import Operation
from tests.soak.traffic.paced_writer import PacedWriter

OPERATION_KEY = "soakOperation"
"""Under this key of `commitInfo` a commit of delta-rs says which operation it is."""
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("value", pa.int64()), ("note", pa.string())])
MAX_ROWS = 40


APPENDS_A_PARTITION = 45
"""So many appends go into one partition, then into the next, as days follow one another: merges meet older ones."""


class RustAppender(PacedWriter):
    """Appends a few rows at a time to one of its tables."""

    def __init__(self, settings: SoakSettings, name: str, number: int, tables: tuple[str, ...]) -> None:
        super().__init__(settings, name, number, period_seconds=1.0)
        self._tables = tables

    def draw(self) -> Operation:
        """Draw a table, a partition and so many rows."""
        low, high = self.new_ids(self.random.randint(1, MAX_ROWS))
        return Operation(
            self.operation_name(), self.name, self.random.choice(self._tables), "append", low, high,
            self.ledger.operations // APPENDS_A_PARTITION % NUM_PARTITIONS, self.random.randrange(1_000_000),
        )  # fmt: skip

    def carry_out(self, operation: Operation) -> None:
        """Append."""
        ids = range(operation.low, operation.high + 1)
        columns = {
            "id": list(ids),
            "part": [operation.part] * len(ids),
            "value": [value_of(row_id, operation.salt) for row_id in ids],
            "note": [operation.name] * len(ids),
        }
        deltalake.write_deltalake(
            str(TABLES[operation.table].path(self.settings)),
            pa.table(columns, schema=SCHEMA),
            mode="append",
            commit_properties=deltalake.CommitProperties(custom_metadata={OPERATION_KEY: operation.name}),
        )
