"""Which columns Delta collects statistics for, worked out here as Delta's own code does it."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import DeltaJvm, indexed_schema, stats_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MAP = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}


def column(name: str, kind: Any = "long", physical: str = "") -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


ARRAY = {"type": "array", "elementType": struct(column("x")), "containsNull": True}
NESTED = struct(column("a"), column("b.c"), column("d", struct(column("e", "string"), column("f", MAP), column("g"))))
SCHEMAS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "none": (struct(), []),
    "flat": (struct(*(column(f"c{place}") for place in range(40))), ["c3"]),
    "nested": (struct(column("p"), column("x", ARRAY), column("s", NESTED), column("y"), column("Z", "binary")), ["p"]),
    "two partitions": (struct(column("p"), column("q", "date"), column("x"), column("n", "timestamp_ntz")), ["q", "p"]),
    "mapped": (
        struct(column("a b", physical="col-1"), column("s", struct(column("t", physical="col-3")), "col-2")),
        [],
    ),
    "empty struct": (struct(column("a"), column("s", struct()), column("b")), []),
    "odd types": (struct(column("v", "variant"), column("b", "boolean"), column("d", "decimal(38,0)")), []),
    "names": (
        struct(column("a`b"), column("a,b"), column("Über"), column("s", struct(column("x.y"), column("X")))),
        [],
    ),
}
PROPERTIES: dict[str, dict[str, str]] = {
    "default": {},
    **{
        number: {"delta.dataSkippingNumIndexedCols": number}
        for number in ("0", "1", "2", "3", "4", "5", "-1", "-2", "+3", "100")
    },
    **{
        f"names {names}": {"delta.dataSkippingStatsColumns": names}
        for names in ("x", "s", "s.d", "s.d.e, y", "S.A,Y", "`s`.`b.c`", "s.d.g", "c1,c39,c3", "s.t,`a b`", "no", "")
    },
    "both": {"delta.dataSkippingStatsColumns": "y", "delta.dataSkippingNumIndexedCols": "1"},
}


def by_delta(jvm: DeltaJvm, metadata: dict[str, Any]) -> dict[str, Any]:
    action = jvm._in_delta("actions.Action").fromJson(json.dumps({"metaData": metadata}))
    statistics = jvm._module("stats.StatisticsCollection$")
    spec = statistics.configuredDeltaStatsColumnSpec(action)
    mapping = jvm._module("NoMapping$")
    schema: dict[str, Any] = json.loads(
        statistics.getIndexedColumns(jvm.seq(), spec, action.dataSchema(), mapping).json()
    )
    return schema


def test_every_schema_with_every_property(spark: SparkSession) -> None:
    jvm, unlike = DeltaJvm(spark), {}
    for (name, (schema, partitions)), (setting, properties) in product(SCHEMAS.items(), PROPERTIES.items()):
        metadata = {
            "id": "a",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema),
            "partitionColumns": partitions,
            "configuration": properties,
        }
        ours, theirs = stats_columns(indexed_schema(metadata)), stats_columns(by_delta(jvm, metadata))
        if ours != theirs:
            unlike[name, setting] = (ours, theirs)
    assert not unlike


@pytest.mark.parametrize("number", ["many", "1.5", "1_0", " 5", ""])
def test_a_number_of_columns_that_delta_refuses(spark: SparkSession, number: str) -> None:
    jvm = DeltaJvm(spark)
    metadata = {
        "id": "a",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(struct(column("x"))),
        "partitionColumns": [],
        "configuration": {"delta.dataSkippingNumIndexedCols": number},
    }
    with pytest.raises(Exception, match="For input string"):
        by_delta(jvm, metadata)
    with pytest.raises(ValueError, match="NumIndexedCols"):
        indexed_schema(metadata)
