"""Every decision about one table, taken and not taken, each with the policy line behind it: for ``why``."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.model.plan.plan import Checks, TablePlan
from maintainer.model.run.auto_compaction import (
    AUTO_COMPACT,
    LEGACY_AUTO_OPTIMIZE,
    SESSION_ENABLED,
    AutoCompactSwitch,
    SwitchSource,
)
from maintainer.planning.selection.lane_choice import lanes_of
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.document.blocks import Block, Heading, Line, Row, Span, Statement, Subject, Subjects, Table, Text
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.plan.counterfactuals import what_would_change
from maintainer.report.plan.deciding_settings import deciding_settings
from maintainer.report.plan.plan_text import PlanOptions, note_statements, problem_statement, rhythm_lines
from maintainer.report.plan.step_text import describe, left_alone, step_word, with_code
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.units import count_of, format_size

_INDENT = 6
_NOTHING = Statement(Symbol.SAME, "nothing")


def render_why(
    table: TablePlan,
    policy: ResolvedPolicy | None = None,
    options: PlanOptions | None = None,
    style: Style = PLAIN,
    *,
    auto_compact: AutoCompactSwitch | str | None = None,
    at_ms: int = 0,
) -> str:
    """Return the decisions about one table as text, ending in a newline.

    Args:
        table: What planning decided.
        policy: The table's effective policy, for the thresholds and where they were written; None leaves them out.
        options: ``verbose`` names each partition that is left alone; ``tz`` as for a plan.
        style: Colour or none.
        auto_compact: Whether the table's writers compact by themselves, or why nobody can say; None leaves it out.
        at_ms: When it was planned, milliseconds since 1970 UTC.
    """
    blocks = why_blocks(table, policy, options or PlanOptions(), auto_compact=auto_compact, at_ms=at_ms)
    return terminal_text([_heading(table), *blocks], style)


def why_blocks(
    table: TablePlan,
    policy: ResolvedPolicy | None,
    options: PlanOptions,
    *,
    auto_compact: AutoCompactSwitch | str | None = None,
    at_ms: int = 0,
) -> list[Block]:
    """Return the same below its title as a document."""
    document = _decisions(table, options)
    if policy is not None and not table.problem:
        document += _columns("What would change this", what_would_change(table, policy, at_ms))
    if table.writers is not None:
        facts = rhythm_lines(table.writers, options.lost_ratios.get(table.ref, 0.0))
        document += _columns("Other writers", [(f"= {fact}",) for fact in facts])
    if table.rewrites:
        document += _columns("Checked after each rewrite", _checks(table.checks), gap=4)
    if auto_compact is not None:
        document += _columns("Auto compaction by its writers", [(f"= {_switch(auto_compact)}",)])
    if policy is not None:
        settings = [(row.key, row.value, row.place) for row in deciding_settings(table, policy)]
        document += _columns("Decided by", settings, gap=3)
    return document


def _decisions(table: TablePlan, options: PlanOptions) -> list[Block]:
    if table.problem:
        return _section("Cannot be planned", [problem_statement(table)])
    document: list[Block] = []
    if table.blocked:
        statements = [
            Statement(Symbol.BLOCKED, "blocked", (), ((with_code(reason.code, reason.text), reason.origin or ""),))
            for reason in table.blocked
        ]
        document += _section("Blocked: nothing is done until this changes", statements)
    steps = [statement for step in table.steps for statement in describe([step], options.tz)]
    document += _section(f"Will do ({count_of(len(table.steps), 'step')})", [*steps, *note_statements([table])])
    document += _columns("Lanes of its bins", [
        (f"= {step_word(step.kind)}: {count_of(number, 'bin')} in lane {choice.lane}: {choice.reason}",)
        for step in table.rewrites
        for choice, number in lanes_of(step.bins)
    ])  # fmt: skip
    return [*document, *_section("Leaves alone", left_alone(table.left_alone, verbose=options.verbose))]


def _section(title: str, statements: Sequence[Statement]) -> list[Block]:
    subject = Subject("", ("",), tuple(statements) or (_NOTHING,))
    return [Heading(title), Subjects([subject], is_one=True)]


def _columns(title: str, rows: Sequence[tuple[Text, ...]], gap: int = 2) -> list[Block]:
    """Return a section of aligned columns; none without rows."""
    return [Heading(title), Table((), list(map(Row, rows)), gap=gap, indent=_INDENT)] if rows else []


_SOURCE = {
    SwitchSource.ARGUMENT: "the caller says so",
    SwitchSource.SESSION: f"the session says so ({SESSION_ENABLED}), which wins over the table",
    SwitchSource.LEGACY_PROPERTY: (
        f"by the deprecated table property {LEGACY_AUTO_OPTIMIZE}, which wins over {AUTO_COMPACT}"
    ),
    SwitchSource.PROPERTY: f"by the table property {AUTO_COMPACT}",
    SwitchSource.DEFAULT: "not set",
}


def _switch(switch: AutoCompactSwitch | str) -> str:
    if isinstance(switch, str):
        return f"not known: {switch}"
    return f"{'on' if switch.enabled else 'off'}: {_SOURCE[switch.source]}"


def _heading(table: TablePlan) -> Line:
    parts = [""]
    if table.observed:
        files = count_of(table.observed.num_files, "file")
        parts += [f"v{table.observed.version}", f"{format_size(table.observed.size_bytes)} in {files}"]
    parts += [table.source, *([f"owner {table.owner}"] if table.owner else [])]
    return Line((Span(table.ref.identifier, Role.BOLD), "   ".join(parts)))


def _checks(checks: Checks) -> list[tuple[Text, ...]]:
    return [
        ("rowCount", checks.row_count),
        ("content", checks.content),
        ("files", "each live file must exist" if checks.files else "off"),
        *(("expects", f"{each.type} {each.arguments_json}") for each in checks.expectations),
    ]
