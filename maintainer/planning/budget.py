"""Fits a plan into a budget: the best rewrites stay, the others are left alone with their place in the queue.

Property changes and vacuum rewrite nothing and always stay. What is learned from past runs is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from maintainer.model.plan import LeftAlone, Plan, TablePlan
from maintainer.model.reasons import Reason, ReasonCode
from maintainer.model.steps import Batch, Step
from maintainer.planning.ranking import Budget, Candidate, Choice, Waiting, choose
from maintainer.units import format_size

DEFAULT_BYTES_PER_SECOND = 20 * 1024 * 1024
"""Until a run has been timed: reading, writing and proving on a small machine."""

_DAY_MS = 86_400_000


@dataclass(slots=True)
class Learned:
    """What past runs say. Times are milliseconds since 1970 UTC."""

    bytes_per_second: dict[str, float] = field(default_factory=dict)
    yielded: dict[str, tuple[int, int]] = field(default_factory=dict)
    waiting_since_ms: dict[str, int] = field(default_factory=dict)


def within_budget(plan: Plan, budget: Budget, learned: Learned) -> tuple[Plan, Choice]:
    """Return the plan with those rewrites that the budget has room for, and what was chosen.

    Args:
        plan: With everything that could be done.
        budget: Of the whole run.
        learned: What past runs say.
    """
    candidates = [
        candidate
        for table in plan.tables
        if (candidate := candidate_of(table, plan.created_at_ms, learned)) is not None
    ]
    choice = choose(candidates, budget)
    waiting = {one.candidate.name: one for one in choice.waiting}
    tables = tuple(
        _waits(table, waiting[table.ref.identifier], len(choice.waiting)) if table.ref.identifier in waiting else table
        for table in plan.tables
    )
    return replace(plan, tables=tables), choice


def candidate_of(table: TablePlan, now_ms: int, learned: Learned) -> Candidate | None:
    """A table's rewrites as ranking sees them; None for a table without any."""
    batches = [(step, batch) for step in table.steps for batch in _batches(step)]
    if not batches:
        return None
    name = table.ref.identifier
    files = [file for _, batch in batches for file in batch.files]
    added = sum(getattr(step, "num_files_added", 0) for step in table.steps if _batches(step))
    seconds = sum(
        batch.size_bytes / learned.bytes_per_second.get(step.kind, DEFAULT_BYTES_PER_SECOND) for step, batch in batches
    )
    tries, lost = learned.yielded.get(name, (0, 0))
    since = learned.waiting_since_ms.get(name)
    return Candidate(
        name=name,
        owner=table.owner,
        files_fewer=max(0, len(files) - added),
        deleted_rows=sum(file.deleted_records for file in files),
        size_bytes=sum(batch.size_bytes for _, batch in batches),
        num_files=len(files),
        seconds=seconds,
        # One try more than was seen: a single lost race is no proof that all are lost.
        conflict_ratio=lost / (tries + 1),
        waiting_days=0.0 if since is None else max(0.0, (now_ms - since) / _DAY_MS),
    )


def _batches(step: Step) -> tuple[Batch, ...]:
    found: tuple[Batch, ...] = getattr(step, "batches", ())
    return found


def _waits(table: TablePlan, waiting: Waiting, total: int) -> TablePlan:
    """The table without its rewrites, and why."""
    one = waiting.candidate
    days = f", for {one.waiting_days:.0f} days now" if one.waiting_days >= 1 else ""
    text = (
        f"waits: {waiting.budget} has no room for {format_size(one.size_bytes)}; "
        f"place {waiting.place:,} of {total:,} in the queue{days}"
    )
    left = LeftAlone(Reason(ReasonCode.OVER_BUDGET, text), one.num_files, one.size_bytes)
    steps = tuple(step for step in table.steps if not _batches(step))
    return replace(table, steps=steps, left_alone=(*table.left_alone, left))
