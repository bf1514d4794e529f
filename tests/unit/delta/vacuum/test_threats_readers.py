"""Our own reader is wrong, or the log changes while we look: A21 and A22 of the threats in docs/safe-vacuum.md."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.replay import log_replay
from maintainer.delta.storage.failures.store_answers import StoreAway
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.vacuum.second_reader import Going, LiveVersion, SecondReader, check_second_reading
from maintainer.errors import CommitConflict, Refused
from maintainer.model.table.table_facts import TableFacts, TableRef
from tests.support.tables.aged_tables import AgedTable, touch, tree
from tests.support.tables.local_vacuum import LocalReader, LocalTable, Vacuuming, plain_reading
from tests.support.tables.vacuum_cases import assert_only, forget_add, old_table, policies

VECTOR = {"storageType": "u", "pathOrInlineDv": "one", "offset": 1, "sizeInBytes": 6, "cardinality": 1}


class Forgetful(LocalReader):
    """A reader of facts with a fault: ``change`` makes other live files of those of the log."""

    def __init__(self, change: Callable[[TableFacts], TableFacts]) -> None:
        super().__init__()
        self._change = change

    def facts(self, ref: TableRef) -> TableFacts:
        return self._change(super().facts(ref))


def without(name: str) -> Callable[[TableFacts], TableFacts]:
    return lambda facts: replace(facts, files=tuple(file for file in facts.files if file.path != name))


class TestA21OurReaderHasAFault:
    def test_an_add_that_it_forgets_does_not_cost_the_file(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = old_table(lake / "t")
        forget_add(monkeypatch, "b.parquet")
        work = Vacuuming(policies(delete_untracked=True), reader=Forgetful(without("b.parquet")))
        step = work.step(table)
        assert step is not None
        assert {file.path for file in step.files} == {"a.parquet", "b.parquet"}, "the fault must reach the plan"
        before = tree(lake)
        with pytest.raises(Refused) as refused:
            work.delete(table, step)
        size = (table.path / "b.parquet").stat().st_size
        assert (refused.value.code, refused.value.where) == ("A452", f"{table.path}@{table.head}")
        assert f"only in that of plain JSON: b.parquet ({size:,} bytes)" in str(refused.value.found)
        assert "1 file, " in str(refused.value.found)
        assert "2 files, " in str(refused.value.found)
        assert_only(lake, before)

    @pytest.mark.parametrize(
        "change",
        [
            lambda facts: replace(facts, files=(*facts.files, replace(facts.files[0], path="no.parquet"))),
            lambda facts: replace(facts, files=(replace(facts.files[0], size_bytes=1), *facts.files[1:])),
            lambda facts: replace(facts, files=facts.files[1:]),
        ],
        ids=["one more", "another size", "one less"],
    )
    def test_live_files_that_differ_stop_the_deletion_of_others(
        self, lake: Path, change: Callable[[TableFacts], TableFacts]
    ) -> None:
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        with pytest.raises(Refused, match="A452"):
            Vacuuming(policies(), reader=Forgetful(change)).delete(table, step)
        assert_only(lake, before)

    def test_a_deletion_vector_that_it_forgets(self, lake: Path) -> None:
        table = old_table(lake / "t")
        table.file("deletion_vector_one.bin", 30, b"vector")
        added = table.add_action("b.parquet", 60, vector=VECTOR)
        table.commit(15, table.remove_action("b.parquet", 15), added, operation="DELETE")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        blind = Forgetful(
            lambda facts: replace(facts, files=tuple(replace(file, deletion_vector=None) for file in facts.files))
        )
        before = tree(lake)
        with pytest.raises(Refused, match="with a deletion vector"):
            Vacuuming(policies(), reader=blind).delete(table, step)
        assert_only(lake, before)

    def test_a_removal_that_it_takes_for_an_older_one(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = old_table(lake / "t")
        table.delete(3, "b.parquet")
        take = log_replay._take_remove

        def too_old(log: Any, storage: Any, body: dict[str, Any], version: int, at: int, *, late: bool) -> None:
            take(log, storage, {**body, "deletionTimestamp": 0}, version, table.at(20), late=late)

        monkeypatch.setattr(log_replay, "_take_remove", too_old)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        assert {file.path for file in step.files} == {"a.parquet", "b.parquet"}, "the fault must reach the plan"
        before = tree(lake)
        with pytest.raises(Refused, match=r"b\.parquet was removed later than the plan says") as refused:
            work.delete(table, step)
        assert refused.value.code == "A452"
        assert_only(lake, before)


class TestTheSameVersion:
    """A writer commits while a deletion looks: both readers look at the newest version that was listed."""

    def test_commits_since_the_facts_were_read(self, lake: Path) -> None:
        table = old_table(lake / "t")
        table.append(50, "c.parquet")

        def then_others_commit(facts: TableFacts) -> TableFacts:
            table.append(0, "new.parquet", "brief.parquet")
            added = table.add_action("c.parquet", 50, vector={**VECTOR, "storageType": "i"})
            table.commit(0, table.remove_action("c.parquet", 0), added, table.remove_action("brief.parquet", 0))
            return facts

        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        receipt = Vacuuming(policies(), reader=Forgetful(then_others_commit)).delete(table, step)
        assert receipt.num_files_deleted == 1
        new = {name: content for name, content in tree(lake).items() if name in ("t/new.parquet", "t/brief.parquet")}
        assert len(new) == 2
        for name in new:
            (lake / name).unlink()
        assert_only(lake, before, "t/a.parquet")


class TestA22ALogThatChanges:
    """Right before the first file goes, all commits and checkpoints must be those that were read."""

    @staticmethod
    def same_size(table: AgedTable) -> None:
        """Another writer puts a commit of the same size in the place of one that was read."""
        commit = table.path / "_delta_log" / f"{1:020}.json"
        commit.write_text(commit.read_text().replace("a.parquet", "z.parquet"))

    @staticmethod
    def made_anew(table: AgedTable) -> None:
        """The table is dropped, and another one is made at its path, with more versions."""
        files = {path.name: path.read_bytes() for path in table.path.glob("*.parquet")}
        shutil.rmtree(table.path)
        new = AgedTable(table.path, created_days_ago=70)
        for name, content in files.items():
            new.file(name, 60, content)
        for name in files:
            new.commit(60, new.add_action(name, 60))

    @staticmethod
    def checkpoint(table: AgedTable) -> None:
        """A checkpoint that was there is written anew."""
        path = table.path / "_delta_log" / f"{1:020}.checkpoint.parquet"
        path.write_bytes(bytes(reversed(path.read_bytes())))

    @pytest.mark.parametrize("change", ["same_size", "made_anew", "checkpoint"])
    def test_nothing_goes_after_a_change(self, lake: Path, change: str) -> None:
        table = old_table(lake / "t")
        touch(table.file("_delta_log/" + f"{1:020}.checkpoint.parquet", 60, b"checkpoint"), table.at(60))
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = {name: content for name, content in tree(lake).items() if "_delta_log" not in name}
        with pytest.raises(CommitConflict, match="the log is not the one"):
            work.delete(table, step, after_start=lambda: getattr(self, change)(table))
        assert {name: content for name, content in tree(lake).items() if "_delta_log" not in name} == before

    def test_a_table_that_is_made_anew_with_fewer_versions(self, lake: Path) -> None:
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None

        def made_anew(facts: TableFacts) -> TableFacts:
            shutil.rmtree(table.path / "_delta_log")
            (new := AgedTable(lake / "new")).append(1)
            (new.path / "_delta_log").rename(table.path / "_delta_log")
            return facts

        before = {name: content for name, content in tree(table.path).items() if "_delta_log" not in name}
        with pytest.raises(CommitConflict, match="no longer has the version") as conflict:
            Vacuuming(policies(), reader=Forgetful(made_anew)).delete(table, step)
        assert conflict.value.found == "it ends at 1"
        assert {name: content for name, content in tree(table.path).items() if "_delta_log" not in name} == before

    def test_old_commits_that_a_clean_up_takes_away_do_not_matter(self, lake: Path) -> None:
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        receipt = work.delete(table, step, after_start=lambda: os.unlink(table.path / "_delta_log" / f"{0:020}.json"))
        assert receipt.num_files_deleted == 1

    @pytest.mark.parametrize(
        ("action", "is_taken"),
        [
            ({"metaData": {"id": "t", "configuration": {"delta.deletedFileRetentionDuration": "365 days"}}}, False),
            ({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}, False),
            ({"txn": {"appId": "a", "version": 1}}, True),
        ],
        ids=["settings", "protocol", "neither"],
    )
    def test_other_settings_since_the_deletion_began(self, lake: Path, action: dict[str, Any], is_taken: bool) -> None:
        """What they forbid is read once, when it begins."""
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)

        def commit() -> None:
            table.commit(0, action, operation="SET TBLPROPERTIES")

        with nullcontext() if is_taken else pytest.raises(CommitConflict, match="settings or protocol changed"):
            work.delete(table, step, after_start=commit)
        assert_only(lake, before, *(["t/a.parquet"] if is_taken else []))

    @pytest.mark.parametrize(("kind", "is_taken"), [("protocol", False), ("metaData", True)])
    def test_another_protocol_since_the_facts_were_read(self, lake: Path, kind: str, is_taken: bool) -> None:
        """Delta's snapshot, which comes later, tells the settings, and the facts whether the protocol is known."""
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        actions = [json.loads(line) for line in (table.path / "_delta_log" / f"{0:020}.json").read_text().splitlines()]
        (again,) = [action for action in actions if kind in action]

        def then_others_commit(facts: TableFacts) -> TableFacts:
            table.commit(0, again, operation="UPGRADE PROTOCOL")
            return facts

        before, late = tree(lake), Vacuuming(policies(), reader=Forgetful(then_others_commit))
        with nullcontext() if is_taken else pytest.raises(CommitConflict, match="settings or protocol changed"):
            late.delete(table, step)
        assert_only(lake, before, *(["t/a.parquet"] if is_taken else []))

    def test_a_listing_that_lacks_our_own_commit(self, lake: Path) -> None:
        """It may lack those of others as well."""
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)

        class Stale(LocalTable):
            def log_files(self) -> dict[str, StoredFile]:
                return {uri: file for uri, file in super().log_files().items() if not file.name.startswith(f"{3:020}")}

        with pytest.raises(CommitConflict, match="lacks the deletion's own commit"):
            work.delete(table, step, storage=Stale(table.path))
        assert_only(lake, before)

    def test_another_table_under_the_same_versions(self, lake: Path) -> None:
        table = old_table(lake / "t")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        other = Forgetful(lambda facts: replace(facts, table_id="planned"))
        with pytest.raises(CommitConflict, match="dropped and created again"):
            Vacuuming(policies(), reader=other).delete(table, step)
        assert_only(lake, before)


