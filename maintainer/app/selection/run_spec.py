"""Everything a user asks of an operation, as one value (tables, engine, limits), and the policies that it chooses.

``--shard`` cuts a fleet among several drivers: each table belongs to exactly one shard, whatever else is in the fleet.
``result:`` selects by how each table ended in the last run.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from maintainer.app.engine_access import EngineOptions
from maintainer.app.project_folders import describe_selection
from maintainer.app.selection.recorded_tables import RecordedTable, current_tables, recorded_tables
from maintainer.errors import NothingSelected, ProjectError
from maintainer.execution.fleet.fleet_bounds import BatchSize
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.journal.store.state_access import runs_dir_of
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.model.run.outcome import ENDS_BY_RESULT, TableStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.plan_input import PlanOptions
from maintainer.policy.project.policy_changes import modified_tables
from maintainer.policy.project.policy_project import LoadedProject
from maintainer.policy.project.project_settings import Budget
from maintainer.policy.selectors import (
    Method,
    Selectable,
    Selector,
    SelectorContext,
    check_answerable,
    parse_selector,
    select,
    with_whole_names,
)
from maintainer.policy.table_names import table_ref

_P = TypeVar("_P", bound=Selectable)


class NoPlans(enum.Enum):
    """Why a choice is made without the plans of the tables: they come later, or the command makes none."""

    YET = "yet"
    EVER = "ever"


_BY_PLANNING = (Method.DUE, Method.DRIFTED)
"""What only the plan of a table can answer."""

_READ_ONLY = frozenset({"plan", "status", "list", "verify"})


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Values of ``--select`` (none chooses everything), ``--exclude``, ``--since`` and ``--allow-empty``.

    ``shown_first``: a person sees which tables are chosen before anything is done to them.
    """

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    since: str | None = None
    allow_empty: bool = False
    shown_first: bool = False

    @property
    def given(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.select or self.exclude or self.since)

    def by_end(self, command: str) -> bool:
        """Tell whether a table may be called by the end of its name: not where something is done unseen."""
        return self.shown_first or command in _READ_ONLY

    def selectors(self, tables: Sequence[TableRef], root: Path, command: str) -> tuple[Selector, Selector]:
        """Return what is selected and what is excluded, of these tables.

        Raises:
            ProjectError: E613, the names of several tables end so. E623, a whole name is needed. E621, E622.
        """
        given = parse_selector(self.select, root), parse_selector(self.exclude, root)
        include, leave_out = (with_whole_names(selector, tables, root) for selector in given)
        if self.by_end(command):
            return include, leave_out
        for verb, written, whole in (("excludes", given[1], leave_out), ("selects", given[0], include)):
            for name, meant in zip(written.table_names, whole.table_names, strict=True):
                if name != meant and (verb == "excludes" or not self.allow_empty):
                    what = f"`{name}` {verb} nothing: it is the end of a name, and {command} takes whole names"
                    raise NothingSelected(what, found=name, help=f"write `{table_ref(meant, root)}`")
        return given


def choose(
    candidates: Sequence[_P],
    project: LoadedProject,
    options: SelectionOptions,
    *,
    command: str,
    broken: Collection[str] = (),
    plans: NoPlans | Mapping[str, TablePlan] = NoPlans.EVER,
) -> tuple[_P, ...]:
    """Return those of the candidates that the options choose, in their order.

    Args:
        candidates: What to choose from.
        project: The project that they are of.
        options: What the user asked for.
        command: The command's name, for messages.
        broken: Tables that have no effective policy, because of errors: they count as modified.
        plans: What ``due`` and ``drifted`` are answered from: the plans of the tables by identifier, or that they
            come later (everything that may be meant is chosen, see `narrowed`), or never (then it is refused).

    Raises:
        ProjectError: A selector cannot be read or answered, or selects nothing.
    """
    tables = [candidate.table for candidate in candidates]
    include, leave_out = options.selectors(tables, project.root, command)
    methods: dict[Method, Callable[[str, str], bool]] = {}
    if options.since is not None:
        if not (include.needs(Method.STATE) or leave_out.needs(Method.STATE)):
            what, help = "--since is given and nothing compares with it", "add `--select state:modified`"
            raise ProjectError(what, code="E621", help=help)
        changed = cache(partial(modified_tables, project, options.since))  # git is asked once, and only if need be
        methods[Method.STATE] = lambda identifier, _value: identifier in changed() or identifier in broken
    if include.needs(Method.RESULT) or leave_out.needs(Method.RESULT):
        methods[Method.RESULT] = ended_as(tables, runs_dir_of(project.project, every_run=True))
    if plans is NoPlans.YET:
        methods.update(dict.fromkeys(_BY_PLANNING, lambda _identifier, _value: True))
        leave_out = leave_out.without(_BY_PLANNING)
    elif plans is not NoPlans.EVER:
        methods[Method.DUE] = lambda identifier, _value: identifier in plans and bool(plans[identifier].steps)
        methods[Method.DRIFTED] = lambda identifier, _value: (
            identifier in plans and any(isinstance(step, SetPropertiesStep) for step in plans[identifier].steps)
        )
    context = SelectorContext(project.root, command, methods, project.names_of)
    check_answerable(include, context)
    check_answerable(leave_out, context)
    # That nothing is due is an answer; that nothing could be is a misspelt name, and was found before the look.
    allow_empty = options.allow_empty or not isinstance(plans, NoPlans)
    search = project.search
    knows_all = not project.searches or (search is not None and not search.is_recorded and not search.problems)
    return select(candidates, include, leave_out, context, allow_empty=allow_empty, knows_all=knows_all)


