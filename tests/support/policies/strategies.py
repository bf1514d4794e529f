"""Hypothesis strategies for facts and policies, shared by the laws of planning."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import strategies as st

from maintainer.model.plan.layout_tags import (
    LIQUID,
    PACKED_TAG,
    ZCUBE_COLUMNS_TAG,
    ZCUBE_ID_TAG,
    ZORDER_TAG,
    zorder_tag_value,
)
from maintainer.model.table.table_facts import DataFile, RemovedFile, TableFacts, TableRecord
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.resolve.resolved import (
    ClusterPolicy,
    PurgePolicy,
    ResolvedPolicy,
    RewritePolicy,
    WorthPolicy,
    ZOrderMode,
    ZOrderPolicy,
)
from tests.support.tables.builders import (
    DAY_MS,
    DAY_SECONDS,
    NOW_MS,
    make_facts,
    make_file,
    make_optimize,
    make_policy,
    make_vacuum,
)

TODAY = date(2026, 11, 21)

DAYS = ["2026-11-20", "2026-11-01", None]
COUNTRIES = ["de", None]


def _distinct_paths(files: list[DataFile]) -> tuple[DataFile, ...]:
    return tuple(replace(file, path=f"part-{number:04}") for number, file in enumerate(files))


@st.composite
def data_files(draw: st.DrawFn, *, partitioned: bool = True, max_size: int = 130) -> DataFile:
    """A file of 0 to ``max_size`` bytes, at times with a deletion vector, without statistics, or with our tags."""
    records = draw(st.one_of(st.none(), st.integers(0, 1000)))
    deleted = draw(st.sampled_from([0, 0, 0, 1, 100]))
    if records is not None:
        deleted = min(deleted, records)
    tags = draw(
        st.sampled_from(
            [
                None,
                None,
                None,
                {PACKED_TAG: "100"},
                {PACKED_TAG: "40"},
                {PACKED_TAG: "100", ZORDER_TAG: zorder_tag_value(("id",))},
                {PACKED_TAG: "no number", ZORDER_TAG: "no list"},
            ]
        )
    )
    partition = {"day": draw(st.sampled_from(DAYS)), "country": draw(st.sampled_from(COUNTRIES))} if partitioned else {}
    return make_file(
        size=draw(st.one_of(st.integers(0, 40), st.integers(0, max_size))),
        partition=partition,
        records=records,
        deleted=deleted,
        modified_at_ms=NOW_MS - draw(st.sampled_from([30 * DAY_MS, 30 * DAY_MS, 20 * DAY_MS, DAY_MS, 60_000])),
        tags=tags,
    )


@st.composite
def removed_files(draw: st.DrawFn) -> RemovedFile:
    """A file removed up to twenty days ago."""
    return RemovedFile(
        path=f"gone-{draw(st.integers(0, 10**9))}",
        size_bytes=draw(st.integers(0, 1000)),
        removed_at_ms=NOW_MS - draw(st.integers(0, 20)) * DAY_MS,
        removed_in_version=draw(st.one_of(st.none(), st.integers(1, 6))),
    )


@st.composite
def table_facts(draw: st.DrawFn, *, max_files: int = 40) -> TableFacts:
    """A table with up to ``max_files`` files, partitioned by day and country or not at all."""
    partitioned = draw(st.booleans())
    least = draw(st.sampled_from([0, 4, 10]))
    files = _distinct_paths(draw(st.lists(data_files(partitioned=partitioned), min_size=least, max_size=max_files)))
    return make_facts(
        files=files,
        columns={"id": "long", "value": "double", "day": "date", "country": "string"},
        partitioned_by=("day", "country") if partitioned else (),
        columns_with_stats=("id", "value"),
        properties=draw(
            st.sampled_from([{}, {"delta.deletedFileRetentionDuration": "interval 9 days", "own.key": "1"}])
        ),
        removed_files=tuple(draw(st.lists(removed_files(), max_size=5, unique_by=lambda file: file.path))),
    )


_SORTED = RewritePolicy(file_size_bytes=100, sort_by=("id",))


@st.composite
def policies(draw: st.DrawFn, *, partitioned: bool) -> ResolvedPolicy:
    """A policy with every rule of planning in play; bins of 100 bytes."""
    zorder = draw(st.sampled_from([None, ZOrderPolicy(("id",), ZOrderMode.FULL)]))
    optimize = make_optimize(
        min_size=draw(st.sampled_from([1, 50, 75, 100])),
        batch_size=draw(st.sampled_from([1, 150, 10**9])),
        max_deleted_rows_ratio=draw(st.sampled_from([1.0, 0.05, 0.0])),
        zorder=zorder,
        cluster=ClusterPolicy(100, draw(st.sampled_from([50, 150])), draw(st.booleans())),
        purge=draw(st.sampled_from([None, None, PurgePolicy(), PurgePolicy(0.5, dropped_columns=False)])),
        rewrite=None if zorder else draw(st.sampled_from([None, None, RewritePolicy(num_files=2), _SORTED])),
        where=parse_predicate("day >= current_date() - 2 OR country IS NULL")
        if partitioned and draw(st.booleans())
        else None,
        skip_newest_partitions=draw(st.sampled_from([0, 0, 0, 1, 2])),
        quiet_for_seconds=draw(st.sampled_from([0, 0, 0, 120, 2 * DAY_SECONDS])),
        every_seconds=draw(st.sampled_from([0, 0, DAY_SECONDS])),
        when=WorthPolicy(draw(st.sampled_from([None, 5])), draw(st.sampled_from([None, 200]))),
    )
    return make_policy(
        optimize=optimize,
        vacuum=draw(st.sampled_from([None, make_vacuum()])),
        properties=draw(st.sampled_from([(), (("own.key", "2"),)])),
        max_bytes=draw(st.sampled_from([None, None, 300])),
        max_files=draw(st.sampled_from([None, None, 5])),
    )


def records() -> st.SearchStrategy[TableRecord]:
    """What a ledger may remember."""
    return st.builds(
        TableRecord,
        last_optimize_at_ms=st.sampled_from([None, NOW_MS - DAY_MS, NOW_MS - 60_000]),
        last_vacuum_at_ms=st.sampled_from([None, NOW_MS - DAY_MS]),
        unproven_versions=st.sampled_from([(), (3,)]),
        quarantined=st.sampled_from([*[None] * 9, "proof failed at version 5"]),
    )


@st.composite
def planning_inputs(draw: st.DrawFn) -> tuple[ResolvedPolicy, TableFacts, TableRecord]:
    """A policy, a table it fits, and a record; some tables have clustering columns, some dropped columns."""
    facts = draw(table_facts())
    policy = draw(policies(partitioned=bool(facts.partition_columns)))
    arranged = policy.optimize.zorder is not None or policy.optimize.rewrite is not None
    if not facts.partition_columns and not arranged and draw(st.booleans()):
        cubes = [draw(st.sampled_from(_CUBES)) for _ in facts.files]
        files = tuple(_in_cube(file, *cube) for file, cube in zip(facts.files, cubes, strict=True))
        facts = replace(facts, clustering_columns=("id",), files=files)
    if bool(facts.files) and draw(st.booleans()):
        dropped = draw(st.lists(st.sampled_from([file.key for file in facts.files])))
        facts = replace(facts, files_with_dropped_columns=frozenset(dropped))
    return policy, facts, draw(records())


_CUBES = (("", ""), ("a", '["id"]'), ("b", '["id"]'), ("c", '["value"]'))
"""No cube, and cubes by today's clustering column and by another one."""


def _in_cube(file: DataFile, cube: str, columns: str) -> DataFile:
    if not cube:
        return file
    tags = tuple(sorted({**dict(file.tags), ZCUBE_ID_TAG: cube, ZCUBE_COLUMNS_TAG: columns}.items()))
    return replace(file, tags=tags, clustering_provider=LIQUID)
