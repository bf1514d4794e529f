"""The page of a run that goes on: each table with work, what it is doing now, and how much is done."""

from __future__ import annotations

from datetime import timezone
from typing import Any

from maintainer.report.html.live_view import LiveView, live_view
from maintainer.report.html.page import Served, render_live_page
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

UTC = timezone.utc
ORDERS = sample_plans.orders()
NAME = ORDERS.ref.identifier


def seen(*events: dict[str, Any], now_ms: int = sample_plans.TEN_PM + 65_000) -> LiveView:
    plan = sample_plans.plan(ORDERS, sample_plans.quiet("sales.regions"))
    begun = {"type": "run_started", "at_ms": sample_plans.TEN_PM}
    return live_view("acme", samples.RUN, plan, [begun, *events], UTC, now_ms=now_ms)


def event(of: str, /, at_ms: int = sample_plans.TEN_PM, **fields: object) -> dict[str, Any]:
    return {"type": of, "at_ms": at_ms, "table": NAME, **fields}


def test_a_table_waits_then_works_then_is_done() -> None:
    (waits,) = seen().tables
    assert (waits.state, waits.what) == ("waiting", "properties, compact, vacuum")
    begins = event("step_started", kind="compact", step="x")
    (works,) = seen(event("step_finished", kind="properties", status="succeeded"), begins).tables
    assert (works.state, works.what) == ("working", "properties OK, compact")
    assert works.since == "22:00:00, this step for 1m 5s"
    (deletes,) = seen(begins, event("deleting", num_deleted=500, num_files=2310)).tables
    assert deletes.what == "vacuum, 500 of 2310 files deleted"
    ended = seen(
        begins, event("step_finished", kind="compact", status="failed"), event("table_finished", status="failed")
    )
    assert [(table.state, table.mood, table.what) for table in ended.tables] == [("failed", "bad", "compact FAIL")]
    assert (ended.done, ended.total, ended.idle) == (1, 1, 1)
    planned = sum(step.size_bytes for step in ORDERS.rewrites)
    assert (ended.bytes_done, ended.bytes_total) == (0, planned), "nothing is known to be rewritten"
    done = seen(
        begins, event("step_finished", kind="compact", status="succeeded"), event("table_finished", status="done")
    )
    assert (done.bytes_done, done.bytes_total) == (planned, planned)


def test_what_an_event_does_not_say_is_passed_over() -> None:
    odd = [{"type": "note"}, event("step_finished", kind="compact", status="?"), event("table_finished", status=None)]
    (table,) = seen(*odd, event("step_started", at_ms="then")).tables  # type: ignore[arg-type]
    assert (table.state, table.what) == ("ended", "compact ended")


def test_the_page_asks_again_by_itself() -> None:
    page = render_live_page(seen(event("step_started", kind="zorder")), Served("/", "/live", 3))
    assert '<meta http-equiv="refresh" content="3">' in page
    assert "0 of 1 tables with work are done" in page
    assert "<title>0 of 1 done, acme - maintainer</title>" in page
