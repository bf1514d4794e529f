"""Where files lie: A5 to A10 of the threats in docs/safe-vacuum.md.

Each test takes a hash of every file below the lake before and after, and says exactly which files went: everything else
must be there with the same content. The only files that may be new are VACUUM's own commits.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from maintainer.delta.storage.file_identity import Claim
from maintainer.delta.storage.file_store import LocalFiles
from maintainer.delta.vacuum import untracked_files as surroundings
from maintainer.errors import CommitConflict, EnvironmentUnfit, Refused, TableError
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.resolved import VacuumMode
from tests.support.tables.aged_tables import AgedTable, now_ms, touch, tree
from tests.support.tables.local_vacuum import LocalReader, LocalTable, Vacuuming
from tests.support.tables.vacuum_cases import (
    assert_only,
    clone_of,
    codes,
    old_table,
    policies,
    vacuum,
    vacuum_with_leftovers,
)


class TestA05ShallowClones:
    """Whatever any known table's log names by absolute path stays."""

    def lake_of(self, lake: Path) -> AgedTable:
        source = AgedTable(lake / "t")
        source.append(60, "live.parquet", "needed.parquet", "free.parquet")
        source.rewrite(20, "new.parquet", "needed.parquet", "free.parquet")
        return source

    @pytest.mark.parametrize("layout", ["same tree", "other spelling", "through a link", "no scheme"])
    def test_a_clones_files_stay(self, lake: Path, layout: str) -> None:
        source = self.lake_of(lake)
        link = lake / "link"
        link.symlink_to(lake)
        prefix = {
            "same tree": None,
            "other spelling": f"file://{source.path}",
            "through a link": f"file:{link}/t",
            "no scheme": str(source.path),
        }[layout]
        clone = clone_of(source, lake / "clone", "needed.parquet", prefix=prefix)
        work = Vacuuming(policies(), (source.ref, clone.ref))
        plan = work.plan(source)
        assert ReasonCode.KEPT_FOR_CLONE in codes(plan)
        vacuum_with_leftovers(lake, source, work, "free.parquet")

    def test_a_clone_that_no_policy_names_and_the_catalog_knows(self, lake: Path) -> None:
        source = self.lake_of(lake)
        clone = clone_of(source, lake / "elsewhere" / "clone", "needed.parquet")
        work = Vacuuming(policies(), (source.ref,))
        work.reader.beside = (clone.ref,)
        assert ReasonCode.KEPT_FOR_CLONE in codes(work.plan(source))
        vacuum_with_leftovers(lake, source, work, "free.parquet")

    def test_where_the_catalog_does_not_answer_nothing_is_deleted(self, lake: Path) -> None:
        source = self.lake_of(lake)
        work = Vacuuming(policies(), (source.ref,))
        work.reader.beside = EnvironmentUnfit("the catalog does not answer", code="E647")
        vacuum_with_leftovers(lake, source, work)

    def test_a_clone_of_a_clone_and_one_whose_newest_version_is_its_own(self, lake: Path) -> None:
        source = self.lake_of(lake)
        first = clone_of(source, lake / "first", "needed.parquet")
        second = clone_of(source, lake / "second", "free.parquet")
        absolute = f"file:{source.path}/free.parquet"
        second.file("own.parquet", 14)
        # The clone was rewritten; its old version, which people may still travel to, needs the source's file.
        removed = {"remove": {"path": absolute, "deletionTimestamp": second.at(14), "dataChange": False}}
        second.commit(14, second.add_action("own.parquet", 14), removed, operation="OPTIMIZE")
        work = Vacuuming(policies(), (source.ref, first.ref, second.ref))
        vacuum_with_leftovers(lake, source, work)

    def test_a_clones_deletion_vector_stays(self, lake: Path) -> None:
        source = self.lake_of(lake)
        source.file("deletion_vector_one.bin", 30, b"vector")
        vector = {"storageType": "u", "pathOrInlineDv": "one", "offset": 1, "sizeInBytes": 6, "cardinality": 1}
        source.commit(25, source.add_action("live.parquet", 25, vector=vector), operation="DELETE")
        source.commit(20, source.remove_action("live.parquet", 20, vector=vector), operation="DELETE")
        clone = AgedTable(lake / "clone", created_days_ago=15)
        kept = {**vector, "storageType": "p", "pathOrInlineDv": f"file:{source.path}/deletion_vector_one.bin"}
        add = source.add_action("live.parquet", 15, vector=kept)
        add["add"]["path"] = f"file:{source.path}/live.parquet"
        clone.commit(15, add, operation="CLONE")
        work = Vacuuming(policies(), (source.ref, clone.ref))
        vacuum_with_leftovers(lake, source, work, "needed.parquet", "free.parquet")

    def test_a_clone_that_is_made_after_the_plan_stops_the_deletion(self, lake: Path) -> None:
        source = self.lake_of(lake)
        other = AgedTable(lake / "other")
        work = Vacuuming(policies(), (source.ref, other.ref))
        step = work.step(source)
        assert step is not None
        add = source.add_action("needed.parquet", 0)
        add["add"]["path"] = f"file:{source.path}/needed.parquet"
        other.commit(0, add, operation="CLONE")
        before = tree(lake)
        with pytest.raises(Refused) as caught:
            work.delete(source, step)
        assert caught.value.code == "A450"
        assert_only(lake, before)

    def test_a_log_that_cannot_be_read_may_be_a_clones(self, lake: Path) -> None:
        source = self.lake_of(lake)
        broken = AgedTable(lake / "broken")
        text = f'{{"add":{{"path":"file:{source.path}/needed'
        (broken.path / "_delta_log" / f"{1:020}.json").write_text(text)
        work = Vacuuming(policies(), (source.ref, broken.ref))
        plan = work.plan(source)
        assert codes(plan) == {ReasonCode.CANNOT_BE_SURE}
        vacuum(lake, source, work)

    @pytest.mark.parametrize("spaced", ['": "', '" : "'])
    @pytest.mark.parametrize("slash", ["/", "\\/"])
    def test_a_log_of_another_writer_is_understood(self, lake: Path, spaced: str, slash: str) -> None:
        source = self.lake_of(lake)
        for number, prefix in enumerate((f"file:{source.path}", str(source.path))):
            clone = clone_of(source, lake / f"clone-{number}", "needed.parquet", prefix=prefix)
            log = clone.path / "_delta_log" / f"{1:020}.json"
            text = log.read_text()
            path = f"{prefix}/needed.parquet"
            assert f'"path":"{path}' in text
            log.write_text(text.replace(f'path":"{path}', f"path{spaced}{path.replace('/', slash)}"))
            vacuum_with_leftovers(
                lake, source, Vacuuming(policies(), (source.ref, clone.ref)), *(["free.parquet"] if number == 0 else [])
            )

    def test_a_clone_whose_first_commits_are_cleaned_away(self, lake: Path) -> None:
        source = self.lake_of(lake)
        clone = clone_of(source, lake / "clone", "needed.parquet")
        clone.append(10, "own.parquet")
        work = Vacuuming(policies(), (source.ref, clone.ref))
        facts = {ref: work.reader.facts(ref) for ref in (source.ref, clone.ref)}
        work.reader.facts = lambda ref: facts[ref]  # type: ignore[method-assign]
        for version in (0, 1):
            (clone.path / "_delta_log" / f"{version:020}.json").unlink()
        plan = work.plan(source)
        assert ReasonCode.KEPT_FOR_CLONE in codes(plan)
        assert [[file.path for file in step.files] for step in plan.steps if isinstance(step, VacuumStep)] == [
            ["free.parquet"]
        ]

    def test_only_newer_commits_are_read_again_and_a_tables_own_never(self, lake: Path) -> None:
        source = self.lake_of(lake)
        clone = clone_of(source, lake / "clone", "needed.parquet")
        reader, read = LocalReader(), list[str]()

        class Counting(LocalFiles):
            def read(self, uri: str) -> bytes:
                read.append(uri.removeprefix(f"file:{lake}/"))
                return super().read(uri)

        reader.place_of = lambda ref: (Counting(), f"file:{ref.location}")  # type: ignore[method-assign]
        tables = (source.ref, clone.ref)
        root = f"file:{source.path}"
        found, problems = reader.references.into(root, tables, reader)
        assert (list(found), problems) == ([str(clone.path)], [])
        needed, free = (LocalFiles().status(f"{root}/{name}.parquet") for name in ("needed", "free"))
        assert needed is not None
        assert free is not None
        assert found[str(clone.path)].claim_on(needed) == Claim(f"{root}/needed.parquet", certain=True)
        assert found[str(clone.path)].claim_on(free) is None
        assert sorted(read) == [f"clone/_delta_log/{version:020}.json" for version in (0, 1)]
        read.clear()
        clone.append(1, "own.parquet")
        assert reader.references.into(root, tables, reader)[0] == found
        assert read == [f"clone/_delta_log/{2:020}.json"]

    def test_a_table_that_is_not_there_refers_to_nothing(self, lake: Path) -> None:
        source = self.lake_of(lake)
        work = Vacuuming(policies(), (source.ref, TableRef(str(lake / "not-made-yet"))))
        vacuum(lake, source, work, "needed.parquet", "free.parquet")


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
        vacuum_with_leftovers(lake, parent, work, "a.parquet")

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
        vacuum_with_leftovers(lake, table, work, "a.parquet")

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
        texts = [one.reason.text for one in work.plan(table).left_alone]
        assert any(text.startswith("5 files ") and "never knew" in text for text in texts), texts
        vacuum_with_leftovers(lake, table, work, "a.parquet")

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
        vacuum_with_leftovers(lake, table, work, *gone)

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

    def test_a_listing_has_a_bound(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = self.table(lake)
        listed = surroundings.list_untracked(
            LocalTable(table.path), set(), partition_columns=(), changed_before_ms=now_ms(), max_listed=5
        )
        assert listed.files == []
        assert listed.listing.stopped == "the listing was given up after 5 entries"