def narrowed(plan: Plan, project: LoadedProject, options: SelectionOptions, *, command: str) -> Plan:
    """Return the plan without the tables that ``due`` and ``drifted`` leave out, now that they have been looked at.

    A table or a place with a problem stays, so that nobody takes it for one with nothing to do.
    """
    include, leave_out = parse_selector(options.select, project.root), parse_selector(options.exclude, project.root)
    if not any(selector.needs(method) for selector in (include, leave_out) for method in _BY_PLANNING):
        return plan
    tables = {table.ref.identifier: table for table in plan.tables}
    chosen = {policy.table for policy in choose(project.resolved(), project, options, command=command, plans=tables)}
    narrowed_tables = (table for table in plan.tables if table.ref in chosen or table.problem is not None)
    return replace(plan, tables=tuple(narrowed_tables))


MAX_SHARDS = 1000

_SPELLED = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``number``-th of ``total`` shards, from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @staticmethod
    def parse(text: str) -> Shard:
        """Read ``2/5``.

        Raises:
            ValueError: Not a shard, or one beyond the last.
        """
        match = _SPELLED.fullmatch(text)
        if match is None or not int(match[1]) <= int(match[2]) <= MAX_SHARDS:
            raise ValueError(f"`{text[:20]}` is not a shard: write i/n with 1 <= i <= n <= {MAX_SHARDS:,}, such as 2/5")
        return Shard(int(match[1]), int(match[2]))

    def holds(self, identifier: str) -> bool:
        """Tell whether a table is in this shard: by a hash of its identifier, which no process seeds."""
        digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number - 1

    def of(self, policies: Sequence[_P]) -> tuple[_P, ...]:
        """Return the policies that are in this shard, in their order."""
        return tuple(policy for policy in policies if self.holds(policy.table.identifier))


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Options of plan, apply, watch, retry, status and verify.

    Attributes:
        selection: Which tables; all by default.
        shard: Which part of them, for several drivers side by side.
        tables: Only tables with these identifiers; None for all. ``retry`` names the rest of a run so: it has matched
            the run's records with today's policies by the tables' ids before, so a name means a policy of today. The
            name of a place that could not be searched means all tables that rules manage there.
        origin: Where ``tables`` comes from, as a plan records it.
        engine: Which Spark does the work.
        budget: How much is rewritten at most; what is not set comes from maintainer.yml.
        planning: What planning sets aside.
        jobs: Tables worked on at once; None follows from where they lie, and from memory.
        plan_jobs: Tables planned at once; None follows from where they lie.
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
    jobs: int | None = None
    plan_jobs: int | None = None
    max_failures: int | None = None
    batches: tuple[BatchSize, ...] | None = None
    timeout_seconds: float | None = None
    exact: bool = False
    all_or_nothing: bool = False

    @property
    def described(self) -> tuple[str, ...]:
        """The selection and the shard as a plan records them."""
        shard = () if self.shard is None else (f"shard:{self.shard}",)
        if self.origin:
            return (self.origin, *shard)
        return (*describe_selection(self.selection.select, self.selection.exclude), *shard)


def last_results(runs_dir: Path) -> tuple[tuple[RecordedTable, TableStatus], ...]:
    """Return each table of the newest run, and how it ended.

    Raises:
        ProjectError: E624 there is no run, or the newest one cannot be read: an older one would answer wrongly.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    run = next(iter(past_runs(runs_dir)), None)
    if not isinstance(run, PastRun):
        where, what = runs_dir, "`result:` asks for the last run, and there is none"
        if run is not None:
            where, what = run[0], f"the last run cannot be read: {run[1]}"
        help = "select by name or tag, or run `maintainer apply` for all tables"
        raise ProjectError(what, code="E624", where=str(where), help=help)
    recorded = recorded_tables(run.plan)
    return tuple((recorded.get(table.ref, RecordedTable(table.ref)), table.status) for table in run.outcome.tables)


def ended_as(refs: Iterable[TableRef], runs_dir: Path) -> Callable[[str, str], bool]:
    """Read the newest run, and return the check whether a table of today ended as a value of ``result:`` says.

    A table that was not in the run ended in no way.

    Args:
        refs: All tables that may be asked about, also under other policy names than in the run.
        runs_dir: The folder of all runs.

    Raises:
        ProjectError: E624 there is no run, or the newest one cannot be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    results, tables = last_results(runs_dir), current_tables(refs, runs_dir)
    return lambda identifier, value: any(
        status in ENDS_BY_RESULT[value] and tables[identifier].was(recorded) for recorded, status in results
    )
