"""What a log says, read without Delta: names, paths, files of a commit, columns with statistics."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.delta.log.actions import PartitionNames, committed_files
from maintainer.delta.log.schema_names import collected_schema, name_parts
from maintainer.delta.proof.statistics_figures import stats_columns
from maintainer.delta.storage.log_paths import file_uri, log_uri, text_uri
from tests.support.tables.builders import make_file


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.b", ["a", "b"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("`a``b`", ["a`b"]),
        ("a b", ["a b"]),
        ("", [""]),
        (".a..", ["", "a", "", ""]),
    ],
)
def test_parts_of_a_name(name: str, parts: list[str]) -> None:
    assert name_parts(name) == parts


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("p=a%20b/part-0.parquet", "file:/lake/my%20table/p=a%20b/part-0.parquet"),
        # A partition value with a percent sign is encoded twice in the log.
        ("p=50%2525/x", "file:/lake/my%20table/p=50%2525/x"),
        ("p=é%23/x", "file:/lake/my%20table/p=é%23/x"),
        ("/other/x%20y", "file:/other/x%20y"),
        ("s3a://bucket/x%20y", "s3a://bucket/x%20y"),
        ("file:///other/x", "file:/other/x"),
    ],
)
def test_the_uri_that_spark_shows(path: str, uri: str) -> None:
    assert file_uri("file:/lake/my%20table/", path) == uri


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("s3://lake/prod/a//./b%20c", "s3a://lake/prod/a/b%20c"),
        ("s3a://lake/dev/orders/x", "s3a://lake/dev/orders/x"),
        ("s3n://lake/x", "s3a://lake/x"),
        ("s3://lakes/x", "s3://lakes/x"),
        ("abfss://lake/x", "abfss://lake/x"),
        ("/x", "s3a://lake/x"),
        ("file:///x", "file:/x"),
    ],
)
def test_one_object_has_one_uri_and_spark_shows_the_scheme_of_the_log(path: str, uri: str) -> None:
    root = "s3a://lake/dev/orders"
    assert log_uri(root, path) == uri
    shown = file_uri(root, path)
    assert shown == (uri if path.startswith("/") else f"{path.partition(':')[0]}:{uri.partition(':')[2]}")


def test_a_path_of_sparks_as_a_uri() -> None:
    assert text_uri("file:/lake/100% é [x]") == "file:/lake/100%25%20é%20%5Bx%5D"
    assert text_uri("file:///lake/a") == "file:/lake/a"


def _field(name: str, kind: Any = "long") -> dict[str, Any]:
    return {"name": name, "type": kind, "metadata": {}}


NESTED = {"type": "struct", "fields": [_field("a"), _field("b.c")]}
ARRAY = {"type": "array", "elementType": "long", "containsNull": True}
SCHEMA = {"type": "struct", "fields": [_field("p"), _field("x"), _field("l", ARRAY), _field("s", NESTED), _field("y")]}


@pytest.mark.parametrize(
    ("properties", "columns"),
    [
        ({}, ("x", "s.a", "s.`b.c`", "y")),
        # A leaf without bounds, such as an array, counts as one.
        ({"delta.dataSkippingNumIndexedCols": "3"}, ("x", "s.a")),
        ({"delta.dataSkippingNumIndexedCols": "0"}, ()),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, ("x", "s.a", "s.`b.c`", "y")),
        ({"delta.dataSkippingStatsColumns": "Y, s.`b.c`"}, ("s.`b.c`", "y")),
        ({"delta.dataSkippingStatsColumns": "s"}, ("s.a", "s.`b.c`")),
    ],
)
def test_columns_with_statistics(properties: dict[str, str], columns: tuple[str, ...]) -> None:
    assert stats_columns(collected_schema(SCHEMA, properties, ("P",))) == columns


def test_the_files_of_a_commit() -> None:
    names = PartitionNames(("p",), ("col-1",))
    known = make_file("a", size=10, partition={"p": "1"}, records=3)
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"operation": "OPTIMIZE"}},
        {"remove": {"path": "a", "dataChange": False}},
        {"remove": {"path": "b", "dataChange": False, "size": 7, "partitionValues": {"col-1": None}}},
        {"add": {"path": "c", "dataChange": False, "size": 16, "modificationTime": 5, "stats": '{"numRecords":4}'}},
    ]
    files = committed_files(9, actions, names, {known.key: known})
    assert files.removed[0] is known
    assert (files.removed[1].size_bytes, files.removed[1].partition_values) == (7, (("p", None),))
    assert (files.added[0].physical_records, files.added[0].size_bytes) == (4, 16)
    assert (files.version, files.data_changed) == (9, False)
    # What says nothing of itself has changed data.
    assert committed_files(1, [{"add": {"path": "c"}}], names).data_changed
