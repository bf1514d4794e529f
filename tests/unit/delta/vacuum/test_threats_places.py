"""Where files lie: A6 to A10 of the threats in docs/safe-vacuum.md.

Each test takes a hash of every file below the lake before and after, and says exactly which files went: everything else
must be there with the same content. The only files that may be new are VACUUM's own commits.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from maintainer.delta.vacuum import untracked_files as surroundings
from maintainer.errors import CommitConflict, Refused, TableError
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.resolved import VacuumMode
from tests.support.tables.aged_tables import AgedTable, now_ms, touch, tree
from tests.support.tables.local_vacuum import LocalTable, Vacuuming
from tests.support.tables.vacuum_cases import (
    assert_only,
    codes,
    old_table,
    policies,
    vacuum,
)


@pytest.mark.usefixtures("asks_by_request")
class TestA06NestedTables:
    """Six layouts; everything in them is a year old, and the parent would delete untracked files."""

    def nest(self, parent: AgedTable, layout: str, lake: Path) -> None:
        match layout:
            case "depth 1":
                old_table(parent.path / "child", created_days_ago=300)
            case "depth 3":
                old_table(parent.path / "x" / "y" / "child", created_days_ago=300)
            case "in a partition":
                old_table(parent.path / "p=1" / "child", created_days_ago=300)
            case "sibling":
                old_table(lake / "t2", created_days_ago=300)
            case "iceberg":
                parent.file("ice/data/x.parquet", 200)
                parent.file("ice/metadata/v1.metadata.json", 200, b"{}")
            case "hudi":
                parent.file("hudi/x.parquet", 200)
                parent.file("hudi/.hoodie/hoodie.properties", 200, b"")
            case _:
                raise AssertionError(layout)

    @pytest.mark.parametrize("layout", ["depth 1", "depth 3", "in a partition", "sibling", "iceberg", "hudi"])
    @pytest.mark.parametrize("untracked", [False, True])
    def test_a_table_in_the_folder_of_another_is_not_touched(self, lake: Path, layout: str, untracked: bool) -> None:
        parent = old_table(lake / "t")
        self.nest(parent, layout, lake)
        for path in lake.rglob("*"):
            if path.is_file() and "_delta_log" not in path.parts:
                touch(path, parent.at(200))
        work = Vacuuming(policies(delete_untracked=untracked))
        plan = work.plan(parent)
        assert (ReasonCode.NESTED_TABLE in codes(plan)) == (untracked and layout != "sibling")
        vacuum(lake, parent, work, "a.parquet")

    def test_a_file_that_the_log_names_in_another_tables_folder_is_left_alone(self, lake: Path) -> None:
        parent = AgedTable(lake / "t")
        parent.append(60, "live.parquet", "child/x.parquet")
        parent.delete(20, "child/x.parquet")
        AgedTable(parent.path / "child")
        work = Vacuuming(policies())
        assert codes(work.plan(parent)) == {ReasonCode.NESTED_TABLE}
        vacuum(lake, parent, work)


class TestA07WrongTargets:
    @pytest.mark.parametrize("target", ["nothing", "a folder", "a partition", "an empty log", "parquet", "the lake"])
    def test_what_is_no_table_is_refused(self, lake: Path, target: str) -> None:
        table = AgedTable(lake / "t", partition_columns=())
        table.append(60, "p=1/x.parquet")
        (lake / "folder").mkdir()
        (lake / "empty" / "_delta_log").mkdir(parents=True)
        (lake / "parquet").mkdir()
        shutil.copy(table.path / "p=1" / "x.parquet", lake / "parquet")
        path = {
            "nothing": lake / "nothing",
            "a folder": lake / "folder",
            "a partition": table.path / "p=1",
            "an empty log": lake / "empty",
            "parquet": lake / "parquet",
            "the lake": lake,
        }[target]
        before = tree(lake)
        with pytest.raises(TableError) as caught:
            Vacuuming(policies(delete_untracked=True)).plan(TableRef(str(path)))
        assert caught.value.code in ("T401", "T402")
        assert_only(lake, before)


@pytest.mark.usefixtures("asks_by_request")
class TestA08Symlinks:
    """A link to a folder, to a file, to the parent, and one that ends in itself."""

    def link(self, lake: Path, table: AgedTable, kind: str) -> str:
        precious = lake / "precious"
        precious.mkdir()
        (precious / "x.parquet").write_bytes(b"precious")
        touch(precious / "x.parquet", table.at(300))
        match kind:
            case "folder":
                (table.path / "link").symlink_to(precious)
                return "link/x.parquet"
            case "file":
                (table.path / "link.parquet").symlink_to(precious / "x.parquet")
                return "link.parquet"
            case "parent":
                (table.path / "link").symlink_to(lake)
                return "link/precious/x.parquet"
            case _:
                (table.path / "link").symlink_to(table.path / "link")
                return "link"

    @pytest.mark.parametrize("kind", ["folder", "file", "parent", "loop"])
    @pytest.mark.parametrize("untracked", [False, True])
    def test_nothing_behind_a_link_goes(self, lake: Path, kind: str, untracked: bool) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "a.parquet")
        name = self.link(lake, table, kind)
        action = {"remove": {"path": name, "deletionTimestamp": table.at(20), "dataChange": False, "size": 8}}
        table.commit(20, action, table.remove_action("a.parquet", 20, rewrite=True), operation="OPTIMIZE")
        work = Vacuuming(policies(delete_untracked=untracked))
        plan = work.plan(table)
        assert ReasonCode.BEHIND_SYMLINK in codes(plan)
        vacuum(lake, table, work, "a.parquet")

    def test_a_folder_that_becomes_a_link_after_the_plan_is_refused(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "p=1/a.parquet")
        table.delete(20, "p=1/a.parquet")
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        shutil.move(table.path / "p=1", lake / "elsewhere")
        (table.path / "p=1").symlink_to(lake / "elsewhere")
        before = tree(lake)
        with pytest.raises(Refused) as caught:
            work.delete(table, step)
        assert caught.value.code == "A431"
        assert_only(lake, before)


FOREIGN = (
    "export.csv",
    "models/model.pkl",
    "chk/offsets/0",
    "chk/commits/0",
    "chk/metadata",
    "notes.txt",
    "part-00000-uncommitted.parquet",
    "p=1/part-00001-uncommitted.snappy.parquet",
    "_tmp/x.parquet",
    ".hidden.parquet",
    "_symlink_format_manifest/manifest",
)


class TestA09ForeignFiles:
    def table(self, lake: Path) -> AgedTable:
        table = old_table(lake / "t")
        for name in FOREIGN:
            table.file(name, 200, name.encode())
        return table

    def test_they_stay_by_default(self, lake: Path) -> None:
        table = self.table(lake)
        vacuum(lake, table, Vacuuming(policies()), "a.parquet")

    def test_they_are_told_in_mode_full(self, lake: Path) -> None:
        table = self.table(lake)
        work = Vacuuming(policies(mode=VacuumMode.FULL))
        texts = [entry.reason.text for entry in work.plan(table).left_alone]
        assert any(text.startswith("5 files ") and "does not mention" in text for text in texts), texts
        vacuum(lake, table, work, "a.parquet")

    def test_with_delete_untracked_the_old_ones_go_and_what_hides_or_is_a_streams_stays(self, lake: Path) -> None:
        table = self.table(lake)
        table.file("young.parquet", 29.9)
        work = Vacuuming(policies(delete_untracked=True))
        step = work.step(table)
        assert step is not None
        assert [kind for kind, _, _ in step.by_kind] == ["untracked", "data"]
        assert step.listing is not None
        assert (step.listing.num_folders, step.listing.stopped) == (4, None)
        gone = [FOREIGN[0], FOREIGN[1], FOREIGN[5], FOREIGN[6], FOREIGN[7], "a.parquet"]
        vacuum(lake, table, work, *gone)

    @pytest.mark.parametrize(
        ("names", "gone"),
        [
            (("metadata/v1.metadata.json", "metadata/snap-1.avro", "metadata/version-hint.text"), ()),
            (("metadata", "offsets/0", "commits/0", "state/0/0/1.delta", "sources/0/0"), ()),
            (("metadata", "offsets/0"), ("metadata", "offsets/0")),
        ],
        ids=["Iceberg of the same files", "a stream's checkpoint", "neither"],
    )
    def test_what_others_keep_in_the_tables_own_root_stays(
        self, lake: Path, names: tuple[str, ...], gone: tuple[str, ...]
    ) -> None:
        table = old_table(lake / "t")
        for name in names:
            table.file(name, 200, b"{}")
        work = Vacuuming(policies(delete_untracked=True))
        texts = [entry.reason.text for entry in work.plan(table).left_alone]
        assert any(text.startswith("a folder holds") for text in texts) is not bool(gone), texts
        vacuum(lake, table, work, "a.parquet", *gone)

    def test_an_untracked_file_that_changed_or_was_committed_since_the_plan_stays(self, lake: Path) -> None:
        table = old_table(lake / "t")
        for name in ("changed.parquet", "committed.parquet"):
            table.file(name, 100)
        work = Vacuuming(policies(delete_untracked=True))
        step = work.step(table)
        assert step is not None
        assert len(step.files) == 3
        version = table.head
        table.file("changed.parquet", 0)
        before = tree(lake)
        table.commit(0, table.add_action("committed.parquet", 100))
        with pytest.raises(CommitConflict):
            work.delete(table, step, planned_version=version)
        assert_only(lake, before)
        step = work.step(table)
        assert step is not None
        work.delete(table, step)
        assert_only(lake, before, "t/a.parquet")

    def test_an_untracked_file_that_was_written_to_since_the_plan_stays(self, lake: Path) -> None:
        table = old_table(lake / "t")
        table.file("written.parquet", 100)
        work = Vacuuming(policies(delete_untracked=True))
        step = work.step(table)
        assert step is not None
        assert [file.path for file in step.files] == ["written.parquet", "a.parquet"]
        table.file("written.parquet", 0, b"of a writer that has not committed yet")
        before = tree(lake)
        assert work.delete(table, step).num_files_deleted == 1
        assert_only(lake, before, "t/a.parquet")

    def test_a_listing_has_a_bound(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = self.table(lake)
        listed = surroundings.list_untracked(
            LocalTable(table.path), lambda uri: False, partition_columns=(), changed_before_ms=now_ms(), max_listed=5
        )
        assert listed.files == []
        assert listed.listing.stopped == "the listing was given up after 5 entries"
