"""A plan as a comment on a pull request: totals, one table, folded details, and what differs from another plan.

Stable from run to run: no times, no table versions and no ages, so that the comment changes only when the plan does.
"""

from __future__ import annotations

from collections.abc import Iterable

from maintainer.model.plan.plan import Plan, TableState
from maintainer.report.document.blocks import Block, CodeBlock, Fold, Heading, Line, Span
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.plan.comparison_markdown import Comparison, comparison_blocks
from maintainer.report.plan.plan_text import PlanOptions, subjects_of, summary_lines
from maintainer.report.plan.plan_totals import rule_lines
from maintainer.report.plan.step_text import is_named
from maintainer.report.style import Role
from maintainer.units import count_of

MARKER = "<!-- maintainer:plan -->"
"""First line of the comment, by which a pipeline finds its own comment to update it."""

MAX_CHARACTERS = 60_000
"""GitHub takes 65,536 characters in a comment; the rest is for what a pipeline adds."""

_AROUND = 1_000
"""Of them, for headings and what counts the rest."""

MAX_ERROR_LINES = 100
MAX_ERROR_CHARACTERS = 500
"""Of one line of an error."""

_WITHOUT_TIMES = PlanOptions(tz=None)


def render_plan_markdown(plan: Plan, max_characters: int = MAX_CHARACTERS, compared: Comparison | None = None) -> str:
    """Return the plan as GitHub Markdown of at most ``max_characters``, ending in a newline.

    What does not fit is counted, never dropped silently.
    """
    first, *rest = summary_lines(plan)
    head: list[Block] = [Heading(_title(plan.environment), 1), Line(Span(first.rstrip("."), Role.BOLD))]
    head += [*map(Line, rest), *([] if plan.tables else [Line("No table is selected.")])]
    head += map(Line, rule_lines(plan))
    parts = [f"{MARKER}\n{markdown_text(head)}"]
    if compared is not None:
        parts.append(markdown_text(comparison_blocks(plan, compared), max_characters // 2))
    blocks: list[Block] = [Heading("What the next apply does")] if compared is not None else []
    blocks.append(subjects_of(filter(is_named, plan.tables), _WITHOUT_TIMES))
    unnamed = [table for table in plan.user_tables if not is_named(table)]
    for word, is_waiting in (("waiting", True), ("up to date", False)):
        tables = [table for table in unnamed if (table.state is TableState.WAITING) is is_waiting]
        if tables:
            blocks.append(Fold(f"{count_of(len(tables), 'table')} {word}", [subjects_of(tables, _WITHOUT_TIMES)]))
    parts.append(markdown_text(blocks, max_characters - _AROUND - sum(map(len, parts))))
    return "\n".join(part for part in parts if part.strip())


def render_failure_markdown(error: str, findings: Iterable[str] = (), environment: str | None = None) -> str:
    """Return the comment that stands where a plan would, when there is none: the error as it is on the terminal.

    Args:
        error: The error, in one or several lines.
        findings: What is wrong in the policies, a line each.
        environment: Of which environment the plan was to be.
    """
    lines = [*error.splitlines(), *findings]
    rest = len(lines) - MAX_ERROR_LINES
    shown = [line[:MAX_ERROR_CHARACTERS] for line in lines[:MAX_ERROR_LINES]]
    more = [f"and {count_of(rest, 'more line')}"] if rest > 0 else []
    text = Line(Span("There is no plan, because of this error:", Role.BOLD))
    return f"{MARKER}\n{markdown_text([Heading(_title(environment), 1), text, CodeBlock([*shown, *more])])}"


def _title(environment: str | None) -> str:
    return f"maintainer plan ({environment})" if environment else "maintainer plan"
