"""How much: A11 to A13 of the threats in docs/safe-vacuum.md, one table twice, clocks, and far too much.

Each test takes a hash of every file below the lake before and after, and says exactly which files went: everything else
must be there with the same content. The only files that may be new are VACUUM's own commits.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from maintainer.app.planning.policy_places import PolicyPlaces
from maintainer.app.planning.read_table import read_for_planning
from maintainer.app.project_folders import PolicyProblems, Project
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.storage.file_store import FileStore
from maintainer.errors import NoTable, Refused
from maintainer.journal.memory.table_records import Remembered
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.table_facts import TableFacts, TableRecord, TableRef
from maintainer.planning.plan_input import PlanMoment, PlanOptions
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.tables.aged_tables import TODAY, AgedTable, now_ms, touch, tree
from tests.support.tables.bind_mounts import bind_mounts
from tests.support.tables.local_vacuum import LocalReader, Vacuuming
from tests.support.tables.vacuum_cases import assert_only, codes, old_table, policies, vacuum


class TestA11OneTableTwice:
    @pytest.mark.parametrize("selected", ["one", "other", "both"])
    @pytest.mark.parametrize("spelling", ["mount", "mount_above"])
    def test_nor_where_one_is_a_mount(self, lake: Path, spelling: str, selected: str) -> None:
        table = old_table(lake / "a" / "a table")
        with bind_mounts() as mount:
            mount(table.path if spelling == "mount" else table.path.parent, lake / "mounted")
            other = TableRef(str(lake / "mounted" / ("" if spelling == "mount" else table.path.name)))
            both = (policies(retention_seconds=7 * 86_400)(table.ref), policies(retention_seconds=90 * 86_400)(other))
            before = tree(lake)
            chosen = {"one": both[:1], "other": both[1:], "both": both}[selected]
            plans = planned_beside(both, chosen, {})
            assert [plan.problem and plan.problem.code for plan in plans] == ["T409"] * len(chosen)
            assert_only(lake, before)

    @pytest.mark.parametrize("selected", ["one", "other", "both"])
    @pytest.mark.parametrize("spelling", ["link", "link_above", "dots", "file_uri", "name"])
    def test_neither_is_touched(self, lake: Path, spelling: str, selected: str) -> None:
        table = old_table(lake / "a" / "a table")
        (lake / "link").symlink_to(table.path)
        (lake / "above").symlink_to(lake / "a")
        other = {
            "link": TableRef(str(lake / "link")),
            "link_above": TableRef(f"{lake}/above/a table/"),
            "dots": TableRef(f"{lake}/above/../a/./a table"),
            "file_uri": TableRef(f"file://{lake}/a/a%20table"),
            "name": TableRef("sales.orders"),
        }[spelling]
        keeps, deletes = policies(retention_seconds=90 * 86_400), policies(retention_seconds=7 * 86_400)
        first, second = deletes(table.ref), keeps(other)
        before = tree(lake)
        chosen = {"one": (first,), "other": (second,), "both": (first, second)}[selected]
        plans = planned_beside((first, second), chosen, {"sales.orders": table.path})
        if selected == "other" and spelling == "name":
            assert plans[0].steps == ()  # nothing of it is to be deleted, so no path is compared with the name
        else:
            assert [plan.problem.code for plan in plans if plan.problem is not None] == ["T409"] * len(chosen)
            assert all(plan.steps == () for plan in plans)
        assert_only(lake, before)

    def test_on_other_storage_the_engine_spells_what_people_write(self, lake: Path) -> None:
        class Store(LocalReader):
            def location_of(self, ref: TableRef) -> str:
                return "s3a://lake/a%20table"

        policy, table = policies(), old_table(lake / "t")
        plan = Vacuuming(policies()).plan(table)
        assert plan.observed is not None
        changed = replace(plan, ref=TableRef("s.t"), observed=replace(plan.observed, location="s3a://lake/a%20table"))
        by_path = policy(TableRef("s3://lake/a table"))
        places = PolicyPlaces((policy(TableRef("s.t")), by_path), StoragePlaces())
        places.opened(changed, Store())
        (checked,) = places.each_once((changed,))
        assert checked.problem is not None
        assert checked.problem.code == "T409"

    def test_a_copy_is_another_table(self, lake: Path) -> None:
        table = old_table(lake / "t")
        shutil.copytree(table.path, lake / "copy")
        policy = policies()
        both = (policy(table.ref), policy(TableRef(str(lake / "copy"))))
        assert all(plan.steps for plan in planned_beside(both, both, {}))

    def test_a_policy_that_reaches_no_table_stands_in_nobodys_way(self, lake: Path) -> None:
        table, policy = old_table(lake / "t"), policies()
        both = (policy(table.ref), policy(TableRef("no.such_table")), policy(TableRef(str(lake / "gone"))))
        assert [bool(plan.steps) for plan in planned_beside(both, both[:1], {})] == [True]


def planned_beside(
    known: tuple[ResolvedPolicy, ...], chosen: tuple[ResolvedPolicy, ...], catalog: dict[str, Path]
) -> tuple[TablePlan, ...]:
    """Plans of some tables of a project; ``catalog`` are names and folders."""
    reader, places = CatalogReader(catalog), StoragePlaces()
    policy_places = PolicyPlaces(known, places)
    plans = []
    for policy in chosen:
        table = read_for_planning(
            reader, policy, Remembered(), places, when=PlanMoment(now_ms(), TODAY), options=PlanOptions()
        )
        plans.append(plan_table(table))
        policy_places.opened(plans[-1], reader)
    return policy_places.each_once(plans)


class CatalogReader(LocalReader):
    """Finds some tables by name."""

    def __init__(self, catalog: dict[str, Path]) -> None:
        super().__init__()
        self._catalog = catalog

    def facts(self, ref: TableRef) -> TableFacts:
        return replace(super().facts(self._path(ref)), ref=ref)

    def place_of(self, ref: TableRef) -> tuple[FileStore, str]:
        return super().place_of(self._path(ref))

    def _path(self, ref: TableRef) -> TableRef:
        if ref.is_path:
            return TableRef(unquote(ref.location.removeprefix("file://")))
        if ref.identifier not in self._catalog:
            raise NoTable("no table", where=ref.identifier)
        return TableRef(str(self._catalog[ref.identifier]))


class TestA12Clocks:
    @pytest.mark.parametrize("hours", [-240, -1, 1, 240])
    def test_a_clock_that_is_not_the_storages_deletes_nothing(self, lake: Path, hours: int) -> None:
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        with pytest.raises(Refused) as caught:
            work.delete(table, step, clock=lambda: now_ms() + hours * 3_600_000)
        assert caught.value.code in ("A451", "A430")
        assert_only(lake, before)

    @pytest.mark.parametrize(("minutes", "held"), [(4, False), (6, True), (600, True)])
    def test_a_newest_commit_from_the_future_holds_the_plan_back(self, lake: Path, minutes: int, held: bool) -> None:
        table = old_table(lake / "t")
        version = table.append(0, "new.parquet")
        touch(table.path / "_delta_log" / f"{version:020}.json", table.at(-minutes / 1440))
        plan = Vacuuming(policies()).plan(table)
        texts = [entry.reason.text for entry in plan.left_alone if entry.reason.code is ReasonCode.CANNOT_BE_SURE]
        assert bool(texts) == held
        if held:
            assert (plan.state, plan.steps) == ("blocked", ())
            assert "clock is " in texts[0]
            assert "behind the storage's: the newest commit's file is dated in the future" in texts[0]

    @pytest.mark.parametrize(
        ("hours", "said"),
        [
            (-240, "clock is 10d behind the storage's"), (-1, "clock is 1h behind the storage's"), (0.08, None),
            (-0.08, None), (1, "clock is 1h ahead of the storage's"), (240, "clock is 10d ahead of the storage's"),
        ],
    )  # fmt: skip
    def test_what_apply_would_refuse_is_not_promised(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch, hours: float, said: str | None
    ) -> None:
        table = old_table(lake / "t")
        folders = {path: path.stat() for path in (table.path, table.path / "_delta_log")}
        before, real = tree(lake), now_ms
        tables = "tests.support.tables"
        for module in ("maintainer.delta.vacuum.vacuum_candidates", f"{tables}.aged_tables", f"{tables}.local_vacuum"):
            monkeypatch.setattr(f"{module}.now_ms", lambda: real() + int(hours * 3_600_000))
        plan = Vacuuming(policies()).plan(table)
        texts = [entry.reason.text for entry in plan.left_alone if entry.reason.code is ReasonCode.CANNOT_BE_SURE]
        assert bool(plan.steps) == (said is None)
        assert bool(texts) == (said is not None)
        assert all(said is not None and said in text for text in texts)
        assert_only(lake, before)
        assert {path: path.stat().st_mtime_ns for path in folders} == {
            path: known.st_mtime_ns for path, known in folders.items()
        }

    @pytest.mark.parametrize(("minutes", "held"), [(4, False), (6, True)])
    def test_storage_that_does_not_say_its_time_shows_only_a_clock_that_is_behind(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, held: bool
    ) -> None:
        monkeypatch.delattr("os.O_TMPFILE", raising=False)
        table = old_table(lake / "t")
        version = table.append(0, "new.parquet")
        touch(table.path / "_delta_log" / f"{version:020}.json", table.at(-minutes / 1440))
        plan = Vacuuming(policies()).plan(table)
        texts = [entry.reason.text for entry in plan.left_alone if entry.reason.code is ReasonCode.CANNOT_BE_SURE]
        assert (bool(texts), bool(plan.steps)) == (held, not held)
        assert all("behind the storage's: the newest commit's file is dated in the future" in text for text in texts)

    @pytest.mark.parametrize("seconds", [-290, 290])
    def test_five_minutes_are_allowed(self, lake: Path, seconds: int) -> None:
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        work.delete(table, step, clock=lambda: now_ms() + seconds * 1000)
        assert_only(lake, before, "t/a.parquet")

    @pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"])
    def test_the_machines_time_zone_and_its_summer_time_do_not_matter(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch, zone: str
    ) -> None:
        table = AgedTable(lake / "t", created_days_ago=250)
        table.append(200, "live.parquet", "older.parquet", "younger.parquet")
        table.delete(180 + 1 / 24, "older.parquet")  # the other half of the year: clocks were turned in between
        table.delete(180 - 1 / 24, "younger.parquet")
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        try:
            vacuum(lake, table, Vacuuming(policies(retention_seconds=180 * 86_400)), "older.parquet")
        finally:
            monkeypatch.undo()
            time.tzset()

    def test_a_writer_with_a_late_clock_makes_nothing_look_old(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet", "x.parquet")
        version = table.delete(30, "x.parquet")
        touch(table.path / "_delta_log" / f"{version:020}.json", table.at(3))
        vacuum(lake, table, Vacuuming(policies()))


class TestA13FarTooMuch:
    @pytest.mark.parametrize(
        ("policy", "past", "blocked"),
        [
            ({}, (), True),
            ({"allow_large_delete": True}, (), False),
            ({"allow_large_delete": True, "max_deletes": 1}, (1, 1, 1), False),
        ],
    )
    def test_an_emptied_table_is_not_emptied_on_storage_without_a_word(
        self, lake: Path, policy: dict[str, Any], past: tuple[int, ...], blocked: bool
    ) -> None:
        table = AgedTable(lake / "t")
        names = [f"f{number}.parquet" for number in range(10)]
        table.append(60, *names)
        table.delete(20, *names[:8])
        settings = {"allow_large_delete": False, **policy}
        work = Vacuuming(policies(**settings), record=TableRecord(vacuumed_bytes=past))
        plan = work.plan(table)
        assert (plan.state == "blocked") == blocked
        assert (ReasonCode.LARGE_DELETE in codes(plan)) == blocked
        vacuum(lake, table, work, *(() if blocked else names[:8]))

    @pytest.mark.parametrize("allowed", [False, True])
    def test_a_compacted_table_needs_the_line_for_rewrites(self, lake: Path, allowed: bool) -> None:
        table = AgedTable(lake / "t")
        names = [f"f{number}.parquet" for number in range(10)]
        table.append(60, *names)
        table.rewrite(20, "all.parquet", *names)
        made = policies(allow_large_delete=False)
        work = Vacuuming(lambda ref: with_rewritten(made(ref), allowed))
        assert (work.plan(table).state == "blocked") != allowed
        vacuum(lake, table, work, *(names if allowed else ()))

    @pytest.mark.parametrize(
        ("text", "all_of_it", "rewritten"), [("true", True, False), ("false", False, False), ("rewritten", False, True)]
    )
    def test_the_line_as_it_is_written(self, tmp_path: Path, text: str, all_of_it: bool, rewritten: bool) -> None:
        (tmp_path / "policies").mkdir()
        file = tmp_path / "policies" / "t.yml"
        file.write_text(f"version: 1\ntable: lake/t\nvacuum: {{allowLargeDelete: {text}}}\n")
        (policy,) = Project.load(tmp_path).policies
        assert policy.vacuum is not None
        assert (policy.vacuum.allow_large_delete, policy.vacuum.allow_rewritten) == (all_of_it, rewritten)

    @pytest.mark.parametrize("text", ["rewriten", "1", "yes"])
    def test_any_other_word_is_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "policies").mkdir()
        (tmp_path / "policies" / "t.yml").write_text(
            f"version: 1\ntable: lake/t\nvacuum: {{allowLargeDelete: {text}}}\n"
        )
        with pytest.raises(PolicyProblems) as caught:
            Project.load(tmp_path)
        (diagnostics,) = caught.value.loaded.diagnostics
        assert diagnostics.message.startswith("vacuum.allowLargeDelete must be `true`, `false` or `rewritten`, not ")


def with_rewritten(policy: ResolvedPolicy, allowed: bool) -> ResolvedPolicy:
    """The policy with ``allowLargeDelete: rewritten``, or without."""
    assert policy.vacuum is not None
    return replace(policy, vacuum=replace(policy.vacuum, allow_rewritten=allowed))
