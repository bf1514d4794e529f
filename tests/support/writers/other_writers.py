"""The matrix of writers: what each does to a table, and how each of our operations ends beside him.

DESIGN 4.7: beside blind appends a rewrite always commits. Against whoever touches its files, the schema or the
protocol it yields, names the winner and leaves nothing behind. Once its commit is in the log it stays committed,
whatever happens before we know of it. ``tests/integration/conflicts/test_interleavings.py`` shows every cell.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from maintainer.delta.engine.table_engine import DeltaTableEngine
from maintainer.model.table.table_facts import TableRef
from tests.support.tables.delta_tables import compaction, no_intent, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[int, str, int]
Rows = frozenset[Row]

FIRST = frozenset((i, f"v{i}", i % 2) for i in range(12))
SECOND = frozenset((i, f"v{i}", i % 2) for i in range(12, 24))
BEFORE = (FIRST | SECOND) - {(0, "v0", 0)} | {(0, "zero", 0)}
"""What every table of these tests holds: two appends, then an UPDATE of row 0. Partition 0 is what we work on."""

C, A, Y = "commits", "commits at the second attempt", "yields"
D, N, G = "deletes", "deletes nothing", "finds nothing to delete"
X = "commits where it must not, and says so"
"""Only where the table is dropped and created again in the milliseconds between our last look and the commit itself:
no writer of Delta can tell, for it goes by version numbers."""


@dataclass(frozen=True)
class Lake:
    """Where a writer acts."""

    spark: SparkSession
    engine: DeltaTableEngine
    path: Path
    other: Path

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=f"delta.`{self.path}`", other=f"delta.`{self.other}`"))


@dataclass(frozen=True)
class Writer:
    """Somebody else: what he does, what it does to the rows, and how each of our operations ends beside him.

    ``act`` is SQL or a function. ``rewrite`` and ``properties`` are for before-read and before-commit (after the
    commit is published it is always ``C``), ``vacuum`` is for all three points: another protocol since the facts were
    read stops a deletion, and so do other settings since it began.
    """

    act: str | Callable[[Lake], object]
    operation: str
    rows: Callable[[Rows], Rows]
    rewrite: tuple[str, str]
    properties: tuple[str, str] = (C, C)
    vacuum: tuple[str, str, str] = (D, D, D)
    table: str = "plain"


def _same(rows: Rows) -> Rows:
    return rows


def _plus(*more: Row) -> Callable[[Rows], Rows]:
    return lambda rows: rows | set(more)


def _minus(number: int) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset(row for row in rows if row[0] != number)


def _set(number: int, value: str) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset((i, value if i == number else v, p) for i, v, p in rows)


def _partition_becomes(partition: int, *new: Row) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset(row for row in rows if row[2] != partition) | set(new)


def _only(*new: Row) -> Callable[[Rows], Rows]:
    return lambda rows: frozenset(new)


def _second_run(lake: Lake) -> None:
    facts = lake.engine.reader.facts(TableRef(str(lake.path)))
    step, batch = compaction(facts)
    lake.engine.writer.rewrite(facts, step, batch, stamp("other/compact"), no_intent)


def _restore(lake: Lake) -> None:
    key = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    lake.spark.conf.set(key, "false")
    try:
        lake.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    finally:
        lake.spark.conf.unset(key)


def clone_over(lake: Lake) -> None:
    lake.sql("DELETE FROM {t}")
    lake.sql("CREATE OR REPLACE TABLE {t} SHALLOW CLONE {other}")


RECREATED = tuple((number, "new", 0) for number in range(5))
"""One commit each, so that the new table has as many versions as the old one."""


def recreate(lake: Lake) -> None:
    shutil.rmtree(lake.path)
    for row in RECREATED:
        frame = lake.spark.createDataFrame([row], "id BIGINT, v STRING, p INT").coalesce(1)
        frame.write.format("delta").partitionBy("p").mode("append").save(str(lake.path))


def _dynamic_overwrite(lake: Lake) -> None:
    frame = lake.spark.createDataFrame([(1001, "o", 1)], "id BIGINT, v STRING, p INT")
    writer = frame.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.save(str(lake.path))


def _micro_batch(lake: Lake) -> None:
    stream = lake.spark.readStream.format("delta").load(str(lake.other))
    writer = stream.writeStream.format("delta").option("checkpointLocation", f"{lake.path}_checkpoint")
    writer.trigger(availableNow=True).start(str(lake.path)).awaitTermination(60)


NEW = (100, "n", 0)
WRITERS: dict[str, Writer] = {
    # name: act, operation in the history, rows afterwards, our rewrite, our properties, our vacuum
    "append": Writer("INSERT INTO {t} VALUES (100, 'n', 0)", "WRITE", _plus(NEW), (C, C)),
    "append to a table with an identity column": Writer(
        "INSERT INTO {t} (id, v, p) VALUES (100, 'n', 0)", "WRITE", _plus(NEW), (C, C), (C, A), table="identity"
    ),
    "streaming micro-batch": Writer(_micro_batch, "STREAMING UPDATE", _plus((1, "other", 1)), (C, C)),
    "DELETE": Writer("DELETE FROM {t} WHERE id = 2", "DELETE", _minus(2), (Y, Y)),
    "DELETE with a deletion vector": Writer(
        "DELETE FROM {t} WHERE id = 2", "DELETE", _minus(2), (Y, Y), table="mapped"
    ),
    "DELETE in another partition": Writer("DELETE FROM {t} WHERE id = 1", "DELETE", _minus(1), (C, C)),
    "UPDATE": Writer("UPDATE {t} SET v = 'u' WHERE id = 2", "UPDATE", _set(2, "u"), (Y, Y)),
    "MERGE": Writer(
        "MERGE INTO {t} t USING (SELECT 2L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'",
        "MERGE", _set(2, "m"), (Y, Y),
    ),
    "MERGE that only inserts": Writer(
        "MERGE INTO {t} t USING (SELECT 100L id, 'n' v, 0 p) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "MERGE", _plus(NEW), (C, C),
    ),
    "overwrite": Writer("INSERT OVERWRITE {t} VALUES (1000, 'o', 0)", "WRITE", _only((1000, "o", 0)), (Y, Y)),
    "overwrite of our partition": Writer(
        "INSERT INTO {t} REPLACE WHERE p = 0 VALUES (1000, 'o', 0)",
        "WRITE", _partition_becomes(0, (1000, "o", 0)), (Y, Y),
    ),
    "overwrite of another partition": Writer(
        _dynamic_overwrite, "WRITE", _partition_becomes(1, (1001, "o", 1)), (C, C)
    ),
    "our own second run": Writer(_second_run, "OPTIMIZE", _same, (Y, Y)),
    "OPTIMIZE": Writer("OPTIMIZE {t}", "OPTIMIZE", _same, (Y, Y)),
    "VACUUM": Writer("VACUUM {t}", "VACUUM", _same, (C, C), table="kept"),
    "ALTER, add a column": Writer(
        "ALTER TABLE {t} ADD COLUMN more INT", "ADD COLUMNS", _same, (Y, Y), (C, A), (D, N, N)
    ),
    "ALTER, rename a column": Writer(
        "ALTER TABLE {t} RENAME COLUMN v TO w", "RENAME COLUMN", _same, (Y, Y), (C, A), (D, N, N), table="mapped"
    ),
    "ALTER, drop a column": Writer(
        "ALTER TABLE {t} DROP COLUMN gone", "DROP COLUMNS", _same, (Y, Y), (C, A), (D, N, N), table="mapped"
    ),
    "ALTER, set a property": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'x')", "SET TBLPROPERTIES", _same, (C, A), (C, A), (D, N, N),
    ),
    "ALTER, set the property that we set": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '30')",
        "SET TBLPROPERTIES", _same, (C, A), (Y, Y), (D, N, N),
    ),
    "ALTER, add a constraint": Writer(
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)", "ADD CONSTRAINT", _same, (Y, Y), (C, A), (N, N, N),
    ),
    "deletion vectors switched on": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "SET TBLPROPERTIES", _same, (Y, Y), (C, A), (N, N, N),
    ),
    "column mapping switched on": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "SET TBLPROPERTIES", _same, (Y, Y), (C, A), (N, N, N),
    ),
    "row tracking switched on": Writer(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        # Three commits, of which the first is named. One that comes while ours is being written Delta steps over,
        # for its own OPTIMIZE as for us, and whatever its settings say: the rows we moved get other ids then.
        "UPGRADE PROTOCOL", _same, (Y, C), (C, A), (N, N, N),
    ),
    "RESTORE": Writer(_restore, "RESTORE", lambda _: FIRST, (Y, Y), (C, A), (N, N, N)),
    "CREATE OR REPLACE": Writer(
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1000L id, 'o' v, 0 p",
        "CREATE OR REPLACE TABLE AS SELECT", _only((1000, "o", 0)), (Y, Y), (Y, Y), (N, N, N),
    ),
    "CLONE over it": Writer(clone_over, "DELETE", _only((1, "other", 1)), (Y, Y), (C, A), (N, N, N)),
    "dropped and created again": Writer(recreate, "", _only(*RECREATED), (Y, X), (Y, X), (N, G, G)),
}  # fmt: skip

TABLES = {
    "plain": {"delta.deletedFileRetentionDuration": "interval 0 hours"},
    "kept": {},
    "identity": {"delta.deletedFileRetentionDuration": "interval 0 hours"},
    "mapped": {"delta.deletedFileRetentionDuration": "interval 0 hours", "delta.columnMapping.mode": "name"},
}
