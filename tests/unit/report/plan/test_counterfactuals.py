"""What would change a decision: the sentence is right, as planning itself shows when it is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from maintainer.model.plan.layout_tags import PACKED_TAG, ZCUBE_COLUMNS_TAG, ZCUBE_ID_TAG
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.storage_facts import Listing, StorageLook, TrashedRun
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord, Update
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import (
    AutoCompactPolicy,
    ClusterPolicy,
    ResolvedPolicy,
    RewritePolicy,
    WorthPolicy,
    ZOrderMode,
    ZOrderPolicy,
)
from maintainer.report.plan.counterfactuals import _CHANGES, what_would_change
from maintainer.report.plan.step_text import reason_words
from tests.support.tables.builders import (
    DAY_MS,
    MIB,
    MINUTE_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
    make_vacuum,
)

TODAY = date(2026, 11, 21)
REASONS = (Path(__file__).parents[4] / "docs" / "reasons.md").read_text(encoding="utf-8")


def answers(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> dict[str, str]:
    plan = plan_table(TableInput(policy, facts, record, NOW_MS, TODAY, PlanOptions()))
    return dict(what_would_change(plan, policy, NOW_MS))


def steps(policy: ResolvedPolicy, facts: TableFacts) -> list[str]:
    return [
        step.kind for step in plan_table(TableInput(policy, facts, TableRecord(), NOW_MS, TODAY, PlanOptions())).steps
    ]


def test_each_reason_for_leaving_something_alone_has_an_answer() -> None:
    taken = REASONS[: REASONS.index("## Why files or partitions are left alone")]
    fixed = {code for code, said in reason_words().items() if said.change}
    assert not fixed & set(_CHANGES)
    assert fixed | set(_CHANGES) == {code for code in ReasonCode if f"### {code.value}\n" not in taken}


def test_a_compaction_says_below_which_threshold_it_would_not_be_done_and_so_it_is() -> None:
    facts = make_facts(files=make_files(30, 40, 90))
    assert answers(make_policy(), facts)["compact"] == (
        "left alone if optimize.minFileSize were 30 B or less (the smallest file), or optimize.when.minSmallFiles were "
        "more than 2"
    )
    assert steps(make_policy(), facts) == ["compact"]
    assert steps(make_policy(optimize=make_optimize(min_size=30)), facts) == []
    for least, expected in ((2, ["compact"]), (3, [])):
        worth = make_policy(optimize=make_optimize(when=WorthPolicy(min_small_files=least)))
        assert steps(worth, facts) == expected


def test_deleted_rows_are_a_threshold_of_their_own() -> None:
    facts = make_facts(files=[make_file("a", size=90, records=100, deleted=20)])
    assert answers(make_policy(), facts)["compact"] == (
        "left alone if optimize.maxDeletedRowsRatio were 0.2 or more (now up to 0.2)"
    )
    thirds = make_facts(files=[make_file("a", size=90, records=3, deleted=1)])
    assert answers(make_policy(), thirds)["compact"] == (
        "left alone if optimize.maxDeletedRowsRatio were 0.334 or more (now up to 0.333)"
    )
    unknown = make_facts(files=[make_file("a", size=90, records=None, deleted=1)])
    assert answers(make_policy(), unknown)["compact"] == (
        "rewritten whatever the sizes are: no statistics say how many rows of a file are deleted"
    )


def test_several_causes_have_to_go_together() -> None:
    facts = make_facts(files=[*make_files(30, 40), make_file("d", size=90, records=100, deleted=20)])
    assert answers(make_policy(), facts)["compact"] == (
        "left alone if optimize.minFileSize were 30 B or less (the smallest file) and optimize.maxDeletedRowsRatio "
        "were 0.2 or more (now up to 0.2)"
    )
    assert steps(make_policy(optimize=make_optimize(min_size=30)), facts) == ["compact"]
    assert steps(make_policy(optimize=make_optimize(max_deleted_rows_ratio=0.2)), facts) == ["compact"]
    assert steps(make_policy(optimize=make_optimize(min_size=30, max_deleted_rows_ratio=0.2)), facts) == []


def test_a_threshold_that_is_rounded_holds_and_can_be_written() -> None:
    facts = make_facts(files=make_files(*[int(64.96 * MIB)] * 3))
    policy = make_policy(optimize=make_optimize(min_size=128 * MIB, max_size=1024 * MIB))
    assert answers(policy, facts)["compact"] == (
        "left alone if optimize.minFileSize were 64 MiB or less (the smallest file has 65 MiB), or "
        "optimize.when.minSmallFiles were more than 3"
    )
    policy = make_policy(optimize=make_optimize(min_size=1025 * MIB, max_size=4096 * MIB))
    assert (
        "files of a partition are under 1025 MiB ("
        in answers(policy, make_facts(files=make_files(2048 * MIB)))["at_target"]
    )


def test_a_zorder_that_purges_deleted_rows_does_not_ask_whether_it_is_worth_it() -> None:
    zorder = make_policy(optimize=make_optimize(zorder=ZOrderPolicy(("id",), ZOrderMode.FULL)))
    plain = make_facts(files=make_files(80, 90))
    purging = make_facts(files=[make_file("d", size=90, records=100, deleted=20)])
    assert answers(zorder, plain)["zorder"].endswith(", or when optimize.when asks for more than there is")
    assert answers(zorder, purging)["zorder"] == "left alone after a Z-order by id"


def test_a_vacuum_says_with_which_retention_nothing_would_be_deleted() -> None:
    removed = tuple(RemovedFile(f"r{days}", 5, NOW_MS - days * DAY_MS, removed_in_version=1) for days in (9, 12))
    facts = replace(make_facts(files=make_files(90)), removed_files=removed)
    assert answers(make_policy(vacuum=make_vacuum()), facts)["vacuum"] == (
        "nothing is deleted if vacuum.retention were 12d or more (the oldest removal; now 7d are kept)"
    )
    later = RemovedFile("r", 5, NOW_MS - 8 * DAY_MS - 59 * MINUTE_MS, removed_in_version=1)
    assert answers(make_policy(vacuum=make_vacuum()), replace(facts, removed_files=(later,)))["vacuum"] == (
        "nothing is deleted if vacuum.retention were 8d 1h or more (the oldest removal; now 7d are kept)"
    )
    trash = replace(
        facts, storage=StorageLook(trash=(TrashedRun("20261101T000000Z-1f2a", "file:/trash", 3, 5, NOW_MS),))
    )
    assert answers(make_policy(vacuum=make_vacuum()), trash)["vacuum"].startswith("nothing but the trash is deleted if")


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (WorthPolicy(min_small_files=20), "taken when there are 20 files to rewrite, or optimize.when asks for less"),
        (
            WorthPolicy(20, 1 << 30),
            "taken when there are 20 files and 1 GiB to rewrite, or optimize.when asks for less",
        ),
    ],
)
def test_what_is_not_worth_it_yet_says_from_when_on_it_is(when: WorthPolicy, expected: str) -> None:
    policy = make_policy(optimize=make_optimize(when=when))
    assert answers(policy, make_facts(files=make_files(5, 5, 5)))["not_worth_it"] == expected


def test_files_of_the_right_size_are_taken_when_smaller_ones_come() -> None:
    facts = answers(make_policy(), make_facts(files=make_files(80, 90)))
    assert facts == {
        "at_target": "taken when two files of a partition are under 75 B (optimize.minFileSize) "
        "and fit into one of 100 B"
    }
    assert steps(make_policy(optimize=make_optimize(min_size=100)), make_facts(files=make_files(80, 90))) == []
    raised = make_policy(optimize=make_optimize(min_size=100, max_size=170))
    assert steps(raised, make_facts(files=make_files(80, 90))) == ["compact"]


def test_small_files_of_the_last_compaction_do_not_wait_for_small_ones_of_which_there_are_two() -> None:
    packed = make_facts(files=[make_file(name, size=40, tags={PACKED_TAG: "100"}) for name in ("a", "b")])
    assert answers(make_policy(), packed) == {
        "at_target": "small ones are taken together with new files, or when optimize.maxFileSize is raised"
    }
    assert steps(make_policy(), packed) == []
    assert steps(make_policy(optimize=make_optimize(max_size=101)), packed) == ["compact"]


def test_a_partition_that_has_its_files_does_not_ask_for_small_ones() -> None:
    facts = make_facts(files=make_files(80, 90))
    as_asked = make_policy(optimize=make_optimize(rewrite=RewritePolicy(num_files=2)))
    assert answers(as_asked, facts) == {
        "at_target": "taken when their partition has another number of files, or optimize.rewrite asks for another"
    }
    assert steps(make_policy(optimize=make_optimize(rewrite=RewritePolicy(num_files=1))), facts) == ["rewrite"]


def test_a_file_without_a_partner_waits_for_one_that_fits() -> None:
    text = "taken when the partition gets a small file that fits beside it within 100 B (optimize.maxFileSize)"
    assert answers(make_policy(), make_facts(files=make_files(60, 70)))["no_partner"] == text
    assert steps(make_policy(), make_facts(files=make_files(60, 70, 71))) == []
    assert steps(make_policy(), make_facts(files=make_files(60, 70, 40))) == ["compact"]


def test_a_cube_that_is_large_enough_is_not_taken_by_full_but_by_a_larger_bound() -> None:
    cubes = [
        make_file(name, size=size, tags={ZCUBE_ID_TAG: name, ZCUBE_COLUMNS_TAG: '["id"]'})
        for name, size in (("a", 300), ("b", 310))
    ]
    facts = replace(make_facts(files=cubes), clustering_columns=("id",))

    def policy(least: int, *, full: bool) -> ResolvedPolicy:
        return make_policy(optimize=make_optimize(cluster=ClusterPolicy(least, 2 * least, full)))

    assert "full" not in answers(policy(300, full=False), facts)["sealed_cube"]
    assert steps(policy(300, full=True), facts) == []
    assert steps(policy(400, full=False), facts) == ["cluster"]


@pytest.mark.parametrize(
    ("retention_seconds", "expected"),
    [
        (7 * 86_400, "deletes as soon as a removed file is older than 7d (vacuum.retention)"),
        (30 * 86_400, "deletes as soon as a removed file is older than 30d (vacuum.retention)"),
        (86_400, "deletes a file as soon as it was removed longer ago than that"),
    ],
)
def test_a_vacuum_with_nothing_to_delete_says_from_which_age_on_it_would(retention_seconds: int, expected: str) -> None:
    policy = make_policy(vacuum=make_vacuum(retention_seconds=retention_seconds), lines={"vacuum.retention": 12})
    facts = replace(make_facts(files=make_files(90)), removed_files=())
    assert answers(policy, facts)["nothing_expired"] == expected


def test_untracked_files_that_the_log_may_need_do_not_wait_for_the_policy() -> None:
    policy = make_policy(vacuum=make_vacuum(delete_untracked=True), lines={"vacuum.deleteUntracked": 3})
    look = StorageLook(listing=Listing(1, 8, 1, "the log begins at version 9, later than what must be kept"))
    facts = replace(make_facts(files=make_files(90)), removed_files=(), storage=look)
    assert answers(policy, facts)["untracked"] == "kept as long as the reason holds; the next listing looks again"
    untracked = RemovedFile("u", 5, NOW_MS - 31 * DAY_MS, "untracked")
    facts = replace(facts, removed_files=(untracked,), storage=StorageLook())
    assert answers(make_policy(vacuum=make_vacuum(), lines={"vacuum.deleteUntracked": 3}), facts)["untracked"] == (
        "deleted with vacuum.deleteUntracked: true, once unchanged for 30d (vacuum.untrackedAge)"
    )


def test_a_large_deletion_asks_for_a_look_first_and_offers_a_number_only_where_one_is_in_the_way() -> None:
    removed = tuple(RemovedFile(f"r{n}", 500, NOW_MS - 9 * DAY_MS, removed_in_version=1) for n in range(3))
    facts = replace(make_facts(files=make_files(90)), removed_files=removed)
    lines = {"vacuum": 3, "limits.maxDeletes": 9}
    half = answers(make_policy(vacuum=make_vacuum(allow_large_delete=False), lines=lines), facts)["large_delete"]
    assert "`maintainer history TABLE`" in half
    assert "maxDeletes" not in half
    counted = make_policy(vacuum=make_vacuum(allow_large_delete=False), max_deletes=2, lines=lines)
    number = answers(counted, facts)["large_delete"]
    assert "or a higher limits.maxDeletes" in number


def test_a_property_that_vacuum_needs_is_told_from_one_that_the_policy_names() -> None:
    facts = make_facts(files=make_files(90))
    named = make_policy(properties=(("delta.checkpointInterval", "20"),))
    assert answers(named, facts)["properties"] == (
        "not done once the table has the value, or the policy no longer names it"
    )
    needed = make_policy(vacuum=make_vacuum(retention_seconds=30 * 86_400))
    assert answers(needed, replace(facts, removed_files=()))["properties"] == (
        "not done once the table has the value, or vacuum.retention is no longer than what the table keeps"
    )
    log = make_policy(properties=(("delta.deletedFileRetentionDuration", "interval 40 days"),))
    assert answers(log, facts)["properties"] == (
        "not done once the table has the value, or the policy no longer names it, or "
        "properties.delta.deletedFileRetentionDuration is no longer than what the log keeps"
    )
    hook = replace(facts, properties=(("maintainer.autoCompact.minNumFiles", "20"),))
    assert answers(make_policy(auto_compact=AutoCompactPolicy(enabled=True)), hook)["properties"] == (
        "not done once the table has the value, or the policy has no autoCompact"
    )


def test_what_waits_for_its_writers_says_how_long_and_never_for_a_time_that_is_not_set() -> None:
    files = [make_file(name, size=5, partition={"d": name[0]}, modified_at_ms=NOW_MS) for name in ("a1", "a2", "b1")]
    facts = make_facts(files=files, columns={"id": "long", "d": "string"}, partitioned_by=("d",))
    quiet = make_policy(optimize=make_optimize(quiet_for_seconds=1800))
    assert answers(quiet, facts) == {
        "hot_partition": "taken when nothing was written to 2 partitions for 30m (optimize.quietFor)"
    }
    lost = TableRecord(lost_in_a_row=1, last_lost_at_ms=NOW_MS - MINUTE_MS)
    assert answers(make_policy(), facts, lost) == {
        "lost_to_writer": "taken when nothing was written to 2 partitions for the time that the reason names"
    }
    whole = make_facts(files=[make_file(name, size=5, modified_at_ms=NOW_MS) for name in ("a", "b")])
    assert answers(make_policy(), whole, lost) == {
        "lost_to_writer": "taken when nothing was written there for the time that the reason names"
    }
    updated = replace(facts, updates=(Update(41, NOW_MS - MINUTE_MS, "MERGE", frozenset({(("d", "a"),)})),))
    after = make_policy(optimize=make_optimize(quiet_after_updates_seconds=600))
    assert answers(after, updated)["updated_partition"] == (
        "taken when nobody else updated the partition for 10m, and no update by others is likely within 10m "
        "(optimize.quietAfterUpdates)"
    )
