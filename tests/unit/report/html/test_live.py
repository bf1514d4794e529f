"""The page of a run that goes on: each table with work, what it is doing now, and how much is done."""

from __future__ import annotations

from datetime import UTC

from maintainer.journal.memory.recorded_outcome import RunFold
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import StepFinished, StepStarted, TableFinished
from maintainer.model.run.run_events import Deleting, RecordOpened, RunEvent
from maintainer.report.document.blocks import TableBlock, Tiles
from maintainer.report.document.terminal_writer import plain
from maintainer.report.html.live_view import live_view
from maintainer.report.html.page import Page, Served, render_page
from maintainer.units import format_size
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

UTC = UTC
ORDERS = sample_plans.orders()
NAME = ORDERS.ref.identifier


def seen(*events: RunEvent, now_ms: int = sample_plans.TEN_PM + 65_000) -> Page:
    plan = sample_plans.plan(ORDERS, sample_plans.quiet("sales.regions"))
    begun = RecordOpened(sample_plans.TEN_PM, samples.RUN, 1)
    return live_view("acme", samples.RUN, plan, RunFold.of([begun, *events]), UTC, now_ms=now_ms)


def rows(page: Page) -> list[tuple[str, ...]]:
    (table,) = (block for block in page.body if isinstance(block, TableBlock))
    return [tuple(map(plain, row.cells)) for row in table.rows]


def figures(page: Page) -> list[str]:
    (tiles,) = (block for block in page.body if isinstance(block, Tiles))
    return [figure for figure, _, _ in tiles.tiles]


def starts(kind: StepKind) -> StepStarted:
    return StepStarted(sample_plans.TEN_PM, NAME, f"{NAME}/{kind}", kind, 1)


def ends(kind: StepKind, status: StepStatus) -> StepFinished:
    outcome = StepOutcome(f"{NAME}/{kind}", kind, status, sample_plans.TEN_PM, 1.0)
    return StepFinished(sample_plans.TEN_PM, NAME, 1, outcome)


def over(status: TableStatus) -> TableFinished:
    return TableFinished(sample_plans.TEN_PM, TableOutcome(ORDERS.ref, status))


def test_a_table_waits_then_works_then_is_done() -> None:
    assert rows(seen()) == [(NAME, "waiting", "properties, compact, vacuum", "")]
    begins = starts(StepKind.COMPACT)
    (works,) = rows(seen(ends(StepKind.SET_PROPERTIES, StepStatus.SUCCEEDED), begins))
    assert works == (NAME, "working", "properties OK, compact", "22:00:00, this step for 1m 5s")
    deleted = Deleting(sample_plans.TEN_PM, NAME, "id", "mem:/t", f"{NAME}/vacuum", 1, 2)
    (deletes,) = rows(seen(starts(StepKind.VACUUM), deleted))
    assert deletes[2] == "vacuum, 1 of 2 files deleted"
    ended = seen(begins, ends(StepKind.COMPACT, StepStatus.FAILED), over(TableStatus.FAILED))
    assert rows(ended) == [(NAME, "failed", "compact FAIL", "")]
    assert '<span class="bad">failed</span>' in render_page(ended)
    planned = format_size(sum(step.size_bytes for step in ORDERS.rewrites))
    assert ended.title.startswith("1 of 1 done")
    assert figures(ended)[:2] == [f"0 B of {planned}", "1"], "nothing is known to be rewritten"
    done = seen(begins, ends(StepKind.COMPACT, StepStatus.SUCCEEDED), over(TableStatus.DONE))
    assert figures(done)[0] == f"{planned} of {planned}"


def test_the_page_asks_again_by_itself() -> None:
    page = render_page(seen(starts(StepKind.ZORDER)), Served("/", "/live", 3))
    assert '<meta http-equiv="refresh" content="3">' in page
    assert "0 of 1 tables with work are done" in page
    assert "<title>0 of 1 done, acme - maintainer</title>" in page
