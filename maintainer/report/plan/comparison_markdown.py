"""What a change of policies means to the person who reviews it: values before and after, what begins, what ends."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from maintainer.model.plan.plan import Plan
from maintainer.policy.project.policy_changes import PolicyChanges, PolicyWork, TableChange
from maintainer.policy.project.shared_changes import SharedChange
from maintainer.policy.resolve.policy_values import NOT_SET
from maintainer.report.markdown_text import code, escaped, fitting, table
from maintainer.report.plan.step_text import Totals, total
from maintainer.units import count_of, format_size, named

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
class Comparison:
    """What the plan is compared with: policies at ``ref``, and what they alone would have done to the same tables.

    ``shared`` is what differs in maintainer.yml, rules and profiles.
    """

    ref: str
    changes: PolicyChanges
    plan: Plan
    shared: tuple[SharedChange, ...] = ()


def render_comparison(plan: Plan, compared: Comparison, room: int) -> list[str]:
    """Return Markdown lines: what keeps less, what it costs more or less, changed values, new and deleted policies.

    What differs in files that many tables share comes before what that changes of each table.

    Args:
        plan: By the policies as they are.
        compared: With what.
        room: Characters that the tables may take; what does not fit is counted.
    """
    changes, ref = compared.changes, code(compared.ref)
    shared = [
        (code(change.file), code(change.key), _value(change.before), _value(change.now), _reach(change))
        for change in compared.shared
    ]
    shared_header = ("shared file", "value", "before", "now", "reaches")
    if not changes.any:
        lines = [f"No table's policy differs from {ref}."]
        return [*lines, *_table(shared_header, shared, room, *_SHARED)[0]]
    bullets, room = _keep_less(changes.changed, room)
    bullets += [f"* {line}" for line in _next_apply(total(compared.plan.user_tables), total(plan.user_tables))]
    lines = [f"#### Changed policies, compared with {ref}", "", *bullets]
    values = [
        (_codes(tables), code(value.key), _value(value.before), _value(value.now))
        for changed, tables in _alike((change.values, change.table) for change in changes.changed)
        for value in changed
    ]
    for header, rows, noun, plural in (
        (shared_header, shared, *_SHARED),
        (("table", "value", "before", "now"), values, "changed value", "changed values"),
        (("new policy", "file", "what it asks for"), _work(changes.added), "new policy", "new policies"),
        (("deleted policy", "file", "what is not done any more"), _work(changes.removed), *_DELETED),
    ):
        more, room = _table(header, rows, room, noun, plural)
        lines += more
    return [*lines, "", STAYS] if changes.removed else lines


_DELETED = ("deleted policy", "deleted policies")
_SHARED = ("change of a shared file", "changes of shared files")


def _table(
    header: tuple[str, ...], rows: Sequence[tuple[str, ...]], room: int, noun: str, plural: str
) -> tuple[list[str], int]:
    shown, room = fitting(rows, room)
    lines = ["", *table(header, shown)] if shown else []
    rest = len(rows) - len(shown)
    return [*lines, *(["", f"{count_of(rest, f'more {noun}', f'more {plural}')} did not fit."] if rest else [])], room


def _reach(change: SharedChange) -> str:
    return "each run" if change.num_tables is None else count_of(change.num_tables, "table")


def _keep_less(changed: Sequence[TableChange], room: int) -> tuple[list[str], int]:
    """Return a line for each retention that got shorter, with the tables that it is of, and the room that is left."""
    shorter = [(change.shorter_retention, change.table) for change in changed if change.shorter_retention]
    alike = list(_alike(shorter))
    lines = [f"* **{_less_kept(tables, *retention)}**" for retention, tables in alike]
    shown, room = fitting([(line,) for line in lines], room)
    rest = sum(len(tables) for _, tables in alike[len(shown) :])
    more = [f"* **{count_of(rest, 'more table keeps', 'more tables keep')} less**"] if rest else []
    return [*(line for (line,) in shown), *more], room


def _less_kept(tables: Sequence[str], before: str, now: str) -> str:
    keep = "keeps" if len(tables) == 1 else "keep"
    return f"{_codes(tables)} {keep} less: retention {before} -> {now}"


def _alike(changes: Iterable[tuple[_Change, str]]) -> Iterable[tuple[_Change, list[str]]]:
    """Gather the tables that change in the same way: a rule with a new value would give a line for each of them."""
    tables: dict[_Change, list[str]] = {}
    for change, name in changes:
        tables.setdefault(change, []).append(name)
    return tables.items()


def _codes(tables: Sequence[str]) -> str:
    return named([code(table) for table in tables], MAX_NAMES)


def _work(policies: Sequence[PolicyWork]) -> list[tuple[str, ...]]:
    return [(code(policy.table), code(policy.policy_file), escaped(", ".join(policy.work))) for policy in policies]


def _value(text: str) -> str:
    if text == NOT_SET:
        return text
    return code(text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text):,} characters)")


def _next_apply(before: Totals, now: Totals) -> list[str]:
    lines = []
    for old, new, what in (
        (before.bytes_rewritten, now.bytes_rewritten, "rewrites"),
        (before.bytes_deleted, now.bytes_deleted, "deletes"),
    ):
        if old != new:
            more = "more" if new > old else "less"
            lines.append(
                f"the next apply {what} {format_size(abs(new - old))} {more}: {format_size(old)} -> {format_size(new)}"
            )
    return lines or ["the next apply rewrites and deletes as much as before"]
