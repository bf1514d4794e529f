"""Delta's class leaves partition values that are null out of removes; Spark takes what is missing there as null.

So do ours. Where a remove says null, delta-rs 1.2 to 1.5.0 (delta-kernel-rs before 0.21) fails to vacuum the table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def test_a_null_that_a_remove_leaves_out_is_read_as_null(spark: SparkSession, lake: Path) -> None:
    """The change feed takes partition values from the removes of a DELETE."""
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, p STRING, q STRING) USING delta PARTITIONED BY (p, q) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, NULL, 'a'), (2, 'b', NULL)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE p IS NULL OR p = 'b'")
    actions = [json.loads(line) for line in (path / "_delta_log" / f"{2:020d}.json").read_text().splitlines()]
    removes = [action["remove"]["partitionValues"] for action in actions if "remove" in action]
    assert sorted(removes, key=repr) == [{"p": "b"}, {"q": "a"}]
    feed = spark.sql(f"SELECT id, p, q, _change_type FROM table_changes_by_path('{path}', 2)").collect()
    expected = [(1, None, "a", "delete"), (2, "b", None, "delete")]
    assert sorted(map(tuple, feed)) == expected
