"""What a plan adds up to, in a line or two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from maintainer.model.plan.plan import Plan, TablePlan, TableState, is_place
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.report.document.blocks import Text, literal, named_texts
from maintainer.report.plan.step_text import step_word
from maintainer.report.text_layout import unsearched
from maintainer.units import count_of, format_size


class Totals:
    """What tables of a plan add up to; counted here, stored nowhere."""

    def __init__(self, tables: Sequence[TablePlan]) -> None:
        rewrites = [step for table in tables for step in table.rewrites]
        vacuums = [step for table in tables for step in table.steps if isinstance(step, VacuumStep)]
        self.num_tables = Counter(table.state for table in tables if not is_place(table))
        self.num_places = sum(map(is_place, tables))
        self.num_steps = Counter(step_word(step.kind) for table in tables for step in table.steps)
        self.files_rewritten = sum(step.num_files for step in rewrites)
        self.bytes_rewritten = sum(step.size_bytes for step in rewrites)
        self.files_added = sum(step.num_files_added for step in rewrites)
        self.files_deleted = sum(len(step.files) for step in vacuums)
        self.bytes_deleted = sum(step.size_bytes for step in vacuums)


_REST_WORDS = {
    TableState.WAITING: "waiting",
    TableState.BLOCKED: "blocked",
    TableState.UNSUPPORTED: "not supported",
    TableState.PROBLEM: "cannot be planned",
}


def tables_line(totals: Totals) -> str:
    """Print ``2 tables to change, 4 steps (compact 2, properties 1, vacuum 1); 34 up to date, 1 blocked``."""
    kinds = ", ".join(f"{word} {number:,}" for word, number in sorted(totals.num_steps.items()))
    text = f"{count_of(totals.num_tables[TableState.CHANGES], 'table')} to change, "
    text += count_of(sum(totals.num_steps.values()), "step") + (f" ({kinds})" if kinds else "")
    rest = [f"{totals.num_tables[TableState.UP_TO_DATE]:,} up to date"]
    rest += [f"{totals.num_tables[state]:,} {word}" for state, word in _REST_WORDS.items() if totals.num_tables[state]]
    return f"{text}; {', '.join(rest)}{unsearched(totals.num_places)}"


def _is_too_small(table: TablePlan) -> bool:
    return any(entry.reason.code is ReasonCode.BELOW_MIN_SIZE for entry in table.left_alone)


MAX_TABLES_NAMED = 12
"""Tables named in one line; the rest is counted."""


def rule_lines(plan: Plan) -> list[Text]:
    """Say how many tables rules manage, which of them are new, and which are gone; nothing where no rule does."""
    managed = [table for table in plan.tables if table.rule_line is not None and not _is_too_small(table)]
    lines: list[Text] = []
    if managed:
        lines.append(f"Managed by rules, without a file of their own: {count_of(len(managed), 'table')}.")
    if new := [(literal(table.ref.identifier),) for table in managed if table.is_new]:
        lines.append((f"New since the last run ({len(new):,}): ", *named_texts(new, MAX_TABLES_NAMED), "."))
    if gone := [(literal(table.ref.identifier), " (", literal(table.source), ")") for table in plan.gone]:
        lines.append((f"Gone since the last run ({len(gone):,}): ", *named_texts(gone, MAX_TABLES_NAMED), "."))
    return lines


def cost_line(totals: Totals) -> str | None:
    """Print ``Rewrites 41.5 GiB in 1,300 files into about 157 files; deletes 2,310 files, 41 GiB.``, or None."""
    parts = []
    if totals.files_rewritten:
        parts.append(
            f"rewrites {format_size(totals.bytes_rewritten)} in {count_of(totals.files_rewritten, 'file')} "
            f"into about {count_of(totals.files_added, 'file')}"
        )
    if totals.files_deleted:
        parts.append(f"deletes {count_of(totals.files_deleted, 'file')}, {format_size(totals.bytes_deleted)}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else None
