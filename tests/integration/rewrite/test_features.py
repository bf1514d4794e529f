"""Every feature on the list of those we rewrite, on tables that have it: rows, schema and protocol stay."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.product import REWRITABLE_FEATURES, DeltaEngine, Lane, SessionLease, TableRef, unsupported_features
from tests.support.runs.rewrites import in_lane
from tests.support.tables.delta_tables import (
    compaction,
    forge_commit,
    forget_logs,
    no_intent,
    spark_rows,
    stamp,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]

PREVIEWS = frozenset(feature for feature in REWRITABLE_FEATURES if feature.endswith("-preview"))


@pytest.mark.parametrize("previews", [False, True], ids=["final", "preview"])
def test_every_feature_on_the_list(spark: SparkSession, lease: SessionLease, lake: Path, previews: bool) -> None:
    path = lake / "t"
    # Clustered tables are rewritten by a step of their own: tests/integration/rewrite/test_clustered_rewrite.py.
    wanted = PREVIEWS if previews else REWRITABLE_FEATURES - PREVIEWS - {"clustering"}
    properties = {f"delta.feature.{name}": "supported" for name in wanted}
    properties |= {"delta.enableTypeWidening": "true", "delta.appendOnly": "true"}
    if not previews:
        properties |= {
            "delta.columnMapping.mode": "name",
            "delta.enableDeletionVectors": "true",
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableChangeDataFeed": "true",
            "delta.checkpointPolicy": "v2",
        }
    listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT NOT NULL, v VARIANT, z TIMESTAMP_NTZ, p STRING) USING delta "
        f"PARTITIONED BY (p) TBLPROPERTIES ({listed})"
    )
    values = "parse_json('{\"a\": [1, 2.5, null]}'), TIMESTAMP_NTZ'1900-01-01 00:00:00', 'x'"
    for number in (1, 2):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT {number}, {values}")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id TYPE BIGINT")
    if not previews:
        spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN p SET DEFAULT 'y'")
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (id > 0)")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT {1 << 40}, {values}")
    rows = spark_rows(spark, path)
    with DeltaEngine(lease).worker("features") as engine:
        facts = engine.reader.facts(TableRef(str(path)))
        assert unsupported_features(facts.protocol) == ()
        named = {*facts.protocol.reader_features, *facts.protocol.writer_features}
        assert wanted <= named
        step, batch = compaction(facts)
        receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
        assert (receipt.num_files_removed, receipt.num_files_added) == (3, 1)
        after = engine.reader.facts(facts.ref)
    assert (after.schema_json, after.properties, after.protocol) == (
        facts.schema_json,
        facts.properties,
        facts.protocol,
    )
    assert spark_rows(spark, path) == rows


def test_features_off_the_list_are_named(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{lake}/c` (id INT) USING delta "
        "TBLPROPERTIES ('delta.enableIcebergCompatV2'='true', 'delta.columnMapping.mode'='name')"
    )
    with DeltaEngine(lease).worker("features") as engine:
        facts = engine.reader.facts(TableRef(f"{lake}/c"))
    assert unsupported_features(facts.protocol) == ("icebergCompatV2",)


def test_fields_of_files_with_names_of_their_own_are_found_by_id(
    spark: SparkSession, lease: SessionLease, lake: Path
) -> None:
    """As in a table that was converted from Iceberg. They were found by name, and became null."""
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (s STRUCT<x: LONG, y: LONG>) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode'='id')"
    )
    for number in range(2):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT named_struct('x', {number}, 'y', {number + 20})")
        forge_commit(path, number + 1, partial(_with_other_names, path))
    forget_logs(spark)
    rows = spark_rows(spark, path)
    assert "20" in str(rows)
    with DeltaEngine(lease).worker("by id") as engine:
        facts = engine.reader.facts(TableRef(str(path)))
        step, batch = in_lane(facts, *compaction(facts), Lane.LOCAL)
        proof = engine.writer.rewrite(facts, step, batch, stamp(), no_intent).proof
    assert proof is not None
    assert [(use.lane, use.prover) for use in proof.lanes] == [(Lane.LOCAL, "Spark")]
    assert spark_rows(spark, path) == rows


def _with_other_names(path: Path, actions: list[dict[str, Any]]) -> None:
    """Give the fields in a commit's file the names ``f0``, ``f1``; their ids stay."""
    (add,) = (action["add"] for action in actions if "add" in action)
    file = path / unquote(add["path"])
    stored = pq.read_table(file)
    fields = [field.with_name(f"f{place}") for place, field in enumerate(stored.schema.field(0).type)]
    column = stored.schema.field(0).with_type(pa.struct(fields))
    (chunk,) = stored.column(0).chunks
    struct = pa.StructArray.from_arrays(chunk.flatten(), fields=fields)
    pq.write_table(pa.table([struct], pa.schema([column])), file, store_schema=False)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    add["size"] = file.stat().st_size
