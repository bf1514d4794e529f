"""How long files are kept: A1 to A4 of the threats in docs/safe-vacuum.md.

Each test takes a hash of every file below the lake before and after, and says exactly which files went: everything else
must be there with the same content. The only files that may be new are VACUUM's own commits.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import deltalake
import pytest

from maintainer.errors import Refused
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.table_facts import RemovedFile
from maintainer.policy.resolve.resolved import Consumer
from tests.support.tables.aged_tables import DAY_MS, AgedTable, tree
from tests.support.tables.builders import DAY_SECONDS
from tests.support.tables.local_vacuum import Vacuuming
from tests.support.tables.vacuum_cases import (
    assert_only,
    codes,
    policies,
    vacuum,
    write_checkpoint,
)


class TestA01RetentionIsHonoured:
    """12 combinations of policy and property; files an hour younger and an hour older than the longest."""

    @pytest.mark.parametrize("policy_days", [7, 10, 30])
    @pytest.mark.parametrize("property_days", [None, 2, 9, 40])
    def test_the_longest_decides_to_the_hour(self, lake: Path, policy_days: int, property_days: int | None) -> None:
        properties = {} if property_days is None else {
            "delta.deletedFileRetentionDuration": f"interval {property_days} days",
            "delta.logRetentionDuration": "interval 90 days",
        }  # fmt: skip
        longest = max(policy_days, property_days or 7, 7)
        table = AgedTable(lake / "t", properties=properties)
        table.append(80, "live.parquet", "older.parquet", "younger.parquet")
        table.delete(longest + 1 / 24, "older.parquet")
        table.delete(longest - 1 / 24, "younger.parquet")
        vacuum(lake, table, Vacuuming(policies(retention_seconds=policy_days * DAY_SECONDS)), "older.parquet")


class TestA02WritesInFlight:
    def test_twice_the_longest_write_is_kept(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet", "old.parquet", "held.parquet")
        table.file("slow.parquet", 50)
        table.commit(45, table.add_action("slow.parquet", 50))  # five days from the first file to the commit
        table.delete(10.1, "old.parquet")
        table.delete(9.9, "held.parquet")
        vacuum(lake, table, Vacuuming(policies()), "old.parquet")

    @pytest.mark.parametrize("operation", ["RESTORE", "CLONE", "CONVERT"])
    def test_files_that_are_brought_back_are_no_long_write(self, lake: Path, operation: str) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet", "old.parquet")
        table.file("again.parquet", 50)
        table.commit(40, table.add_action("again.parquet", 50), operation=operation)
        table.delete(8, "old.parquet")
        vacuum(lake, table, Vacuuming(policies()), "old.parquet")

    def test_a_time_that_the_commit_reports_counts(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet", "held.parquet")
        metrics = {"operationMetrics": {"executionTimeMs": str(6 * DAY_MS)}}
        table.commit(40, table.remove_action("held.parquet", 11.9), operation="DELETE", info=metrics)
        step = Vacuuming(policies()).plan(table)
        assert step.steps == ()  # removed 11.9 days ago says the remove, and 12 days are kept

    def test_a_step_below_the_floor_is_refused_whatever_the_plan_says(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet", "young.parquet")
        table.delete(6, "young.parquet")
        files = (RemovedFile("young.parquet", 1, table.at(6), removed_in_version=2),)
        before = tree(lake)
        with pytest.raises(Refused) as caught:
            Vacuuming(policies()).delete(table, VacuumStep(files, table.at(5), 5 * DAY_SECONDS, "x", ()))
        assert caught.value.code == "A430"
        assert_only(lake, before)


class TestA03ReadersThatAreBehind:
    """A stream, and a reader with a declared lag: behind, at, and before what is deleted."""

    def table(self, lake: Path) -> AgedTable:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet", "x.parquet")  # 1
        table.append(30, "y.parquet")  # 2
        table.delete(20, "x.parquet")  # 3
        table.append(10, "z.parquet")  # 4
        return table

    @pytest.mark.parametrize(("version", "gone"), [(2, ()), (3, ()), (4, ("x.parquet",)), (5, ("x.parquet",))])
    def test_a_stream_keeps_what_was_removed_since_the_version_it_is_at(
        self, lake: Path, version: int, gone: tuple[str, ...]
    ) -> None:
        table = self.table(lake)
        folder = write_checkpoint(lake / "chk", table, version)
        vacuum(lake, table, Vacuuming(policies(consumers=(Consumer("s", None, str(folder)),))), *gone)

    @pytest.mark.parametrize("starting", [(True,), (False,), (True, False)])
    def test_a_stream_whose_first_batch_is_not_done(self, lake: Path, starting: tuple[bool, ...]) -> None:
        """Its offset says where the batch ends; that is where it began as well only within the first snapshot."""
        table = self.table(lake)
        folder = write_checkpoint(lake / "chk", table, 0, committed=-1)
        offset = {"sourceVersion": 1, "reservoirId": table.table_id, "reservoirVersion": 4, "index": 0}
        lines = [json.dumps({**offset, "isStartingVersion": is_starting}) for is_starting in starting]
        (folder / "offsets" / "0").write_text("\n".join(["v1", "{}", *lines]))
        work = Vacuuming(policies(consumers=(Consumer("s", None, str(folder)),)))
        if all(starting):
            vacuum(lake, table, work, "x.parquet")
            return
        plan = work.plan(table)
        assert (plan.state, codes(plan)) == ("blocked", {ReasonCode.CANNOT_BE_SURE})
        assert "its first batch is not done, and where it began is not recorded" in plan.blocked[0].text
        vacuum(lake, table, work)

    @pytest.mark.parametrize(("days", "gone"), [(19, ("x.parquet",)), (21, ())])
    def test_a_declared_lag(self, lake: Path, days: int, gone: tuple[str, ...]) -> None:
        consumers = (Consumer("audit", days * DAY_SECONDS),)
        vacuum(lake, self.table(lake), Vacuuming(policies(consumers=consumers)), *gone)

    @pytest.mark.parametrize(("days", "gone"), [(19, ("_change_data/c.parquet",)), (20.1, ()), (21, ())])
    def test_a_reader_of_the_change_feed(self, lake: Path, days: float, gone: tuple[str, ...]) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet")
        table.file("_change_data/c.parquet", 20)
        cdc = {"path": "_change_data/c.parquet", "partitionValues": {}, "size": 5, "dataChange": False}
        table.commit(20, {"cdc": cdc}, operation="UPDATE")
        consumers = (Consumer("feed", int(days * DAY_SECONDS)),)
        vacuum(lake, table, Vacuuming(policies(consumers=consumers)), *gone)

    def damaged(self, folder: Path, how: str) -> None:
        match how:
            case "missing":
                shutil.rmtree(folder)
            case "no offsets":
                shutil.rmtree(folder / "offsets")
            case "cut off":
                (folder / "offsets" / "3").write_text("v1\n{}\n{")
            case "another table":
                (folder / "offsets" / "3").write_text('v1\n{}\n{"reservoirId":"other","reservoirVersion":3}')
            case "empty":
                (folder / "offsets" / "3").write_text("")
            case "offsets of the last batch gone":
                for file in (folder / "offsets").iterdir():
                    file.unlink()
                (folder / "offsets" / "99").write_text("v1\n{}\n{}")
            case _:
                raise AssertionError(how)

    @pytest.mark.parametrize(
        "how",
        ["missing", "no offsets", "cut off", "another table", "empty", "offsets of the last batch gone"],
    )
    def test_a_broken_checkpoint_holds_everything(self, lake: Path, how: str) -> None:
        table = self.table(lake)
        folder = write_checkpoint(lake / "chk", table, 4)
        self.damaged(folder, how)
        work = Vacuuming(policies(consumers=(Consumer("s", None, str(folder)),)))
        plan = work.plan(table)
        assert (plan.state, codes(plan)) == ("blocked", {ReasonCode.CANNOT_BE_SURE})
        assert "consumer s" in plan.blocked[0].text
        vacuum(lake, table, work)

    def test_a_stream_at_a_version_that_the_log_has_forgotten_holds_everything(self, lake: Path) -> None:
        table = self.table(lake)
        folder = write_checkpoint(lake / "chk", table, 1)
        log = table.path / "_delta_log"
        work = Vacuuming(policies(consumers=(Consumer("s", None, str(folder)),)))
        facts = work.reader.facts(table.ref)
        work.reader.facts = lambda ref: facts  # type: ignore[method-assign]
        for version in (0, 1):
            (log / f"{version:020}.json").unlink()
        plan = work.plan(table)
        assert plan.state == "blocked"
        assert "it is at version 1, and the log begins at 2" in plan.blocked[0].text


class TestA04EveryPromisedVersionStaysReadable:
    @pytest.mark.parametrize("seed", range(20))
    def test_random_histories(self, lake: Path, seed: int) -> None:
        """Each version that was current at the horizon or later has all of its files, by a replay of its own."""
        chance = random.Random(seed)
        table = AgedTable(lake / "t", created_days_ago=90)
        live: list[str] = []
        snapshots: list[tuple[float, set[str]]] = []
        for number, days in enumerate(sorted((chance.uniform(0.5, 80) for _ in range(25)), reverse=True)):
            if len(live) < 3 or chance.random() < 0.5:
                table.append(days, f"f{number}.parquet")
                live.append(f"f{number}.parquet")
            else:
                taken = chance.sample(live, 2)
                if chance.random() < 0.5:
                    table.rewrite(days, f"r{number}.parquet", *taken)
                    live.append(f"r{number}.parquet")
                else:
                    table.delete(days, *taken)
                live = [name for name in live if name not in taken]
            snapshots.append((days, set(live)))
        retention = chance.choice([7, 10, 15])
        work = Vacuuming(policies(retention_seconds=retention * DAY_SECONDS))
        current = [files for days, files in snapshots if days >= retention][-1:]
        promised = set().union(*current, *(files for days, files in snapshots if days < retention))
        all_files = {file.name for file in table.path.glob("*.parquet")}
        vacuum(lake, table, work, *(all_files - promised))
        assert {file.name for file in table.path.glob("*.parquet")} == promised
        newest = {Path(file).name for file in deltalake.DeltaTable(str(table.path)).file_uris()}
        assert newest == set(live)
