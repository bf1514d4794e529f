"""Real Delta tables with small files in each partition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def partitioned_table(spark: SparkSession, path: Path, num_partitions: int, files_each: int = 2) -> None:
    """A table partitioned by ``p`` with several small files in each partition."""
    rows = spark.range(40 * num_partitions).selectExpr("id", f"id % {num_partitions} AS p", "repeat('x', 20) AS s")
    for number in range(files_each):
        part = rows.where(f"id % {files_each} = {number}").coalesce(1)
        part.write.format("delta").partitionBy("p").mode("append").save(str(path))
