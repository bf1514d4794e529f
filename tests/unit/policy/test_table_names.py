from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.model.table.table_facts import TableRef
from maintainer.policy.table_names import absolute_path, name_parts, plain_name, table_match, table_ref

ROOT = Path("/project")


@pytest.mark.parametrize(
    ("written", "identifier", "is_path"),
    [
        ("sales.orders", "sales.orders", False),
        ("`odd name`.t", "`odd name`.t", False),
        ("prod.sales.`a/b`", "prod.sales.`a/b`", False),
        ("prod.sales.`a``/b\\`", "prod.sales.`a``/b\\`", False),
        ("Delta.`/a/b`", "/a/b", True),
        ("./a`b/c`.d", "a`b/c`.d", True),
        ("./a.`b/c`", "./a.`b/c`", True),
        ("s3://b/`x/y`.z", "s3://b/`x/y`.z", True),
        ("lake/orders", "lake/orders", True),
        ("./orders", "./orders", True),
        ("../lake/orders", "/lake/orders", True),
        ("../lake/orders/", "/lake/orders", True),
        ("/a//b/./c/../d", "/a/b/d", True),
        ("file:/a/b", "/a/b", True),
        ("file:///a/b", "/a/b", True),
        ("delta.`s3://b/x`", "s3://b/x", True),
        ("S3://Bucket/x/../y/", "s3://Bucket/y", True),
        ("abfss://c@account.dfs.core.windows.net/x", "abfss://c@account.dfs.core.windows.net/x", True),
        ("dbfs:/x/", "dbfs:/x", True),
    ],
)
def test_a_written_table_becomes_one_reference(written: str, identifier: str, is_path: bool) -> None:
    ref = table_ref(written, ROOT)
    assert (ref.identifier, ref.is_path) == (identifier, is_path)


@pytest.mark.parametrize(
    ("identifier", "plain", "parts"),
    [
        ("spark_catalog.sales.orders", "sales.orders", ("spark_catalog", "sales", "orders")),
        ("lake.sales.orders", "lake.sales.orders", ("lake", "sales", "orders")),
        ("`a.b`.`c``d`", "a.b.c`d", ("a.b", "c`d")),
    ],
)
def test_names_are_split_outside_back_ticks(identifier: str, plain: str, parts: tuple[str, ...]) -> None:
    assert plain_name(TableRef(identifier)) == plain
    assert name_parts(identifier) == parts


def test_the_root_of_a_bucket_has_no_slash() -> None:
    assert absolute_path("s3://bucket/", ROOT) == "s3://bucket"


@pytest.mark.parametrize(
    ("match", "reached"),
    [
        ({"tables": ["s.*"]}, {"s.a", "s.tmp_b"}),
        ({"tables": ["s.*", "?.c"], "exclude": ["*.tmp_*"]}, {"s.a", "r.c"}),
        ({"tables": ["S.*"]}, set()),
        ({"tables": ["spark_catalog.s.a"]}, {"s.a"}),
        ({"tables": ["lake/*"]}, {"lake/x"}),
        ({"tables": ["/project/lake/[a-w]*"]}, set()),
        ({"tables": ["*"], "exclude": ["lake/*"]}, {"s.a", "s.tmp_b", "r.c"}),
        ({"tags": ["x", "y"]}, {"s.a", "r.c"}),
        ({"tables": ["s.*"], "tags": ["y"]}, set()),
    ],
)
def test_a_rule_reaches_by_globs_exclusions_and_tags(match: dict[str, object], reached: set[str]) -> None:
    criteria = table_match(match, ROOT)
    tags = {"s.a": ["x"], "r.c": ["y"]}
    tables = ["s.a", "s.tmp_b", "r.c", "lake/x"]
    refs = [table_ref(table, ROOT) for table in tables]
    assert {
        ref.identifier
        for ref, table in zip(refs, tables, strict=True)
        if criteria.fits_name(plain_name(ref)) and criteria.fits_tags(tags.get(table, []))
    } == reached