class TestWhichReader:
    """The first reader that can read the version decides; one that gives no answer is not replaced."""

    def check(self, table: AgedTable, *readers: Callable[..., Iterator[dict[str, Any]]]) -> None:
        facts = LocalReader().facts(table.ref)
        ours = LiveVersion("t", facts.table_id, facts.version, lambda: [(*f.key, f.size_bytes) for f in facts.files])
        named = [SecondReader(str(number), reader) for number, reader in enumerate(readers)]
        check_second_reading(named, LocalTable(table.path), ours, Going({}, 0))

    @staticmethod
    def broken(*args: object) -> Iterator[dict[str, Any]]:
        yield {"add": {"path": "half.parquet", "size": 1}}
        raise ValueError("a path that is no URI")

    @staticmethod
    def silent(*args: object) -> Iterator[dict[str, Any]]:
        raise StoreAway("no answer")
        yield {}

    @staticmethod
    def empty(*args: object) -> Iterator[dict[str, Any]]:
        return iter(())

    def test_what_the_first_cannot_read_is_read_by_the_next(self, lake: Path) -> None:
        self.check(old_table(lake / "t"), self.broken, plain_reading)

    def test_a_difference_is_not_settled_by_the_next(self, lake: Path) -> None:
        with pytest.raises(Refused, match="A452"):
            self.check(old_table(lake / "t"), self.empty, plain_reading)

    def test_nothing_that_nobody_can_read_is_confirmed(self, lake: Path) -> None:
        with pytest.raises(ValueError, match="no URI"):
            self.check(old_table(lake / "t"), self.broken, self.broken)

    def test_a_silent_store_is_not_asked_twice(self, lake: Path) -> None:
        with pytest.raises(StoreAway):
            self.check(old_table(lake / "t"), self.silent, plain_reading)


def test_a_file_of_one_name_in_another_folder_does_not_count(lake: Path) -> None:
    table = old_table(lake / "t")
    table.append(50, "p=1/a.parquet")
    work = Vacuuming(policies())
    step = work.step(table)
    assert step is not None
    before = tree(lake)
    work.delete(table, step)
    assert_only(lake, before, "t/a.parquet")


@pytest.mark.slow
def test_memory_for_many_files_is_bounded(lake: Path) -> None:
    num_files = 100_000
    files = [(f"part-{number:08}.parquet", "", number) for number in range(num_files)]
    reader = SecondReader("many", lambda *args: ({"add": {"path": path, "size": size}} for path, _, size in files))
    ours = LiveVersion("t", "id", 1, lambda: files)
    going = {"file:/t/x.parquet": StoredFile("file:/t/x.parquet", 1, 0, False, False)}
    table = LocalTable(AgedTable(lake / "t").path)
    tracemalloc.start()
    check_second_reading([reader], table, ours, Going(going, 0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 130 * num_files
