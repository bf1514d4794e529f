"""Names, metrics, signatures and features, without an engine."""

from __future__ import annotations

import pytest

from maintainer.delta.jvm.gateway import has_signature
from maintainer.delta.log.actions import removed_key
from maintainer.delta.log.schema_names import dotted, logical_names, physical_path_to_logical, quote
from maintainer.delta.proof.row_comparison import comparable
from maintainer.delta.proof.statistics_figures import stats_columns
from maintainer.delta.rewrite.commit.rewrite_commit import optimize_metrics
from maintainer.delta.storage.file_store import java_quote
from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.table.commit_records import TableCommit
from maintainer.model.table.table_facts import Protocol
from maintainer.model.table.table_features import REWRITABLE_FEATURES, unsupported_features
from tests.support.tables.builders import make_file, make_files


def _field(name: str, kind: object, physical: str | None = None) -> dict[str, object]:
    metadata = {"delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": name, "type": kind, "metadata": metadata}


def test_names_under_column_mapping() -> None:
    inner = {"type": "struct", "fields": [_field("b.c", "string", "col-2")]}
    schema = {"fields": [_field("a", "long", "col-1"), _field("s", inner, "col-0")]}
    assert logical_names(schema) == {"col-1": "a", "col-0": "s"}
    assert physical_path_to_logical(schema, ["col-0", "col-2"]) == "s.`b.c`"
    assert physical_path_to_logical(schema, ["col-1"]) == "a"
    assert physical_path_to_logical(schema, ["unknown"]) == "unknown"
    assert dotted(("my col", "x`y")) == "my col.`x``y`"
    assert quote("a`b") == "`a``b`"


def test_stats_columns_are_leaves_with_bounds() -> None:
    inner = {"type": "struct", "fields": [_field("d", "decimal(9,2)"), _field("flag", "boolean")]}
    array = {"type": "array", "elementType": "long", "containsNull": True}
    fields = [_field("s", inner), _field("l", array), _field("y", "binary"), _field("t", "timestamp_ntz")]
    assert stats_columns({"fields": fields}) == ("s.d", "t")


def test_metrics_are_those_of_optimize() -> None:
    files = (make_file("a", size=10, records=5, deleted=2), *make_files(20, 30))
    metrics = optimize_metrics(Batch((Bin(files),)), [50, 10, 40, 20, 30])
    assert metrics == {
        "minFileSize": 10,
        "p25FileSize": 20,
        "p50FileSize": 30,
        "p75FileSize": 40,
        "maxFileSize": 50,
        "numAddedFiles": 5,
        "numRemovedFiles": 3,
        "numAddedBytes": 150,
        "numRemovedBytes": 60,
        "numDeletionVectorsRemoved": 1,
        "numDeletionVectorRowsRemoved": 2,
        "numDeletionVectorBytesRemoved": 40,
    }
    assert optimize_metrics(Batch((Bin(files),)), [])["maxFileSize"] == 0


def test_signatures_are_read_from_javas_text() -> None:
    listing = (
        "Array(public long a.b.Txn.commit(scala.Seq,a.b.Op,scala.Map), public a.b.Txn$Inner(int), "
        "public java.lang.String a.b.Txn.json())"
    )
    assert has_signature(listing, "x.Txn.commit", 3)
    assert not has_signature(listing, "x.Txn.commit", 2)
    assert has_signature(listing, "x.Txn.json", 0)
    assert has_signature(listing, "a.b.Txn$Inner", 1)
    assert not has_signature(listing, "x.Txn.nothing", 0)
    fields = "private final int a.b.Txn.size\nint a.b.Txn.sizes()\n"
    assert has_signature(fields, "x.Txn.size", None)
    assert not has_signature(fields, "x.Txn.sizes", None)


def test_paths_are_quoted_as_java_does() -> None:
    assert java_quote("p=a b%/x:y#?.parquet") == "p=a%20b%25/x:y%23%3F.parquet"
    assert java_quote("é🎉\u00a0") == "é🎉%C2%A0"


def test_keys_of_removed_files() -> None:
    assert removed_key({"path": "x"}) == ("x", "")
    vector = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1}
    assert removed_key({"path": "x", "deletionVector": vector}) == ("x", "uab@1")
    assert removed_key({"path": "x", "deletionVector": {"storageType": "i", "pathOrInlineDv": "zz"}}) == ("x", "izz")
    assert str(TableCommit(4, 1_000, "DELETE")) == "version 4, DELETE, 1970-01-01 00:00:01 UTC"


def test_features_off_the_list_are_named() -> None:
    assert unsupported_features(Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "rowTracking"))) == ()
    odd = Protocol(3, 7, ("deletionVectors", "catalogManaged"), ("geospatial", "new-thing", "catalogManaged"))
    assert unsupported_features(odd) == ("catalogManaged", "geospatial", "new-thing")
    assert unsupported_features(Protocol(1, 2)) == ()
    assert {"catalogManaged", "geospatial"} & REWRITABLE_FEATURES == set()


def test_comparable_columns_tell_zeros_apart_and_use_json_for_maps() -> None:
    assert comparable(_field("d", "double")) == ["`d` AS `c:d`", "if(`d` = 0, cast(`d` AS STRING), '') AS `z:d`"]
    nested = {"type": "array", "elementType": {"type": "map", "keyType": "string", "valueType": "long"}}
    assert comparable(_field("m", nested)) == ["to_json(struct(`m`), map('ignoreNullFields', 'false')) AS `c:m`"]
    assert comparable(_field("i", "long")) == ["`i` AS `c:i`"]


@pytest.mark.parametrize("kind", ["variant", {"type": "array", "elementType": {"type": "variant"}}])
def test_comparable_variants_are_compared_as_json(kind: object) -> None:
    assert comparable(_field("v", kind)) == ["to_json(struct(`v`), map('ignoreNullFields', 'false')) AS `c:v`"]
    assert comparable(_field("f", "float"))[1] == "if(`f` = 0, cast(`f` AS STRING), '') AS `z:f`"
