"""What is said of a table's other writers, in a plan and in `why`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.table.commit_records import WriterRhythm
from maintainer.report.plan.plan_lines import PlanOptions, conflict_line, rhythm_lines, share
from maintainer.report.plan.plan_text import render_plan
from maintainer.report.plan.why_text import render_why
from tests.support.runs import sample_runs as samples

DAY_MS = 86_400_000
BUSY = WriterRhythm(0, 4 * DAY_MS + 4 * 3_600_000, 100, (0, 14, *[0] * 12, 11, *[0] * 9))
APPENDS = WriterRhythm(0, 7 * DAY_MS, 1)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "none"),
        (0.0099, "less than 1 %"),
        (0.01, "1 %"),
        (0.118, "12 %"),
        (0.99, "99 %"),
        (0.999, "more than 99 %"),
    ],
)
def test_shares_are_never_more_exact_than_they_are(ratio: float, text: str) -> None:
    assert share(ratio) == text


def test_why_says_what_was_seen_and_when() -> None:
    assert rhythm_lines(BUSY, 0.004) == [
        "100 commits of others in 4d 4h, 25 of them took or replaced live files",
        "most from 01:00 to 02:00 UTC: 14 of 25",
        "expected to be lost to them if it runs now: less than 1 %",
    ]
    assert rhythm_lines(APPENDS, 0.0) == [
        "1 commit of others in 7d, none of them took or replaced live files",
        "expected to be lost to them if it runs now: none",
    ]


def test_a_plan_has_a_line_where_it_is_worth_one() -> None:
    assert conflict_line(BUSY, 0.009) is None
    assert conflict_line(APPENDS, 0.5) == "50 % of this is expected to be lost to other writers, as past runs were"
    plan = samples.full_plan()
    table = replace(next(one for one in plan.tables if one.steps), writers=BUSY)
    line = (
        "      ! conflicts   12 % of this is expected to be lost to other writers: "
        "100 commits of others in 4d 4h, 25 of them took or replaced live files"
    )
    options = PlanOptions(lost_ratios={table.ref: 0.118})
    one = replace(plan, tables=(table,))
    assert line in render_plan(one, options).splitlines()
    assert "conflicts" not in render_plan(one)
    why = render_why(table, options=options).splitlines()
    at = why.index("Other writers")
    assert why[at + 1 : at + 4] == [f"      = {text}" for text in rhythm_lines(BUSY, 0.118)]
    assert "Other writers" not in render_why(replace(table, writers=None))
