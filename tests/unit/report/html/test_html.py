"""Reports in HTML: whole, small, without network or script, and every name only text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from datetime import timezone
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import CompactStep, StepKind, ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy, Turn, TurnOutcome
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.table.files_seen import FilesSeen, LayoutBoxes
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import TableRef
from maintainer.report import html
from maintainer.report.html.charts import Column, bar_chart, box_chart, line_chart, size_bars, size_chart
from maintainer.report.html.fleet_view import fleet_view
from maintainer.report.html.page import coded, render_fleet_page, render_run_page
from maintainer.report.html.run_view import MAX_TABLES_WITH_DETAILS, ReportProject, run_view
from maintainer.report.html.table_past import LayoutPoint, PastPoint, TablePast, past_of, table_curves
from maintainer.report.text_layout import printable
from tests.support.runs import sample_runs as samples
from tests.support.tables.builders import DAY_MS

UTC = timezone.utc
TEMPLATES = Path(html.__file__).parent / "templates"
VOID = {"meta", "br", "hr", "img", "input", "link"}
SHORT_FORM = {"rect", "path", "polyline", "circle"}


class Outline(HTMLParser):
    """Checks that tags are closed in order, and keeps what the tests ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SHORT_FORM
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def run_page(outcome: RunOutcome, plan: Plan | None = None, past: dict[str, TablePast] | None = None) -> str:
    return render_run_page(run_view(plan or samples.full_plan(), outcome, past or {}, UTC, run_folder="runs/x"))


def check_is_safe(page: str) -> Outline:
    """Nothing loaded, and a policy that allows exactly the style sheet and the script that are there, one of each."""
    found = outline(page)
    assert not {"link", "img", "iframe", "object", "form", "base"} & set(found.tags)
    assert (found.tags.count("script"), found.tags.count("style")) == (1, 1)
    names = {name for name, _ in found.attributes}
    assert not {name for name in names if name.startswith("on")} | ({"style", "src", "srcset"} & names)
    targets = [value or "" for name, value in found.attributes if name == "href"]
    # Places on the page itself, and reports of single runs beside it: nothing with a scheme or a host.
    assert all(re.fullmatch(r"#.*|(?!/)[\w.%/~-]+/report\.html", target) for target in targets)
    policy = next(value for name, value in found.attributes if name == "content" and value and "default-src" in value)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style[1], script[1])]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert style[1] == (TEMPLATES / "style.css").read_text()
    assert script[1] == (TEMPLATES / "page.js").read_text()
    return found


def test_a_good_run_says_what_was_done_and_how_it_was_proven() -> None:
    page = run_page(samples.good_run())
    text = " ".join("".join(check_is_safe(page).text).split())
    assert "Nothing failed." in text
    observed = samples.orders().observed
    assert observed is not None
    # Of the table's files 1,204 became 151.
    assert f"{observed.num_files:,} → {observed.num_files - 1204 + 151:,}files in the table rewritten" in text
    assert "812,440,193 rows were compared: none differed." in text
    assert "812,440,193 rows proven" in text
    assert "2,310 files, 41 GiB deleted" in text
    assert "v1843, before it was committed: 700,000,000 rows read, 700,000,000 read back" in text
    assert "2 of 2 checks passed" in text
    assert "What needs attention" not in text


