"""Pages of tables: one with its policy, history and reasons; and all of them as they are, where nothing ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial

from maintainer.model.plan.plan import Plan, TablePlan, TableState
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.policy.diagnostics import Severity
from maintainer.policy.resolve.resolve import Resolution
from maintainer.report.document.blocks import Block, Heading, Line, Span, Text, Tile, Tiles, spans
from maintainer.report.findings import Finding
from maintainer.report.html.fleet_view import FleetTable
from maintainer.report.html.page import Page
from maintainer.report.html.page_parts import attention, ended_cell, folded_tables, page_head
from maintainer.report.html.run_view import ReportProject
from maintainer.report.html.step_view import verified_words
from maintainer.report.html.table_past import table_curves
from maintainer.report.plan.plan_text import PlanTextOptions, subjects_of, summary_lines
from maintainer.report.plan.plan_totals import Totals, rule_lines
from maintainer.report.plan.why_text import why_blocks
from maintainer.report.policy_text import explain_blocks
from maintainer.report.run.run_findings import held_finding, joined, problem_finding
from maintainer.report.status_text import (
    history_table,
    status_cells,
    status_groups,
    status_table,
    status_totals,
)
from maintainer.report.style import Role
from maintainer.report.text_layout import PROOF_WORDS, moment, when
from maintainer.units import count_of, format_size


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What is known of one table from records and policies alone.

    ``planned`` is the table in the newest plan that has it, of ``planned_at_ms``. ``steps`` are those of past runs,
    newest first. ``policy`` is as files say now; None where they name the table no longer, or are wrong.
    """

    table: FleetTable
    planned: TablePlan
    planned_at_ms: int
    steps: Sequence[HistoryRow]
    policy: Resolution | None


def table_page(record: KnownTable, tz: tzinfo) -> Page:
    """Say how a table is, why the newest plan did what it did, what past runs did, and where its policy comes from."""
    table, planned, policy = record.table, record.planned, record.policy
    about = ", ".join((*([f"owner {table.end.owner}"] if table.end.owner else ()), f"policy {planned.source}"))
    verdict = ended_cell(table.end.status, in_quarantine=table.quarantined, failed=table.runs_failed)
    rewritten = format_size(table.bytes_rewritten) if table.bytes_rewritten else "nothing"
    tiles: list[Tile] = [(rewritten, "rewritten by the runs of this report", None)]
    if table.past.points:
        now = table.past.points[-1]
        size = format_size(now.size_bytes)
        tiles = [(f"{now.num_files:,}", "files now", None), (size, "in all of them", None), *tiles]
    if table.last_proof:
        good = Role.GOOD if table.last_proof == PROOF_WORDS["pass"] else Role.BAD
        tiles.append((table.last_proof, "the newest proof", good))
    options = PlanTextOptions(tz=tz, verbose=True)
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
    tiles = tuple(_tiles(Totals(plan.user_tables), plan.num_tables))
    body: list[Block] = [Line(_next_step(plan)), *([Tiles(tiles)] if tiles else []), *attention(joined(findings))]
    if checked := [Line(sentence) for sentence in verified_words(project.verified)]:
        body += [Heading("What was verified"), *checked]
    if plan.tables:
        lines: list[Text] = [*summary_lines(plan), *rule_lines(plan)]
        subjects = subjects_of(plan.tables, PlanTextOptions(tz=tz))
        body += [Heading("What a run would do"), *map(Line, lines)]
        body.append(subjects)
    if rows:
        now_ms, groups = plan.created_at_ms, status_groups(rows)
        heads = status_table((), now_ms, tz=tz)
        row = partial(status_cells, now_ms=now_ms, tz=tz, names_first=True)
        body += [Heading("The tables now", anchor="tables"), *folded_tables(heads, groups, row)]
        body.append(Line(status_totals(rows)))
    return Page(f"{project.name}, {why}", head, body)


def _tiles(totals: Totals, num_tables: int) -> Iterator[Tile]:
    """Yield the figures of a run that would change something."""
    changing = totals.num_tables[TableState.CHANGES]
    if not changing:
        return
    yield f"{changing:,} of {num_tables:,}", "tables would change", None
    if totals.files_rewritten:
        files = f"{totals.files_rewritten:,} \u2192 {totals.files_added:,}"
        yield files, "files in those rewritten", Role.GOOD if totals.files_added < totals.files_rewritten else None
        yield format_size(totals.bytes_rewritten), "to rewrite", None
    if totals.files_deleted:
        yield f"{totals.files_deleted:,}", f"files to delete, {format_size(totals.bytes_deleted)}", None


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
