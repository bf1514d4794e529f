"""Bound the later turns of incremental Z-orders by what the budgets and limits of a run leave.

A plan knows the first turn alone, and budgets count it. ``apply`` goes on until nothing is left, which may be many
times as much. What a bound leaves beside all that is planned is divided evenly among the tables that go on. Seconds
are counted as those of the first turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import RewriteStep, Step, ZOrderStep
from maintainer.planning.budget.ranking import Spent
from maintainer.planning.budget.run_budget import Learned
from maintainer.policy.project.project_settings import Budget, Budgets
from maintainer.units import grouped


def with_turns_bounded(plan: Plan, budgets: Budgets, learned: Learned, limits: Budget) -> Plan:
    """Return the plan with the most bytes and files that all turns of each incremental Z-order may rewrite.

    Args:
        plan: What is done, as it fits into the budgets.
        budgets: Of the run, of owners and of single tables.
        learned: What past runs say of times.
        limits: What the run may rewrite at most, as maintainer.yml says it.
    """
    users = [table for table in plan.tables if not table.is_ledger]
    if not any(_goes_on(step) for table in users for step in table.steps):
        return plan
    of_run = _Shared(users, learned)
    of_owner = {owner: _Shared(owned, learned) for owner, owned in grouped(users, lambda table: table.owner).items()}

    def bounded(table: TablePlan, step: Step) -> Step:
        if not isinstance(step, ZOrderStep) or step.settings is None:
            return step
        turn = _spent([step], learned)
        rooms = (
            of_run.more(budgets.run, turn),
            of_run.more(limits, turn),
            of_owner[table.owner].more(budgets.of_owner(table.owner), turn),
            _Shared([table], learned).more(budgets.of_table(table.ref), turn),
        )
        times, files = map(min, zip(*rooms, strict=True))
        settings = replace(
            step.settings,
            budget_bytes=_least(step.settings.budget_bytes, step.size_bytes * (1 + times)),
            budget_files=_least(step.settings.budget_files, step.num_files + files),
        )
        return replace(step, settings=settings)

    tables = (
        table if table.is_ledger else replace(table, steps=tuple(bounded(table, step) for step in table.steps))
        for table in plan.tables
    )
    return replace(plan, tables=tuple(tables))


class _Shared:
    """What some tables leave of a bound that they share."""

    def __init__(self, tables: Sequence[TablePlan], learned: Learned) -> None:
        self._spent = sum((_spent(table.rewrites, learned) for table in tables), Spent())
        self._num_going_on = sum(_goes_on(step) for table in tables for step in table.steps)

    def more(self, bound: Budget, first: Spent) -> tuple[float, float]:
        """Return how many times the bytes of its first turn, and how many files, each may rewrite beside that."""
        amounts = (
            (bound.size_bytes, self._spent.size_bytes, first.size_bytes),
            (bound.seconds, self._spent.seconds, first.seconds),
        )
        rooms = (
            (most - spent) / (one * self._num_going_on) for most, spent, one in amounts if most is not None and one
        )
        files = math.inf
        if bound.num_files is not None:
            files = max(0, (bound.num_files - self._spent.num_files) // self._num_going_on)
        return max(0.0, min(rooms, default=math.inf)), files


def _least(known: int | None, granted: float) -> int | None:
    if math.isinf(granted):
        return known
    return int(granted) if known is None else min(known, int(granted))


def _goes_on(step: Step) -> bool:
    return isinstance(step, ZOrderStep) and step.settings is not None


def _spent(rewrites: Sequence[RewriteStep], learned: Learned) -> Spent:
    seconds = sum(learned.seconds_of(step.kind, batch.size_bytes) for step in rewrites for batch in step.batches)
    return Spent(sum(step.size_bytes for step in rewrites), sum(step.num_files for step in rewrites), seconds)
