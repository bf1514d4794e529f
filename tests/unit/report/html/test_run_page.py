"""The page of a run: whole, small, without network, every name only text, and files before and after."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

import pytest

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import FilesSeen, LayoutBoxes, TableRef
from maintainer.report.document.blocks import Tiles
from maintainer.report.html.fleet_view import fleet_tables, fleet_view
from maintainer.report.html.page import coded, render_page
from maintainer.report.html.page_parts import proof_tiles
from maintainer.report.html.run_view import MAX_TABLES_WITH_DETAILS, ReportProject, run_view, table_views
from maintainer.report.html.table_past import PastPoint, TableTimeline, past_of
from maintainer.report.run.outcome_text import WorkDone
from maintainer.report.style import Role
from maintainer.report.text_layout import printable
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.unit.report.html.page_outline import check_is_safe, outline, run_page, said


def test_a_good_run_says_what_was_done_and_how_it_was_proven() -> None:
    page = run_page(samples.good_run())
    text = " ".join("".join(check_is_safe(page).text).split())
    assert "Nothing failed in this run." in text
    observed = sample_plans.orders().observed
    assert observed is not None
    # Of the table's files 1,204 became 151.
    assert f"{observed.num_files:,} → {observed.num_files - 1204 + 151:,}files in the table rewritten" in text
    assert "812,440,193 rows were compared: none differed." in text
    assert "812,440,193 rows proven" in text
    assert "2,310 files, 41 GiB deleted" in text
    assert "v1843, before it was committed: 700,000,000 rows read, 700,000,000 read back" in text
    assert "2 of 2 checks passed" in text
    assert "What needs attention" not in text


@pytest.mark.parametrize("holds", [True, False])
def test_a_proof_made_after_the_commit_is_told_as_that(*, holds: bool) -> None:
    run = samples.good_run()
    steps = []
    for step in run.tables[0].steps:
        commits = []
        for receipt in step.commits:
            proof = receipt.proof and replace(receipt.proof, after_commit=True, findings=() if holds else ("a row",))
            commits.append(replace(receipt, proof=proof))
        steps.append(replace(step, commits=tuple(commits)))
    run = replace(run, tables=(replace(run.tables[0], steps=tuple(steps)), *run.tables[1:]))
    text = " ".join("".join(check_is_safe(run_page(run)).text).split())
    assert "which commits first: all rows of the old and the new files were compared after that commit." in text
    assert "v1843, after it was committed: 700,000,000 rows read" in text
    for untrue in ("Only when they were equal", "before it was committed", "proven before commit"):
        assert untrue not in text


def test_a_table_with_a_commit_is_changed_however_it_ended() -> None:
    run = samples.bad_run()
    assert not any(table.status is TableStatus.DONE for table in run.tables)
    view = run_view(sample_plans.plan(sample_plans.orders()), run, {}, UTC, run_folder="x")
    num_changed = sum(any(step.commits for step in table.steps) for table in run.tables)
    vacuumed = sum(any(step.vacuum for step in table.steps) for table in run.tables)
    assert num_changed > 0
    tiles = view.body[0]
    assert isinstance(tiles, Tiles)
    assert tiles.tiles[0] == (f"{num_changed + vacuumed:,} of {len(run.tables):,}", "tables changed", None)


def test_a_table_that_waits_says_what_for_and_not_what_else_was_found() -> None:
    codes = ((ReasonCode.NOTHING_EXPIRED, "nothing is left on storage"), (ReasonCode.OVER_BUDGET, "place 1 of 2"))
    waits = sample_plans.quiet("a.waits", *codes)
    run = RunOutcome(samples.RUN, sample_plans.TEN_PM, 1.0, (TableOutcome(waits.ref, TableStatus.WAITING),))
    (view,) = table_views(sample_plans.plan(waits), run, {}, UTC)
    assert (view.end.status, view.what) == (TableStatus.WAITING, "place 1 of 2")
    assert "waiting held back for now" in said(run_page(run, sample_plans.plan(waits)))


def test_a_bad_run_begins_with_what_failed_and_what_to_do() -> None:
    page = run_page(samples.bad_run())
    text = " ".join("".join(check_is_safe(page).text).split())
    assert text.index("What needs attention") < text.index("Table by table")
    assert "error V503 sales.orders, compact: row count changed" in text
    assert "Next: nothing was vacuumed: v1846 can be restored" in text
    assert "(exit code 5)" in text


NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='x",
    "</style></title></svg>{{ 7*7 }}{% raw %}",
    "javascript:alert(1)",
    "a&b;&lt;",
    "\x1b[31m\u202eevil\x00",
]


@pytest.mark.parametrize("name", NASTY)
def test_a_name_is_only_text(name: str) -> None:
    good = samples.good_run()
    steps = tuple(replace(step, step_id=f"{name}/{step.kind}") for step in good.tables[0].steps)
    first = replace(good.tables[0], ref=TableRef(name), owner=name, policy_file=name, steps=steps)
    plan = sample_plans.plan(sample_plans.orders(), sample_plans.quiet("sales.regions"))
    tables = [replace(plan.tables[0], ref=TableRef(name), owner=name), *plan.tables[1:]]
    layout = ((1, LayoutFigures(9.5, 900, 3.0, 0.5)), (2, LayoutFigures(2.5, 250, 1.0, 0.0)))
    past = {name: TableTimeline((PastPoint(1, 5, 5, 2), PastPoint(2, 9, 9, 1)), layout)}
    outcome = replace(good, tables=(first, *good.tables[1:]))
    nasty_plan = replace(plan, tables=tuple(tables), selection=(name,))
    good = replace(good, tables=(replace(good.tables[0], owner="team"), *good.tables[1:]))
    plain = outline(run_page(good, plan, {"sales.orders": past[name]}))
    for page in (run_page(outcome, nasty_plan, past), render_page(fleet_view([(nasty_plan, outcome)], UTC))):
        page_outline = check_is_safe(page)
        assert not any("<" in tag for tag in page_outline.tags)
        assert printable(name) in "".join(page_outline.text)
    assert outline(run_page(outcome, nasty_plan, past)).tags == plain.tags


@pytest.mark.slow
def test_a_thousand_tables_stay_a_page_of_moderate_size() -> None:
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders(), sample_plans.quiet("sales.regions"))
    sizes = file_sizes([2**e * 3 // 2 for e in range(8, 31) for _ in range(40)])
    observed = replace(sample_plans.observed(7, 920, 2**40), file_sizes=sizes, small_files=90)
    tables: list[TableOutcome] = []
    plans: list[TablePlan] = []
    past: dict[str, TableTimeline] = {}
    for number in range(1000):
        ref = TableRef(f"warehouse.some_longer_schema_name.table_number_{number:04}")
        tables.append(replace(good.tables[0], ref=ref))
        plans.append(replace(plan.tables[0], ref=ref, observed=observed, steps=plan.tables[0].steps))
        past[ref.identifier] = TableTimeline(
            tuple(PastPoint(night, 900 + night, 2**30, 300 + night) for night in range(30)),
            tuple((night, LayoutFigures(90.5 + night % 3, 900, 4.5, 0.25)) for night in range(30)),
        )
    outcome, whole = replace(good, tables=tuple(tables)), replace(plan, tables=tuple(plans))
    page = run_page(outcome, whole, past)
    assert len(page.encode()) < 1_200_000
    assert page.count('<div class="inside"') == MAX_TABLES_WITH_DETAILS
    assert all(f"table_number_{number:04}" in page for number in range(1000))
    fleet = render_page(fleet_view([(whole, outcome)] * 30, UTC))
    assert len(fleet.encode()) < 1_000_000
    check_is_safe(fleet)


def test_a_plan_that_was_saved_earlier_does_not_show_its_old_files_as_the_newest() -> None:
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    idle = replace(good, tables=())

    def night(at_ms: int, num_files: int) -> tuple[Plan, RunOutcome]:
        table = replace(plan.tables[0], observed=sample_plans.observed(7, num_files, 1000), steps=())
        return replace(plan, tables=(table,), created_at_ms=at_ms), idle

    saved_first_applied_last = past_of([night(5, 2), night(1, 30)])
    (past,) = saved_first_applied_last.values()
    assert [(point.at_ms, point.num_files) for point in past.points] == [(1, 30), (5, 2)]


def left_with(sizes: tuple[int, ...], at_ms: int, version: int) -> FilesSeen:
    return FilesSeen(at_ms, version, file_sizes(sizes))


def committed(version: int, removed: tuple[int, ...], added: tuple[int, ...]) -> StepOutcome:
    receipt = replace(
        samples.receipt(version, len(removed), len(added), sum(removed)),
        bytes_added=sum(added), sizes_removed=file_sizes(removed), sizes_added=file_sizes(added),
    )  # fmt: skip
    return replace(samples.compact_done(), commits=(receipt,), started_at_ms=20)


def test_a_saved_plan_that_is_applied_again_shows_the_table_as_it_is_then() -> None:
    """40 files when it was planned; applied it left 1, to which others added 3 before it was applied once more."""
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    table = replace(plan.tables[0], observed=sample_plans.observed(7, 40, 4000), steps=())
    saved = replace(plan, tables=(table,), created_at_ms=1)
    step = replace(committed(8, (100,) * 40, (4000,)), files_after=left_with((4000,), 30, 8))
    first = replace(good, tables=(replace(good.tables[0], steps=(step,)),), started_at_ms=10)
    again_table = replace(table, checked=left_with((4000, 7, 7, 7), 50, 11))
    again = replace(good, tables=(TableOutcome(table.ref, TableStatus.UP_TO_DATE),), started_at_ms=60)
    runs = [(saved, first), (replace(saved, tables=(again_table,)), again)]
    (row,) = fleet_tables(runs, UTC)
    assert [(point.at_ms, point.num_files) for point in row.past.points] == [(1, 40), (20, 40), (30, 1), (50, 4)]
    newest = row.past.points[-1]
    assert (newest.num_files, newest.size_bytes, row.growth_bytes, row.bytes_rewritten) == (4, 4021, 21, 4000)
    assert row.curves[0].text.startswith("files: 40 \u2192 4, ")
    (view,) = table_views(runs[1][0], again, {}, UTC)
    assert (view.num_files_before, view.num_files_after) == (4, 4)


def test_files_before_and_after_are_those_that_the_steps_met_and_left() -> None:
    """Others added five files between the plan and the run: both figures have them."""
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    table = replace(plan.tables[0], observed=sample_plans.observed(7, 3, 30), steps=())
    step = replace(committed(13, (10, 10, 10), (30,)), files_after=left_with((30, 1, 1, 1, 1, 1), 30, 13))
    outcome = replace(good, tables=(replace(good.tables[0], steps=(step,)),))
    (view,) = table_views(replace(plan, tables=(table,)), outcome, {}, UTC)
    assert (view.num_files_before, view.num_files_after) == (8, 6)
    assert sum(bucket.num_files for bucket in view.sizes_before) == 8


def test_the_page_of_a_run_has_its_project_its_day_and_the_picture_of_a_layout() -> None:
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    boxes = LayoutBoxes(("id", "day"), (4, 4), ((0, 3, 0, 3),), 1, ((0, 1, 0, 1),), 1)

    def page_with(boxes: LayoutBoxes) -> str:
        step = replace(good.tables[0].steps[1], boxes=boxes)
        outcome = replace(good, tables=(replace(good.tables[0], steps=(step,)),))
        return render_page(run_view(plan, outcome, {}, UTC, run_folder="", project=ReportProject("acme")))

    page = page_with(boxes)
    assert "acme, Saturday 21 November 2026, 22:00 UTC - maintainer" in said(page)
    assert page.count('class="box ') == 2
    unseen = page_with(replace(boxes, after=None))
    assert "nobody looked afterwards" in unseen
    assert unseen.count('class="box ') == 1


def test_the_picture_of_a_layout_is_in_sight_also_where_tables_like_it_are_folded() -> None:
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    boxes = LayoutBoxes(("id", "day"), (4, 4), ((0, 3, 0, 3),), 1, ((0, 1, 0, 1),), 1)
    plain, pictured = (replace(good.tables[0].steps[1], boxes=drawn) for drawn in (None, boxes))
    ends = [("a", plain), ("b", plain), ("c", pictured), ("d", plain)]
    tables = tuple(replace(good.tables[0], ref=TableRef(name), steps=(step,)) for name, step in ends)
    page = run_page(replace(good, tables=tables), plan)
    above, folded = page.split("each like one above")
    assert 'class="box after"' in above
    assert "<details open>" in above
    assert 'class="box' not in folded
    assert "2 more tables, " in above


def test_a_page_does_not_say_that_no_row_was_lost_where_a_check_failed() -> None:
    for outcome, proven in ((samples.good_run(), True), (samples.bad_run(), False)):
        fleet = render_page(fleet_view([(sample_plans.full_plan(), outcome)], UTC))
        for page in (run_page(outcome), fleet):
            assert ("No rewrite lost a row" in page, "What was proven, and by whom" in page) == (proven, not proven)


@pytest.mark.parametrize("beside", [True, False], ids=["beside a proof", "alone"])
def test_a_proof_that_failed_before_its_commit_counts(beside: bool) -> None:
    """No commit has it: those that landed were all proven."""
    run = samples.good_run()
    proven = run.tables[0]
    wrong = replace(proven.steps[1], commits=(), assertions=(), status=StepStatus.VERIFY_FAILED)
    other = replace(proven, ref=TableRef("b"), steps=(wrong,), status=TableStatus.VERIFY_FAILED)
    outcome = replace(run, tables=(proven, other) if beside else (other,))
    for page in (run_page(outcome), render_page(fleet_view([(sample_plans.full_plan(), outcome)], UTC))):
        assert "In 1 step a verification failed, see above." in said(page)
        assert "none differed" not in said(page)
    (tile,) = [mood for _, text, mood in proof_tiles(WorkDone.of_run(outcome)) if "proven" in text] or [Role.BAD]
    assert tile is Role.BAD


def test_commands_in_texts_are_code_and_nothing_else_is_let_through() -> None:
    assert coded("run `maintainer plan`, then `x`") == "run <code>maintainer plan</code>, then <code>x</code>"
    assert coded("a `<b>\x1b` and a lone ` <i>") == "a <code>&lt;b&gt;\\x1b</code> and a lone ` &lt;i&gt;"
    assert coded("") == ""
