"""Everything a user asks of an operation, as one value: tables, engine, limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import describe_selection
from maintainer.app.selection.table_selection import SelectionOptions, Shard
from maintainer.execution.fleet.rollout import BatchSize
from maintainer.planning.plan_input import PlanOptions
from maintainer.policy.project.project_settings import Budget

DEFAULT_PLAN_JOBS = 2


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Options of plan, apply, watch, retry, status and verify.

    Attributes:
        selection: Which tables; all by default.
        shard: Which part of them, for several drivers side by side.
        tables: Only tables with these identifiers; None for all. ``retry`` names the rest of a run so.
        origin: Where ``tables`` comes from, as a plan records it.
        engine: Which Spark does the work.
        budget: How much is rewritten at most; what is not set comes from maintainer.yml.
        planning: What planning sets aside.
        jobs: Tables worked on at once.
        plan_jobs: Tables planned at once; None takes ``jobs``, at least two.
        fail_fast: Start no further table after the first that fails.
        max_failures: Start no further table after so many failures; None takes that of maintainer.yml.
        batches: Sizes of the batches in which tables are started; None takes those of maintainer.yml.
        timeout_seconds: Bound of the whole run; None takes that of maintainer.yml.
        exact: A saved plan must be for the very versions that the tables have now, or all of it is refused.
        all_or_nothing: One table that is not as it was planned refuses all of a saved plan.
    """

    selection: SelectionOptions = field(default_factory=SelectionOptions)
    shard: Shard | None = None
    tables: frozenset[str] | None = None
    origin: str | None = None
    engine: EngineOptions = field(default_factory=EngineOptions)
    budget: Budget = field(default_factory=Budget)
    planning: PlanOptions = field(default_factory=PlanOptions)
    jobs: int = 1
    plan_jobs: int | None = None
    fail_fast: bool = False
    max_failures: int | None = None
    batches: tuple[BatchSize, ...] | None = None
    timeout_seconds: float | None = None
    exact: bool = False
    all_or_nothing: bool = False

    @property
    def described(self) -> tuple[str, ...]:
        """The selection as a plan records it."""
        return (self.origin,) if self.origin else describe_selection(self.selection.select, self.selection.exclude)

    @property
    def tables_planned_at_once(self) -> int:
        """``plan_jobs``, or ``jobs`` but at least two: planning waits for storage more than it computes."""
        return self.plan_jobs or max(self.jobs, DEFAULT_PLAN_JOBS)
