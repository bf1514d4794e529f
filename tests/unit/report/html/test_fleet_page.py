"""The page of the fleet: counts, its list of runs, what needs attention, quarantine, and its size."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC

import pytest

from maintainer.model.plan.plan import BUILT_IN_POLICY, LeftAlone, Plan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.report.document.blocks import Findings
from maintainer.report.findings import Finding
from maintainer.report.html.fleet_view import MAX_RUNS_LISTED, fleet_tables, fleet_view
from maintainer.report.html.page import Page, render_page
from maintainer.report.html.run_view import NO_PROJECT, ReportProject, run_view
from maintainer.report.html.step_view import verified_words
from maintainer.report.html.table_pages import state_page
from maintainer.report.html.table_past import PastPoint, past_of
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.support.tables.builders import DAY_MS
from tests.unit.report.html.page_outline import check_is_safe, run_page, said


def test_fleet_counts_write_amplification_by_what_others_added() -> None:
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders(), sample_plans.quiet("sales.regions"))
    table = replace(plan.tables[0], observed=replace(sample_plans.observed(7, 10, 1000)))
    commit = replace(samples.receipt(8, 5, 1, 400), bytes_added=300)
    step = replace(samples.compact_done(), commits=(commit,))
    outcome = replace(good, tables=(replace(good.tables[0], steps=(step,)),), started_at_ms=10)
    first = (replace(plan, tables=(table,), created_at_ms=9), outcome)
    later_table = replace(table, observed=sample_plans.observed(9, 9, 1100))
    idle = replace(good, tables=(TableOutcome(table.ref, TableStatus.UP_TO_DATE),), started_at_ms=DAY_MS + 1)
    (row,) = fleet_tables([first, (replace(plan, tables=(later_table,), created_at_ms=DAY_MS), idle)], UTC)
    # 1,000 bytes became 1,100, although our rewrite made 300 of 400: others added 200, and 400 were rewritten.
    assert (row.growth_bytes, row.bytes_rewritten) == (200, 400)
    assert [point.num_files for point in row.past.points] == [10, 6, 9]
    met, left = past_of([first])[row.name].points
    assert (met, left.num_files, left.size_bytes) == (PastPoint(9, 10, 1000), 6, 900)


def night(at_ms: int, *tables: tuple[str, str | None, int], failed: bool = False) -> tuple[Plan, RunOutcome]:
    """A run that met tables by (name, id, files of 100 bytes each); no id: it could not read the table."""
    plan, good = sample_plans.plan(sample_plans.orders()), samples.good_run()
    planned = [
        replace(
            plan.tables[0],
            ref=TableRef(name),
            steps=(),
            observed=None if table_id is None
            else replace(sample_plans.observed(7, files, 100 * files), table_id=table_id, location="file:/lake/t"),
        )
        for name, table_id, files in tables
    ]  # fmt: skip
    commit = replace(samples.receipt(8, 4, 1, 400), bytes_added=400)
    step = replace(samples.compact_done(), commits=(commit,))
    status = TableStatus.FAILED if failed else TableStatus.DONE
    ended = tuple(TableOutcome(table.ref, status, (step,)) for table in planned)
    return replace(plan, tables=tuple(planned), created_at_ms=at_ms), replace(
        good, run_id=f"r{at_ms}", tables=ended, started_at_ms=at_ms + 1
    )


def test_tables_in_one_row_have_no_curve_of_one_of_them() -> None:
    tables = [(f"lake/t{number}", f"id-{number}", 10 + number) for number in range(8)]
    page = render_page(fleet_view([night(10, *tables), night(20, *tables)], UTC))
    joined, each = page.partition('<h2 id="tables">')[2].split("Each of the 8")
    assert "8 tables: " in joined
    assert 'class="line"' not in joined
    assert each.count('class="line"') >= 8


def test_a_table_with_a_new_name_is_one_table_under_that() -> None:
    runs = [night(10, ("old", "id-1", 10), failed=True), night(20, ("new", "id-1", 30)), night(30, ("new", None, 0))]
    (row,) = fleet_tables(runs, UTC)
    assert (row.name, row.runs_failed, row.bytes_rewritten, row.growth_bytes) == ("new", 1, 1200, 2000)
    text = said(render_page(fleet_view(runs, UTC)))
    assert "1 table, 3 runs" in text
    assert "All tables ended well in their last run. Nothing needs a person." in text
    assert "10 \u2192 27files" in text
    assert "rewritten, 0.6 for each byte of growth" in text


def test_our_own_ledger_is_no_table_of_the_page() -> None:
    plan, run = night(10, ("orders", "id-1", 10), ("lake/ledger", "id-2", 1))
    ledger = replace(run.tables[1], policy_file=BUILT_IN_POLICY)
    run = replace(run, tables=(run.tables[0], ledger))
    assert "lake/ledger" not in said(run_page(run, plan))
    bad = replace(ledger, status=TableStatus.FAILED)
    assert "lake/ledger" in said(run_page(replace(run, tables=(run.tables[0], bad)), plan))
    page = said(render_page(fleet_view([(plan, run)], UTC)))
    assert "1 table, 1 run" in page
    assert "lake/ledger" not in page


def test_a_table_that_was_made_anew_has_nothing_of_the_one_before() -> None:
    runs = [night(10, ("t", "id-1", 10), failed=True), night(20, ("t", "id-2", 3))]
    (row,) = fleet_tables(runs, UTC)
    assert (row.name, row.runs_failed, row.bytes_rewritten, row.growth_bytes) == ("t", 0, 400, 0)
    assert "1 table, 2 runs" in said(render_page(fleet_view(runs, UTC)))


def test_a_name_that_went_to_another_table_leaves_both_their_own() -> None:
    tables = fleet_tables([night(10, ("a", "id-1", 10)), night(20, ("b", "id-1", 10), ("a", "id-2", 3))], UTC)
    assert {row.name: row.bytes_rewritten for row in tables} == {"b": 800, "a": 400}


def test_runs_of_shards_are_of_one_fleet() -> None:
    runs = [night(10, ("a", "id-1", 10)), night(20, ("b", "id-2", 10)), night(30, ("a", "id-1", 10))]
    assert "2 tables, 3 runs" in said(render_page(fleet_view(runs, UTC)))
    assert {row.name: row.end.status for row in fleet_tables(runs, UTC)} == dict.fromkeys("ab", TableStatus.DONE)


def test_two_policies_of_one_table_are_one_table() -> None:
    tables = fleet_tables([night(10, ("a", "id-1", 10), ("b", "id-1", 10), failed=True)], UTC)
    assert [(row.name, row.runs_failed) for row in tables] == [("a", 1)]


def test_a_table_that_somebody_else_maintains_too_is_marked_as_the_newest_run_saw_it() -> None:
    (plan, outcome), (later, idle) = night(10, ("t", "id-1", 10)), night(20, ("t", "id-1", 10))
    note = Reason(ReasonCode.MAINTAINED_TWICE, "maintained twice: OPTIMIZE by delta-rs:1")
    marked = replace(plan.tables[0], notes=(note,))
    assert note.text in said(render_page(fleet_view([(replace(plan, tables=(marked,)), outcome)], UTC)))
    runs = [(replace(plan, tables=(marked,)), outcome), (later, idle)]
    assert "maintained twice" not in said(render_page(fleet_view(runs, UTC)))


def test_the_fleet_lists_its_runs_with_links_and_the_commit_of_the_policies() -> None:
    plan = replace(sample_plans.plan(sample_plans.orders()), git_commit="3f2c1a9<b>")
    outcome = samples.good_run()
    page = render_page(fleet_view([(plan, outcome)], UTC, links={outcome.run_id: "runs/a%20b/report.html"}))
    page_outline = check_is_safe(page)
    assert ("href", "runs/a%20b/report.html") in page_outline.attributes
    assert "3f2c1a9<b>" in "".join(page_outline.text)
    without = check_is_safe(render_page(fleet_view([(plan, outcome)], UTC)))
    assert [value for name, value in without.attributes if name == "href"] == ["#tables"]
    assert outcome.run_id in "".join(without.text)


def test_the_list_of_runs_says_that_it_has_the_newest_only_where_it_leaves_some_out() -> None:
    run = (sample_plans.plan(sample_plans.orders()), samples.good_run())
    few, many = (
        "".join(check_is_safe(render_page(fleet_view([run] * number, UTC))).text) for number in (1, MAX_RUNS_LISTED + 1)
    )
    assert "Runs, with the commit of the policies" in few
    assert "The newest" not in few
    assert f"The newest {MAX_RUNS_LISTED} runs, with the commit of the policies" in many


@pytest.mark.slow
def test_two_thousand_tables_of_a_fleet_stay_under_two_megabytes() -> None:
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    names = [TableRef(f"warehouse.some_longer_schema_name.table_number_{number:04}") for number in range(2000)]
    tables = tuple(
        replace(plan.tables[0], ref=ref, observed=sample_plans.observed(7, 920, 2**40, ref.identifier)) for ref in names
    )
    outcome = replace(good, tables=tuple(replace(good.tables[0], ref=ref) for ref in names))
    page = render_page(fleet_view([(replace(plan, tables=tables), outcome)] * 5, UTC))
    assert len(page.encode()) < 2_000_000
    assert page.count('<th scope="row">') == 2006  # five runs, one row for all tables, one each
    assert "2,000 tables: " in page


def findings(page: Page) -> list[Finding]:
    return [finding for block in page.body if isinstance(block, Findings) for finding in block.findings]


def test_the_fleet_names_what_needs_attention_now_and_what_to_do() -> None:
    plan, bad, good = sample_plans.full_plan(), samples.bad_run(), samples.good_run()
    now = fleet_view([(plan, good), (plan, bad)], UTC)
    text = said(render_page(now))
    assert "Nothing needs a person" not in text
    assert "What needs attention" in text
    assert "Next:" in text
    # A table that did well since needs nobody any more.
    assert findings(fleet_view([(plan, bad), (plan, good)], UTC)) == [
        finding for finding in findings(now) if finding.table not in {table.ref.identifier for table in good.tables}
    ]


def test_a_table_in_quarantine_is_marked_with_the_command_that_lets_it_go() -> None:
    plan, outcome = sample_plans.full_plan(), samples.good_run()
    name = outcome.tables[0].ref.identifier
    held = {name: "V503: a check after the change failed"}
    about = ReportProject(quarantined=held)
    of_run = run_view(plan, outcome, {}, UTC, run_folder="/runs/r", project=about)
    of_fleet = fleet_view([(plan, outcome)], UTC, project=about)
    verdict = "Nothing failed in this run, but 1 table is in quarantine now."
    for view, words in ((of_run, verdict), (of_fleet, "1 table is in quarantine")):
        page = render_page(view)
        assert words in said(page)
        assert "Nothing needs a person" not in said(page)
        assert re.search(rf'<p><span class="bad">[^<]*{re.escape(words)}', page)
        (finding,) = [finding for finding in findings(view) if finding.code == "A411"]
        assert finding.headline == (f"{name}: in quarantine, no run changes it until a person has looked: {held[name]}")
        assert f"<code>maintainer verify {name} --accept REASON</code>" in page
        assert page.count('<span class="bad"> in quarantine</span>') == 1


def test_no_word_of_our_own_is_taken_for_a_control_character() -> None:
    runs = [night(10, ("t", "id-1", 90)), night(DAY_MS, ("t", "id-1", 300))]
    pages = [render_page(fleet_view(runs, UTC)), render_page(run_view(*runs[1], past_of(runs), UTC, run_folder="r"))]
    assert [said(page) for page in pages if re.search(r"\\[xu][0-9a-f]", said(page).split("use strict")[0])] == []


def test_a_table_in_quarantine_stands_before_those_that_failed() -> None:
    runs = [night(10, ("big", "id-1", 90), failed=True), night(20, ("held", "id-2", 3))]
    assert [row.name for row in fleet_tables(runs, UTC)] == ["big", "held"]
    assert [row.name for row in fleet_tables(runs, UTC, quarantined={"held": "V503"})] == ["held", "big"]


def test_no_page_says_that_nothing_was_lost_beside_a_quarantine_or_a_wrong_commit() -> None:
    plan, outcome = sample_plans.full_plan(), samples.good_run()
    name = outcome.tables[0].ref.identifier
    by = "OPTIMIZE by other-tool/1.0"
    rows = [
        HistoryRow(3, name, "verify", "succeeded", "r3", version_after=9, proof="pass", reason=by),
        HistoryRow(
            2, name, "verify", "verify_failed", "r2", version_after=5, proof="fail", reason=by, error="1 row gone"
        ),
        HistoryRow(1, name, "verify", "incomplete", "r1", version_after=9, proof="error", reason=by, error="unread"),
    ]
    praise, sober = "No rewrite lost a row", "What was proven, and by whom"
    for held, verified, good in (
        ({}, [], True),
        ({}, rows[:1], True),
        ({}, rows, False),
        ({name: "V507: wrong"}, [], False),
        ({"another.table": "V507: wrong"}, [], True),
    ):
        about = ReportProject(quarantined=held, verified=verified)
        for page in (
            render_page(run_view(plan, outcome, {}, UTC, run_folder="r", project=about)),
            render_page(fleet_view([(plan, outcome)], UTC, project=about)),
        ):
            assert (praise in page, sober in page) == (good, not good)
            text = said(page)
            assert (f"checked version 9 of {name}, {by}: proven (run r3)." in text) == bool(verified)
            assert (f"checked version 5 of {name}, {by}: wrong: 1 row gone (run r2)." in text) == (len(verified) > 1)
            assert "unread" not in text  # a later look at the version counts


def test_a_page_says_what_verify_found_in_its_own_words() -> None:
    found = HistoryRow(
        1, "t", "verify", "incomplete", "r1", version_after=9, reason="OPTIMIZE by other", error="p was 'a'"
    )
    for proof, said_of_it in (("spelled_anew", "SPELLED ANEW"), ("error", "could not check"), ("fail", "wrong")):
        (sentence,) = verified_words([replace(found, proof=proof)])
        expected = f"checked version 9 of t, OPTIMIZE by other: {said_of_it}: p was 'a' (run r1)."
        assert sentence == f"`maintainer verify` {expected}"


def test_a_page_before_the_first_run_names_tables_over_a_limit_and_has_each_table_as_a_card() -> None:
    page = render_page(state_page(NO_PROJECT, "no apply ran yet", sample_plans.full_plan(), [], UTC))
    attention = said(page).partition("What needs attention")[2].partition("What a run would do")[0]
    assert "No apply ran yet, and 2 tables need a person." in said(page)
    assert "warning crm.leads: would rewrite 812 GiB, limits.maxBytes is 500 GiB" in attention
    assert "Next: maintainer why TABLE says what would change this" in attention
    assert attention.count("Next: ") == 2
    assert '<caption class="unseen">What is done to each table, and why</caption>' in page
    heading = re.search(r"<thead><tr>(.*?)</tr></thead>", page)
    assert heading is not None
    assert re.findall(r">([a-z]+)<", heading[1]) == ["table", "step", "what", "why"]
    # What forbids a change is said once: it is no second thing that is left alone.
    blocked = next(table for table in sample_plans.full_plan().tables if table.blocked)
    twice = replace(blocked, left_alone=(LeftAlone(blocked.blocked[0], 30, 2**20),))
    rows = render_page(state_page(NO_PROJECT, "", replace(sample_plans.full_plan(), tables=(twice,)), [], UTC))
    assert "left alone" not in said(rows)


def test_a_page_before_the_first_run_has_figures_first_and_folds_equal_tables() -> None:
    first = sample_plans.orders()
    names = [f"lake/t{number:03}" for number in range(40)]
    plan = sample_plans.plan(*(replace(first, ref=TableRef(name)) for name in names))
    rows = [StatusRow(name, "due", num_files=5, next="compact 1 MiB") for name in names]
    page = render_page(state_page(NO_PROJECT, "no apply ran yet", plan, rows, UTC))
    text = said(page)
    assert text.index("40 of 40tables would change") < text.index("What a run would do")
    now = page.partition("The tables now")[2]
    assert "40 tables: lake/t000, lake/t001, lake/t002 and 37 more" in said(page)
    assert "Each of the 40" in now
    assert now.count("<tr>") == 1 + 1 + 1 + 40
    assert '<th scope="col">table</th><th scope="col">state</th>' in now
    assert 'data-l="next"' in now
    assert re.search(r"<b class=\"\">[0-9.]+&nbsp;[KMGT]?i?B</b>to rewrite", page)
