"""What planning a table depends on, as one value; the whole planner is a function of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from maintainer.model.plan.lanes import Lane
from maintainer.model.table.table_facts import DataFile, FileKey, TableFacts, TableRecord
from maintainer.policy.resolve.resolved import ResolvedPolicy


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a caller may set aside: windows gate starting a step, and a plan may be wanted before they open.

    ``deletes`` is whether the engine that the plan is for deletes files; without it vacuum is left alone. ``lanes``
    stand for those of every policy; empty, each policy's own count.
    """

    ignore_windows: bool = False
    ignore_every: bool = False
    deletes: bool = True
    lanes: tuple[Lane, ...] = ()

    @property
    def by_commands(self) -> bool:
        """Whether the engine only issues Delta's commands: it opens no file, and arranges rows as OPTIMIZE does."""
        return not self.deletes


@dataclass(frozen=True, slots=True)
class PlanMoment:
    """The time of planning, milliseconds since 1970 UTC, and the day that it then is in the project's zone."""

    now_ms: int
    today: date


@dataclass(frozen=True, slots=True)
class TableInput:
    """One table, what is wanted of it, and when.

    Attributes:
        policy: The table's effective policy.
        facts: The table at one version, with what `planning.needs` asks for.
        record: What the records of earlier runs say of the table.
        now_ms: The time of planning, milliseconds since 1970 UTC.
        today: The day of planning in the project's zone, for ``current_date()`` and ``suspend``.
        options: What is set aside for this run.
        purged: Files of which a purge takes those that the layout leaves. Layouts are decided with them in place: a
            cube or a partition is as large as it was.
    """

    policy: ResolvedPolicy
    facts: TableFacts
    record: TableRecord
    now_ms: int
    today: date
    options: PlanOptions = PlanOptions()
    purged: Mapping[FileKey, DataFile] = field(default_factory=dict)

    def without_purged(self, files: Iterable[DataFile]) -> list[DataFile]:
        """Return those files that nothing takes where the layout takes none of them."""
        return [file for file in files if file.key not in self.purged]

    def with_files(self, files: tuple[DataFile, ...]) -> TableInput:
        """Return the same input for some of the table's files."""
        return replace(self, facts=replace(self.facts, files=files))
