"""The modes of a vacuum: what each looks at, what each takes, and that nothing to do leaves no trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.planning.plan_input import PlanMoment, PlanOptions
from maintainer.policy.resolve.resolved import VacuumMode
from tests.support.tables.aged_tables import TODAY, AgedTable, now_ms, tree
from tests.support.tables.local_vacuum import AlwaysRemembered, Vacuuming
from tests.support.tables.vacuum_cases import codes, old_table, policies, vacuum


def facts_of(work: Vacuuming, table: AgedTable) -> TableFacts:
    """What planning reads of the table."""
    from maintainer.app.planning.read_table import read_for_planning

    planned = read_for_planning(
        work.reader,
        work.policy(table.ref),
        AlwaysRemembered(record=work.record),
        StoragePlaces(),
        when=PlanMoment(now_ms(), TODAY),
        options=PlanOptions(),
    )
    return planned.facts


def with_foreign_file(lake: Path) -> AgedTable:
    """One file that was compacted away, and one that the log never knew; both old."""
    table = old_table(lake / "t")
    table.file("foreign.parquet", 100)
    return table


class TestNothingToDo:
    @pytest.mark.parametrize("mode", list(VacuumMode))
    def test_no_commit_and_no_step(self, lake: Path, mode: VacuumMode) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "a.parquet", "b.parquet")
        table.rewrite(3, "ab.parquet", "a.parquet", "b.parquet")
        work, before = Vacuuming(policies(mode=mode)), tree(lake)
        plan = work.plan(table)
        assert (plan.state, plan.steps, codes(plan)) == ("up_to_date", (), {ReasonCode.NOTHING_EXPIRED})
        assert tree(lake) == before

    def test_neither_the_folder_nor_other_tables_logs_are_read(self, lake: Path) -> None:
        table = with_foreign_file(lake)
        (table.path / "a.parquet").unlink()
        work = Vacuuming(policies(), tables=(AgedTable(lake / "other").ref,))
        work.reader.place_of = lambda ref: pytest.fail("another table was looked at")  # type: ignore[method-assign]
        facts = facts_of(work, table)
        assert facts.storage is not None
        assert (facts.removed_files, facts.storage.listing, facts.storage.protections) == ((), None, ())


class TestLite:
    def test_only_what_the_log_removed_goes_whatever_else_is_allowed(self, lake: Path) -> None:
        table = with_foreign_file(lake)
        work = Vacuuming(policies(mode=VacuumMode.LITE, delete_untracked=True))
        facts = facts_of(work, table)
        assert facts.storage is not None
        assert facts.storage.listing is None
        vacuum(lake, table, work, "a.parquet")


class TestFull:
    @pytest.mark.parametrize("listed_days_ago", [None, 1])
    def test_the_folder_is_listed_each_time(self, lake: Path, listed_days_ago: int | None) -> None:
        table = with_foreign_file(lake)
        record = TableRecord(last_listing_at_ms=None if listed_days_ago is None else table.at(listed_days_ago))
        work = Vacuuming(policies(mode=VacuumMode.FULL, untracked_every_seconds=7 * 86_400), record=record)
        facts = facts_of(work, table)
        assert facts.storage is not None
        assert facts.storage.listing is not None
        assert (facts.storage.listing.num_folders, facts.storage.listing.num_requests) == (1, 1)
        assert ReasonCode.UNTRACKED in codes(work.plan(table))
        vacuum(lake, table, work, "a.parquet")

    def test_untracked_files_go_where_the_policy_says_so(self, lake: Path) -> None:
        table = with_foreign_file(lake)
        work = Vacuuming(policies(mode=VacuumMode.FULL, delete_untracked=True))
        vacuum(lake, table, work, "a.parquet", "foreign.parquet")


class TestAuto:
    def test_no_listing_unless_untracked_files_may_go(self, lake: Path) -> None:
        table = with_foreign_file(lake)
        work = Vacuuming(policies())
        facts = facts_of(work, table)
        assert facts.storage is not None
        assert facts.storage.listing is None
        vacuum(lake, table, work, "a.parquet")

    @pytest.mark.parametrize(("listed_days_ago", "listed"), [(None, True), (6, False), (8, True)])
    def test_the_listing_has_its_own_every(self, lake: Path, listed_days_ago: int | None, listed: bool) -> None:
        table = with_foreign_file(lake)
        record = TableRecord(last_listing_at_ms=None if listed_days_ago is None else table.at(listed_days_ago))
        policy = policies(delete_untracked=True, untracked_every_seconds=7 * 86_400)
        work = Vacuuming(policy, record=record)
        gone = ("a.parquet", "foreign.parquet") if listed else ("a.parquet",)
        facts = facts_of(work, table)
        assert facts.storage is not None
        assert (facts.storage.listing is not None) == listed
        vacuum(lake, table, work, *gone)

    def test_what_the_listing_costs_is_in_the_plan(self, lake: Path) -> None:
        table = with_foreign_file(lake)
        for number in range(3):
            table.file(f"p={number}/x.parquet", 1)
        step = Vacuuming(policies(delete_untracked=True)).step(table)
        assert step is not None
        assert step.listing is not None
        assert (step.listing.num_folders, step.listing.num_requests) == (4, 4)
        assert replace(step.listing, num_folders=0, num_requests=0).num_files == 7
