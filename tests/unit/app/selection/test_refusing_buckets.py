"""A bucket that refused two tables for one reason is not asked for the others; another bucket is."""

from __future__ import annotations

import pytest

from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.errors import StoreRefusal
from maintainer.model.table.table_facts import TableRef


def refusal(code: str, table: str) -> StoreRefusal:
    return StoreRefusal("refused", code=code, where=table, found="status 403", help="set the key")


def test_a_second_table_confirms_what_holds_for_the_bucket() -> None:
    buckets = RefusingBuckets()
    tables = [TableRef(f"s3://lake/t/t{number}") for number in range(4)]
    for table in tables[:2]:
        buckets.raise_known(table)
        buckets.refused(table, refusal("T440", table.identifier))
    with pytest.raises(StoreRefusal, match="T440") as caught:
        buckets.raise_known(tables[2])
    said = caught.value
    assert (said.where, said.found, said.help) == (tables[2].identifier, "status 403", "set the key")
    buckets.raise_known(TableRef("s3://other/t/t3"))
    buckets.raise_known(TableRef("/lake/t/t3"))
    buckets.raise_known(TableRef("sales.orders"))


def test_two_reasons_confirm_nothing() -> None:
    buckets = RefusingBuckets()
    for code in ("T440", "T442"):
        buckets.refused(TableRef(f"s3://lake/{code}"), refusal(code, code))
    buckets.raise_known(TableRef("s3://lake/t"))
