"""What the page of a run that goes on shows: what each table is doing now, from the plan and the run's own events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import tzinfo

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import BatchedStep
from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.progress import StepFinished, StepStarted, TableFinished
from maintainer.model.run.run_events import Deleting, RecordOpened, RunEvent
from maintainer.report.document.blocks import Heading, Line, Row, Span, Table, Tiles
from maintainer.report.html.page import Page
from maintainer.report.html.page_parts import page_head
from maintainer.report.html.step_view import mood_of
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import STEP_ENDS, TABLE_ENDS
from maintainer.report.style import Role
from maintainer.report.text_layout import clock_time, moment
from maintainer.units import format_duration, format_size


@dataclass(slots=True)
class _Progress:
    """What the events say of one table so far."""

    began_ms: int | None = None
    doing: str = ""
    doing_since_ms: int = 0
    ended: TableStatus | None = None
    steps: tuple[str, ...] = ()


def live_view(project: str, run_id: str, plan: Plan, events: Iterable[RunEvent], tz: tzinfo, *, now_ms: int) -> Page:
    """Say what a run is doing.

    Args:
        project: The project's name.
        run_id: The run.
        plan: What it carries out.
        events: Its record so far, in order.
        tz: For times.
        now_ms: Now, for how long each step takes.
    """
    progress: dict[str, _Progress] = {}
    started_ms = plan.created_at_ms
    for event in events:
        if isinstance(event, RecordOpened):
            started_ms = event.at_ms
        elif isinstance(event, StepStarted | Deleting | StepFinished):
            _take(progress.setdefault(event.table, _Progress()), event)
        elif isinstance(event, TableFinished):
            progress.setdefault(event.outcome.ref.identifier, _Progress()).ended = event.outcome.status
    busy = [table for table in plan.user_tables if table.steps]
    tables = [_table(table, progress.get(table.ref.identifier, _Progress()), tz, now_ms) for table in busy]
    over = [table for table in busy if progress.get(table.ref.identifier, _Progress()).ended is not None]
    rows = [row for order in (0, 1, 2) for place, row in tables if place == order]
    done = sum(_planned_bytes(table) for table in over if _is_done(progress[table.ref.identifier]))
    since = f"A run goes on since {moment(started_ms, tz):%A %-d %B %Y, %H:%M %Z}".rstrip()
    table = Table(("table", "now", "what", "since"), rows, caption="What each table is doing now")
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


def _is_done(progress: _Progress) -> bool:
    """Whether a table ended with all that was planned; of another one it is not known here how much was rewritten."""
    return progress.ended is TableStatus.DONE


def _planned_bytes(table: TablePlan) -> int:
    return sum(step.size_bytes for step in table.steps if isinstance(step, BatchedStep))


def _take(progress: _Progress, event: StepStarted | Deleting | StepFinished) -> None:
    match event:
        case StepStarted(at_ms=at_ms, kind=kind):
            progress.began_ms = at_ms if progress.began_ms is None else progress.began_ms
            progress.doing, progress.doing_since_ms = step_word(kind), at_ms
        case Deleting(num_deleted=num_deleted, num_files=num_files):
            progress.doing = f"vacuum, {num_deleted} of {num_files} files deleted"
        case StepFinished(outcome=step):
            progress.steps = (*progress.steps, f"{step_word(step.kind)} {STEP_ENDS[step.status].word}")
            progress.doing = ""


def _table(table: TablePlan, progress: _Progress, tz: tzinfo, now_ms: int) -> tuple[int, Row]:
    """Return a table's row, and where it stands: what is worked on first, what waits last."""
    name, planned = table.ref.identifier, ", ".join(step_word(step.kind) for step in table.steps)
    if progress.ended is not None:
        word = Span(TABLE_ENDS[progress.ended].text, mood_of(progress.ended))
        return 1, Row((name, word, ", ".join(progress.steps), ""))
    if progress.began_ms is None:
        return 2, Row((name, "waiting", planned, ""))
    doing = progress.doing or "between two steps"
    seconds = max(0, now_ms - progress.doing_since_ms) / 1000
    since = f"{clock_time(progress.began_ms, tz)}, this step for {format_duration(round(seconds))}"
    return 0, Row((name, Span("working", Role.CHANGE), ", ".join((*progress.steps, doing)), since))
