"""Read what a run may spend on rewrites: as a whole, for each owner and each table, and which tables come first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from maintainer.model.table.table_facts import TableRef
from maintainer.policy.select.matching import absolute_glob, name_matches
from maintainer.policy.select.table_names import plain_name
from maintainer.units import parse_duration, parse_size

EVERYBODY = "*"
"""Stands for every owner that has no budget under its own name."""


class Scorer(str, Enum):
    """How rewrites are ranked: by our own absolute figure, or as OpenHouse's AutoComp does."""

    BENEFIT = "benefit"
    AUTOCOMP = "autocomp"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most so much; None is no bound."""

    size_bytes: int | None = None
    num_files: int | None = None
    seconds: float | None = None

    @property
    def bounded(self) -> bool:
        """Whether anything is bounded."""
        return (self.size_bytes, self.num_files, self.seconds) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Budgets of one run.

    Args:
        run: Of the whole run.
        owners: By owner; ``*`` for each owner that is not named.
        tables: Of each single table, by a glob on its name or path; the first that matches counts.
        scorer: How rewrites are ranked.
    """

    run: Budget = field(default_factory=Budget)
    owners: tuple[tuple[str, Budget], ...] = ()
    tables: tuple[tuple[str, Budget], ...] = ()
    scorer: Scorer = Scorer.BENEFIT

    @property
    def bounded(self) -> bool:
        """Whether anything is bounded."""
        return self.run.bounded or any(budget.bounded for _, budget in (*self.owners, *self.tables))

    def of_owner(self, owner: str | None) -> Budget:
        """The budget that all tables of an owner share; tables without an owner have none of their own."""
        named = dict(self.owners)
        return Budget() if owner is None else named.get(owner, named.get(EVERYBODY, Budget()))

    def of_table(self, table: TableRef) -> Budget:
        """What one table may spend in a run."""
        name = plain_name(table)
        return next((budget for glob, budget in self.tables if name_matches(name, (glob,))), Budget())

    def with_run(self, given: Budget) -> Budgets:
        """These budgets with the run's bounds replaced where others are given."""
        run = Budget(
            self.run.size_bytes if given.size_bytes is None else given.size_bytes,
            self.run.num_files if given.num_files is None else given.num_files,
            self.run.seconds if given.seconds is None else given.seconds,
        )
        return replace(self, run=run)


def read_budgets(data: Mapping[str, object] | None, root: Path) -> Budgets:
    """Read the checked key ``budget`` of maintainer.yml; relative path globs start at the project's root."""
    data = data or {}
    return Budgets(
        run=_budget(data),
        owners=tuple((owner, _budget(share)) for owner, share in _inner(data, "owners").items()),
        tables=tuple((absolute_glob(glob, root), _budget(share)) for glob, share in _inner(data, "tables").items()),
        scorer=Scorer(data.get("scorer") or Scorer.BENEFIT.value),
    )


def _inner(data: Mapping[str, object], key: str) -> dict[str, dict[str, object]]:
    shares = data.get(key)
    return {name: share or {} for name, share in shares.items()} if isinstance(shares, dict) else {}


def _budget(data: Mapping[str, object]) -> Budget:
    size, files, time = data.get("maxBytes"), data.get("maxFiles"), data.get("maxTime")
    return Budget(
        parse_size(size) if isinstance(size, (int, str)) else None,
        files if isinstance(files, int) else None,
        float(parse_duration(time)) if isinstance(time, str) else None,
    )
