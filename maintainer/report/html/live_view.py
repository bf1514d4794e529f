"""What the page of a run that goes on shows: what each table is doing now, from the plan and the fold of its events."""

from __future__ import annotations

from datetime import tzinfo

from maintainer.journal.memory.recorded_outcome import RunFold, StepRecord
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import BatchedStep, Step, VacuumStep
from maintainer.model.run.outcome import TableStatus
from maintainer.report.document.blocks import Heading, Line, Row, Span, TableBlock, Tiles
from maintainer.report.html.page import Page
from maintainer.report.html.page_parts import page_head
from maintainer.report.html.step_view import mood_of
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import STEP_ENDS, TABLE_ENDS
from maintainer.report.style import Role
from maintainer.report.text_layout import clock_time, moment
from maintainer.units import format_duration, format_size


def live_view(project: str, run_id: str, plan: Plan, fold: RunFold, tz: tzinfo, *, now_ms: int) -> Page:
    """Say what a run is doing.

    Args:
        project: The project's name.
        run_id: The run.
        plan: What it carries out.
        fold: What its record comes to so far.
        tz: For times.
        now_ms: Now, for how long each step takes.
    """
    busy = [table for table in plan.user_tables if table.steps]
    tables = [_table(table, fold, tz, now_ms) for table in busy]
    over = [table for table in busy if table.ref in fold.ended]
    rows = [row for order in (0, 1, 2) for place, row in tables if place == order]
    # Of a table that did not end with all that was planned it is not known here how much was rewritten.
    done = sum(_planned_bytes(table) for table in over if fold.ended[table.ref].status is TableStatus.DONE)
    started_ms = fold.started_at_ms or plan.created_at_ms
    since = f"A run goes on since {moment(started_ms, tz):%A %-d %B %Y, %H:%M %Z}".rstrip()
    table = TableBlock(("table", "now", "what", "since"), rows, caption="What each table is doing now")
    looked = "is when this was looked at; the page looks again every few seconds"
    return Page(
        f"{len(over)} of {len(busy)} done, {project}",
        page_head(project, since, f"{len(over):,} of {len(busy):,} tables with work are done", Role.BOLD),
        (
            Tiles((
                (f"{format_size(done)} of {format_size(sum(map(_planned_bytes, busy)))}",
                 "planned to be rewritten is done", None),
                (f"{plan.num_tables - len(busy):,}", "tables with nothing to do", None),
                (clock_time(now_ms, tz), looked, None),
            )),
            Heading("Tables", anchor="tables"),
            table,
            Line(Span(f"Run {run_id}. Nothing can be changed from this page.", Role.DIM)),
        ),
    )  # fmt: skip


def _planned_bytes(table: TablePlan) -> int:
    return sum(step.size_bytes for step in table.steps if isinstance(step, BatchedStep))


def _doing(step: Step, record: StepRecord) -> str:
    if isinstance(step, VacuumStep) and record.num_deleted is not None:
        return f"vacuum, {record.num_deleted} of {len(step.files)} files deleted"
    return step_word(step.kind)


def _table(table: TablePlan, fold: RunFold, tz: tzinfo, now_ms: int) -> tuple[int, Row]:
    """Return a table's row, and where it stands: what is worked on first, what waits last."""
    name = table.ref.identifier
    begun = [(step, record) for step in table.steps if (record := fold.steps.get(table.step_id(step))) is not None]
    finished = [(step, record.finished.outcome) for step, record in begun if record.finished is not None]
    ended = [f"{step_word(step.kind)} {STEP_ENDS[outcome.status].word}" for step, outcome in finished]
    if (outcome := fold.ended.get(table.ref)) is not None:
        word = Span(TABLE_ENDS[outcome.status].text, mood_of(outcome.status))
        return 1, Row((name, word, ", ".join(ended), ""))
    if not begun:
        return 2, Row((name, "waiting", ", ".join(step_word(step.kind) for step in table.steps), ""))
    step, record = begun[-1]
    doing = "between two steps" if record.finished is not None else _doing(step, record)
    seconds = max(0, now_ms - record.started_at_ms) / 1000
    began = clock_time(begun[0][1].started_at_ms, tz)
    since = f"{began}, this step for {format_duration(round(seconds))}"
    return 0, Row((name, Span("working", Role.CHANGE), ", ".join((*ended, doing)), since))
