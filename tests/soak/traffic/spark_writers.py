"""Appends, merges and deletes by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.soak.soak_lake import NUM_PARTITIONS, TABLES, value_sql
from tests.soak.soak_settings import SoakSettings
from tests.soak.traffic.operation_ledger import Operation
from tests.soak.traffic.paced_writer import AcknowledgedAppends, PacedWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_ROWS = 60
MAX_UPDATED = 20
NEWEST_APPENDS = 400
"""Updates meet rows of the newest appends more often than old ones."""
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


class SparkWriter(PacedWriter):
    """A writer with a session of its own, whose commits name the operation."""

    def __init__(
        self, settings: SoakSettings, spark: SparkSession, name: str, number: int, tables: tuple[str, ...],
        period_seconds: float, *, only_in_bursts: bool,
    ) -> None:  # fmt: skip
        super().__init__(settings, name, number, period_seconds, only_in_bursts=only_in_bursts)
        self._spark, self._tables = spark.newSession(), tables
        self._appends = AcknowledgedAppends(settings)

    def carry_out(self, operation: Operation) -> None:
        """Run the operation's statement."""
        self._spark.conf.set(USER_METADATA, operation.name)
        self._spark.sql(self.statement(operation))

    def statement(self, operation: Operation) -> str:
        """Return the operation as SQL."""
        raise NotImplementedError

    def table_sql(self, operation: Operation) -> str:
        """Return the table's name in SQL."""
        return f"delta.`{TABLES[operation.table].path(self.settings)}`"

    def table_of_cycle(self) -> str:
        """Return the table that is updated in this cycle: one after the other, so that two writers seldom meet."""
        return self._tables[self.cycle[0] % len(self._tables)]

    def drawn_append(self, table: str) -> Operation | None:
        """Draw an append that was acknowledged."""
        appends = self._appends.of(table)
        if not appends:
            return None
        return self.random.choice(appends[-NEWEST_APPENDS:] if self.random.random() < 0.7 else appends)


class SparkAppender(SparkWriter):
    """Appends."""

    def draw(self) -> Operation:
        """Draw a table, a partition and so many rows; while updates come, of a table that has none."""
        low, high = self.new_ids(self.random.randint(1, MAX_ROWS))
        tables = self._tables[:1] if self.cycle[1] else self._tables
        return Operation(
            self.operation_name(), self.name, self.random.choice(tables), "append", low, high,
            self.random.randrange(NUM_PARTITIONS), self.random.randrange(1_000_000),
        )  # fmt: skip

    def statement(self, operation: Operation) -> str:
        """INSERT INTO."""
        return (
            f"INSERT INTO {self.table_sql(operation)} SELECT id, {operation.part} part, {value_sql(operation.salt)} "
            f"value, '{operation.name}' note FROM range({operation.low}, {operation.high + 1}, 1, 1)"
        )


class SparkMerger(SparkWriter):
    """Merges: updates some rows of an append, and inserts some that were never there."""

    def draw(self) -> Operation | None:
        """Draw rows of one append, and as many new ones."""
        table = self.table_of_cycle()
        append = self.drawn_append(table)
        # Delta makes a merge fail when delta-rs appends to its partition meanwhile.
        if append is None or (TABLES[table].partitioned and append.part == self._appends.of(table)[-1].part):
            return None
        ids = range(append.low, append.high + 1)
        updated = tuple(sorted(self.random.sample(ids, min(len(ids), self.random.randint(1, MAX_UPDATED)))))
        low, high = self.new_ids(self.random.randint(1, 5))
        return Operation(
            self.operation_name(), self.name, table, "merge", low, high, append.part,
            self.random.randrange(1_000_000), updated,
        )  # fmt: skip

    def statement(self, operation: Operation) -> str:
        """MERGE INTO; on a partitioned table its partition stands in the condition."""
        ids = ", ".join(f"{row_id}L" for row_id in (*operation.updated, *range(operation.low, operation.high + 1)))
        bound = f"t.part = {operation.part} AND " if TABLES[operation.table].partitioned else ""
        return (
            f"MERGE INTO {self.table_sql(operation)} t USING (SELECT id, {value_sql(operation.salt)} value "
            f"FROM (SELECT explode(array({ids})) id)) s ON {bound}t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET value = s.value, note = '{operation.name}' "
            f"WHEN NOT MATCHED THEN INSERT (id, part, value, note) "
            f"VALUES (s.id, {operation.part}, s.value, '{operation.name}')"
        )


class SparkDeleter(SparkWriter):
    """Deletes rows of one append."""

    def draw(self) -> Operation | None:
        """Draw a range of ids of one append."""
        table = self.table_of_cycle()
        append = self.drawn_append(table)
        if append is None:
            return None
        low = self.random.randint(append.low, append.high)
        high = self.random.randint(low, append.high)
        return Operation(self.operation_name(), self.name, table, "delete", low, high, append.part)

    def statement(self, operation: Operation) -> str:
        """DELETE FROM."""
        return f"DELETE FROM {self.table_sql(operation)} WHERE id BETWEEN {operation.low} AND {operation.high}"


def spark_writers(settings: SoakSettings, spark: SparkSession) -> list[PacedWriter]:
    """Return the writers that run in Spark."""
    return [
        SparkAppender(settings, spark, "spark-appender", 3, ("plain", "vectors", "changes"), 2.0, only_in_bursts=False),
        SparkMerger(settings, spark, "spark-merger", 4, ("partitioned", "changes"), 4.0, only_in_bursts=True),
        SparkDeleter(settings, spark, "spark-deleter", 5, ("changes", "vectors"), 4.0, only_in_bursts=True),
    ]
