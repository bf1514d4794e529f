"""Requests to stores are estimated from the plan: which terms a step is made of, and what is said of their sum."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import Batch, Bin, CompactStep, SetPropertiesStep, Step, VacuumStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderTurn
from maintainer.model.table.commit_records import WriterRhythm
from maintainer.model.table.store_requests import RunRequests, StoreRequests
from maintainer.model.table.table_facts import RemovedFile, TableRef
from maintainer.planning.budget import request_estimate
from maintainer.planning.budget.request_estimate import RequestTerm, requests_of, run_requests, step_terms
from maintainer.planning.curve.revision import MAX_SAMPLED_FILES, PROPERTY_PREFIX
from maintainer.policy.project.project_sections import Prices
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import PlanTextOptions, about_requests, render_plan
from tests.support.runs import sample_plans
from tests.support.tables.builders import MIB, make_files

LOCAL, SPARK = LaneChoice(Lane.LOCAL, "small"), LaneChoice(Lane.SPARK, "large")
PROPERTIES = SetPropertiesStep((("a", None),), (("a", "b"),), ())
DISK = "/state/ledger"


def compact(*sizes: int, lane: LaneChoice = LOCAL, num_batches: int = 1) -> CompactStep:
    return CompactStep((Batch((Bin(make_files(*sizes), lane),)),) * num_batches, 1 << 40, 2, ())


def vacuum(num_files: int, folders: int = 1) -> VacuumStep:
    paths = (f"p{number % folders}/f{number}" for number in range(num_files))
    return VacuumStep(tuple(RemovedFile(path, 1, 1) for path in paths), 9, 9, "x", ())


def table_of(*steps: Step, name: str = "t", version: int = 4, **seen: Any) -> TablePlan:
    observed = replace(sample_plans.observed(version, 1, 1), **{"location": "s3a://bucket/t", **seen})
    return TablePlan(TableRef(name), "policies/t.yml", "sha256:0", observed, steps)


def terms_of(step: Step, **seen: Any) -> dict[RequestTerm, int]:
    (terms,) = step_terms(table_of(step, **seen))
    return dict(+terms)


def test_a_bin_asks_for_each_file_that_its_lane_reads_and_writes() -> None:
    files = MIB, MIB, MIB
    assert terms_of(compact(*files)) == {RequestTerm.REWRITE: 1, RequestTerm.READ: 3, RequestTerm.WRITTEN: 1}
    assert terms_of(compact(*files, lane=SPARK)) == {
        RequestTerm.REWRITE: 1,
        RequestTerm.READ_BY_SPARK: 3,
        RequestTerm.WRITTEN_BY_SPARK: 1,
    }
    ordered = ZOrderStep((Batch((Bin(make_files(*files), SPARK),)),), ("id",), 1 << 40, 2, ())
    assert terms_of(ordered) == {RequestTerm.REWRITE: 1, RequestTerm.READ_IN_ORDER: 3, RequestTerm.WRITTEN_BY_SPARK: 1}
    by_turns = replace(ordered, planned_turn=ZOrderTurn(Strategy.UNINDEXED, "2:75b2", 1, (1,)))
    assert terms_of(by_turns) == {RequestTerm.REWRITE: 1, RequestTerm.READ_BY_SPARK: 3, RequestTerm.WRITTEN_BY_SPARK: 1}


@pytest.mark.parametrize(("num_files", "num_sampled"), [(3, 3), (5000, MAX_SAMPLED_FILES)])
def test_files_are_sampled_where_the_plan_sets_boundaries(num_files: int, num_sampled: int) -> None:
    boundaries = SetPropertiesStep((), ((f"{PROPERTY_PREFIX}2", "x"),), ())
    terms = terms_of(boundaries, num_files=num_files, first_commit_read=3)
    assert terms == {RequestTerm.PROPERTIES: 1, RequestTerm.COMMIT_AGAIN: 4, RequestTerm.SAMPLED: num_sampled}


@pytest.mark.parametrize(("lane", "most_mib", "num_parts"), [(LOCAL, 512, 33), (SPARK, 64, 2)])
def test_a_file_that_is_too_large_for_one_request_is_sent_in_parts(
    lane: LaneChoice, most_mib: int, num_parts: int
) -> None:
    assert RequestTerm.PART not in terms_of(compact(most_mib * MIB, lane=lane))
    assert terms_of(compact(most_mib * MIB, 1, lane=lane))[RequestTerm.PART] == num_parts + 1


@pytest.mark.parametrize(
    ("version", "first", "interval", "num_due"),
    [(4, 0, 10, 0), (7, 0, 10, 1), (7, 6, 10, 1), (6, 0, 10, 0), (9, 9, 1, 3), (9, 0, 0, 0)],
)
def test_a_checkpoint_counts_where_a_commit_of_the_step_makes_it_due(
    version: int, first: int, interval: int, num_due: int
) -> None:
    terms = terms_of(
        compact(1, 1, num_batches=3), version=version, first_commit_read=first, checkpoint_interval=interval
    )
    assert (terms[RequestTerm.REWRITE], terms.get(RequestTerm.CHECKPOINT, 0)) == (3, num_due)
    assert RequestTerm.COMMIT_AGAIN not in terms, "Kernel writes it, from what was read"
    assert terms.get(RequestTerm.CHECKPOINT_AGAIN, 0) == (num_due if first else 0), "and from the one before"


@pytest.mark.parametrize(("version", "due"), [(6, (0, 1)), (9, (1, 0))])
def test_what_steps_before_it_commit_counts_as_well(version: int, due: tuple[int, int]) -> None:
    table = table_of(PROPERTIES, compact(1, 1, num_batches=3), version=version, first_commit_read=6)
    properties, compaction = step_terms(table)
    num_read = version - 5
    assert properties[RequestTerm.COMMIT_AGAIN] == num_read + due[0] * (num_read + 1), (
        "Delta's command reads the log anew"
    )
    assert RequestTerm.COMMIT_AGAIN not in compaction
    assert (properties[RequestTerm.CHECKPOINT], compaction[RequestTerm.CHECKPOINT]) == due


def test_a_vacuum_asks_for_the_log_the_objects_and_what_it_deletes() -> None:
    seen = {
        RequestTerm.VACUUM: 1,
        RequestTerm.COMMIT_KEPT: 10,
        RequestTerm.LISTED: 3 * 3 + 2 * 1,
        RequestTerm.DELETED: 2,
    }
    assert terms_of(vacuum(1500), version=20, oldest_commit=11, num_files=501) == seen
    one_page_less = {RequestTerm.VACUUM: 1, RequestTerm.LISTED: 3 * 2 + 2 * 1, RequestTerm.DELETED: 2}
    assert terms_of(vacuum(1500), version=20, num_files=500) == one_page_less


@pytest.mark.parametrize(("folders", "pages_in_vain"), [(1, 0), (2, 2), (9, 3)])
def test_a_vacuum_of_more_files_than_are_kept_in_memory_looks_into_each_folder(
    monkeypatch: pytest.MonkeyPatch, folders: int, pages_in_vain: int
) -> None:
    """All are listed at once before, in vain: a page for each of several folders, and no more than are kept."""
    few = terms_of(vacuum(2600))
    monkeypatch.setattr(request_estimate, "MOST_LISTED", 2500)
    more = {RequestTerm.LISTED: few[RequestTerm.LISTED] + 3 * pages_in_vain, RequestTerm.FOLDER: folders}
    assert terms_of(vacuum(2600, folders)) == {**few, **more}


def test_a_run_looks_at_every_table_and_keeps_its_record() -> None:
    healthy = table_of(name="a", first_commit_read=3)
    looks = Counter({RequestTerm.LOOK: 1, RequestTerm.CHECKPOINT_READ: 1, RequestTerm.COMMIT_READ: 2})
    for ledger in (DISK, "s3://bucket/ledger"):
        assert run_requests(sample_plans.plan(healthy), ledger) == requests_of(looks)
    plan = sample_plans.plan(healthy, table_of(PROPERTIES, first_commit_read=4))
    more = Counter(
        [
            RequestTerm.LOOK,
            RequestTerm.CHECKPOINT_READ,
            RequestTerm.COMMIT_READ,
            RequestTerm.STEPS,
            RequestTerm.PROPERTIES,
            RequestTerm.COMMIT_AGAIN,
            RequestTerm.RUN,
        ]
    )
    assert run_requests(plan, DISK) == requests_of(looks + more)
    on_store = more + Counter([RequestTerm.STATE, RequestTerm.STATE_STEP])
    assert run_requests(plan, "s3://bucket/ledger") == requests_of(looks + on_store)
    state_alone = Counter([RequestTerm.RUN, RequestTerm.STATE, RequestTerm.STATE_STEP])
    local = sample_plans.plan(table_of(PROPERTIES, location="file:/lake/t"))
    assert run_requests(local, "gs://bucket/ledger") == requests_of(state_alone)


@pytest.mark.parametrize(("first", "num_checkpoints", "num_earlier"), [(0, 0, 0), (3, 1, 28), (None, 1, 30)])
def test_a_rewrite_reads_commits_below_the_checkpoint_as_well(
    first: int | None, num_checkpoints: int, num_earlier: int
) -> None:
    """Those that the table's other writers made lately; the version has its commits from the first one on, or none."""
    plain = table_of(compact(MIB, MIB), first_commit_read=first)
    seen = replace(plain, writers=WriterRhythm(0, 1, 30 if first != 0 else 5))
    (steps,) = step_terms(seen)
    terms = steps + Counter([RequestTerm.LOOK, RequestTerm.STEPS, RequestTerm.RUN])
    terms[RequestTerm.COMMIT_READ] = 0 if first is None else 5 - first
    terms[RequestTerm.CHECKPOINT_READ] = num_checkpoints
    assert run_requests(sample_plans.plan(plain), DISK) == requests_of(terms)
    terms[RequestTerm.EARLIER_COMMIT] = num_earlier
    assert run_requests(sample_plans.plan(seen), DISK) == requests_of(terms)


