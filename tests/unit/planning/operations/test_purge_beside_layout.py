"""A purge beside the rewrite that gives the layout: neither changes the other, and both are done after one night."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

import pytest

from maintainer.model.plan.layout_tags import (
    CLUSTER_CUBE_TAG,
    LIQUID,
    PACKED_TAG,
    ZCUBE_COLUMNS_TAG,
    ZCUBE_ID_TAG,
    ZORDER_TAG,
)
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import ClusterStep, PurgeStep, RewriteStep, StepKind, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import ColumnRanges, DataFile, DeletionVector, TableFacts
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.zorder.incremental_zorder import next_turn
from maintainer.policy.resolve.resolved import (
    LimitsPolicy,
    OptimizePolicy,
    PurgePolicy,
    RewritePolicy,
    WorthPolicy,
    ZOrderMode,
    ZOrderPolicy,
)
from tests.support.tables.builders import (
    GIB,
    MIB,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)
from tests.unit.planning.zorder.zorder_plans import known, tagged

Planned = dict[StepKind, list[list[str]]]


def plan(facts: TableFacts, optimize: OptimizePolicy, limits: LimitsPolicy = LimitsPolicy()) -> TablePlan:  # noqa: B008 (frozen)
    policy = replace(make_policy(optimize=optimize), limits=limits)
    planned = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert planned.problem is None, planned.problem
    taken = [file.key for step in planned.rewrites for file in step.files]
    assert len(set(taken)) == len(taken)
    assert len(taken) + sum(left.num_files for left in planned.left_alone) == len(facts.files)
    return planned


def purging(optimize: OptimizePolicy) -> OptimizePolicy:
    return replace(optimize, purge=PurgePolicy())


def bins_of(planned: TablePlan) -> Planned:
    return {
        step.kind: [[file.path for file in bin_.files] for batch in step.batches for bin_ in batch.bins]
        for step in planned.rewrites
    }


def dirty_vector(number: int) -> DeletionVector:
    return DeletionVector(f"u{number}@1", 1, 40)


def left_of(planned: TablePlan) -> list[tuple[ReasonCode, int]]:
    return [(left.reason.code, left.num_files) for left in planned.left_alone]


def after_night(facts: TableFacts, planned: TablePlan) -> TableFacts:
    """The table as the steps leave it: of each bin files of one size, with the tags of the step."""
    gone = {file.key for step in planned.rewrites for file in step.files}
    made = [file for step in planned.rewrites for file in _written(step)]
    return replace(facts, files=(*(file for file in facts.files if file.key not in gone), *made))


def _written(step: RewriteStep) -> Iterable[DataFile]:
    for batch in step.batches:
        for place, bin_ in enumerate(batch.bins):
            number = 1 if isinstance(step, PurgeStep) else step.num_files_added // len(step.bins)
            tags = {**dict(step.file_tags), **(dict(step.row_order_tags(bin_)) if isinstance(step, PurgeStep) else {})}
            if isinstance(step, ClusterStep):
                tags[ZCUBE_ID_TAG] = f"made{place}"
            for part in range(number):
                name, size = f"{step.kind}{part}-{bin_.files[0].path}", bin_.size_bytes // number
                clustered = isinstance(step, ClusterStep) or bin_.files[0].clustering_provider is not None
                yield replace(
                    make_file(name, size=size, tags=tags, modified_at_ms=NOW_MS),
                    partition_values=bin_.files[0].partition_values,
                    clustering_provider=LIQUID if clustered else None,
                )


def test_a_large_cube_stays_one_though_some_of_its_files_are_purged() -> None:
    """Six cubes of 12 GiB, a fourth of whose files have deleted rows, and one new file: that one is clustered."""

    def in_cube(cube: int, number: int) -> DataFile:
        tags = {ZCUBE_ID_TAG: f"c{cube}", ZCUBE_COLUMNS_TAG: json.dumps(["id"]), CLUSTER_CUBE_TAG: "1/2"}
        file = make_file(f"c{cube}-{number}", size=256 * MIB, deleted=number < 12, tags=tags)
        return replace(file, clustering_provider=LIQUID)

    files = [*(in_cube(cube, number) for cube in range(6) for number in range(48)), make_file("new", size=100 * MIB)]
    facts = make_facts(files=files, clustering_columns=("id",))
    optimize = make_optimize(min_size=192 * MIB, max_size=256 * MIB)
    assert optimize.cluster.min_cube_size_bytes == 10 * GIB
    alone = plan(facts, optimize)
    planned = plan(facts, purging(optimize))
    assert planned.steps[:1] == alone.steps
    assert bins_of(planned)[StepKind.CLUSTER] == [["new"]]
    assert sorted(bins_of(planned)[StepKind.PURGE]) == sorted([f"c{cube}-{n}"] for cube in range(6) for n in range(12))
    assert left_of(planned) == [(ReasonCode.SEALED_CUBE, 6 * 36)]
    assert plan(after_night(facts, planned), purging(optimize)).state == "up_to_date"


@pytest.mark.parametrize("dirty", [1, 2, 4])
def test_a_partition_with_as_many_files_as_asked_has_as_many_after_a_purge(dirty: int) -> None:
    files = [make_file(f"f{number}", size=40, deleted=4 * (number < dirty)) for number in range(4)]
    optimize = make_optimize(rewrite=RewritePolicy(num_files=4))
    facts = make_facts(files=files)
    assert plan(facts, optimize).steps == ()
    planned = plan(facts, purging(optimize))
    assert bins_of(planned) == {StepKind.PURGE: [[f"f{number}"] for number in range(dirty)]}
    assert left_of(planned) == [(ReasonCode.AT_TARGET, 4 - dirty)] * (dirty < 4)
    assert plan(after_night(facts, planned), purging(optimize)).state == "up_to_date"


def test_what_the_rewrite_takes_whole_it_purges() -> None:
    files = [
        *(make_file(f"a{number}", size=40, deleted=number < 2, partition={"p": "a"}) for number in range(5)),
        *(make_file(f"b{number}", size=40, deleted=number < 1, partition={"p": "b"}) for number in range(4)),
    ]
    optimize = purging(make_optimize(rewrite=RewritePolicy(num_files=4)))
    facts = make_facts(files=files, partitioned_by=("p",))
    planned = plan(facts, optimize)
    assert bins_of(planned) == {StepKind.REWRITE: [["a0", "a1", "a2", "a3", "a4"]], StepKind.PURGE: [["b0"]]}
    assert left_of(planned) == [(ReasonCode.AT_TARGET, 3)]
    assert plan(after_night(facts, planned), optimize).state == "up_to_date"


def test_what_is_not_worth_a_rewrite_is_purged_all_the_same_and_counted_once() -> None:
    for dirty, left in ((1, [(ReasonCode.NOT_WORTH_IT, 2)]), (3, [])):
        files = [make_file(f"f{number}", size=40, deleted=number < dirty) for number in range(3)]
        worth = WorthPolicy(min_small_files=4)
        planned = plan(make_facts(files=files), purging(make_optimize(rewrite=RewritePolicy(num_files=4), when=worth)))
        assert bins_of(planned) == {StepKind.PURGE: [[f"f{number}"] for number in range(dirty)]}
        assert left_of(planned) == left


def test_values_that_only_purged_files_have_still_differ() -> None:
    """The one file with other values is in order already and purged; the rest is put in order, not compacted."""
    ordered = {ZORDER_TAG: '["id"]', PACKED_TAG: "100"}
    files = (
        make_file("a", size=90, deleted=1, partition={"p": "a"}, tags=ordered),
        *make_files(40, 40, prefix="b", partition={"p": "b"}),
    )
    ranges = {file.key: ((("1", "9", False),) if file.path == "a" else (("5", "5", False),)) for file in files}
    facts = replace(make_facts(files=files, partitioned_by=("p",)), column_ranges=ColumnRanges(("id",), ranges))
    optimize = make_optimize(zorder=ZOrderPolicy(("id",), mode=ZOrderMode.FULL))
    planned = plan(facts, purging(optimize))
    assert planned.steps[:1] == plan(facts, optimize).steps
    assert bins_of(planned) == {StepKind.ZORDER: [["b0", "b1"]], StepKind.PURGE: [["a"]]}


def test_turns_and_what_waits_for_them_are_the_same_beside_a_purge() -> None:
    files = [make_file(f"new{number}", size=600, deleted=number < 2, modified_at_ms=number) for number in range(4)]
    on_curve = [tagged("c0", "000", 100), tagged("c1", "001", 100), tagged("s", "01", 5)]
    on_curve[::2] = [replace(file, deletion_vector=dirty_vector(number)) for number, file in enumerate(on_curve[::2])]
    facts = replace(known(*files, *on_curve), column_ranges=ColumnRanges(("id", "day"), {}))
    optimize = make_optimize(zorder=ZOrderPolicy(("id", "day"), batch_bytes=1200), max_size=1000, min_size=1)
    planned = plan(facts, purging(optimize))
    assert planned.steps[:1] == plan(facts, optimize).steps
    assert bins_of(planned) == {StepKind.ZORDER: [["new0", "new1"]], StepKind.PURGE: [["c0"], ["s"]]}
    assert left_of(planned) == [(ReasonCode.WAITS_FOR_TURN, 2), (ReasonCode.SAME_ZORDER, 1)]


def test_a_file_whose_neighbour_in_the_partition_is_purged_is_not_alone() -> None:
    neighbour = replace(tagged("c", "000", 100), deletion_vector=dirty_vector(0))
    facts = replace(known(make_file("new", size=600), neighbour), column_ranges=ColumnRanges(("id", "day"), {}))
    planned = plan(facts, purging(make_optimize(zorder=ZOrderPolicy(("id", "day")), max_size=1000, min_size=1)))
    assert bins_of(planned) == {StepKind.ZORDER: [["new"]], StepKind.PURGE: [["c"]]}
    assert planned.left_alone == ()


def rewritten_in_a_night(planned: TablePlan, facts: TableFacts) -> tuple[int, int]:
    """Bytes and files of all turns and of what the purge then still finds."""
    (step,) = (each for each in planned.steps if isinstance(each, ZOrderStep))
    purge, files, turn = [each for each in planned.rewrites if each is not step], list(facts.files), step
    taken: list[DataFile] = []
    while True:
        taken += turn.files
        files = [file for file in files if file not in taken]
        spent_bytes = sum(file.size_bytes for file in taken)
        now = replace(facts, files=tuple(files))
        following = next_turn(step, now, spent_bytes=spent_bytes, spent_files=len(taken))
        if following is None:
            break
        turn = following
    taken += [file for each in purge for file in each.files if file not in taken]
    return sum(file.size_bytes for file in taken), len(taken)


@pytest.mark.parametrize(
    ("batch_bytes", "limits", "dirty_new", "rewritten"),
    [
        (500, LimitsPolicy(max_bytes=1000), 0, (950, 5)),
        (5000, LimitsPolicy(max_bytes=1000), 0, (950, 5)),
        (500, LimitsPolicy(max_files=5), 0, (950, 5)),
        (5000, LimitsPolicy(max_files=5), 0, (950, 5)),
        # What a turn takes of the purge's files leaves its room to later turns.
        (500, LimitsPolicy(max_bytes=1700), 4, (1200, 6)),
        (500, LimitsPolicy(max_files=8), 4, (1200, 6)),
        (500, LimitsPolicy(), 0, (1200, 6)),
    ],
)
def test_turns_and_purge_together_stay_within_the_limits_of_the_policy(
    batch_bytes: int, limits: LimitsPolicy, dirty_new: int, rewritten: tuple[int, int]
) -> None:
    new = [make_file(f"new{n}", size=250, deleted=n < dirty_new, modified_at_ms=n) for n in range(4)]
    on_curve = [replace(tagged(f"c{n}", "000", 100), deletion_vector=dirty_vector(n)) for n in range(2)]
    facts = replace(known(*new, *on_curve), column_ranges=ColumnRanges(("id", "day"), {}))
    zorder = ZOrderPolicy(("id", "day"), strategies=(Strategy.UNINDEXED,), batch_bytes=batch_bytes)
    planned = plan(facts, purging(make_optimize(zorder=zorder, max_size=1000, min_size=1)), limits)
    assert planned.blocked == ()
    assert rewritten_in_a_night(planned, facts) == rewritten


def test_a_file_that_the_purge_leaves_no_room_for_says_so() -> None:
    dirty = replace(tagged("c", "000", 100), deletion_vector=dirty_vector(0))
    facts = replace(known(make_file("new", size=950), dirty), column_ranges=ColumnRanges(("id", "day"), {}))
    optimize = purging(make_optimize(zorder=ZOrderPolicy(("id", "day")), max_size=1000, min_size=1))
    planned = plan(facts, optimize, LimitsPolicy(max_bytes=1000))
    assert bins_of(planned) == {StepKind.PURGE: [["c"]]}
    assert [left.reason.text for left in planned.left_alone] == [
        "1 unindexed file: the oldest has 950 B, limits.maxBytes less the purge is 900 B"
    ]


def test_a_turn_has_room_for_what_it_purges_itself() -> None:
    """The oldest file is due for a purge: with its bytes taken off first, it and all behind it would never get one."""
    old, new = make_file("a", size=700, deleted=True, modified_at_ms=0), make_file("b", size=100, modified_at_ms=1)
    facts = replace(known(old, new), column_ranges=ColumnRanges(("id", "day"), {}))
    optimize = purging(make_optimize(zorder=ZOrderPolicy(("id", "day")), max_size=1000, min_size=1))
    planned = plan(facts, optimize, LimitsPolicy(max_bytes=1000))
    assert bins_of(planned) == {StepKind.ZORDER: [["a", "b"]]}


def test_compaction_and_purge_are_done_after_a_night() -> None:
    sizes = (10, 20, 60, 70, 80, 90, 95)
    files = [make_file(f"f{number}", size=size, deleted=number % 2) for number, size in enumerate(sizes)]
    facts, optimize = make_facts(files=files), make_optimize()
    planned = plan(facts, purging(optimize))
    assert planned.steps[:1] == plan(facts, optimize).steps
    assert bins_of(planned) == {StepKind.COMPACT: [["f0", "f1", "f2"]], StepKind.PURGE: [["f3"], ["f5"]]}
    assert plan(after_night(facts, planned), purging(optimize)).state == "up_to_date"
