"""Pages of tables, and of a run that goes on.

A page has one table with its policy, history and reasons; or all of them as they are, where nothing ran; or what each
table is doing now, from the plan and the events of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from maintainer.model.plan.plan import Plan, TablePlan, TableState
from maintainer.model.plan.steps import BatchedStep
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.progress import StepFinished, StepStarted, TableFinished
from maintainer.model.run.run_events import Deleting, RecordOpened, RunEvent
from maintainer.policy.diagnostics import Severity
from maintainer.policy.resolve.resolve import Resolution
from maintainer.report.document.blocks import Block, Heading, Line, Row, Span, Table, Tile, Tiles, spans
from maintainer.report.findings import Finding
from maintainer.report.html.fleet_view import FleetTable
from maintainer.report.html.page import Page
from maintainer.report.html.page_parts import attention, ended_cell, folded_tables, page_head
from maintainer.report.html.run_view import ReportProject
from maintainer.report.html.step_view import mood_of, verified_words
from maintainer.report.html.table_past import table_curves
from maintainer.report.plan.plan_text import PlanOptions, subjects_of, summary_lines
from maintainer.report.plan.plan_totals import Totals, rule_lines, total
from maintainer.report.plan.step_text import step_word
from maintainer.report.plan.why_text import why_blocks
from maintainer.report.policy_text import explain_blocks
from maintainer.report.run.outcome_text import STEP_ENDS, TABLE_ENDS
from maintainer.report.run.run_findings import held_finding, joined, problem_finding
from maintainer.report.status_text import (
    history_table,
    status_groups,
    status_table,
    status_totals,
)
from maintainer.report.style import Role
from maintainer.report.text_layout import PROOF_WORDS, clock_time, moment, when
from maintainer.units import count_of, format_duration, format_size


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What is known of one table from records and policies alone.

    ``planned`` is the table in the newest plan that has it, of ``planned_at_ms``. ``steps`` are those of past runs,
    newest first. ``policy`` is as files say now; None where they name the table no longer, or are wrong.
    """

    table: FleetTable
    planned: TablePlan
    planned_at_ms: int
    steps: Sequence[HistoryRow]
    policy: Resolution | None


def table_page(record: TableRecord, tz: tzinfo) -> Page:
    """Say how a table is, why the newest plan did what it did, what past runs did, and where its policy comes from."""
    table, planned, policy = record.table, record.planned, record.policy
    about = ", ".join((*([f"owner {table.end.owner}"] if table.end.owner else ()), f"policy {planned.source}"))
    verdict = ended_cell(table.end.status, in_quarantine=table.quarantined, failed=table.runs_failed)
    rewritten = format_size(table.bytes_rewritten) if table.bytes_rewritten else "nothing"
    tiles: list[Tile] = [(rewritten, "rewritten by the runs of this report", None)]
    if table.num_files is not None and table.size_bytes is not None:
        size = format_size(table.size_bytes)
        tiles = [(f"{table.num_files:,}", "files now", None), (size, "in all of them", None), *tiles]
    if table.last_proof:
        good = Role.GOOD if table.last_proof == PROOF_WORDS["pass"] else Role.BAD
        tiles.append((table.last_proof, "the newest proof", good))
    options = PlanOptions(tz=tz, verbose=True)
    resolved = None if policy is None else policy.policy
    decided = f"What the plan of {when(record.planned_at_ms, tz)} decided"
    return Page(
        table.name,
        (Heading(table.name, 1), Line(Span(about, Role.DIM)), Line(("Last run: ", *spans(verdict)))),
        (
            Tiles(tiles),
            *([Line(curves)] if (curves := table_curves(table.past, tz)) else ()),
            Heading(decided, anchor="tables"),
            *(replace(block, level=3) if isinstance(block, Heading) else block
              for block in why_blocks(planned, resolved, options, at_ms=record.planned_at_ms)),
            Heading("What past runs did", anchor="history"),
            history_table(record.steps, tz=tz, one_table=True) if record.steps else Line("No step is recorded."),
            Heading("Its policy, and where each value is written", anchor="policy"),
            *(explain_blocks(policy) if policy else [Line("No policy names it now, or its files have errors.")]),
        ),
    )  # fmt: skip


