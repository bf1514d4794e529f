"""Choose the tables that an operation works on: after a search for those that only rules manage, and within reach.

It is decided here how many of them are looked at, or worked on, side by side where nobody said. A table on a disk
keeps a processor busy. One on a store mostly waits for answers, so many of them can wait together; what they ask for
is bounded for the process by its client, and what they compute by its processors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from maintainer.app.engine_access import EngineOptions, OpenedEngine, open_engine, project_engine
from maintainer.app.project_folders import Project
from maintainer.app.selection.managed_search import (
    CATALOG,
    declared_places,
    needs_session,
    search_tables,
    searched_again,
    with_recorded_tables,
)
from maintainer.app.selection.run_spec import NoPlans, RunSpec, choose
from maintainer.delta.spark.start_conf import machine_memory_bytes
from maintainer.engine.protocols import SignOfLife
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.table_search import Meant, SearchPlaces, TableProblem
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import name_key, table_ref, whole_name_needed
from maintainer.units import count_of


@dataclass(frozen=True, slots=True)
class ChosenTables:
    """The policies of the tables that are meant, and problems with places and rules that concern them."""

    policies: tuple[ResolvedPolicy, ...]
    problems: tuple[TableProblem, ...] = ()

    def with_a_table(self) -> ChosenTables:
        """Return itself where there is a table to work on, or nothing is wrong.

        Raises:
            MaintainerError: There are only problems; the first of them.
        """
        if self.problems and not self.policies:
            raise self.problems[0].error
        return self


def chosen_tables(project: Project, spec: RunSpec, *, command: str) -> ChosenTables:
    """Return the policies of the tables that a specification means, and what is wrong beside them.

    A place that could not be searched is wrong beside each selection that may mean tables there.

    Raises:
        ProjectError: A selector cannot be read or answered, or selects nothing.
    """
    if spec.tables is not None:
        return _named_tables(project, spec.tables)
    plans = NoPlans.EVER if command in _NEVER_PLANS else NoPlans.YET
    everything: tuple[ResolvedPolicy | TableProblem, ...] = (*project.policies, *project.loaded.managed.refused)
    selection = spec.selection
    unsearched = _unsearched(project, spec, command)
    if unsearched or (project.loaded.has_no_table_yet and not selection.given):
        # What is meant may lie where nobody could look; and a new project is no mistake.
        selection = replace(selection, allow_empty=True)
    chosen = (*choose(everything, project.loaded, selection, command=command, plans=plans), *unsearched)
    if spec.shard is not None:
        chosen = spec.shard.of(chosen)
    return ChosenTables(
        tuple(table for table in chosen if isinstance(table, ResolvedPolicy)),
        tuple(table for table in chosen if isinstance(table, TableProblem)),
    )


def _named_tables(project: Project, names: frozenset[str]) -> ChosenTables:
    """The tables that are named one by one, and all that rules manage in a place that is named."""
    named = [place for place in declared_places(project) if place.identifier in names]
    roots = SearchPlaces(tuple(place.location for place in named if place.is_path))

    def is_meant(policy: ResolvedPolicy) -> bool:
        if policy.table.identifier in names:
            return True
        managed = policy.rule_line is not None
        return managed and (roots.cover(policy.table) if policy.table.is_path else CATALOG in named)

    problems = tuple(problem for problem in project.loaded.problems if problem.table.identifier in names)
    return ChosenTables(tuple(filter(is_meant, project.policies)), problems)


def _unsearched(project: Project, spec: RunSpec, command: str) -> tuple[TableProblem, ...]:
    search = project.loaded.search
    if search is None or not search.problems:
        return ()
    tables = [policy.table for policy in project.policies]
    include, leave_out = spec.selection.selectors(tables, project.root, command)
    known = frozenset(map(name_key, tables))
    by_end = spec.selection.by_end(command)
    meant = Meant(include, leave_out, project.loaded.rules, known, project.root, by_end)
    return tuple(filter(meant.may_be_in, search.problems))


def searched(project: Project, spec: RunSpec, engine: EngineOptions | OpenedEngine) -> Project:
    """Return the project with the tables that rules manage, and with those that the specification names one by one."""
    project = search_tables(project, engine)
    return with_recorded_tables(project, (table_ref(name, project.root) for name in sorted(spec.tables or ())))


def chosen_before_session(
    project: Project, spec: RunSpec, command: str, *, asks: bool = True
) -> tuple[Project, ChosenTables | None]:
    """Search and choose where no session is needed for it, so that a misspelt selector costs no start of Spark.

    Args:
        project: The project.
        spec: Which tables.
        command: The command's name, for messages.
        asks: Whether to choose; a saved plan says itself which tables are meant.

    Returns:
        The project, and what is chosen; None where a session has to be asked first.

    Raises:
        ProjectError: A selector cannot be read or answered, or selects nothing.
    """
    if needs_session(project):
        return project, None
    project = searched(project, spec, spec.engine)
    return project, chosen_tables(project, spec, command=command) if asks else None


def named_policy(
    project: Project,
    name: str,
    engine: EngineOptions | OpenedEngine,
    *,
    exists: bool = False,
    managed: bool = True,
    whole: bool = False,
) -> tuple[Project, ResolvedPolicy]:
    """Return the policy of the table that a name means, after a search where files and rules alone cannot tell.

    Args:
        project: The project.
        name: The table, in any spelling, or the end of its name.
        engine: What is open, or how to open it where the search needs a session.
        exists: Search also for a table that a rule manages by its full name, so that a name of none is refused.
        managed: Refuse a table that rules reach and none manages: nothing is done to it.
        whole: Refuse the end of a name, and say the whole one.

    Returns:
        The project, which knows what a search found, and the policy.

    Raises:
        ProjectError: E613, no policy names the table and no rule manages it, or several are called so.
        MaintainerError: The table may lie in a place that cannot be searched.
    """
    is_managed = project.loaded.manager_of(table_ref(name, project.root)) is not None
    if not project.loaded.names(name) and (exists or not is_managed):
        project = search_tables(project, engine)
    known = _known_as(project, table_ref(name, project.root))
    policy = project.loaded.resolve_table(name if known is None else known.identifier, managed=managed)
    if whole and name_key(policy.table) != name_key(known or table_ref(name, project.root)):
        raise whole_name_needed(name, policy.table)
    return project, policy


def _known_as(project: Project, ref: TableRef) -> TableRef | None:
    """Return what the policy of a table that a search found under several names calls it; None for any other table."""
    keys = {name_key(TableRef(name)) for name in project.loaded.names_of(ref)}
    return next((policy.table for policy in project.policies if name_key(policy.table) in keys), None) if keys else None


@contextmanager
def opened_table(
    project: Project, name: str, options: EngineOptions
) -> Iterator[tuple[Project, OpenedEngine, ResolvedPolicy]]:
    """Open the engine and find the table that a name means.

    Raises:
        ProjectError: As of `named_policy`.
        EnvironmentUnfit: The engine cannot be used.
    """
    if not needs_session(project):  # a misspelt name costs no start of Java
        project, _ = named_policy(project, name, options)
    with open_engine(options) as opened:
        project, policy = named_policy(project, name, opened)
        yield project, opened, policy


@contextmanager
def opened_tables(
    project: Project, spec: RunSpec, command: str, *, long_work: bool = False
) -> Iterator[tuple[Project, OpenedEngine, ChosenTables]]:
    """Open the engine, search for tables that rules manage, and choose.

    Raises:
        ProjectError: A selector cannot be read or answered, or selects nothing.
        EnvironmentUnfit: The engine cannot be used.
    """
    project, chosen = chosen_before_session(project, spec, command)
    options = replace(project_engine(project.loaded.project, spec.engine), long_work=long_work)
    with open_engine(options) as opened:
        project = searched(project, spec, opened)
        yield project, opened, chosen or chosen_tables(project, spec, command=command)


_NEVER_PLANS = frozenset({"list", "watch", "verify", "ledger"})
"""Commands for which ``due`` and ``drifted`` are refused: what they mean changes from look to look."""


SEARCH_AGAIN_SECONDS = 600.0
"""A watch looks for new tables this often, and not in each of its rounds."""


@dataclass(slots=True)
class WatchedTables:
    """The tables that a watch looks at, searched for again from time to time."""

    project: Project
    spec: RunSpec
    opened: OpenedEngine
    chosen: ChosenTables
    searched_at: float

    def policies(self) -> tuple[ResolvedPolicy, ...]:
        """Return the policies of this round."""
        if self.project.loaded.searches and time.monotonic() - self.searched_at > SEARCH_AGAIN_SECONDS:
            self.searched_at = time.monotonic()
            self.project = searched_again(self.project, self.opened)
            spec = replace(self.spec, selection=replace(self.spec.selection, allow_empty=True))
            self.chosen = chosen_tables(self.project, spec, command="watch")
        return self.chosen.policies


LOOKS_ON_DISK, LOOKS_ON_STORE = 2, 16
MOST_WORKED_ON = 8
"""More get Delta and this process to wait for each other."""

TABLE_BYTES = 512 << 20
"""Memory for each table that is worked on: what its files take in this process and in Spark."""


def tables_read_at_once(tables: Iterable[TableRef]) -> int:
    """Return how many tables are looked at side by side."""
    return LOOKS_ON_STORE if _any_on_store(tables) else LOOKS_ON_DISK


def tables_run_at_once(tables: Iterable[TableRef]) -> int:
    """Return how many tables are rewritten and cleaned side by side."""
    most = MOST_WORKED_ON if _any_on_store(tables) else min(2, os.cpu_count() or 1)
    return max(1, min(most, machine_memory_bytes() // TABLE_BYTES))


def _any_on_store(tables: Iterable[TableRef]) -> bool:
    """Whether some lie where each file is asked for over the network; a name's place is not known yet."""
    return any(not table.is_path or store_kind(table.location).asks_by_request for table in tables)


def tables_out_of_reach(
    opened: OpenedEngine, tables: Iterable[TableRef], *, ends: bool = True
) -> Mapping[str, SignOfLife]:
    """Begin to ask where tables are, and return what tells for each, by its identifier, whether that is away.

    It waits only where nothing else can be done meanwhile.

    Args:
        opened: The engine.
        tables: The tables that will be opened.
        ends: Whether the command ends where none of them can be reached.

    Raises:
        MaintainerError: T435 or E647, all of them are certainly away.
    """
    refs = {ref.identifier: ref for ref in tables}
    signs = opened.signs_of_life(refs.values())
    if not ends or not refs or len(signs) < len(refs):
        return signs
    lost = {}
    with opened.stages.lasting("looking whether the tables can be reached"):
        for name in sorted(refs):
            if (error := signs[name].error()) is None:
                return signs
            lost[name] = error
    first, *others = lost
    error = lost[first]
    error.where = first + (f" and {count_of(len(others), 'more table')}" if others else "")
    error.found = "; ".join(sorted({table.found or "" for table in lost.values()}))
    raise error
