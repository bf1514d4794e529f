"""How the demo writes and reads Delta tables with Spark.

The demo is handed a session and imports nothing of Spark: only ``maintainer.delta`` may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maintainer.cli.demo.sample_files import data_files

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import DataFrame as Frame
    from maintainer.delta.spark.spark_session import SparkSession as Session


@contextmanager
def persisted(frame: Frame) -> Iterator[Frame]:
    """Keep rows in memory while they are written in several loads."""
    try:
        yield frame.persist()
    finally:
        frame.unpersist()


def append(
    frame: Frame,
    table: Path,
    *,
    partition_by: str | None = None,
    properties: Mapping[str, str] | None = None,
    mode: str = "append",
) -> None:
    """Add rows in one commit with one file per partition of the table.

    ``partition_by`` and ``properties`` (``delta.*``) take effect when the append makes the table. The mode
    ``overwrite`` replaces all rows; the old files stay on storage until a vacuum.
    """
    writer = frame.coalesce(1).write.format("delta").mode(mode).options(**(properties or {}))
    if partition_by is not None:
        writer = writer.partitionBy(partition_by)
    writer.save(str(table))


def read_table(spark: Session, table: Path) -> Frame:
    """Return the newest version of a Delta table."""
    return spark.read.format("delta").load(str(table))


def delete_rows(spark: Session, table: Path, condition: str) -> None:
    """Run one DELETE."""
    spark.sql(f"DELETE FROM {quoted(table)} WHERE {condition}").collect()


def quoted(table: Path) -> str:
    """Return the table's name in Spark SQL."""
    return "delta.`" + str(table).replace("`", "``") + "`"


def describe(table: Path, how: str) -> str:
    """Describe a table that was just built in one line: its files, its bytes and how they were made."""
    files = data_files(table)
    size_bytes = sum(file.stat().st_size for file in files)
    return f"{table.name:<9} {len(files):>4} files  {size_bytes / 2**20:>5.1f} MiB   {how}"
