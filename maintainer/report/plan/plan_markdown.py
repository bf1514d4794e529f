"""A plan as a comment on a pull request: totals, one table, folded details, and what differs from another plan.

Stable from run to run: no times, no table versions and no ages, so that the comment changes only when the plan does.
What a change of policies means is said to the person who reviews it: values before and after, what begins, what ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from maintainer.model.plan.plan import Plan, TableState
from maintainer.policy.project.policy_changes import NOTHING_DELETED, PolicyChanges, PolicyWork, SharedChange
from maintainer.policy.resolve.resolved import NOT_SET
from maintainer.report.document.blocks import (
    Block,
    Bullets,
    CodeBlock,
    Fold,
    Heading,
    Line,
    Row,
    Span,
    Subjects,
    TableBlock,
    Text,
    literal,
    named_literals,
    spans,
)
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.plan.plan_text import (
    PlanTextOptions,
    no_more_to_rewrite,
    subjects_of,
    summary_lines,
    top_subjects,
)
from maintainer.report.plan.plan_totals import Totals, rule_lines
from maintainer.report.plan.step_text import is_named
from maintainer.report.style import Role
from maintainer.units import count_of, format_size

MARKER = "<!-- maintainer:plan -->"
"""First line of the comment, by which a pipeline finds its own comment to update it."""

MAX_CHARACTERS = 60_000
"""GitHub takes 65,536 characters in a comment; the rest is for what a pipeline adds."""

_AROUND = 1_000
"""Of them, for headings and what counts the rest."""

MAX_ERROR_LINES = 100
MAX_ERROR_CHARACTERS = 500
"""Of one line of an error."""

_WITHOUT_TIMES = PlanTextOptions(tz=None)


def render_plan_markdown(plan: Plan, compared: PlanComparison | None = None) -> str:
    """Return the plan as GitHub Markdown of at most ``MAX_CHARACTERS``, ending in a newline.

    What does not fit is counted, never dropped silently.
    """
    first, *rest = summary_lines(plan)
    head: list[Block] = [Heading(_title(plan.environment), 1), Line(Span(first.rstrip("."), Role.BOLD))]
    head += [*map(Line, rest), *([] if plan.tables else [Line("No table is selected.")])]
    head += map(Line, rule_lines(plan))
    parts = [f"{MARKER}\n{markdown_text(head)}"]
    if compared is not None:
        parts.append(markdown_text(comparison_blocks(plan, compared), MAX_CHARACTERS // 2))
    blocks: list[Block] = [Heading("What the next apply does")] if compared is not None else []
    top, others = top_subjects(plan, _WITHOUT_TIMES)
    blocks += [top, *([Fold(no_more_to_rewrite(others), [Subjects(others)])] if others else [])]
    unnamed = [table for table in plan.user_tables if not is_named(table)]
    for word, is_waiting in (("waiting", True), ("up to date", False)):
        if tables := [table for table in unnamed if (table.state is TableState.WAITING) is is_waiting]:
            blocks.append(Fold(f"{count_of(len(tables), 'table')} {word}", [subjects_of(tables, _WITHOUT_TIMES)]))
    parts.append(markdown_text(blocks, MAX_CHARACTERS - _AROUND - sum(map(len, parts))))
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


MAX_VALUE = 200
"""Characters of a value that a cell shows."""

MAX_NAMES = 5
"""Tables that a line names; how many more there are is a number."""

_Change = TypeVar("_Change", bound=Hashable)

STAYS = (
    "What was done to these tables stays: rewritten files, and the properties that were set. From now on nobody "
    "compacts them, and files that their log has removed stay on the storage until somebody deletes them."
)


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """What the plan is compared with: policies at ``ref``, and what they alone would have done to the same tables.

    ``shared`` is what differs in maintainer.yml, rules and profiles.
    """

    ref: str
    changes: PolicyChanges
    plan: Plan
    shared: tuple[SharedChange, ...] = ()


def comparison_blocks(plan: Plan, compared: PlanComparison) -> list[Block]:
    """Return what keeps less, what it costs more or less, changed values, new and deleted policies.

    What differs in files that many tables share comes before what that changes of each table.

    Args:
        plan: By the policies as they are.
        compared: With what.
    """
    changes, ref = compared.changes, literal(compared.ref)
    heading = ("shared file", "value", "before", "now", "reaches")
    rows = [(literal(c.file), literal(c.key), _value(c.before), _value(c.now), _reach(c)) for c in compared.shared]
    shared = _table(heading, rows, ("change of a shared file", "changes of shared files"))
    if not changes.any:
        return [Line(("No table's policy differs from ", ref, ".")), *shared]
    shorter = _alike((change.shorter_retention, change.table) for change in changes.changed)
    less = [_less_kept(tables, *retention) for retention, tables in shorter if retention is not None]
    costs = _next_apply(Totals(compared.plan.user_tables), Totals(plan.user_tables))
    values = [
        (named_literals(tables, MAX_NAMES), literal(value.key), _value(value.before), _value(value.now))
        for changed, tables in _alike((change.values, change.table) for change in changes.changed)
        for value in changed
    ]
    work = ("new policy", "file", "what it asks for"), ("deleted policy", "file", "what is not done any more")
    return [
        Heading(("Changed policies, compared with ", ref)),
        Bullets([*less, *costs], ("change", "changes")),
        *shared,
        *_table(("table", "value", "before", "now"), values, ("changed value", "changed values")),
        *_table(work[0], _work(changes.added), ("new policy", "new policies")),
        *_table(work[1], _work(changes.removed), ("deleted policy", "deleted policies")),
        *([Line(STAYS)] if changes.removed else []),
    ]


def _table(heading: tuple[str, ...], rows: Sequence[tuple[Text, ...]], nouns: tuple[str, str]) -> list[Block]:
    return [TableBlock(heading, list(map(Row, rows)), nouns=nouns)] if rows else []


def _reach(change: SharedChange) -> str:
    return "each run" if change.num_tables is None else count_of(change.num_tables, "table")


def _less_kept(tables: Sequence[str], before: str, now: str) -> Text:
    keep = "keeps" if len(tables) == 1 else "keep"
    change = f" {keep} less: retention {before} -> {now}"
    if before == NOTHING_DELETED:
        change = f": vacuum is new, files are deleted {now} after a commit removed them; until now none was"
    return tuple(replace(span, role=Role.BOLD) for span in spans((*named_literals(tables, MAX_NAMES), change)))


def _alike(changes: Iterable[tuple[_Change, str]]) -> Iterable[tuple[_Change, list[str]]]:
    """Gather the tables that change in the same way: a rule with a new value would give a line for each of them."""
    tables: dict[_Change, list[str]] = {}
    for change, name in changes:
        tables.setdefault(change, []).append(name)
    return tables.items()


def _work(policies: Sequence[PolicyWork]) -> list[tuple[Text, ...]]:
    return [(literal(policy.table), literal(policy.policy_file), ", ".join(policy.work)) for policy in policies]


def _value(text: str) -> Text:
    if text == NOT_SET:
        return text
    return literal(text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text):,} characters)")


def _next_apply(before: Totals, now: Totals) -> list[str]:
    lines = []
    rewrites, deletes = (before.bytes_rewritten, now.bytes_rewritten), (before.bytes_deleted, now.bytes_deleted)
    for what, (old, new) in (("rewrites", rewrites), ("deletes", deletes)):
        if old != new:
            change = f"{format_size(abs(new - old))} {'more' if new > old else 'less'}"
            lines.append(f"the next apply {what} {change}: {format_size(old)} -> {format_size(new)}")
    return lines or ["the next apply rewrites and deletes as much as before"]
