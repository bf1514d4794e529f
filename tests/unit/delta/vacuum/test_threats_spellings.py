"""One file under many names: A10 of the threats in docs/safe-vacuum.md.

What the log removed and names again by another spelling, through a link or through a mount is the same file, and stays.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.vacuum.file_deletion import is_as_planned
from maintainer.errors import CommitConflict
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.table_facts import RemovedFile, TableRef
from tests.support.tables.aged_tables import AgedTable, tree
from tests.support.tables.bind_mounts import BindMount
from tests.support.tables.local_vacuum import Vacuuming
from tests.support.tables.vacuum_cases import (
    assert_only,
    clone_of,
    codes,
    old_table,
    policies,
    vacuum,
)

ODD = (
    " ", "%", "#", "=", ":", "+", "ä", "a\u0308", "ß", "日本", "🦆", "'", '"', "&", "?", "*", "(", ")", "[", "]",
    "{", "}", "~", "!", "@", "$", ",", ";", "|", "^",
)  # fmt: skip


SPELLINGS = {
    "a dot": "./p=1/x.parquet",
    "a dot in between": "p=1/./x.parquet",
    "two slashes": "p=1//x.parquet",
    "back and forth": "p=1/../p=1/x.parquet",
    "back from nowhere": "not-there/../p=1/x.parquet",
    "encoded": "p%3D1/%78.parquet",
    "encoded in lower case": "p%3d1/x.parquet",
    "an encoded slash": "p=1%2Fx.parquet",
    "encoded dots": "%2E/p=1/x.parquet",
    "a slash at the end": "p=1/x.parquet/",
    "a fragment": "p=1/x.parquet#1",
    "a query": "p=1/x.parquet?1",
    "no scheme": "{table}/p=1/x.parquet",
    "one slash": "file:{table}/p=1/x.parquet",
    "three slashes": "file://{table}/p=1/x.parquet",
    "this machine": "file://localhost{table}/p=1/x.parquet",
    "a scheme in upper case": "FILE:{table}/p=1/x.parquet",
    "absolute with dots": "file:{table}/../t//./p=1/x.parquet",
    "absolute and encoded": "file:{table}/p%3D1/%78.parquet",
}
"""What a log may write for p=1/x.parquet."""


def removed_twice(lake: Path) -> AgedTable:
    """A live file, and two that were removed thirty days ago."""
    table = AgedTable(lake / "t")
    table.append(60, "live.parquet", "p=1/x.parquet", "p=1/gone.parquet")
    table.delete(30, "p=1/x.parquet", "p=1/gone.parquet")
    return table


def add_again(table: AgedTable, path: str, days_ago: float, *, size_bytes: int | None = None) -> None:
    """Commit an add of p=1/x.parquet under any spelling."""
    size = (table.path / "p=1" / "x.parquet").stat().st_size if size_bytes is None else size_bytes
    body: dict[str, Any] = {"path": path, "partitionValues": {}, "size": size, "modificationTime": table.at(60)}
    table.commit(days_ago, {"add": {**body, "dataChange": True}}, operation="WRITE")


class TestA10Spellings:
    @pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.encode("unicode_escape").decode())
    def test_a_live_file_is_known_in_every_spelling(self, lake: Path, odd: str) -> None:
        table = AgedTable(lake / f"t{odd}t")
        folder = f"p=x{odd}y"
        table.append(60, f"{folder}/live{odd}.parquet", f"{folder}/old{odd}.parquet")
        table.delete(20, f"{folder}/old{odd}.parquet")
        table.file(f"{folder}/untracked{odd}.parquet", 200)
        work = Vacuuming(policies(delete_untracked=True))
        vacuum(lake, table, work, f"{folder}/old{odd}.parquet", f"{folder}/untracked{odd}.parquet")

    def test_percent_encoding_in_lower_and_upper_case_is_one_file(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "p=ä/x.parquet")
        remove = {"path": "p=%c3%a4/x.parquet", "deletionTimestamp": table.at(20), "dataChange": True, "size": 1}
        again = table.add_action("p=ä/x.parquet", 19)
        table.commit(20, {"remove": remove}, operation="DELETE")
        table.commit(19, again, operation="RESTORE")
        vacuum(lake, table, Vacuuming(policies()))

    @pytest.mark.parametrize("spelling", SPELLINGS)
    @pytest.mark.parametrize("untracked", [False, True])
    def test_a_file_that_is_added_again_under_another_name_stays(
        self, lake: Path, spelling: str, untracked: bool
    ) -> None:
        table = removed_twice(lake)
        add_again(table, SPELLINGS[spelling].format(table=table.path), 25)
        vacuum(lake, table, Vacuuming(policies(delete_untracked=untracked)), "p=1/gone.parquet")

    def test_a_file_that_the_log_names_through_a_link_is_not_untracked(self, lake: Path) -> None:
        table = old_table(lake / "t")
        (lake / "link").symlink_to(table.path)
        table.file("named.parquet", 60)
        named = table.add_action("named.parquet", 60)
        named["add"]["path"] = f"file:{lake}/link/named.parquet"
        table.commit(19, named)
        table.file("unknown.parquet", 100)
        step = Vacuuming(policies(delete_untracked=True)).step(table)
        assert step is not None
        assert [file.path for file in step.files] == ["unknown.parquet", "a.parquet"]

    @pytest.mark.parametrize("reached", ["by a link", "by a link above", "by its real path"])
    def test_a_link_to_the_table_or_above_it_makes_no_second_file(self, lake: Path, reached: str) -> None:
        (lake / "disk").mkdir()
        (lake / "data").symlink_to(lake / "disk")
        table = removed_twice(lake / "disk")
        (lake / "table").symlink_to(table.path)
        links = {"by a link": lake / "table", "by a link above": lake / "data" / "t", "by its real path": table.path}
        named = lake / "table" if reached == "by its real path" else table.path
        add_again(table, f"file:{named}/p=1/x.parquet", 25)
        work = Vacuuming(policies(delete_untracked=True))
        before = tree(lake)
        plan = work.plan(TableRef(str(links[reached])))
        assert ReasonCode.LIVE_AGAIN in codes(plan)
        seen = AgedTable.at_path(links[reached])
        step = work.step(seen)
        assert step is not None
        work.delete(seen, step)
        assert_only(lake, before, "disk/t/p=1/gone.parquet")

    @pytest.mark.parametrize("mounted", ["table", "folder", "file"])
    def test_a_mount_makes_no_second_file(self, lake: Path, bind: BindMount, mounted: str) -> None:
        table = removed_twice(lake)
        source = {"table": table.path, "folder": table.path / "p=1", "file": table.path / "p=1" / "x.parquet"}[mounted]
        target = lake / "mounted"
        bind(source, target)
        below = {"table": "/p=1/x.parquet", "folder": "/x.parquet", "file": ""}[mounted]
        add_again(table, f"file:{target}{below}", 25)
        work = Vacuuming(policies())
        assert ReasonCode.LIVE_AGAIN in codes(work.plan(table))
        step = work.step(table)
        assert step is not None
        assert [file.path for file in step.files] == ["p=1/gone.parquet"]
        work.delete(table, step)
        assert (table.path / "p=1" / "x.parquet").exists()

    @pytest.mark.parametrize("kind", ["link", "hard link", "folder"])
    def test_a_live_name_that_is_a_link_protects_what_it_points_to(self, lake: Path, kind: str) -> None:
        table = removed_twice(lake)
        match kind:
            case "link":
                (table.path / "live2.parquet").symlink_to(table.path / "p=1" / "x.parquet")
                name = "live2.parquet"
            case "hard link":
                os.link(table.path / "p=1" / "x.parquet", table.path / "live2.parquet")
                name = "live2.parquet"
            case _:
                (table.path / "p=2").symlink_to(table.path / "p=1")
                name = "p=2/x.parquet"
        table.commit(25, table.add_action(name, 60))
        vacuum(lake, table, Vacuuming(policies()), "p=1/gone.parquet")

    def test_a_file_that_was_removed_again_by_its_absolute_path_is_kept_as_long_as_promised(self, lake: Path) -> None:
        table = removed_twice(lake)
        absolute = f"file:{table.path}/p=1/x.parquet"
        add_again(table, absolute, 25)
        removed = {"path": absolute, "deletionTimestamp": table.at(2), "dataChange": True, "size": 1}
        table.commit(2, {"remove": removed}, operation="DELETE")
        vacuum(lake, table, Vacuuming(policies()), "p=1/gone.parquet")

    def test_what_an_absolute_path_removed_goes_when_its_time_has_come(self, lake: Path) -> None:
        table = removed_twice(lake)
        absolute = f"file://{table.path}/p=1/x.parquet"
        add_again(table, absolute, 25)
        removed = {"path": absolute, "deletionTimestamp": table.at(20), "dataChange": True, "size": 1}
        table.commit(20, {"remove": removed}, operation="DELETE")
        vacuum(lake, table, Vacuuming(policies()), "p=1/gone.parquet", "p=1/x.parquet")

    @pytest.mark.parametrize("place", ["file:/mnt/of/another/machine", "hdfs://elsewhere/t", "s3a://bucket/t"])
    def test_a_path_that_cannot_be_reached_protects_a_file_of_its_name(self, lake: Path, place: str) -> None:
        table = removed_twice(lake)
        add_again(table, f"{place}/x.parquet", 25)
        work = Vacuuming(policies())
        texts = [
            entry.reason.text for entry in work.plan(table).left_alone if entry.reason.code is ReasonCode.LIVE_AGAIN
        ]
        assert len(texts) == 1
        assert texts[0].endswith(f"may be what the log names as {place}/x.parquet, which cannot be checked from here")
        vacuum(lake, table, work, "p=1/gone.parquet")

    def test_another_file_of_the_same_name_on_the_same_disk_protects_nothing(self, lake: Path) -> None:
        table = removed_twice(lake)
        other = AgedTable(lake / "other")
        other.append(60, "x.parquet")
        add_again(table, f"file:{other.path}/x.parquet", 25)
        vacuum(lake, table, Vacuuming(policies()), "p=1/gone.parquet", "p=1/x.parquet")

    @pytest.mark.parametrize("spelling", ["../t/p=1/x.parquet", "..%2Ft/p=1/x.parquet", "file:{mounted}/p=1/x.parquet"])
    def test_a_clone_may_name_our_files_in_any_way(self, lake: Path, bind: BindMount, spelling: str) -> None:
        table = removed_twice(lake)
        bind(table.path, lake / "mounted")
        clone = clone_of(table, lake / "clone")
        add_again(clone, spelling.format(mounted=lake / "mounted"), 15, size_bytes=1)
        work = Vacuuming(policies(), (table.ref, clone.ref))
        assert ReasonCode.KEPT_FOR_CLONE in codes(work.plan(table))
        step = work.step(table)
        assert step is not None
        work.delete(table, step)
        assert (table.path / "p=1" / "x.parquet").exists()
        assert not (table.path / "p=1" / "gone.parquet").exists()

    def test_a_name_that_comes_after_the_plan_stops_the_deletion(self, lake: Path) -> None:
        table = removed_twice(lake)
        (lake / "link").symlink_to(table.path)
        table.file("named.parquet", 60)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        with pytest.raises(CommitConflict) as caught:
            work.delete(table, step, after_start=lambda: add_again(table, f"file:{lake}/link/p=1/x.parquet", 0))
        assert caught.value.code == "C701"
        assert_only(lake, before)


class TestTheVeryFile:
    """Between the last look and the deletion of one file, something else may come into its place."""

    @pytest.mark.parametrize("change", ["link", "another file", "appended", "written to", "a folder that is a link"])
    def test_a_file_that_changed_stays_and_is_named(self, lake: Path, change: str) -> None:
        table = removed_twice(lake)
        file = table.path / "p=1" / "x.parquet"
        step = (work := Vacuuming(policies())).step(table)
        assert step is not None
        (lake / "precious").mkdir()
        shutil.copy2(file, lake / "precious" / "x.parquet")
        shutil.copy2(table.path / "p=1" / "gone.parquet", lake / "precious" / "gone.parquet")

        def after_start() -> None:
            match change:
                case "link":
                    file.unlink()
                    file.symlink_to(lake / "precious" / "x.parquet")
                case "another file":
                    os.replace(lake / "precious" / "x.parquet", file)
                case "appended":
                    file.write_bytes(file.read_bytes() + b"more")
                case "written to":
                    os.utime(file)
                case _:
                    shutil.move(table.path / "p=1", lake / "moved")
                    (table.path / "p=1").symlink_to(lake / "precious")

        receipt = work.delete(table, step, after_start=after_start)
        left = dict(line.split(" ", 1) for line in receipt.remaining)
        assert left["p=1/x.parquet"].startswith("(it is no longer the file that was planned: ")
        assert file.exists()
        expected = ["p=1/x.parquet", "p=1/gone.parquet"] if change == "a folder that is a link" else ["p=1/x.parquet"]
        assert (sorted(left), receipt.num_files_deleted) == (sorted(expected), 2 - len(expected))
        assert (table.path / "p=1" / "gone.parquet").exists() == (len(expected) == 2)

    @pytest.mark.parametrize(
        ("now_ms", "size", "same"), [(1000, 4, True), (1999, 4, True), (2000, 4, False), (1999, 5, False)]
    )
    def test_an_untracked_file_is_the_planned_one_by_the_second(self, now_ms: int, size: int, same: bool) -> None:
        """Planned from a listing with milliseconds; of very many files each is looked at, which gives whole seconds."""
        planned = RemovedFile("x", 4, 1999, "untracked")
        assert is_as_planned(planned, StoredFile("gs://b/t/x", size, now_ms, False, False, tag='"a"')) is same
