"""The part of a plan's comment that compares with the base branch: what a change of policies means for the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.model.plan.plan import Plan
from maintainer.policy.project.policy_changes import PolicyChanges, TableChange
from maintainer.report.plan.step_text import Totals, total
from maintainer.report.text.markdown import code, escaped, folded, table
from maintainer.report.text.text_layout import count, named
from maintainer.units import format_size

MAX_NAMES = 12
"""Tables named in a sentence; the rest is counted."""

MAX_VALUES = 200
"""Changed values listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the plan is compared with: policies at ``ref``, and what they alone would have done to the same tables."""

    ref: str
    changes: PolicyChanges
    plan: Plan


def render_comparison(plan: Plan, compared: Comparison) -> list[str]:
    """Return Markdown lines: tables that come in, go out, change; what tonight costs more or less; what keeps less.

    Args:
        plan: By the policies as they are.
        compared: With what.
    """
    changes = compared.changes
    if not changes.any:
        return [f"Compared with {code(compared.ref)}: no table's policy changes."]
    lines = [f"Compared with {code(compared.ref)}:", ""]
    for names, verb in ((changes.added, "in"), (changes.removed, "out")):
        if names:
            comes = ("comes" if len(names) == 1 else "come") if verb == "in" else ("goes" if len(names) == 1 else "go")
            lines.append(f"* {count(len(names), 'table')} {comes} {verb}: {_names(names)}")
    if changes.changed:
        verb = "changes" if len(changes.changed) == 1 else "change"
        names = tuple(change.table for change in changes.changed)
        lines.append(f"* {count(len(names), 'table')} {verb}: {_names(names)}")
    lines += [f"* **{_keeps_less(change)}**" for change in changes.changed if change.shorter_retention]
    lines += [f"* {line}" for line in _tonight(total(compared.plan.user_tables), total(plan.user_tables))]
    values = [
        (escaped(change.table), code(value.key), code(value.before), code(value.now))
        for change in changes.changed
        for value in change.values
    ]
    if values:
        shown = table(("table", "value", "before", "now"), values[:MAX_VALUES])
        more = [] if len(values) <= MAX_VALUES else ["", f"and {len(values) - MAX_VALUES:,} more"]
        lines += ["", *folded(f"{count(len(values), 'value')} that change", [*shown, *more])]
    return lines


def _names(names: Sequence[str]) -> str:
    return named([escaped(name) for name in names], MAX_NAMES)


def _keeps_less(change: TableChange) -> str:
    assert change.shorter_retention is not None
    before, now = change.shorter_retention
    return f"{escaped(change.table)} keeps less: retention {before} -&gt; {now}"


def _tonight(before: Totals, now: Totals) -> list[str]:
    """Say what this change alone adds to, or takes off, the next run."""
    lines = []
    for old, new, what in (
        (before.bytes_rewritten, now.bytes_rewritten, "rewritten"),
        (before.bytes_deleted, now.bytes_deleted, "deleted"),
    ):
        if old != new:
            more = "more" if new > old else "less"
            lines.append(
                f"tonight {format_size(abs(new - old))} {more} {what}: {format_size(old)} -&gt; {format_size(new)}"
            )
    return lines or ["tonight as much is rewritten and deleted as before"]
