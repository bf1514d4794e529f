"""What the scheme of an address says of a place."""

from __future__ import annotations

import pytest

from maintainer.model.table.store_kinds import SERVED_SCHEMES, store_kind


@pytest.mark.parametrize("address", ["/lake/orders", "lake/orders", "file:/lake/x", "file:///lake/x", "FILE:/x"])
def test_a_disk(address: str) -> None:
    kind = store_kind(address)
    assert (kind.spelled, kind.renames_cheaply, kind.asks_by_request, kind.connector) == ("file", True, False, None)


@pytest.mark.parametrize(
    ("address", "spelled", "connector", "is_served"),
    [
        ("s3://b/t", "s3", "s3", True),
        ("S3A://b/t", "s3", "s3", True),
        ("s3n://b/t", "s3", None, False),
        ("abfss://c@a.dfs.core.windows.net/t", "abfs", "azure", True),
        ("gs://b/t", "gs", "gcs", True),
        ("wasbs://c@a/t", "wasb", None, False),
        ("dbfs:/t", "dbfs", None, False),
    ],
)
def test_an_object_store(address: str, spelled: str, connector: str | None, is_served: bool) -> None:
    kind = store_kind(address)
    assert (kind.spelled, kind.connector, kind.is_served) == (spelled, connector, is_served)
    assert (kind.renames_cheaply, kind.asks_by_request) == (False, True)


def test_hadoop_file_systems_rename_cheaply() -> None:
    assert all(store_kind(f"{scheme}://name/t").renames_cheaply for scheme in ("hdfs", "viewfs"))
    assert frozenset({"s3", "s3a", "abfs", "abfss", "gs"}) == SERVED_SCHEMES
