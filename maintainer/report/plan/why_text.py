"""Every decision about one table, taken and not taken, each with the policy line behind it: for ``why``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maintainer.model.plan.plan import Checks, TablePlan
from maintainer.model.plan.steps import RewriteStep
from maintainer.model.run.auto_compaction import (
    AUTO_COMPACT,
    LEGACY_AUTO_OPTIMIZE,
    SESSION_ENABLED,
    AutoCompactSwitch,
    SwitchSource,
)
from maintainer.planning.selection.lane_choice import lanes_of
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.plan.counterfactuals import lines as change_lines
from maintainer.report.plan.counterfactuals import what_would_change
from maintainer.report.plan.deciding_settings import deciding_settings
from maintainer.report.plan.plan_text import (
    PlanOptions,
    fact_lines,
    left_alone_lines,
    note_lines,
    problem_lines,
    rhythm_lines,
    step_lines,
)
from maintainer.report.plan.step_text import describe, step_word, with_code
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.report.text_layout import columns, printable
from maintainer.units import count_of, format_size


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
        options: ``verbose`` names each partition that is left alone; ``tz`` and ``width`` as for a plan.
        style: Colour or none.
        auto_compact: Whether the table's writers compact by themselves, or why nobody can say; None leaves it out.
        at_ms: When it was planned, milliseconds since 1970 UTC.
    """
    options = options or PlanOptions()
    lines = [_heading(table, style)]

    def section(title: str, body: Iterable[str]) -> None:
        lines.extend(["", style.paint(title, Role.BOLD), *(list(body) or ["      = nothing"])])

    if table.problem:
        section("Cannot be planned", problem_lines(table.problem, style))
    if table.blocked:
        tails = [
            (with_code(reason.code, printable(reason.text)), printable(reason.origin or "")) for reason in table.blocked
        ]
        rows = (line for tail in tails for line in fact_lines(Symbol.BLOCKED, "blocked", "", (tail,), options, style))
        section("Blocked: nothing is done until this changes", rows)
    if not table.problem:
        steps = (line for step in table.steps for line in step_lines(describe(step, options.tz), options, style))
        section(f"Will do ({count_of(len(table.steps), 'step')})", [*steps, *note_lines(table, options, style)])
        lanes = [line for step in table.rewrites for line in _lane_lines(step)]
        if lanes:
            section("Lanes of its bins", lanes)
        section("Leaves alone", left_alone_lines(table.left_alone, options, style))
    if policy is not None and not table.problem:
        changes = what_would_change(table, policy, at_ms)
        if changes:
            section("What would change this", change_lines(changes))
    if table.writers is not None:
        facts = rhythm_lines(table.writers, options.lost_ratios.get(table.ref, 0.0))
        section("Other writers", (f"      = {fact}" for fact in facts))
    if table.rewrites:
        section("Checked after each rewrite", _checks(table.checks))
    if auto_compact is not None:
        section("Auto compaction by its writers", [f"      = {_switch(auto_compact)}"])
    if policy is not None:
        section("Decided by", _settings(table, policy))
    return "\n".join(lines) + "\n"


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
        return f"not known: {printable(switch)}"
    return f"{'on' if switch.enabled else 'off'}: {_SOURCE[switch.source]}"


def _lane_lines(step: RewriteStep) -> Iterator[str]:
    for choice, number in lanes_of(step.bins):
        bins = count_of(number, "bin")
        yield f"      = {step_word(step.kind)}: {bins} in lane {choice.lane}: {printable(choice.reason)}"


def _heading(table: TablePlan, style: Style) -> str:
    parts = [style.paint(printable(table.ref.identifier), Role.BOLD)]
    if table.observed:
        files = count_of(table.observed.num_files, "file")
        parts += [f"v{table.observed.version}", f"{format_size(table.observed.size_bytes)} in {files}"]
    parts.append(printable(table.source))
    if table.owner:
        parts.append(f"owner {printable(table.owner)}")
    return "   ".join(parts)


def _checks(checks: Checks) -> Iterator[str]:
    yield f"      rowCount    {printable(checks.row_count)}"
    yield f"      content     {printable(checks.content)}"
    yield f"      files       {'each live file must exist' if checks.files else 'off'}"
    for expectation in checks.expectations:
        yield f"      expects     {printable(expectation.type)} {printable(expectation.arguments_json)}"


def _settings(table: TablePlan, policy: ResolvedPolicy) -> list[str]:
    rows = deciding_settings(table, policy)
    return columns([(f"      {row.key}", printable(row.value), printable(row.place)) for row in rows], gap=3)
