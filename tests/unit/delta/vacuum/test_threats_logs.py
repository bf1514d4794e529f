"""What the log says, and what it no longer says: A16 to A20 of the threats in docs/safe-vacuum.md.

Each test takes a hash of every file below the lake before and after, and says exactly which files went: everything else
must be there with the same content. The only files that may be new are VACUUM's own commits.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.errors import CommitConflict
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt
from maintainer.model.run.run_events import CommitEnd
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import Protocol, TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.vacuum.vacuum_plan import listing_wanted
from maintainer.policy.resolve.resolved import VacuumMode
from tests.support.tables.aged_tables import AgedTable, now_ms, touch, tree
from tests.support.tables.local_vacuum import LocalReader, Vacuuming
from tests.support.tables.vacuum_cases import (
    assert_only,
    codes,
    old_table,
    policies,
    vacuum,
    wide_table,
)
from tests.support.writers import recorded_events


class TestA16VectorsAndChangeData:
    def vector(self, name: str) -> dict[str, Any]:
        return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 6, "cardinality": 1}

    def test_vectors_of_versions_inside_the_horizon_stay(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "x.parquet")
        for name, days in (("old", 50), ("held", 30), ("live", 3)):
            table.file(f"deletion_vector_{name}.bin", days, name.encode())
        table.commit(
            50, table.remove_action("x.parquet", 50), table.add_action("x.parquet", 60, vector=self.vector("old"))
        )
        table.commit(
            30,
            table.remove_action("x.parquet", 30, vector=self.vector("old")),
            table.add_action("x.parquet", 60, vector=self.vector("held")),
        )
        table.commit(
            3,
            table.remove_action("x.parquet", 3, vector=self.vector("held")),
            table.add_action("x.parquet", 60, vector=self.vector("live")),
        )
        vacuum(lake, table, Vacuuming(policies(delete_untracked=True)), "deletion_vector_old.bin")

    def test_change_data_goes_with_its_version(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "x.parquet")
        for name, days in (("_change_data/old.parquet", 30), ("_change_data/held.parquet", 3)):
            table.file(name, days)
            cdc = {"path": name, "partitionValues": {}, "size": 5, "dataChange": False}
            table.commit(days, {"cdc": cdc}, operation="UPDATE")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        assert [file.kind for file in step.files] == ["change_data"]
        vacuum(lake, table, work, "_change_data/old.parquet")


class TestA17UnknownFeatures:
    @pytest.mark.parametrize("side", ["writer", "reader"])
    def test_the_table_is_left_alone(self, lake: Path, side: str) -> None:
        table = old_table(lake / "t", writer_features=("futureThing",))
        work = Vacuuming(policies())
        if side == "reader":
            facts = work.reader.facts(table.ref)
            known = replace(facts, protocol=Protocol(3, 7, ("futureThing",), ("futureThing",)))
            work.reader.facts = lambda ref: known  # type: ignore[method-assign]
        plan = work.plan(table)
        assert plan.problem is not None
        assert plan.problem.code == "T404"
        vacuum(lake, table, work)


class TestA18RestoreInBetween:
    """Old files are brought back between the plan and the deletion, after START, and between two chunks."""

    def restore(self, table: AgedTable) -> None:
        table.commit(0, table.add_action("f19.parquet", 60), operation="RESTORE")

    @pytest.mark.parametrize("operation", ["RESTORE", "CLONE", "WRITE"])
    def test_before(self, lake: Path, operation: str) -> None:
        table, _ = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        version = table.head
        table.commit(0, table.add_action("f00.parquet", 60), operation=operation)
        before = tree(lake)
        with pytest.raises(CommitConflict):
            work.delete(table, step, planned_version=version)
        assert_only(lake, before)

    @pytest.mark.parametrize("operation", ["RESTORE", "CLONE"])
    def test_before_and_it_names_no_planned_file(self, lake: Path, operation: str) -> None:
        table, _ = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        version = table.head
        table.file("other.parquet", 60)
        table.commit(0, table.add_action("other.parquet", 60), operation=operation)
        before = tree(lake)
        with pytest.raises(CommitConflict, match="restored or cloned over"):
            work.delete(table, step, planned_version=version)
        assert_only(lake, before)

    def test_in_a_version_that_was_read_already(self, lake: Path) -> None:
        table, _ = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        table.commit(0, table.add_action("f00.parquet", 60), operation="WRITE")
        before = tree(lake)
        with pytest.raises(CommitConflict, match="live again"):
            work.delete(table, step)
        assert_only(lake, before)

    def test_removed_again_since_it_was_brought_back(self, lake: Path) -> None:
        table, _ = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        version = table.head
        self.restore(table)
        table.delete(0, "f19.parquet")
        before = tree(lake)
        with pytest.raises(CommitConflict):
            work.delete(table, step, planned_version=version)
        assert_only(lake, before)

    def test_right_after_start(self, lake: Path) -> None:
        table, _ = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        with pytest.raises(CommitConflict, match="RESTORE"):
            work.delete(table, step, after_start=lambda: self.restore(table))
        assert_only(lake, before)

    def test_between_two_chunks(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table, names = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        asked = []

        def once_in_the_middle() -> str | None:
            asked.append(1)
            if len(asked) == 3:
                self.restore(table)
            return None

        monkeypatch.setattr("maintainer.delta.vacuum.file_deletion.CHUNK", 5)
        before = tree(lake)
        with pytest.raises(CommitConflict, match="10 files had been deleted before") as caught:
            work.delete(table, step, stop_reason=once_in_the_middle)
        gone = {f"t/{name}" for name in names} - tree(lake).keys()
        receipt = caught.value.receipt
        assert isinstance(receipt, VacuumReceipt)
        assert (len(gone), receipt.num_files_deleted, receipt.version_after) == (10, 10, table.head)
        assert_only(lake, before, *gone)


class TestA19LogsThatNoLongerReachBack:
    def forgotten(self, lake: Path) -> tuple[AgedTable, Vacuuming]:
        table = AgedTable(lake / "t")
        table.append(60, "a.parquet", "b.parquet", "c.parquet")
        table.delete(50, "a.parquet")
        table.rewrite(20, "bc.parquet", "b.parquet", "c.parquet")
        work = Vacuuming(policies(delete_untracked=True))
        facts = work.reader.facts(table.ref)
        work.reader.facts = lambda ref: facts  # type: ignore[method-assign]
        return table, work

    def test_files_of_the_lost_part_are_untracked_only_where_the_log_covers_the_horizon(self, lake: Path) -> None:
        table, work = self.forgotten(lake)
        for version in (0, 1, 2):
            (table.path / "_delta_log" / f"{version:020}.json").unlink()
        for name in ("a.parquet", "b.parquet", "c.parquet", "bc.parquet"):
            touch(table.path / name, table.at(60))
        before = tree(lake)
        step = work.step(table)
        assert step is not None
        assert [(file.path, file.kind) for file in step.files] == [
            ("a.parquet", "untracked"),
            ("b.parquet", "data"),
            ("c.parquet", "data"),
        ]
        assert_only(lake, before)

    @pytest.mark.parametrize("days_ago", [3, 20])
    def test_a_log_with_a_gap_begins_behind_it(self, lake: Path, days_ago: int) -> None:
        """What the commits of the gap said is lost, as what earlier ones did."""
        table, work = self.forgotten(lake)
        table.commit(days_ago, operation="WRITE")
        facts = replace(work.reader.facts(table.ref), version=4)
        work.reader.facts = lambda ref: facts  # type: ignore[method-assign]
        for version in (1, 2, 3):
            (table.path / "_delta_log" / f"{version:020}.json").unlink()
        for name in ("a.parquet", "b.parquet", "c.parquet"):
            touch(table.path / name, table.at(60))
        step = work.step(table)
        untracked = [] if step is None else [file.path for file in step.files]
        assert untracked == ([] if days_ago == 3 else ["a.parquet", "b.parquet", "c.parquet"])

    def test_nothing_untracked_where_it_does_not(self, lake: Path) -> None:
        table, work = self.forgotten(lake)
        table.commit(3, operation="WRITE")
        facts = replace(work.reader.facts(table.ref), version=4)
        work.reader.facts = lambda ref: facts  # type: ignore[method-assign]
        for version in (0, 1, 2, 3):
            (table.path / "_delta_log" / f"{version:020}.json").unlink()
        plan = work.plan(table)
        assert plan.steps == ()
        assert codes(plan) == {ReasonCode.UNTRACKED}
        assert any("the log begins at version 4" in entry.reason.text for entry in plan.left_alone)

    def cleaned(self, lake: Path, first: int, *, days_ago: float) -> tuple[AgedTable, Vacuuming]:
        """Five overwrites of which only those from one version on are in the log; all five old files are there."""
        table = AgedTable(lake / "t")
        table.append(60, "f0.parquet")
        for number in range(5):
            table.append(60, f"f{number + 1}.parquet")
            table.delete(days_ago, f"f{number}.parquet")
        table.commit(days_ago, operation="WRITE")  # removes nothing
        work = Vacuuming(policies())
        facts = work.reader.facts(table.ref)
        work.reader.facts = lambda ref: facts  # type: ignore[method-assign]
        for version in range(first):
            (table.path / "_delta_log" / f"{version:020}.json").unlink()
        return table, work

    def test_what_it_lost_is_kept_and_counted(self, lake: Path) -> None:
        table, work = self.cleaned(lake, first=6, days_ago=40)
        before = tree(lake)
        texts = [
            entry.reason.text for entry in work.plan(table).left_alone if entry.reason.code is ReasonCode.UNTRACKED
        ]
        lost = [table.path / f"f{number}.parquet" for number in (0, 1)]
        size = sum(path.stat().st_size for path in lost)
        assert texts == [
            f"2 files ({size} B) that the log does not mention (it begins at version 6); "
            "`deleteUntracked: true` would delete those unchanged for 30d"
        ]
        assert_only(lake, before)
        vacuum(lake, table, work, "f2.parquet", "f3.parquet", "f4.parquet")

    def test_where_it_is_younger_than_the_retention_too(self, lake: Path) -> None:
        table, work = self.cleaned(lake, first=12, days_ago=2)
        plan = work.plan(table)
        (text,) = [entry.reason.text for entry in plan.left_alone if entry.reason.code is ReasonCode.UNTRACKED]
        assert plan.steps == ()
        assert "the log begins at version 12" in text
        assert "5 files (" in text
        vacuum(lake, table, work)

    @pytest.mark.parametrize("mode", [VacuumMode.AUTO, VacuumMode.LITE])
    def test_no_listing_and_no_claim_of_what_it_lost(self, lake: Path, mode: VacuumMode) -> None:
        table, work = self.cleaned(lake, first=12, days_ago=40)
        listed = TableRecord(last_listing_at_ms=table.at(1))
        work = replace(work, policy=policies(mode=mode, untracked_every_seconds=7 * 86_400), record=listed)
        (text,) = [
            entry.reason.text
            for entry in work.plan(table).left_alone
            if entry.reason.code is ReasonCode.NOTHING_EXPIRED
        ]
        assert text == (
            "nothing that version 12 or later removed more than 7d ago is left on storage; the log no longer says what "
            "earlier versions removed: `mode: full` would count it and delete none of it"
        )

    def test_mode_full_counts_what_it_lost_however_lately_it_listed(self, lake: Path) -> None:
        table, work = self.cleaned(lake, first=6, days_ago=40)
        before = tree(lake)
        listed = TableRecord(last_listing_at_ms=table.at(1))
        work = replace(work, policy=policies(mode=VacuumMode.FULL), record=listed)
        (text,) = [
            entry.reason.text for entry in work.plan(table).left_alone if entry.reason.code is ReasonCode.UNTRACKED
        ]
        assert text.startswith("2 files (")
        assert "it begins at version 6" in text
        assert_only(lake, before)
        on_store = replace(work.reader.facts(table.ref), location="s3a://lake/t")
        assert listing_wanted(TableInput(work.policy(table.ref), on_store, listed, now_ms(), date(2026, 11, 21)))

    def test_what_delta_notes_for_vacuum_lite_is_not_touched(self, lake: Path) -> None:
        table = old_table(lake / "t")
        note = table.path / "_delta_log" / "_last_vacuum_info"
        note.write_text('{"latestCommitVersionOutsideOfRetentionWindow":1}')
        for mode in VacuumMode:
            vacuum(lake, table, Vacuuming(policies(mode=mode)), *(["a.parquet"] if mode is VacuumMode.AUTO else []))
        assert note.read_text() == '{"latestCommitVersionOutsideOfRetentionWindow":1}'


class TestA20UnprovenRewrites:
    @pytest.mark.parametrize(
        "record",
        [
            TableRecord(unproven_versions=(2,)),
            TableRecord(quarantined="V501: what was written is not what was read"),
            TableRecord(unproven_versions=(2, 99)),
        ],
        ids=["missing", "failed", "several"],
    )
    @pytest.mark.parametrize("untracked", [False, True])
    def test_what_they_replaced_stays(self, lake: Path, record: TableRecord, untracked: bool) -> None:
        table = old_table(lake / "t")
        work = Vacuuming(policies(delete_untracked=untracked), record=record)
        assert work.step(table) is None
        vacuum(lake, table, work)

    def test_what_they_replaced_stays_when_the_log_no_longer_names_it(self, lake: Path) -> None:
        """Then it is an untracked file: it may be the only right copy of its rows."""
        table = old_table(lake / "t")
        for days_ago in (19, 18):
            table.append(days_ago, f"{days_ago}.parquet")
        log = table.path / "_delta_log"
        commits = [log / f"{version:020}.json" for version in range(4)]
        state = [line for commit in commits[:3] for line in commit.read_text().splitlines() if "commitInfo" not in line]
        kept = [line for line in state if "a.parquet" not in line or "ab.parquet" in line]
        commits[3].write_text("\n".join([*kept, commits[3].read_text()]))
        touch(commits[3], table.at(19))
        for commit in commits[:3]:
            commit.unlink()
        touch(table.path / "a.parquet", table.at(60))
        unproven = Vacuuming(policies(delete_untracked=True), record=TableRecord(unproven_versions=(2,)))
        assert ReasonCode.UNPROVEN_REWRITE in codes(unproven.plan(table))
        vacuum(lake, table, unproven)
        vacuum(lake, table, Vacuuming(policies(delete_untracked=True)), "a.parquet")

    def recorded(self, runs_dir: Path, facts: TableFacts, proofs: list[tuple[TableFacts, int, str]]) -> TableRecord:
        """What the run folders say after a compaction that landed as version 2, and these checks of it."""
        journal = Journal.open(runs_dir, "20261121T220001Z-0000", now_ms)
        stamp = CommitStamp(journal.run_id, "t/compact", 0, "sha256:p")
        recorded_events.intent(journal, stamp, facts, "compact", read_version=1, num_files=1, size_bytes=1, proof=None)
        recorded_events.result(journal, stamp, facts, "compact", CommitEnd.LANDED, receipt=CommitReceipt(2, 1))
        for table, version, result in proofs:
            recorded_events.verified(journal, table, "t/compact", version, result, None)
        journal.finished()
        journal.close()
        return remembered(runs_dir).record_of(facts.table_id, facts.location, StoragePlaces())

    @pytest.mark.parametrize(
        ("proof", "free"),
        [
            ("missing", False),
            ("failed", False),
            ("could not be checked", False),
            ("of an earlier version", False),
            ("of a later version", False),
            ("of another table", False),
            ("of a copy of the folder", False),
            ("a word that is not ours", False),
            ("passed", True),
        ],
    )
    def test_only_a_proof_of_just_that_commit_frees_what_it_replaced(self, lake: Path, proof: str, free: bool) -> None:
        table = old_table(lake / "t")
        facts = LocalReader().facts(table.ref)
        proofs = {
            "missing": [],
            "failed": [(facts, 2, "fail")],
            "could not be checked": [(facts, 2, "error")],
            "of an earlier version": [(facts, 1, "pass")],
            "of a later version": [(facts, 3, "pass")],
            "of another table": [(replace(facts, table_id="another"), 2, "pass")],
            "of a copy of the folder": [(replace(facts, location=facts.location + "-copy"), 2, "pass")],
            "a word that is not ours": [(facts, 2, "PASS")],
            "passed": [(facts, 2, "pass")],
        }[proof]
        record = self.recorded(lake.parent / "runs", facts, proofs)
        vacuum(lake, table, Vacuuming(policies(), record=record), *(["a.parquet"] if free else []))

    def test_other_files_go(self, lake: Path) -> None:
        table = old_table(lake / "t")
        table.rewrite(15, "b2.parquet", "b.parquet")
        work = Vacuuming(policies(), record=TableRecord(unproven_versions=(2,)))
        assert ReasonCode.UNPROVEN_REWRITE in codes(work.plan(table))
        vacuum(lake, table, work, "b.parquet")
