"""Look at all tables in rounds, and apply what their policies ask for as they change.

A round with something to do is a run of its own, with its own folder. A table that did not end well is skipped for a
while that doubles each time, so that neither a broken table nor a busy writer is asked every few seconds; so are all
tables of a round that is refused or fails as a whole. Memory is bounded: a round keeps only how often each table
failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from maintainer.app.running.run_listener import RunListener
from maintainer.engine.process_loss import is_engine_lost
from maintainer.errors import ExitCode, MaintainerError, Refused
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.table.planned_ends import planned_problem
from maintainer.model.plan.plan import Plan, Problem, TablePlan, TableState
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.exit_codes import exit_code, gravest, plan_exit_code
from maintainer.model.run.outcome import ENDED_WELL, RunOutcome, TableStatus
from maintainer.policy.resolve.resolved import ResolvedPolicy

FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 3600.0

PlanTables = Callable[[tuple[ResolvedPolicy, ...]], Plan]
ApplyPlan = Callable[[Plan], RunOutcome]


@dataclass(frozen=True, slots=True)
class WatchBounds:
    """How to watch.

    Args:
        interval_seconds: From the end of one round to the beginning of the next.
        until_idle: End with the first round that finds nothing to do and nothing worth waiting for.
        max_rounds: End after so many; None never does.
    """

    interval_seconds: float = 30.0
    until_idle: bool = False
    max_rounds: int | None = None

    def __post_init__(self) -> None:
        if self.interval_seconds <= 0 or (self.max_rounds is not None and self.max_rounds < 1):
            raise ValueError("interval_seconds and max_rounds are greater than 0")


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """The result of watching: how often it looked and ran, and the most severe exit code."""

    rounds: int
    runs: int
    code: ExitCode


MAX_TRIES = 3
"""With ``until_idle``: a table that did not end well so often in a row is no longer waited for."""


def watch(
    policies: Callable[[], Sequence[ResolvedPolicy]],
    plan_tables: PlanTables,
    apply: ApplyPlan,
    bounds: WatchBounds,
    switch: StopSwitch,
    monotonic: Callable[[], float],
    listener: RunListener,
) -> WatchEnd:
    """Look, do what is due, wait, and look again, until stopped or idle.

    Args:
        policies: Return the tables to watch in a round. What it raises ends the watch.
        plan_tables: Plans some of them; what is unchanged must cost little.
        apply: Carries out a plan that has changes. The switch may be thrown meanwhile.
        bounds: When to look again, and when to end.
        switch: Ends the watch.
        monotonic: A clock that never goes back, in seconds.
        listener: Hears of each round's tables; of one that is refused, when the reason is new and no run will report
            it; and of a round that is refused, or fails as a whole; the next one comes.

    Returns:
        What came of it. The code is 5 once a verification failed; from then on nothing is deleted, and the second one
        ends the watch. Else it is the gravest of those that tables ended with when they were last looked at. A table
        that is refused makes it 4, and 6 where any run of the watch changed a table.
    """
    tables = _WatchedTables(monotonic, listener)
    rounds = runs = 0
    while switch.halt_reason is None:
        rounds += 1
        now, watched = monotonic(), policies()
        tables.keep({policy.table.identifier for policy in watched})
        due = tuple(policy for policy in watched if not tables.is_left_alone(policy.table.identifier, now))
        has_work, outcome, at_stake = False, None, {policy.table.identifier for policy in due}
        try:
            plan = plan_tables(due) if switch.deletions_held is None else _without_vacuums(plan_tables(due))
            has_work, at_stake = plan.has_changes, {table.ref.identifier for table in plan.tables if table.steps}
            tables.planned(plan)
            outcome = apply(plan) if has_work else None
        except Exception as error:
            if is_engine_lost(error):  # no later round could do better
                raise
            listener.round_failed(error)
            tables.failed(at_stake, error)
        if outcome is not None:
            runs += 1
            tables.ended(outcome, at_stake)
        idle = not has_work and not tables.is_worth_waiting()
        if (bounds.until_idle and idle) or rounds == bounds.max_rounds or switch.halt_reason is not None:
            break
        switch.wait(bounds.interval_seconds)
    return WatchEnd(rounds, runs, tables.code)


def _without_vacuums(plan: Plan) -> Plan:
    """Leave out what would only be held back, so that it is no reason for a run."""
    tables = (
        replace(table, steps=tuple(step for step in table.steps if not isinstance(step, VacuumStep)))
        for table in plan.tables
    )
    return replace(plan, tables=tuple(tables), requests=None)


class _WatchedTables:
    """How each table ended when it was last looked at, and why it is refused, as far as that was told."""

    def __init__(self, monotonic: Callable[[], float], listener: RunListener) -> None:
        self._aside: dict[str, _SetAside] = {}
        self._codes: dict[str, ExitCode] = {}
        self._reported: dict[str, Problem | None] = {}
        self._changed = self._is_wrong = False
        self._tables: frozenset[str] = frozenset()
        self._places: frozenset[str] = frozenset()  # that could not be searched: no policy names them
        self._monotonic, self._listener = monotonic, listener

    def keep(self, names: Collection[str]) -> None:
        """Forget the tables that no policy names any more."""
        self._tables = frozenset(names)
        self._forget_others()
        self._listener.round_began(self._tables)

    def _forget_others(self) -> None:
        for known in (self._aside, self._codes, self._reported):
            for name in known.keys() - self._tables - self._places:
                del known[name]

    def is_left_alone(self, name: str, now: float) -> bool:
        return name in self._aside and self._aside[name].until > now

    def is_worth_waiting(self) -> bool:
        """Return whether a table with work may still end well."""
        return any(aside.tried and aside.times < MAX_TRIES for aside in self._aside.values())

    def _set_aside(self, name: str, *, tried: bool) -> None:
        times = self._aside[name].times + 1 if name in self._aside else 1
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(times - 1, 16))
        self._aside[name] = _SetAside(times, self._monotonic() + pause, tried)

    @property
    def code(self) -> ExitCode:
        code = ExitCode.VERIFICATION_FAILED if self._is_wrong else gravest(self._codes.values())
        return ExitCode.PARTLY_REFUSED if code is ExitCode.REFUSED and self._changed else code

    def planned(self, plan: Plan) -> None:
        self._places = frozenset(table.ref.identifier for table in plan.tables) - self._tables
        self._forget_others()
        for table in plan.tables:
            name = table.ref.identifier
            code = self._codes[name] = plan_exit_code(replace(plan, tables=(table,)))
            if code is not ExitCode.OK:
                self._set_aside(name, tried=False)
            elif name in self._aside and not table.steps:
                self._nothing_now(name, table)
            problem = None if code is ExitCode.OK else planned_problem(table)
            if problem is not None and problem != self._reported.get(name) and not plan.has_changes:
                self._listener.refused(table)
            self._reported[name] = problem

    def _nothing_now(self, name: str, table: TablePlan) -> None:
        """A table that others, or its calendar, leave nothing to do now is not waited for, nor set aside for it."""
        if table.state is TableState.UP_TO_DATE:
            del self._aside[name]
        else:
            self._aside[name] = replace(self._aside[name], tried=False)

    def failed(self, names: Collection[str], error: Exception) -> None:
        for name in names:
            self._codes[name] = error.exit_code if isinstance(error, MaintainerError) else ExitCode.BUG
            self._set_aside(name, tried=not isinstance(error, Refused))

    def ended(self, outcome: RunOutcome, with_work: Collection[str]) -> None:
        self._changed |= any(table.changed for table in outcome.user_tables)
        self._is_wrong |= exit_code(outcome) is ExitCode.VERIFICATION_FAILED
        tried = any(
            table.ref.identifier in with_work and table.status is not TableStatus.NOT_REACHED
            for table in outcome.tables
        )
        for table in outcome.tables:
            name = table.ref.identifier
            self._codes[name] = exit_code(replace(outcome, tables=(table,)))
            if table.status in ENDED_WELL:
                self._aside.pop(name, None)
            elif name in with_work and (table.status is not TableStatus.NOT_REACHED or not tried):
                # Also where somebody else was first: no failure, and still no table to ask again at once. What others
                # kept from being started does not wait with them: they would come first again, each time.
                self._set_aside(name, tried=True)


@dataclass(frozen=True, slots=True)
class _SetAside:
    """A table that did not end well so many times in a row, until when it is left alone (monotonic seconds), and why.

    A table that cannot be planned was not tried, and is not waited for; nor is one with nothing to do now.
    """

    times: int
    until: float
    tried: bool
