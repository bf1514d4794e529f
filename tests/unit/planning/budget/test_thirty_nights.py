"""Thirty nights on twenty growing tables: what was compacted is left alone, and what is rewritten stays in proportion.

The planner decides on built-in settings; what a rewrite makes of the files is played by hand: one file for each bin,
with the tags that the step asks for. What the report of the fleet says of it is looked at, too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, date, timedelta
from functools import lru_cache

import pytest

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import CompactStep
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.html.fleet_view import FleetTable, fleet_tables
from maintainer.report.html.page_parts import predictions
from tests.support.tables.builders import DAY_MS, MIB, NOW_MS, make_facts, make_file, make_optimize, make_policy

NIGHTS = 30
MIN_SIZE, MAX_SIZE = 64 * MIB, 256 * MIB
FIRST_DAY = date(2026, 10, 1)


@dataclass
class Growing:
    """A table that is appended to each day, by so many files of about so many bytes; by days, if partitioned."""

    name: str
    files_a_day: int
    file_bytes: int
    partitioned: bool
    facts: TableFacts = field(init=False)
    arrived_bytes: int = 0
    rewritten_bytes: int = 0
    times_rewritten: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = {"id": "long", "d": "date"} if self.partitioned else {"id": "long"}
        by = ("d",) if self.partitioned else ()
        self.facts = make_facts(name=self.name, table_id=self.name, location=f"file:/{self.name}", columns=columns,
                                partitioned_by=by)  # fmt: skip

    @property
    def policy(self) -> ResolvedPolicy:
        return make_policy(name=self.name, optimize=make_optimize(min_size=MIN_SIZE, max_size=MAX_SIZE))

    def grow(self, night: int, chance: random.Random) -> None:
        """A day's appends."""
        day = (FIRST_DAY + timedelta(days=night)).isoformat()
        new = [
            make_file(
                f"{night:02}-{number}",
                size=round(self.file_bytes * chance.uniform(0.5, 1.5)),
                partition={"d": day} if self.partitioned else None,
                modified_at_ms=at(night) - DAY_MS // 2,
            )
            for number in range(self.files_a_day)
        ]  # fmt: skip
        self.arrived_bytes += sum(file.size_bytes for file in new)
        self._set((*self.facts.files, *new))

    def plan(self, night: int) -> TablePlan:
        return plan_table(
            TableInput(self.policy, self.facts, TableRecord(), at(night), FIRST_DAY + timedelta(days=night))
        )

    def carry_out(self, plan: TablePlan, night: int) -> TableOutcome:
        """What a run would make of the plan."""
        steps = []
        for step in plan.steps:
            assert isinstance(step, CompactStep)
            bins = [bin_ for batch in step.batches for bin_ in batch.bins]
            gone = {file.path for bin_ in bins for file in bin_.files}
            new: list[DataFile] = []
            for number, bin_ in enumerate(bins):
                made = make_file(f"c{night:02}-{number}", size=bin_.size_bytes, modified_at_ms=at(night))
                new.append(replace(made, partition_values=bin_.files[0].partition_values, tags=step.file_tags))
                age = max(self.times_rewritten.get(file.path, 0) for file in bin_.files)
                self.times_rewritten[new[-1].path] = age + 1
            size = sum(bin_.size_bytes for bin_ in bins)
            self.rewritten_bytes += size
            self._set((*(file for file in self.facts.files if file.path not in gone), *new))
            receipt = CommitReceipt(
                version=self.facts.version, read_version=self.facts.version - 1, num_files_removed=len(gone),
                num_files_added=len(new), bytes_removed=size, bytes_added=size,
            )  # fmt: skip
            steps.append(StepOutcome(plan.step_id(step), step.kind, StepStatus.SUCCEEDED, at(night), 1.0, (receipt,)))
        return TableOutcome(plan.ref, TableStatus.DONE if steps else TableStatus.UP_TO_DATE, tuple(steps))

    def _set(self, files: tuple[DataFile, ...]) -> None:
        self.facts = replace(self.facts, files=files, version=self.facts.version + 1)