def state_page(project: ReportProject, why: str, plan: Plan, rows: Sequence[StatusRow], tz: tzinfo) -> Page:
    """Say that nothing ran, how the tables are, and what a run would do.

    Args:
        project: The project's name.
        why: Why there is no run to report: a sentence without its full stop.
        plan: What a run would do now.
        rows: The tables as `status` sees them.
        tz: For times.
    """
    findings = sorted(_findings(plan, project.quarantined), key=lambda finding: finding.rank)
    ran, at = f"{why[:1].upper()}{why[1:]}", moment(plan.created_at_ms, tz)
    about = f"{count_of(plan.num_tables, 'table')}, looked at {at:%A %-d %B %Y, %H:%M %Z}".rstrip()
    needs = f", and {count_of(len(findings), 'table needs', 'tables need')} a person" if findings else ""
    head = page_head(project.name, about, f"{ran}{needs}.", Role.BAD if findings else Role.BOLD)
    tiles = _tiles(total(plan.user_tables), plan.num_tables)
    body: list[Block] = [Line(_next_step(plan)), *tiles, *attention(joined(findings))]
    checked = [Line(sentence) for sentence in verified_words(project.verified)]
    if checked:
        body += [Heading("What was verified"), *checked]
    if plan.tables:
        lines = [*summary_lines(plan), *rule_lines(plan)]
        subjects = subjects_of(plan.tables, PlanOptions(tz=tz))
        body += [Heading("What a run would do"), *map(Line, lines)]
        body.append(subjects)
    if rows:
        now_ms, groups = plan.created_at_ms, status_groups(rows)
        table = status_table(groups, now_ms, tz=tz, names_first=True)
        each = [status_table([[row] for row in group], now_ms, tz=tz).rows for group in groups]
        body += [Heading("The tables now", anchor="tables"), *folded_tables(table, each, table.rows)]
        body.append(Line(status_totals(rows)))
    return Page(f"{project.name}, {why}", head, body)


def _tiles(totals: Totals, num_tables: int) -> Iterator[Tiles]:
    """Give the figures of a run that would change something."""
    changing = totals.num_tables[TableState.CHANGES]
    tiles: list[Tile] = [(f"{changing:,} of {num_tables:,}", "tables would change", None)]
    if totals.files_rewritten:
        files = f"{totals.files_rewritten:,} \u2192 {totals.files_added:,}"
        role = Role.GOOD if totals.files_added < totals.files_rewritten else None
        tiles += [(files, "files in those rewritten", role), (format_size(totals.bytes_rewritten), "to rewrite", None)]
    if totals.files_deleted:
        tiles.append((f"{totals.files_deleted:,}", f"files to delete, {format_size(totals.bytes_deleted)}", None))
    if changing:
        yield Tiles(tiles)


def _next_step(plan: Plan) -> str:
    if not plan.tables:
        return (
            "No policy names a table, and no rule finds one below `roots:` or in `databases:` of maintainer.yml. "
            "Correct these: `maintainer inventory FOLDER` lists the tables of a folder."
        )
    if not plan.has_changes:
        return "A run now would change nothing."
    return (
        "`maintainer plan` shows what would be done, and `maintainer apply` does it. Nothing was changed for this page."
    )


def _findings(plan: Plan, quarantined: Mapping[str, str]) -> Iterator[Finding]:
    for table in plan.user_tables:
        name = table.ref.identifier
        if name in quarantined:
            yield held_finding(name, quarantined[name], table.policy_file)
        elif table.problem is not None and table.state is TableState.PROBLEM:
            yield problem_finding(table.problem, Severity.ERROR, table=name)
        elif table.blocked:
            said, place = "; ".join(reason.text for reason in table.blocked), table.blocked[0].origin or ""
            yield Finding(Severity.WARNING, "", said, _WHY, name, file=table.policy_file, where=place, rank=3)


_WHY = "`maintainer why TABLE` says what would change this"
"""The same of all tables, so that those that are blocked alike are one finding."""


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
