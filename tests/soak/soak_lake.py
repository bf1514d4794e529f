"""The five tables of a soak, and the project that looks after them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.soak.soak_settings import SoakSettings

NUM_PARTITIONS = 6
COLUMNS = "id BIGINT, part INT, value BIGINT, note STRING"


@dataclass(frozen=True)
class SoakTable:
    """A table: how it is made, its policy, and the reader that follows it.

    Args:
        name: Name of its folder below `lake`.
        properties: Delta's table properties.
        optimize: The policy's `optimize`, beside what all tables have.
        partitioned: Whether it is partitioned by `part`.
        reader: `rows` for a stream of its rows, `changes` for one of its change feed, "" for none.
    """

    name: str
    properties: str = ""
    optimize: str = ""
    partitioned: bool = False
    reader: str = ""

    def path(self, settings: SoakSettings) -> Path:
        """The table's folder."""
        return settings.root / "lake" / self.name

    def create_statement(self, settings: SoakSettings) -> str:
        """SQL that makes the table, with the retention that its policy has: no step has to change it."""
        retention = f"'delta.deletedFileRetentionDuration' = 'interval {settings.retention_seconds} seconds'"
        properties = ", ".join(filter(None, (retention, self.properties)))
        partitions = "PARTITIONED BY (part)" if self.partitioned else ""
        return (
            f"CREATE TABLE delta.`{self.path(settings)}` ({COLUMNS}) USING delta {partitions} "
            f"TBLPROPERTIES ({properties})"
        )

    def policy(self, settings: SoakSettings) -> str:
        """The table's policy file."""
        lines = [
            "version: 1",
            f"table: lake/{self.name}",
            "optimize:",
            f"  quietAfterUpdates: {settings.quiet_seconds}s",
            "  every: 15s",
            "  when: {minSmallFiles: 8}",
            *([f"  {self.optimize}"] if self.optimize else []),
            "vacuum:",
            f"  retention: {settings.retention_seconds}s",
            "  allowShortRetention: true",
            "  allowLargeDelete: true",
            "  every: 20s",
        ]
        if self.reader:
            lines += ["consumers:", f"  - {{name: {self.name}-reader, checkpoint: {settings.checkpoints / self.name}}}"]
        return "\n".join(lines) + "\n"


TABLES = {
    table.name: table
    for table in (
        SoakTable("plain", reader="rows"),
        SoakTable("partitioned", partitioned=True),
        SoakTable("vectors", "'delta.enableDeletionVectors' = 'true'", "purge: {deletedRowsRatio: 0.05}"),
        SoakTable("changes", "'delta.enableChangeDataFeed' = 'true'", reader="changes"),
        SoakTable("small", optimize="zorder: {columns: [id, value]}", reader="rows"),
    )
}


def write_soak_project(settings: SoakSettings) -> None:
    """Write the policies, and the folders that the processes share."""
    for folder in (settings.ledgers, settings.streams, settings.checkpoints, settings.root / "policies"):
        folder.mkdir(parents=True)
    (settings.root / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    for table in TABLES.values():
        (settings.root / "policies" / f"{table.name}.yml").write_text(table.policy(settings), encoding="utf-8")


def value_of(row_id: int, salt: int) -> int:
    """The value that a row has: every engine can compute it."""
    return (row_id * 7919 + salt) % 1_000_003


def value_sql(salt: int) -> str:
    """The same in SQL, of a column `id`."""
    return f"(id * 7919 + {salt}) % 1000003"
