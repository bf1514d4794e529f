"""The page of a project in which nothing ran in a time: its tables as they are, and what a run would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

from maintainer.model.plan.plan import Plan, TableState
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.policy.diagnostics import Severity
from maintainer.report.document.blocks import Block, Heading, Line
from maintainer.report.findings import Finding
from maintainer.report.html.page import Page
from maintainer.report.html.page_parts import attention, page_head
from maintainer.report.html.step_view import verified_words
from maintainer.report.plan.plan_text import PlanOptions, subjects_of, summary_lines
from maintainer.report.plan.plan_totals import rule_lines
from maintainer.report.run.run_findings import held_finding, joined, problem_finding
from maintainer.report.status_text import status_blocks
from maintainer.report.style import Role
from maintainer.report.text_layout import moment
from maintainer.units import count_of


def state_page(
    project: str,
    why: str,
    plan: Plan,
    rows: Sequence[StatusRow],
    tz: tzinfo,
    *,
    quarantined: Mapping[str, str],
    verified: Sequence[HistoryRow] = (),
) -> Page:
    """Say that nothing ran, how the tables are, and what a run would do.

    Args:
        project: The project's name.
        why: Why there is no run to report: a sentence without its full stop.
        plan: What a run would do now.
        rows: The tables as `status` sees them.
        tz: For times.
        quarantined: Why a table is in quarantine, by its identifier.
        verified: What `verify` found of these tables, newest first.
    """
    findings = sorted(_findings(plan, quarantined), key=lambda finding: finding.rank)
    ran, at = f"{why[:1].upper()}{why[1:]}", moment(plan.created_at_ms, tz)
    about = f"{count_of(len(plan.user_tables), 'table')}, looked at {at:%A %-d %B %Y, %H:%M %Z}".rstrip()
    needs = f", and {count_of(len(findings), 'table needs', 'tables need')} a person" if findings else ""
    head = page_head(project, about, f"{ran}{needs}.", Role.BAD if findings else Role.BOLD)
    body: list[Block] = [Line(_next_step(plan)), *attention(joined(findings))]
    checked = [Line(sentence) for sentence in verified_words(verified)]
    if checked:
        body += [Heading("What was verified"), *checked]
    if plan.tables:
        lines = [*summary_lines(plan), *rule_lines(plan)]
        subjects = subjects_of(plan.tables, PlanOptions(tz=tz))
        body += [Heading("What a run would do"), *map(Line, lines), subjects]
    if rows:
        body += [Heading("The tables now", anchor="tables"), *status_blocks(rows, plan.created_at_ms, tz=tz)]
    return Page(f"{project}, {why}", head, body)


def _next_step(plan: Plan) -> str:
    if not plan.tables:
        return "No table has a policy: `maintainer inventory` finds tables, `maintainer init` shows how a policy looks."
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
