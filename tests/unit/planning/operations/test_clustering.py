"""Liquid clustering: files in no cube and small cubes, bounded by the policy; left alone once done."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.layout_tags import CLUSTER_CUBE_TAG, LIQUID, ZCUBE_COLUMNS_TAG, ZCUBE_ID_TAG
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import ClusterStep, CompactStep
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.operations.clustering import cube_of
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.recheck.staleness import StaleReasons, recheck
from maintainer.policy.resolve.resolved import (
    ClusterPolicy,
    ResolvedPolicy,
    RewritePolicy,
    WorthPolicy,
    ZOrderMode,
    ZOrderPolicy,
)
from tests.support.tables.builders import (
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)

LINES = {"optimize.cluster.minCubeSize": 5, "optimize.cluster.full": 6, "optimize.zorder": 7, "optimize.rewrite": 8}
BOUNDS = ClusterPolicy(200, 300)


def policy_of(cluster: ClusterPolicy = BOUNDS, **optimize: Any) -> ResolvedPolicy:
    return make_policy(optimize=make_optimize(cluster=cluster, **optimize), lines=LINES)


def plan(facts: TableFacts, cluster: ClusterPolicy = BOUNDS, **optimize: Any) -> TablePlan:
    return plan_table(TableInput(policy_of(cluster, **optimize), facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))


def in_cube(name: str, cube: str, *, size: int = 90, columns: tuple[str, ...] = ("id",), **others: Any) -> DataFile:
    tags = {ZCUBE_ID_TAG: cube, ZCUBE_COLUMNS_TAG: json.dumps(columns), **others.pop("tags", {})}
    return replace(make_file(name, size=size, tags=tags, **others), clustering_provider=LIQUID)


def clustered(*files: DataFile) -> TableFacts:
    return make_facts(files=files, clustering_columns=("id",))


def step_of(planned: TablePlan) -> ClusterStep:
    (step,) = planned.steps
    assert isinstance(step, ClusterStep)
    return step


def bins_of(planned: TablePlan) -> list[list[list[str]]]:
    return [[[file.path for file in bin_.files] for bin_ in batch.bins] for batch in step_of(planned).batches]


def left_of(planned: TablePlan) -> list[tuple[str, int]]:
    return [(left.reason.code.value, left.num_files) for left in planned.left_alone]


def test_files_in_no_cube_come_first_then_small_cubes_up_to_the_size_of_a_cube() -> None:
    cubes = (in_cube("b1", "b"), in_cube("a2", "a", size=60), in_cube("a1", "a", size=50))
    planned = plan(clustered(*cubes, *make_files(70, 30, prefix="new")))
    # 30 + 70 + 50 + 60 are 210; with 90 more it is 300, which still is one cube.
    assert bins_of(planned) == [[["new1", "new0", "a1", "a2", "b1"]]]
    step = step_of(planned)
    assert step.num_files_added == 3
    assert step.columns == ("id",)
    assert step.file_tags == ((CLUSTER_CUBE_TAG, "200/300"), (ZCUBE_COLUMNS_TAG, '["id"]'))
    assert [reason.text for reason in step.reasons] == ["2 files not clustered by id, 3 files in cubes under 200 B"]
    assert (step.reasons[0].code, step.reasons[0].origin) == (ReasonCode.CLUSTERING_DUE, "orders.yml:5")


def test_a_bin_closes_at_the_size_of_a_cube_and_batches_commit_apart() -> None:
    planned = plan(clustered(*make_files(200, 150, 100, prefix="n")), batch_size=1)
    assert bins_of(planned) == [[["n0"]], [["n2", "n1"]]]


def test_a_large_cube_is_left_as_it_is_whatever_is_added() -> None:
    sealed = [in_cube(f"s{i}", "s", size=100) for i in range(2)]
    planned = plan(clustered(*sealed, make_file("new", size=10)))
    assert bins_of(planned) == [[["new"]]]
    assert left_of(planned) == [("sealed_cube", 2)]


def test_soft_deleted_rows_do_not_count_towards_the_size_of_a_cube() -> None:
    sealed = [in_cube("s0", "s", size=100), in_cube("s1", "s", size=100, records=100, deleted=1)]
    planned = plan(clustered(*sealed, make_file("new", size=10)))
    assert bins_of(planned) == [[["new", "s0", "s1"]]]


@pytest.mark.parametrize("cubes", [("a", "a"), ("a", "b")])
def test_cubes_of_the_same_request_are_not_merged_among_themselves(cubes: tuple[str, str]) -> None:
    files = [in_cube(f"f{i}", cube, tags={CLUSTER_CUBE_TAG: "200/300"}) for i, cube in enumerate(cubes)]
    planned = plan(clustered(*files))
    assert planned.state == "up_to_date"
    assert left_of(planned) == [("same_clustering", 2)]


def test_small_cubes_of_delta_or_of_another_request_are_merged_once() -> None:
    files = [in_cube("f0", "a", tags={CLUSTER_CUBE_TAG: "10/15"}), in_cube("f1", "b")]
    assert bins_of(plan(clustered(*files))) == [[["f0", "f1"]]]
    assert plan(clustered(files[1])).steps == ()


def test_files_clustered_by_other_columns_wait_for_full() -> None:
    old = [in_cube("o0", "o", columns=("other",)), replace(make_file("o1"), clustering_provider="else")]
    assert left_of(plan(clustered(*old))) == [("other_clustering", 2)]
    new = make_file("new", size=10)
    assert bins_of(plan(clustered(*old, new))) == [[["new"]]]
    full = plan(clustered(*old, new, in_cube("mine", "m", size=20)), replace(BOUNDS, full=True))
    assert bins_of(full) == [[["new", "mine"], ["o0"], ["o1"]]]
    assert step_of(full).full
    assert "2 files clustered by other columns before" in step_of(full).reasons[0].text


def test_full_with_nothing_of_other_columns_is_done() -> None:
    files = [in_cube(f"f{i}", "a", tags={CLUSTER_CUBE_TAG: "200/300"}) for i in range(2)]
    assert plan(clustered(*files), replace(BOUNDS, full=True)).steps == ()


def test_worth_counts_files_of_other_columns_where_all_are_asked_for() -> None:
    facts = clustered(*(in_cube(f"o{number}", "o", columns=("other",)) for number in range(3)))
    full = replace(BOUNDS, full=True)
    assert left_of(plan(facts, full, when=WorthPolicy(min_small_files=4))) == [("not_worth_it", 3)]
    assert len(step_of(plan(facts, full, when=WorthPolicy(min_small_files=3))).files) == 3


def test_worth_counts_files_in_no_cube() -> None:
    facts = clustered(make_file("new", size=10), in_cube("a", "a"))
    assert left_of(plan(facts, when=WorthPolicy(min_small_files=2))) == [("not_worth_it", 2)]
    assert plan(facts, when=WorthPolicy(min_small_files=1)).steps


def test_a_table_whose_clustering_was_ended_is_compacted() -> None:
    facts = make_facts(files=[in_cube("a", "a", size=10), make_file("b", size=20)])
    (step,) = plan(facts).steps
    assert isinstance(step, CompactStep)


@pytest.mark.parametrize(
    ("optimize", "line"),
    [
        ({"zorder": ZOrderPolicy(("id",), ZOrderMode.FULL)}, 7),
        ({"rewrite": RewritePolicy(num_files=2)}, 8),
    ],
)
def test_another_layout_is_refused(optimize: dict[str, Any], line: int) -> None:
    problem = plan(clustered(*make_files(10, 20)), **optimize).problem
    assert problem is not None
    assert (problem.code, problem.where) == ("T423", f"orders.yml:{line}")


def test_a_plan_is_stale_when_the_clustering_columns_changed() -> None:
    facts = clustered(*make_files(10, 20))
    planned = plan(facts)
    assert recheck(planned, facts, "sha256:aa") == planned
    stale = recheck(planned, replace(facts, clustering_columns=("value",)), "sha256:aa")
    assert isinstance(stale, StaleReasons)
    assert stale.reasons == ("the clustering columns were id, now value",)


@pytest.mark.parametrize("columns", ["{", '"id"', "null"])
def test_tags_that_cannot_be_read_count_as_none(columns: str) -> None:
    assert cube_of(make_file("f", tags={ZCUBE_ID_TAG: "a", ZCUBE_COLUMNS_TAG: columns})) is None
    assert cube_of(make_file("f", tags={ZCUBE_ID_TAG: "a"})) is None


@pytest.mark.parametrize("target", [100, 200, 299, 300])
def test_cubes_are_sealed_after_a_night_however_small_the_target(target: int) -> None:
    """Bins that could hold no more than the least size of a cube would stay below it, and be written every night."""
    bounds = ClusterPolicy(200, target)
    step = step_of(plan(clustered(*make_files(*(70,) * 40)), bounds))
    sizes = [sum(file.size_bytes for file in bin_.files) for batch in step.batches for bin_ in batch.bins]
    assert all(200 <= size <= 300 for size in sizes[:-1])
    cubes = [
        in_cube(file.path, f"c{number}", size=file.size_bytes, tags={CLUSTER_CUBE_TAG: f"200/{target}"})
        for number, bin_ in enumerate(bin_ for batch in step.batches for bin_ in batch.bins)
        for file in bin_.files
    ]
    later = step_of(plan(clustered(*cubes, make_file("new", size=10)), bounds))
    assert sum(file.size_bytes for file in later.files) < 300
