"""Which lane takes a bin: the rules as a table of cases."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.lanes import BY_SPARK, MAX_DELETED_ROWS, Codec, Lane
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import Batch, BatchedStep, Bin, ClusterStep, CompactStep, PurgeStep
from maintainer.model.table.table_facts import DeletionVector, Protocol, TableFacts
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.selection.lane_choice import choose_lane, lanes_of, why_not_copy, why_not_local
from maintainer.policy.resolve.resolved import PurgePolicy, ResolvedPolicy, RewritePolicy, ZOrderMode, ZOrderPolicy
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_file, make_files, make_policy
from tests.support.tables.zoo_rows import SCHEMA, field

SMALL = "small enough for one process, without Spark; not copied: "

MIB = 1 << 20
TODAY = date(2026, 11, 21)


def small(number: int = 3, size: int = MIB, **changes: Any) -> TableFacts:
    return replace(make_facts(files=tuple(make_file(f"f{n}", size=size) for n in range(number))), **changes)


def policy(**optimize: Any) -> ResolvedPolicy:
    made = make_policy()
    return replace(made, optimize=replace(made.optimize, max_file_size_bytes=1 << 30, min_file_size_bytes=700 * MIB,
                                          **optimize))  # fmt: skip


def planned(facts: TableFacts, made: ResolvedPolicy | None = None, **options: Any) -> TablePlan:
    return plan_table(TableInput(made or policy(), facts, NEVER_TOUCHED, NOW_MS, TODAY, PlanOptions(**options)))


def bins_of(plan: TablePlan) -> tuple[Bin, ...]:
    assert plan.problem is None
    (step,) = [step for step in plan.steps if isinstance(step, BatchedStep)]
    return step.bins


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": [field("id", "long"), *fields]})


NESTED = schema(field("s", {"type": "struct", "fields": [field("x", "integer")]}))


@pytest.mark.parametrize(
    ("facts", "made", "lane", "otherwise", "reason"),
    [
        (small(), policy(), Lane.LOCAL, Lane.SPARK, f"{SMALL}files of 1 MiB on average"),
        (small(size=20 * MIB), policy(), Lane.COPY, Lane.LOCAL, "row groups are copied: files of 20 MiB on average"),
        (small(20, 20 * MIB), policy(), Lane.COPY, Lane.SPARK, "row groups are copied"),
        (small(300), policy(), Lane.SPARK, Lane.SPARK, "above localMaxSize 256 MiB; files of 1 MiB on average"),
        (small(), policy(local_max_size_bytes=2 * MIB), Lane.SPARK, Lane.SPARK, "above localMaxSize 2 MiB"),
        (small(), policy(lanes=(Lane.SPARK,)), Lane.SPARK, Lane.SPARK, "lane local is switched off; lane copy is"),
        (small(size=20 * MIB), policy(lanes=(Lane.LOCAL,)), Lane.LOCAL, Lane.SPARK, "lane copy is switched off"),
        (small(schema_json=json.dumps(SCHEMA)), policy(), Lane.LOCAL, Lane.SPARK, "small enough"),
        (small(schema_json=schema(field("v", "variant"))), policy(), Lane.SPARK, Lane.SPARK, "column v is of type"),
        (small(schema_json=schema(field("a", {"type": "array", "elementType": {"type": "struct", "fields": [
            field("i", "interval day")]}}))), policy(), Lane.SPARK, Lane.SPARK, "column a.i is of type interval day"),
        (small(schema_json=schema(field("c", "string", __COLLATIONS={}))), policy(), Lane.SPARK, Lane.SPARK,
         "column c is of type string with a collation"),
        (small(schema_json=schema(field("p", {"type": "udt", "sqlType": "binary"}))), policy(), Lane.SPARK, Lane.SPARK,
         "column p is of type udt"),
        (small(schema_json=schema(field("m", {"type": "map", "keyType": "string", "valueType": "variant"}))), policy(),
         Lane.SPARK, Lane.SPARK, "column m is of type variant"),
        (small(location="s3a://lake/t"), policy(), Lane.LOCAL, Lane.SPARK, "small enough"),
        (small(location="hdfs://n/t"), policy(), Lane.SPARK, Lane.SPARK, "neither on a local disk nor on S3"),
        (small(properties=(("delta.enableRowTracking", "true"),)), policy(), Lane.SPARK, Lane.SPARK, "row ids"),
        (small(properties=(("delta.enableRowTracking", "TRUE"),)), policy(), Lane.SPARK, Lane.SPARK, "row ids"),
        (small(), policy(zorder=ZOrderPolicy(("id",), ZOrderMode.FULL)), Lane.LOCAL, Lane.SPARK, "small enough"),
        (small(65), policy(zorder=ZOrderPolicy(("id",), ZOrderMode.FULL)), Lane.SPARK, Lane.SPARK,
         "above a quarter of localMaxSize, for rows that are all in memory at once: 64 MiB"),
        (small(), policy(rewrite=RewritePolicy(num_files=2)), Lane.LOCAL, Lane.SPARK, "small enough"),
        (small(schema_json=NESTED), policy(rewrite=RewritePolicy(num_files=1, sort_by=("s.x",))), Lane.SPARK,
         Lane.SPARK, "in the order of s.x, which is no plain column"),
        (small(), policy(rewrite=RewritePolicy(num_files=1)), Lane.LOCAL, Lane.SPARK, "only compactions and purges"),
    ],
)  # fmt: skip
def test_the_first_lane_that_fits(
    facts: TableFacts, made: ResolvedPolicy, lane: Lane, otherwise: Lane, reason: str
) -> None:
    for bin_ in bins_of(planned(facts, made)):
        assert (bin_.lane.lane, bin_.lane.otherwise) == (lane, otherwise)
        assert reason in bin_.lane.reason


def with_deleted_rows(count: int) -> TableFacts:
    facts = small(size=20 * MIB)
    first = replace(facts.files[0], deletion_vector=DeletionVector("u1@1", count, 40), physical_records=2 * count)
    return replace(facts, files=(first, *facts.files[1:]))


@pytest.mark.parametrize(("count", "lane"), [(1_000_000, Lane.LOCAL), (1_000_001, Lane.SPARK)])
def test_files_with_soft_deleted_rows_are_not_copied_and_very_many_are_left_to_spark(count: int, lane: Lane) -> None:
    plan = planned(with_deleted_rows(count), policy(purge=PurgePolicy()))
    assert {choice.lane for step in plan.rewrites for choice, _ in lanes_of(step.bins)} == {lane}


def test_a_run_may_choose_for_all_policies() -> None:
    assert bins_of(planned(small(), lanes=(Lane.SPARK,)))[0].lane.lane is Lane.SPARK
    made = policy(lanes=(Lane.SPARK,))
    assert bins_of(planned(small(), made, lanes=(Lane.LOCAL,)))[0].lane.lane is Lane.LOCAL


def test_files_whose_names_say_another_codec_are_not_fetched_for_a_copy() -> None:
    """Row groups are copied as they are; what a name does not say is judged by the footer."""
    for ending, lane in ((".snappy.parquet", Lane.LOCAL), (".zstd.parquet", Lane.COPY), (".parquet", Lane.COPY)):
        facts = make_facts(files=tuple(make_file(f"f{number}{ending}", size=20 * MIB) for number in range(3)))
        (bin_,) = bins_of(planned(facts, policy(codec=Codec.ZSTD)))
        assert bin_.lane.lane is lane, ending
        assert bins_of(planned(facts, policy()))[0].lane.lane is Lane.COPY


@pytest.mark.parametrize("options", [{}, {"deletes": False}])
def test_each_rewrite_has_the_codec_of_the_policy(options: dict[str, Any]) -> None:
    (step,) = planned(small(), policy(codec=Codec.ZSTD), **options).rewrites
    assert step.codec is Codec.ZSTD
    (step,) = planned(small(), **options).rewrites
    assert step.codec is None


def test_an_engine_that_issues_commands_has_no_lanes() -> None:
    (bin_,) = bins_of(planned(small(), deletes=False))
    assert bin_.lane == BY_SPARK
    assert lanes_of((bin_,)) == ()


STEP = CompactStep((Batch((Bin(make_files(1, 2)),)),), 100, 2, ())
PURGE = PurgeStep((Batch((Bin(make_files(1)),)),), 100, 2, ())


@pytest.mark.parametrize(
    ("step", "sizes", "deleted", "lane", "reason"),
    [
        (STEP, (8 * MIB, 8 * MIB), 0, Lane.COPY, "row groups are copied: files of 8 MiB on average"),
        (STEP, (8 * MIB, 8 * MIB - 2), 0, Lane.LOCAL, f"{SMALL}files of 8 MiB on average have sm"),
        (STEP, (20 * MIB,), 0, Lane.LOCAL, f"{SMALL}nothing to join"),
        (PURGE, (20 * MIB,), 0, Lane.COPY, "row groups are copied: files of 20 MiB on average"),
        (STEP, (20 * MIB, MIB), 5, Lane.LOCAL, f"{SMALL}files have soft-deleted rows"),
        (STEP, (20 * MIB, MIB), MAX_DELETED_ROWS // 2, Lane.LOCAL, f"{SMALL}files have soft-del"),
        (STEP, (20 * MIB, MIB), MAX_DELETED_ROWS // 2 + 1, Lane.SPARK,
         f"files have more than {MAX_DELETED_ROWS:,} soft-deleted rows; files have soft-deleted rows"),
    ],
)  # fmt: skip
def test_the_lane_of_one_bin(
    step: CompactStep | PurgeStep, sizes: tuple[int, ...], deleted: int, lane: Lane, reason: str
) -> None:
    bin_ = Bin(tuple(make_file(f"f{n}", size=size, deleted=deleted) for n, size in enumerate(sizes)))
    choice = choose_lane(step, bin_, None, None)
    assert choice.lane is lane
    assert choice.reason.startswith(reason)


@pytest.mark.parametrize(
    ("size", "optimize", "lane"),
    [
        (2 * MIB, {"local_max_size_bytes": 6 * MIB}, Lane.LOCAL),
        (2 * MIB, {"local_max_size_bytes": 6 * MIB - 1}, Lane.SPARK),
        (2 * MIB, {"local_max_size_bytes": 24 * MIB, "rewrite": RewritePolicy(num_files=2)}, Lane.LOCAL),
        (2 * MIB, {"local_max_size_bytes": 24 * MIB - 4, "rewrite": RewritePolicy(num_files=2)}, Lane.SPARK),
        (2 * MIB, {"local_max_size_bytes": 24 * MIB - 4, "rewrite": RewritePolicy(num_files=1)}, Lane.LOCAL),
    ],
)
def test_a_bin_is_local_up_to_the_bound_itself(size: int, optimize: dict[str, Any], lane: Lane) -> None:
    (chosen,) = bins_of(planned(small(3, size), policy(**optimize)))
    assert chosen.lane.lane is lane


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("char(3)", None),
        ("varchar(3)", None),
        ("decimal(3,1)", None),
        ({"type": "map", "keyType": "string", "valueType": "date"}, None),
        ({"type": "map", "keyType": "variant", "valueType": "date"}, "variant"),
        ({"type": "array", "elementType": "void"}, "void"),
        ({"type": "array"}, "array"),
        ({"type": "map", "keyType": "string"}, "map"),
        ({"type": "map", "valueType": "string"}, "map"),
    ],
)
def test_types_that_lane_local_does_not_know_are_named(kind: object, column: str | None) -> None:
    why = why_not_local(small(schema_json=schema(field("c", kind))), STEP)
    assert why == (None if column is None else f"column c is of type {column}")


def test_tables_that_only_spark_writes() -> None:
    assert why_not_local(small(), STEP) is None
    assert why_not_local(small(location="/lake/t"), STEP) is None
    materialized = small(protocol=Protocol(3, 7, (), ("materializePartitionColumns",)))
    assert why_not_local(materialized, STEP) == why_not_copy(materialized, STEP) == "partition columns are in the files"
    for value, is_left in (("true", False), ("TRUE", False), ("false", True)):
        asks = small(properties={"delta.writePartitionColumnsToParquet": value})
        assert (why_not_local(asks, STEP) is None) is (why_not_copy(asks, STEP) is None) is is_left
    cluster = ClusterStep(STEP.batches, ("id",), 100, 100, 100, 2, False, ())
    assert why_not_local(small(), cluster) == "Delta's own curve of liquid clustering"
    assert why_not_copy(small(), cluster) == "only compactions and purges keep row groups as they are"