def test_a_table_that_waits_says_what_for_and_not_what_else_was_found() -> None:
    codes = ((ReasonCode.NOTHING_EXPIRED, "nothing is left on storage"), (ReasonCode.OVER_BUDGET, "place 1 of 2"))
    waits = samples.quiet("a.waits", *codes)
    run = RunOutcome(samples.RUN, samples.TEN_PM, 1.0, (TableOutcome(waits.ref, TableStatus.WAITING),))
    view = run_view(samples.plan(waits), run, {}, UTC, run_folder="runs/x")
    assert [(table.status, table.detail, table.what) for table in view.tables] == [
        ("waiting", "held back for now", "place 1 of 2")
    ]


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
    plan = samples.plan(samples.orders(), samples.quiet("sales.regions"))
    tables = [replace(plan.tables[0], ref=TableRef(name), owner=name), *plan.tables[1:]]
    layout = (LayoutPoint(1, 9.5, 3.0, 0.5), LayoutPoint(2, 2.5, 1.0, 0.0))
    past = {name: TablePast((PastPoint(1, 5, 5, 2), PastPoint(2, 9, 9, 1)), layout)}
    outcome = replace(good, tables=(first, *good.tables[1:]))
    nasty_plan = replace(plan, tables=tuple(tables), selection=(name,))
    good = replace(good, tables=(replace(good.tables[0], owner="team"), *good.tables[1:]))
    plain = outline(run_page(good, plan, {"sales.orders": past[name]}))
    for page in (run_page(outcome, nasty_plan, past), render_fleet_page(fleet_view([(nasty_plan, outcome)], UTC))):
        found = check_is_safe(page)
        assert not any("<" in tag for tag in found.tags)
        assert printable(name) in "".join(found.text)
    assert outline(run_page(outcome, nasty_plan, past)).tags == plain.tags


