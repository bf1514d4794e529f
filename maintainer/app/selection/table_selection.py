"""Choose the policies that ``--select`` and its like name, and narrow plans to them.

``--shard`` cuts a fleet among several drivers: each table belongs to exactly one shard, whatever else is in the fleet.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from maintainer.errors import ProjectError
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.policy.project.policy_changes import modified_tables
from maintainer.policy.project.policy_project import LoadedProject
from maintainer.policy.select.selectors import (
    Method,
    Selectable,
    Selector,
    SelectorContext,
    check_answerable,
    parse_selector,
    select,
)

_P = TypeVar("_P", bound=Selectable)


class Look(enum.Enum):
    """Whether a command looks at the tables themselves."""

    COMES = "comes"
    NEVER = "never"


_BY_LOOKING = (Method.DUE, Method.DRIFTED)
"""What only a look at the tables can answer."""


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Values of ``--select`` (none chooses everything), ``--exclude``, ``--since`` and ``--allow-empty``."""

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    since: str | None = None
    allow_empty: bool = False

    @property
    def given(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.select or self.exclude or self.since)


def choose(
    candidates: Sequence[_P],
    project: LoadedProject,
    options: SelectionOptions,
    *,
    command: str,
    broken: Collection[str] = (),
    look: Look | Mapping[str, TablePlan] = Look.NEVER,
) -> tuple[_P, ...]:
    """Return those of the candidates that the options choose, in their order.

    Args:
        candidates: What to choose from.
        project: The project that they are of.
        options: What the user asked for.
        command: The command's name, for messages.
        broken: Tables that have no effective policy, because of errors: they count as modified.
        look: What is known of the tables themselves, for ``due`` and ``drifted``: plans by identifier, or that they
            come later (everything that may be meant is chosen, see `narrowed`), or never (then it is refused).

    Raises:
        ProjectError: A selector cannot be read or answered, or selects nothing.
    """
    include, leave_out = parse_selector(options.select, project.root), parse_selector(options.exclude, project.root)
    methods: dict[Method, Callable[[str, str], bool]] = {}
    if options.since is not None:
        _check_since_used(include, leave_out)
        changed = _Modified(project, options.since)
        methods[Method.STATE] = lambda identifier, _value: identifier in changed.tables or identifier in broken
    if include.needs(Method.RESULT) or leave_out.needs(Method.RESULT):
        methods[Method.RESULT] = _ended_as(project, candidates)
    if look is Look.COMES:
        methods.update(dict.fromkeys(_BY_LOOKING, lambda _identifier, _value: True))
        leave_out = leave_out.without(_BY_LOOKING)
    elif look is not Look.NEVER:
        methods[Method.DUE] = lambda identifier, _value: identifier in look and bool(look[identifier].steps)
        methods[Method.DRIFTED] = lambda identifier, _value: identifier in look and _drifted(look[identifier])
    context = SelectorContext(project.root, command, methods)
    check_answerable(include, context)
    check_answerable(leave_out, context)
    # That nothing is due is an answer; that nothing could be is a misspelt name, and was found before the look.
    allow_empty = options.allow_empty or not isinstance(look, Look)
    return select(candidates, include, leave_out, context, allow_empty=allow_empty)


def narrowed(plan: Plan, project: LoadedProject, options: SelectionOptions, *, command: str) -> Plan:
    """Return the plan without the tables that ``due`` and ``drifted`` leave out, now that they have been looked at."""
    include, leave_out = parse_selector(options.select, project.root), parse_selector(options.exclude, project.root)
    if not any(selector.needs(method) for selector in (include, leave_out) for method in _BY_LOOKING):
        return plan
    tables = {table.ref.identifier: table for table in plan.tables}
    chosen = {policy.table for policy in choose(project.resolved(), project, options, command=command, look=tables)}
    return replace(plan, tables=tuple(table for table in plan.tables if table.ref in chosen))


def _drifted(plan: TablePlan) -> bool:
    return any(isinstance(step, SetPropertiesStep) for step in plan.steps)


def _ended_as(project: LoadedProject, candidates: Sequence[Selectable]) -> Callable[[str, str], bool]:
    """Read the last run, and return the check that ``result:`` selects by."""
    from maintainer.app.selection.last_run import LastResults  # planning is loaded only when it is asked for

    return LastResults((candidate.table for candidate in candidates), Path(project.project.run_dir)).ended_as


class _Modified:
    """Asks git once, and only if a table is asked about."""

    def __init__(self, project: LoadedProject, ref: str) -> None:
        self._project = project
        self._ref = ref

    @cached_property
    def tables(self) -> frozenset[str]:
        return modified_tables(self._project, self._ref)


def _check_since_used(*selectors: Selector) -> None:
    if not any(selector.needs(Method.STATE) for selector in selectors):
        raise ProjectError(
            "--since is given and nothing compares with it", code="E621", help="add `--select state:modified`"
        )


MAX_SHARDS = 1000

_SPELLED = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``number``-th of ``total`` shards, from 1."""

    number: int
    total: int

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
