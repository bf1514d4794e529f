"""Charts of reports: bars, curves and boxes, what they say in words, and the past of a table."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC
from itertools import pairwise

from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import CompactStep, StepKind, ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy, TurnOutcome, ZOrderTurn
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import TableRef
from maintainer.report.html.charts import Column, bar_chart, box_chart, line_chart, size_bars, size_chart
from maintainer.report.html.table_past import PastPoint, TableTimeline, past_of, table_curves
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.support.tables.builders import DAY_MS
from tests.unit.report.html.page_outline import TEMPLATES


def test_the_past_of_a_table_hangs_on_its_id_and_not_on_its_policys_name() -> None:
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    idle = replace(good, tables=())

    def night(at_ms: int, name: str, table_id: str, num_files: int) -> tuple[Plan, RunOutcome]:
        observed = replace(sample_plans.observed(7, num_files, 1000), table_id=table_id)
        table = replace(plan.tables[0], ref=TableRef(name), observed=observed, steps=())
        return replace(plan, tables=(table,), created_at_ms=at_ms), idle

    def files(past: TableTimeline) -> list[int]:
        return [point.num_files for point in past.points]

    renamed = past_of([night(1, "old", "id-1", 10), night(2, "new", "id-1", 9)])
    assert {name: files(past) for name, past in renamed.items()} == {"old": [10, 9], "new": [10, 9]}
    made_anew = past_of([night(1, "t", "id-1", 10), night(2, "t", "id-2", 3)])
    assert {name: files(past) for name, past in made_anew.items()} == {"t": [3]}
    (first, _), (second, _) = night(1, "a", "id-1", 10), night(1, "b", "id-1", 10)
    both = past_of([(replace(first, tables=(*first.tables, *second.tables)), idle)])
    assert {name: files(past) for name, past in both.items()} == {"a": [10], "b": [10]}


def test_curves_of_a_table_say_in_words_from_what_to_what_they_go() -> None:
    past = TableTimeline(
        (PastPoint(1, 40, 1000, 40), PastPoint(3 * DAY_MS, 12, 1000, 3)),
        ((1, LayoutFigures(9.5, 900, 3.0, 1.0)), (2, LayoutFigures(2.25, 250, 1.0, 0.0))),
    )
    curves = table_curves(past, UTC)
    assert [curve.text for curve in curves] == [
        "files: 40 → 12, 1 to 4 Jan",
        "bytes: 1000 B, 1 to 4 Jan",
        "files under minFileSize when planned: 40 → 3, 1 to 4 Jan",
        "files that a query reads: 9.5 → 2.2, 1 Jan",
        "files over one point: 3.0 → 1.0, 1 Jan",
        "bytes not on the curve: 100% → 0%, 1 Jan",
    ]
    assert "oldest first: 40, 12" in curves[0].drawing
    assert table_curves(TableTimeline((PastPoint(1, 40, 1000),)), UTC) == ()


def test_the_layout_over_time_is_that_before_a_run_and_that_its_turns_left() -> None:
    before, after = LayoutFigures(9.5, 900, 3.0, 1.0), LayoutFigures(2.5, 250, 1.0, 0.0)
    turn = ZOrderTurn(Strategy.UNINDEXED, "1:x", 100, (1,), before=before, after=LayoutFigures(2.0, 200, 1.0, 0.0))
    good, plan = samples.good_run(), sample_plans.plan(sample_plans.orders())
    batch = next(step for step in plan.tables[0].steps if isinstance(step, CompactStep)).batches[0]
    zorder = ZOrderStep((batch,), ("id",), 2**20, 1, (), planned_turn=turn)
    table = replace(plan.tables[0], steps=(zorder,))
    done = StepOutcome("t", StepKind.ZORDER, StepStatus.SUCCEEDED, 0, 1.0, turns=(TurnOutcome(turn, 8, before, after),))
    outcome = replace(good, tables=(replace(good.tables[0], steps=(done,)),), started_at_ms=10, duration_seconds=2.0)
    past = past_of([(replace(plan, tables=(table,), created_at_ms=9), outcome)])[table.ref.identifier]
    assert past.layout == ((9, before), (2010, after))


def test_bars_share_an_axis_and_lose_no_file() -> None:
    before, after = file_sizes([2**e for e in range(3, 33)]), file_sizes([2**30, 2**31])
    bars = size_bars(before, after)
    assert len(bars) <= 14
    assert (sum(bar.before for bar in bars), sum(bar.after for bar in bars)) == (30, 2)
    assert all(lower.high_bytes == upper.low_bytes for lower, upper in pairwise(bars))


def test_charts_say_in_words_what_they_draw() -> None:
    chart = str(size_chart(file_sizes([1024, 1025]), file_sizes([4096]), "a<b"))
    assert 'aria-label="files of a&lt;b by size: before: ' in chart
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
    assert ': good; failed" viewBox' in chart


def test_boxes_say_in_words_how_much_of_its_columns_a_file_covers() -> None:
    chart = str(box_chart([(0, 9, 0, 4), (0, 4, 5, 9)], (10, 10), ("a<b", "c"), "before"))
    assert "2 files; on average a file covers 75% of the values of a&lt;b and 50% of those of c" in chart
    # Ten steps are 180 wide: the first box spans all across and the lower half, the second the upper left quarter.
    assert 'd="M14 90h180v90h-180zM14 0h90v90h-90z"' in chart
    assert "0 files" in str(box_chart([], (1, 1), ("a", "b"), "after"))


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


def test_quotation_marks_end_no_name() -> None:
    chart = str(line_chart([(0, 0), (5, 10)], 'n" onload="x', 'd"e'))
    assert 'aria-label="n&#34; onload=&#34;x: d&#34;e" viewBox' in chart