def test_a_thousand_tables_stay_a_page_of_moderate_size() -> None:
    good, plan = samples.good_run(), samples.plan(samples.orders(), samples.quiet("sales.regions"))
    sizes = file_sizes([2**e * 3 // 2 for e in range(8, 31) for _ in range(40)])
    observed = replace(samples.observed(7, 920, 2**40), file_sizes=sizes, small_files=90)
    tables: list[TableOutcome] = []
    plans: list[TablePlan] = []
    past: dict[str, TablePast] = {}
    for number in range(1000):
        ref = TableRef(f"warehouse.some_longer_schema_name.table_number_{number:04}")
        tables.append(replace(good.tables[0], ref=ref))
        plans.append(replace(plan.tables[0], ref=ref, observed=observed, steps=plan.tables[0].steps))
        past[ref.identifier] = TablePast(
            tuple(PastPoint(night, 900 + night, 2**30, 300 + night) for night in range(30)),
            tuple(LayoutPoint(night, 90.5 + night % 3, 4.5, 0.25) for night in range(30)),
        )
    outcome, whole = replace(good, tables=tuple(tables)), replace(plan, tables=tuple(plans))
    page = run_page(outcome, whole, past)
    assert len(page.encode()) < 1_200_000
    assert page.count('<div class="inside"') == MAX_TABLES_WITH_DETAILS
    assert all(f"table_number_{number:04}" in page for number in range(1000))
    fleet = render_fleet_page(fleet_view([(whole, outcome)] * 30, UTC))
    assert len(fleet.encode()) < 1_000_000
    check_is_safe(fleet)


def test_fleet_counts_write_amplification_by_what_others_added() -> None:
    good, plan = samples.good_run(), samples.plan(samples.orders(), samples.quiet("sales.regions"))
    table = replace(plan.tables[0], observed=replace(samples.observed(7, 10, 1000)))
    commit = replace(samples.receipt(8, 5, 1, 400), bytes_added=300)
    step = replace(samples.compact_done(), commits=(commit,))
    outcome = replace(good, tables=(replace(good.tables[0], steps=(step,)),), started_at_ms=10)
    first = (replace(plan, tables=(table,), created_at_ms=9), outcome)
    later_table = replace(table, observed=samples.observed(9, 9, 1100))
    idle = replace(good, tables=(TableOutcome(table.ref, TableStatus.UP_TO_DATE),), started_at_ms=DAY_MS + 1)
    view = fleet_view([first, (replace(plan, tables=(later_table,), created_at_ms=DAY_MS), idle)], UTC)
    (row,) = view.tables
    # 1,000 bytes became 1,100, although our rewrite made 300 of 400: others added 200, and 400 were rewritten.
    assert (row.growth_bytes, row.bytes_rewritten, row.amplification) == (200, 400, 2.0)
    assert [point.num_files for point in row.past.points] == [10, 6, 9]
    met, left = past_of([first])[row.name].points
    assert (met, left.num_files, left.size_bytes) == (PastPoint(9, 10, 1000), 6, 900)


def test_a_plan_that_was_saved_earlier_does_not_show_its_old_files_as_the_newest() -> None:
    good, plan = samples.good_run(), samples.plan(samples.orders())
    idle = replace(good, tables=())

    def night(at_ms: int, num_files: int) -> tuple[Plan, RunOutcome]:
        table = replace(plan.tables[0], observed=samples.observed(7, num_files, 1000), steps=())
        return replace(plan, tables=(table,), created_at_ms=at_ms), idle

    saved_first_applied_last = past_of([night(5, 2), night(1, 30)])
    (past,) = saved_first_applied_last.values()
    assert [(point.at_ms, point.num_files) for point in past.points] == [(1, 30), (5, 2)]


def test_the_past_of_a_table_hangs_on_its_id_and_not_on_its_policys_name() -> None:
    good, plan = samples.good_run(), samples.plan(samples.orders())
    idle = replace(good, tables=())

    def night(at_ms: int, name: str, table_id: str, num_files: int) -> tuple[Plan, RunOutcome]:
        observed = replace(samples.observed(7, num_files, 1000), table_id=table_id)
        table = replace(plan.tables[0], ref=TableRef(name), observed=observed, steps=())
        return replace(plan, tables=(table,), created_at_ms=at_ms), idle

    def files(past: TablePast) -> list[int]:
        return [point.num_files for point in past.points]

    renamed = past_of([night(1, "old", "id-1", 10), night(2, "new", "id-1", 9)])
    assert {name: files(past) for name, past in renamed.items()} == {"old": [10, 9], "new": [10, 9]}
    made_anew = past_of([night(1, "t", "id-1", 10), night(2, "t", "id-2", 3)])
    assert {name: files(past) for name, past in made_anew.items()} == {"t": [3]}
    (first, _), (second, _) = night(1, "a", "id-1", 10), night(1, "b", "id-1", 10)
    both = past_of([(replace(first, tables=(*first.tables, *second.tables)), idle)])
    assert {name: files(past) for name, past in both.items()} == {"a": [10], "b": [10]}


def test_curves_of_a_table_say_in_words_from_what_to_what_they_go() -> None:
    past = TablePast(
        (PastPoint(1, 40, 1000, 40), PastPoint(3 * DAY_MS, 12, 1000, 3)),
        (LayoutPoint(1, 9.5, 3.0, 1.0), LayoutPoint(2, 2.25, 1.0, 0.0)),
    )
    curves = table_curves(past, UTC)
    assert [curve.caption for curve in curves] == [
        "files: 40 → 12",
        "bytes: 1000 B",
        "files under minFileSize when planned: 40 → 3",
        "files that a query reads: 9.5 → 2.2",
        "files over one point: 3.0 → 1.0",
        "bytes not on the curve: 100% → 0%",
    ]
    assert (curves[0].span, curves[3].span) == ("1 to 4 Jan", "1 Jan")
    assert "oldest first: 40, 12" in curves[0].chart
    assert table_curves(TablePast((PastPoint(1, 40, 1000),)), UTC) == ()


def test_the_layout_over_time_is_that_before_a_run_and_that_its_turns_left() -> None:
    before, after = LayoutFigures(9.5, 900, 3.0, 1.0), LayoutFigures(2.5, 250, 1.0, 0.0)
    turn = Turn(Strategy.UNINDEXED, "1:x", 100, (1,), before=before, after=LayoutFigures(2.0, 200, 1.0, 0.0))
    good, plan = samples.good_run(), samples.plan(samples.orders())
    batch = next(step for step in plan.tables[0].steps if isinstance(step, CompactStep)).batches[0]
    zorder = ZOrderStep((batch,), ("id",), 2**20, 1, (), turn=turn)
    table = replace(plan.tables[0], steps=(zorder,))
    done = StepOutcome("t", StepKind.ZORDER, StepStatus.SUCCEEDED, 0, 1.0, turns=(TurnOutcome(turn, 8, before, after),))
    outcome = replace(good, tables=(replace(good.tables[0], steps=(done,)),), started_at_ms=10, duration_seconds=2.0)
    found = past_of([(replace(plan, tables=(table,), created_at_ms=9), outcome)])[table.ref.identifier]
    assert found.layout == (LayoutPoint(9, 9.5, 3.0, 1.0), LayoutPoint(2010, 2.5, 1.0, 0.0))


def test_the_fleet_lists_its_runs_with_links_and_the_commit_of_the_policies() -> None:
    plan = replace(samples.plan(samples.orders()), git_commit="3f2c1a9<b>")
    outcome = samples.good_run()
    page = render_fleet_page(fleet_view([(plan, outcome)], UTC, links={outcome.run_id: "runs/a%20b/report.html"}))
    found = check_is_safe(page)
    assert ("href", "runs/a%20b/report.html") in found.attributes
    assert "3f2c1a9<b>" in "".join(found.text)
    without = check_is_safe(render_fleet_page(fleet_view([(plan, outcome)], UTC)))
    assert [value for name, value in without.attributes if name == "href"] == ["#tables"]
    assert outcome.run_id in "".join(without.text)


def test_bars_share_an_axis_and_lose_no_file() -> None:
    before, after = file_sizes([2**e for e in range(3, 33)]), file_sizes([2**30, 2**31])
    bars = size_bars(before, after)
    assert len(bars) <= 14
    assert (sum(one.before for one in bars), sum(one.after for one in bars)) == (30, 2)
    assert all(one.high_bytes == two.low_bytes for one, two in pairwise(bars))


def test_charts_say_in_words_what_they_draw() -> None:
    chart = str(size_chart(file_sizes([1024, 1025]), file_sizes([4096]), "a<b"))
    assert "<title>files of a&lt;b by size</title>" in chart
    assert "before: 2 files from 1 KiB to 2 KiB; after: 1 file from 4 KiB to 8 KiB" in chart
    assert 'role="img"' in chart
    assert chart.count("<rect") == 2
    assert (
        str(size_chart((), (), "t"))
        == str(line_chart([(0, 1)], "n", "d"))
        == str(bar_chart([], "n", unit_text=""))
        == ""
    )
    line = str(line_chart([(0, 0), (5, 10)], "n", "d"))
    assert 'points="3,29 157,3"' in line


def test_a_run_that_failed_carries_a_mark_and_not_only_a_colour() -> None:
    chart = str(bar_chart([Column("1 Jan", "good", 5.0), Column("2 Jan", "failed", 0.0, bad=True)], "n", unit_text=""))
    assert (chart.count('class="after"'), chart.count('class="bad"'), chart.count(">!<")) == (1, 1, 1)
    assert "<desc>good; failed</desc>" in chart


def test_boxes_say_in_words_how_much_of_its_columns_a_file_covers() -> None:
    chart = str(box_chart([(0, 9, 0, 4), (0, 4, 5, 9)], (10, 10), ("a<b", "c"), "before"))
    assert "2 files; on average a file covers 75% of the values of a&lt;b and 50% of those of c" in chart
    # Ten steps are 180 wide: the first box spans all across and the lower half, the second the upper left quarter.
    assert 'd="M14 90h180v90h-180zM14 0h90v90h-90z"' in chart
    assert "0 files" in str(box_chart([], (1, 1), ("a", "b"), "after"))


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
    good, plan = samples.good_run(), samples.plan(samples.orders())
    table = replace(plan.tables[0], observed=samples.observed(7, 40, 4000), steps=())
    saved = replace(plan, tables=(table,), created_at_ms=1)
    step = replace(committed(8, (100,) * 40, (4000,)), left=left_with((4000,), 30, 8))
    first = replace(good, tables=(replace(good.tables[0], steps=(step,)),), started_at_ms=10)
    again_table = replace(table, checked=left_with((4000, 7, 7, 7), 50, 11))
    again = replace(good, tables=(TableOutcome(table.ref, TableStatus.UP_TO_DATE),), started_at_ms=60)
    runs = [(saved, first), (replace(saved, tables=(again_table,)), again)]
    (row,) = fleet_view(runs, UTC).tables
    assert [(point.at_ms, point.num_files) for point in row.past.points] == [(1, 40), (20, 40), (30, 1), (50, 4)]
    assert (row.num_files, row.size_bytes, row.growth_bytes, row.bytes_rewritten) == (4, 4021, 21, 4000)
    assert row.files_over_time is not None
    assert row.files_over_time.caption == "files: 40 \u2192 4"
    (view,) = run_view(runs[1][0], again, {}, UTC, run_folder="").tables
    assert (view.num_files_before, view.num_files_after) == (4, 4)


def test_files_before_and_after_are_those_that_the_steps_met_and_left() -> None:
    """Others added five files between the plan and the run: both figures have them."""
    good, plan = samples.good_run(), samples.plan(samples.orders())
    table = replace(plan.tables[0], observed=samples.observed(7, 3, 30), steps=())
    step = replace(committed(13, (10, 10, 10), (30,)), left=left_with((30, 1, 1, 1, 1, 1), 30, 13))
    outcome = replace(good, tables=(replace(good.tables[0], steps=(step,)),))
    (view,) = run_view(replace(plan, tables=(table,)), outcome, {}, UTC, run_folder="").tables
    assert (view.num_files_before, view.num_files_after) == (8, 6)
    assert sum(bucket.num_files for bucket in view.sizes_before) == 8


def test_the_page_of_a_run_has_its_project_its_day_and_the_picture_of_a_layout() -> None:
    good, plan = samples.good_run(), samples.plan(samples.orders())
    boxes = LayoutBoxes(("id", "day"), (4, 4), ((0, 3, 0, 3),), 1, ((0, 1, 0, 1),), 1)
    step = replace(good.tables[0].steps[1], boxes=boxes)
    outcome = replace(good, tables=(replace(good.tables[0], steps=(step,)),))
    view = run_view(plan, outcome, {}, UTC, run_folder="", project=ReportProject("acme"))
    page = render_run_page(view)
    text = " ".join("".join(check_is_safe(page).text).split())
    assert view.started == "Saturday 21 November 2026, 22:00 UTC"
    assert "acme, Saturday 21 November 2026, 22:00 UTC - maintainer" in text
    assert page.count('class="box ') == 2
    unseen = render_run_page(replace(view, whole=(replace(view.whole[0], boxes=replace(boxes, after=None)),)))
    assert "nobody looked afterwards" in unseen
    assert unseen.count('class="box ') == 1


def test_a_page_does_not_say_that_no_row_was_lost_where_a_check_failed() -> None:
    for outcome, proven in ((samples.good_run(), True), (samples.bad_run(), False)):
        fleet = render_fleet_page(fleet_view([(samples.full_plan(), outcome)], UTC))
        for page in (run_page(outcome), fleet):
            assert ("No rewrite lost a row" in page, "How rows are checked" in page) == (proven, not proven)


def test_two_thousand_tables_of_a_fleet_stay_under_two_megabytes() -> None:
    good, plan = samples.good_run(), samples.plan(samples.orders())
    names = [TableRef(f"warehouse.some_longer_schema_name.table_number_{number:04}") for number in range(2000)]
    tables = tuple(replace(plan.tables[0], ref=ref, observed=samples.observed(7, 920, 2**40)) for ref in names)
    outcome = replace(good, tables=tuple(replace(good.tables[0], ref=ref) for ref in names))
    page = render_fleet_page(fleet_view([(replace(plan, tables=tables), outcome)] * 5, UTC))
    assert len(page.encode()) < 2_000_000
    assert page.count('<th scope="row" class="name">') == 2000


def test_the_fleet_names_what_needs_attention_now_and_what_to_do() -> None:
    plan, bad, good = samples.full_plan(), samples.bad_run(), samples.good_run()
    now = fleet_view([(plan, good), (plan, bad)], UTC)
    text = "".join(check_is_safe(render_fleet_page(now)).text)
    assert now.mood == "bad"
    assert "What needs attention" in text
    assert "Next:" in text
    # A table that did well since needs nobody any more.
    assert fleet_view([(plan, bad), (plan, good)], UTC).findings == tuple(
        finding for finding in now.findings if finding.table not in {table.ref.identifier for table in good.tables}
    )


def test_a_table_in_quarantine_is_marked_with_the_command_that_lets_it_go() -> None:
    plan, outcome = samples.full_plan(), samples.good_run()
    name = outcome.tables[0].ref.identifier
    held = {name: "V503: a check after the change failed"}
    of_run = run_view(plan, outcome, {}, UTC, run_folder="/runs/r", quarantined=held)
    of_fleet = fleet_view([(plan, outcome)], UTC, quarantined=held)
    assert of_fleet.mood == "bad"
    assert "1 table is in quarantine" in of_fleet.verdict
    for findings, page in (
        (of_run.findings, render_run_page(of_run)),
        (of_fleet.findings, render_fleet_page(of_fleet)),
    ):
        (finding,) = [finding for finding in findings if finding.code == "A411"]
        assert finding.headline == (f"{name}: in quarantine, no run changes it until a person has looked: {held[name]}")
        assert f"<code>maintainer verify {name} --accept REASON</code>" in page
        assert page.count('<small class="bad">in quarantine</small>') == 1
        check_is_safe(page)


def test_commands_in_texts_are_code_and_nothing_else_is_let_through() -> None:
    assert coded("run `maintainer plan`, then `x`") == "run <code>maintainer plan</code>, then <code>x</code>"
    assert coded("a `<b>\x1b` and a lone ` <i>") == "a <code>&lt;b&gt;\\x1b</code> and a lone ` &lt;i&gt;"
    assert coded("") == ""
    assert coded("none", inside="span") == "none"
    assert coded("run `x`", inside="span") == "<span>run <code>x</code></span>"


def luminance(color: str) -> float:
    """Relative luminance of a color as WCAG 2 defines it; ``#fff`` or ``#1a2230``."""
    digits = color.removeprefix("#")
    parts = [digits[n : n + 2] for n in (0, 2, 4)] if len(digits) == 6 else [digit * 2 for digit in digits]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (int(part, 16) / 255 for part in parts)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_bars_and_texts_stand_out_in_light_and_dark() -> None:
    """WCAG 2.1: at least 3 to 1 for graphics (1.4.11), 4.5 to 1 for texts (1.4.3), on the page and on its boxes."""
    style = (TEMPLATES / "style.css").read_text()
    themes = [dict(re.findall(r"--(\w+):(#[0-9a-f]+)", theme)) for theme in re.findall(r":root\{([^}]*)\}", style)]
    assert len(themes) == 2
    for theme in themes:
        for least, names in ((3.0, ("before", "after", "bad")), (4.5, ("ink", "soft", "good", "bad", "warn", "after"))):
            for name, ground in ((name, ground) for name in names for ground in ("paper", "box")):
                light, dark = sorted((luminance(theme[name]), luminance(theme[ground])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= least, (name, ground)
