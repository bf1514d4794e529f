"""Reports in HTML: whole, small, without network or script, and every name only text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from datetime import timezone
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import CompactStep, StepKind, ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy, Turn, TurnOutcome
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import TableRef
from maintainer.report.html.charts import (
    LayoutPoint,
    PastPoint,
    TablePast,
    bar_chart,
    line_chart,
    past_of,
    size_bars,
    size_chart,
    table_curves,
)
from maintainer.report.html.fleet_view import fleet_view
from maintainer.report.html.page import render_fleet_page, render_run_page
from maintainer.report.html.run_view import MAX_TABLES_WITH_DETAILS, run_view
from maintainer.report.text_layout import printable
from tests.support.runs import sample_runs as samples
from tests.support.tables.builders import DAY_MS

UTC = timezone.utc
VOID = {"meta", "br", "hr", "img", "input", "link"}
SHORT_FORM = {"rect", "polyline", "circle"}


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
    """No script, nothing loaded, and a policy that allows exactly the style sheet that is there."""
    found = outline(page)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(found.tags)
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
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return found


def test_a_good_run_says_what_was_done_and_how_it_was_proven() -> None:
    page = run_page(samples.good_run())
    text = " ".join("".join(check_is_safe(page).text).split())
    assert "Nothing failed." in text
    assert "1,204 → 151files rewritten" in text
    assert "812,440,193 rows proven" in text
    assert "2,310 files, 41 GiB deleted" in text
    assert "v1843, before it was committed: 700,000,000 rows read, 700,000,000 read back" in text
    assert "2 of 2 checks passed" in text
    assert "What needs a person" not in text


def test_a_table_that_waits_says_what_for_and_not_what_else_was_found() -> None:
    codes = ((ReasonCode.NOTHING_EXPIRED, "nothing is left on storage"), (ReasonCode.OVER_BUDGET, "place 1 of 2"))
    waits = samples.quiet("a.waits", *codes)
    run = RunOutcome(samples.RUN, samples.TEN_PM, 1.0, (TableOutcome(waits.ref, TableStatus.WAITING),))
    view = run_view(samples.plan(waits), run, {}, UTC, run_folder="runs/x")
    assert [(table.status, table.what) for table in view.tables] == [("waiting: held back for now", "place 1 of 2")]


def test_a_bad_run_begins_with_what_failed_and_what_to_do() -> None:
    page = run_page(samples.bad_run())
    text = " ".join("".join(check_is_safe(page).text).split())
    assert text.index("What needs a person") < text.index("Table by table")
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
    past = {name: TablePast((PastPoint(1, 5, 5, 2, 4), PastPoint(2, 9, 9, 1, 3)), layout)}
    outcome = replace(good, tables=(first, *good.tables[1:]))
    nasty_plan = replace(plan, tables=tuple(tables), selection=(name,))
    good = replace(good, tables=(replace(good.tables[0], owner="team"), *good.tables[1:]))
    plain = outline(run_page(good, plan, {"sales.orders": past[name]}))
    for page in (run_page(outcome, nasty_plan, past), render_fleet_page(fleet_view([(nasty_plan, outcome)], UTC))):
        found = check_is_safe(page)
        assert not any("<" in tag for tag in found.tags)
        assert printable(name) in "".join(found.text)
    assert outline(run_page(outcome, nasty_plan, past)).tags == plain.tags


def test_a_thousand_tables_stay_under_a_megabyte() -> None:
    good, plan = samples.good_run(), samples.plan(samples.orders(), samples.quiet("sales.regions"))
    sizes = file_sizes([2**e * 3 // 2 for e in range(8, 31) for _ in range(40)])
    observed = replace(samples.observed(7, 920, 2**40), file_sizes=sizes, small_files=90, small_bytes=2**38)
    tables: list[TableOutcome] = []
    plans: list[TablePlan] = []
    past: dict[str, TablePast] = {}
    for number in range(1000):
        ref = TableRef(f"warehouse.some_longer_schema_name.table_number_{number:04}")
        tables.append(replace(good.tables[0], ref=ref))
        plans.append(replace(plan.tables[0], ref=ref, observed=observed, steps=plan.tables[0].steps))
        past[ref.identifier] = TablePast(
            tuple(PastPoint(night, 900 + night, 2**30, 300 + night, 2**28 + night) for night in range(30)),
            tuple(LayoutPoint(night, 90.5 + night % 3, 4.5, 0.25) for night in range(30)),
        )
    outcome, whole = replace(good, tables=tuple(tables)), replace(plan, tables=tuple(plans))
    page = run_page(outcome, whole, past)
    assert len(page.encode()) < 1_000_000
    assert page.count("<details") == MAX_TABLES_WITH_DETAILS
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
        (PastPoint(1, 40, 1000, 40, 1000), PastPoint(2, 12, 1000, 3, 100)),
        (LayoutPoint(1, 9.5, 3.0, 1.0), LayoutPoint(2, 2.25, 1.0, 0.0)),
    )
    curves = table_curves(past)
    assert [curve.caption for curve in curves] == [
        "files: 40 to 12",
        "bytes: 1000 B to 1000 B",
        "bytes in small files: 100% to 10%",
        "files that a query reads: 9.5 to 2.2",
        "files over one point: 3.0 to 1.0",
        "bytes not on the curve: 100% to 0%",
    ]
    assert "oldest first: 40, 12" in curves[0].chart
    assert table_curves(TablePast((PastPoint(1, 40, 1000),))) == ()


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
    assert not any(name == "href" for name, _ in without.attributes)
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