def at(night: int) -> int:
    return NOW_MS - (60 - night) * DAY_MS


def twenty() -> list[Growing]:
    shapes = [(20, MIB), (200, MIB // 8), (3, 30 * MIB), (2, 100 * MIB), (1, 300 * MIB), (40, 4 * MIB), (5, 60 * MIB),
              (1, 10 * MIB), (12, 20 * MIB), (100, MIB)]  # fmt: skip
    return [
        Growing(f"t{number:02}_{'days' if partitioned else 'whole'}", files, size, partitioned)
        for partitioned in (False, True)
        for number, (files, size) in enumerate(shapes)
    ]


@dataclass
class Month:
    """What thirty nights made of the tables."""

    tables: list[Growing]
    runs: list[tuple[Plan, RunOutcome]]

    @property
    def shown(self) -> list[FleetTable]:
        return fleet_tables(self.runs, UTC)


@lru_cache(maxsize=1)
def month() -> Month:
    chance = random.Random(20261121)
    tables, runs = twenty(), []
    for night in range(NIGHTS):
        plans, outcomes = [], []
        for table in tables:
            table.grow(night, chance)
            plans.append(table.plan(night))
            outcomes.append(table.carry_out(plans[-1], night))
            assert table.plan(night).steps == (), f"{table.name} is not done after night {night}"
        plan = assemble(plans, created_at_ms=at(night))
        outcome = RunOutcome(f"run-{night:02}", at(night), 60.0, tuple(sorted(outcomes, key=lambda result: result.ref)))
        runs.append((plan, outcome))
    return Month(tables, runs)


def test_no_byte_is_lost_and_nothing_is_left_to_do_after_any_night() -> None:
    for table in month().tables:
        assert table.facts.size_bytes == table.arrived_bytes


def test_files_stay_few() -> None:
    """At most one open file in each partition beside those that are large enough."""
    for table in month().tables:
        partitions: dict[object, int] = {}
        for file in table.facts.files:
            partitions[file.partition_values] = partitions.get(file.partition_values, 0) + (file.size_bytes < MIN_SIZE)
        assert max(partitions.values()) <= 1
        assert len(table.facts.files) <= table.facts.size_bytes / MIN_SIZE + len(partitions)


def test_partitions_by_day_are_rewritten_once_and_never_again() -> None:
    for table in month().tables:
        if table.partitioned:
            assert set(table.times_rewritten.values()) <= {1}
            assert table.rewritten_bytes <= table.arrived_bytes


def test_what_is_rewritten_stays_in_proportion() -> None:
    """A growing file is taken again until it is large enough: at most as often as a day's bytes fit into that."""
    for table in month().tables:
        a_day = table.arrived_bytes / NIGHTS
        bound = 1 + MIN_SIZE / a_day
        assert max(table.times_rewritten.values(), default=0) <= bound + 1
        assert table.rewritten_bytes <= table.arrived_bytes * (bound + 1) / 2 + MAX_SIZE
    rewritten = sum(table.rewritten_bytes for table in month().tables)
    assert rewritten < 0.6 * sum(table.arrived_bytes for table in month().tables)


@pytest.mark.parametrize("number", range(20))
def test_the_report_says_how_much_was_rewritten_for_each_byte(number: int) -> None:
    table = sorted(month().tables, key=lambda planned: planned.name)[number]
    (shown,) = (row for row in month().shown if row.name == table.name)
    assert shown.bytes_rewritten == table.rewritten_bytes
    first, last = month().runs[0][0], month().runs[-1][0]
    met = [
        next(
            planned.observed.size_bytes
            for planned in plan.tables
            if planned.ref.identifier == table.name and planned.observed
        )
        for plan in (first, last)
    ]
    assert shown.growth_bytes == met[1] - met[0]
    assert shown.bytes_rewritten / shown.growth_bytes == pytest.approx(table.rewritten_bytes / (met[1] - met[0]))


def test_the_report_says_how_good_the_plans_were() -> None:
    (compaction,) = predictions(month().runs).rows
    for cell in compaction.cells[2:]:
        planned, actual = str(cell).split(", ")
        assert planned == actual != "0"