@pytest.mark.parametrize("place", ["file:/lake/t", "hdfs://host/t", "s3n://bucket/t"])
def test_a_table_whose_requests_nobody_counts_has_no_estimate(place: str) -> None:
    plan = sample_plans.plan(table_of(PROPERTIES, location=place))
    assert run_requests(plan, DISK) == StoreRequests()
    assert "request" not in render_plan(plan, PlanTextOptions(requests=RunRequests(run_requests(plan, DISK))))


def test_the_estimate_is_said_of_each_step_and_of_the_run_with_its_price_and_never_where_times_are_left_out() -> None:
    step = compact(MIB, MIB)
    plan = sample_plans.plan(*(table_of(step, PROPERTIES, name=name) for name in "abc"))
    asked = run_requests(plan, DISK)
    prices = Prices("EUR", thousand_reads=1000.0, thousand_writes=1000.0)
    text = render_plan(plan, PlanTextOptions(requests=prices.priced(RunRequests(asked))))
    of_steps = [requests_of(terms).total for terms in step_terms(plan.tables[0])]
    for number in of_steps:
        assert f", {about_requests(3 * number)}" in text
    cost = asked.total - asked.deletions
    assert f"Object stores are sent {about_requests(asked.total)}; {cost:,}.00 EUR.\n" in text
    assert "Object stores" not in render_plan(plan)
    assert "request" not in render_plan_markdown(plan)


def test_an_estimate_is_never_more_exact_than_two_figures() -> None:
    said = [about_requests(number) for number in (1, 84, 123, 1_260, 7_448)]
    assert said == [
        f"about {words}" for words in ("1 request", "84 requests", "120 requests", "1,300 requests", "7,400 requests")
    ]
