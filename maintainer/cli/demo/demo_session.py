"""The few methods of a Spark session that the demo uses, and how it writes Delta tables with them.

The demo is handed a session and imports nothing of Spark: only ``maintainer.delta`` may. The protocols name
the whole surface, so a reader sees at once what the demo can do to a lake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from maintainer.cli.demo.sample_files import data_files


class Frame(Protocol):
    """A Spark DataFrame, as far as the demo needs one."""

    @property
    def write(self) -> Writer:
        """Where to say how the rows are saved."""
        ...

    def where(self, condition: str, /) -> Frame:
        """Keep the rows for which the SQL condition holds."""
        ...

    def selectExpr(self, *expr: str) -> Frame:
        """Compute columns from SQL expressions."""
        ...

    def drop(self, *cols: str) -> Frame:
        """Leave columns out."""
        ...

    def coalesce(self, partitions: int, /) -> Frame:
        """Read by so many tasks, which then write one file each."""
        ...

    def sortWithinPartitions(self, *cols: str) -> Frame:
        """Sort what each task holds."""
        ...

    def persist(self) -> Frame:
        """Keep the rows in memory from their first use on."""
        ...

    def unpersist(self) -> Frame:
        """Let go of them."""
        ...

    def collect(self) -> Sequence[Any]:
        """Run, and return all rows."""
        ...

    def inputFiles(self) -> list[str]:
        """The files that would be read: for a Delta table, what is left after data skipping."""
        ...


class Writer(Protocol):
    """Spark's DataFrameWriter."""

    def format(self, source: str, /) -> Writer:
        """Name the format."""
        ...

    def mode(self, mode: str, /) -> Writer:
        """Append or overwrite."""
        ...

    def option(self, key: str, value: str, /) -> Writer:
        """Set an option."""
        ...

    def partitionBy(self, *cols: str) -> Writer:
        """Name the partition columns."""
        ...

    def save(self, path: str, /) -> None:
        """Write."""
        ...


class Reader(Protocol):
    """Spark's DataFrameReader."""

    def format(self, source: str, /) -> Reader:
        """Name the format."""
        ...

    def option(self, key: str, value: str, /) -> Reader:
        """Set an option."""
        ...

    def schema(self, schema: str, /) -> Reader:
        """Declare the columns."""
        ...

    def csv(self, path: str, /) -> Frame:
        """Read CSV."""
        ...

    def parquet(self, path: str, /) -> Frame:
        """Read Parquet."""
        ...

    def load(self, path: str, /) -> Frame:
        """Read the format that was named."""
        ...


class Session(Protocol):
    """A Spark session, as far as the demo needs one."""

    @property
    def read(self) -> Reader:
        """Where to say how rows are read."""
        ...

    def sql(self, statement: str, /) -> Frame:
        """Run a statement, or prepare a query."""
        ...


def append(
    frame: Frame, table: Path, *, partition_by: str | None = None, properties: Mapping[str, str] | None = None
) -> None:
    """Append rows in one commit with one file per partition of the table.

    Args:
        frame: The rows.
        table: Folder of the table; made by the first append.
        partition_by: The partition column, if the table has one.
        properties: Table properties (``delta.*``); they take effect when the append makes the table.
    """
    _write(frame, table, "append", partition_by, properties)


def overwrite(frame: Frame, table: Path) -> None:
    """Replace all rows in one commit; the old files stay on storage until a vacuum."""
    _write(frame, table, "overwrite", None, None)


def _write(
    frame: Frame, table: Path, mode: str, partition_by: str | None, properties: Mapping[str, str] | None
) -> None:
    writer = frame.coalesce(1).write.format("delta").mode(mode)
    for key, value in (properties or {}).items():
        writer = writer.option(key, value)
    if partition_by is not None:
        writer = writer.partitionBy(partition_by)
    writer.save(str(table))


def read_table(spark: Session, table: Path) -> Frame:
    """The newest version of a Delta table."""
    return spark.read.format("delta").load(str(table))


def delete_rows(spark: Session, table: Path, condition: str) -> None:
    """Run one DELETE."""
    spark.sql(f"DELETE FROM {quoted(table)} WHERE {condition}").collect()


def quoted(table: Path) -> str:
    """The table's name in Spark SQL."""
    return "delta.`" + str(table).replace("`", "``") + "`"


def describe(table: Path, how: str) -> str:
    """One line on a table that was just built: its files, its bytes and how they came to be."""
    files = data_files(table)
    size_bytes = sum(file.stat().st_size for file in files)
    return f"{table.name:<9} {len(files):>4} files  {size_bytes / 2**20:>5.1f} MiB   {how}"
