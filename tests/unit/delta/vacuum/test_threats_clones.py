"""Shallow clones: A5 of the threats in docs/safe-vacuum.md; see ``test_threats_places.py``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from maintainer.delta.storage.file_identity import FileNeed
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.errors import CatalogAway, Refused
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.table_facts import TableRef
from tests.support.tables.aged_tables import AgedTable, tree
from tests.support.tables.local_vacuum import LocalReader, Vacuuming
from tests.support.tables.vacuum_cases import (
    assert_only,
    clone_of,
    codes,
    policies,
    vacuum,
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
        vacuum(lake, source, work, "free.parquet")

    def test_a_clone_that_no_policy_names_and_the_catalog_knows(self, lake: Path) -> None:
        source = self.lake_of(lake)
        clone = clone_of(source, lake / "elsewhere" / "clone", "needed.parquet")
        work = Vacuuming(policies(), (source.ref,))
        work.reader.beside = (clone.ref,)
        assert ReasonCode.KEPT_FOR_CLONE in codes(work.plan(source))
        vacuum(lake, source, work, "free.parquet")

    def test_where_the_catalog_does_not_answer_nothing_is_deleted(self, lake: Path) -> None:
        source = self.lake_of(lake)
        work = Vacuuming(policies(), (source.ref,))
        work.reader.beside = CatalogAway("the catalog does not answer")
        vacuum(lake, source, work)

    @pytest.mark.parametrize(("there", "is_known"), [("", False), ("lake", False), ("lake/other", True), (None, True)])
    def test_where_the_disk_of_a_clone_may_not_be_mounted_nothing_is_deleted(
        self, lake: Path, there: str | None, is_known: bool
    ) -> None:
        """An empty folder where the table should be is a sign of it; a folder with other things in it is none."""
        source = self.lake_of(lake)
        mount = lake.parent / "mount"
        if there is not None:
            (mount / there).mkdir(parents=True)
        work = Vacuuming(policies(), (source.ref, TableRef(f"{mount}/lake/clone")))
        assert (ReasonCode.CANNOT_BE_SURE in codes(work.plan(source))) is not is_known
        vacuum(lake, source, work, *(["needed.parquet", "free.parquet"] if is_known else []))

    def test_a_clone_of_a_catalog_whose_disk_may_not_be_mounted(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source, mount = self.lake_of(lake), lake.parent / "mount"
        mount.mkdir()
        work = Vacuuming(policies(), (source.ref, TableRef("dev.orders")))
        place_of = work.reader.place_of
        places = {"dev.orders": (LocalFiles(), f"file:{mount}/lake/clone")}
        monkeypatch.setattr(work.reader, "place_of", lambda ref: places.get(ref.identifier) or place_of(ref))
        vacuum(lake, source, work)
        (mount / "other").mkdir()
        vacuum(lake, source, work, "needed.parquet", "free.parquet")

    @pytest.mark.parametrize("layout", ["below", "below, log cleaned", "through a link", "other spelling"])
    def test_a_table_around_this_one_names_its_files_by_relative_paths(self, lake: Path, layout: str) -> None:
        """As after CONVERT TO DELTA of the outer folder, or where a folder of partitions is a link to a table."""
        inner = self.lake_of(lake if layout == "through a link" else lake / "outer")
        outer = AgedTable(lake / ("other" if layout == "through a link" else "outer"))
        if layout == "through a link":
            (outer.path / "t").symlink_to(inner.path)
        name = "t/needed.parquet"
        add = outer.add_action(name, 60)
        if layout == "other spelling":
            add["add"]["path"] = ".//%74/needed.parquet"
        outer.commit(50, add, operation="CONVERT")
        work = Vacuuming(policies(), (inner.ref, outer.ref))
        if layout == "below, log cleaned":
            outer.commit(40, operation="WRITE")
            facts = {table.ref: work.reader.facts(table.ref) for table in (inner, outer)}
            work.reader.facts = lambda ref: facts[ref]  # type: ignore[method-assign]
            for version in (0, 1):
                (outer.path / "_delta_log" / f"{version:020}.json").unlink()
        assert ReasonCode.KEPT_FOR_CLONE in codes(work.plan(inner))
        before = tree(lake)
        step = work.step(inner)
        assert step is not None
        work.delete(inner, step)
        assert_only(lake, before, str((inner.path / "free.parquet").relative_to(lake)))

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
        vacuum(lake, source, work)

    def test_a_clones_deletion_vector_stays(self, lake: Path) -> None:
        source = self.lake_of(lake)
        source.file("deletion_vector_one.bin", 30, b"vector")
        vector = {"storageType": "u", "pathOrInlineDv": "one", "offset": 1, "sizeInBytes": 6, "cardinality": 1}
        added = source.add_action("live.parquet", 25, vector=vector)
        source.commit(25, source.remove_action("live.parquet", 25), added, operation="DELETE")
        source.commit(20, source.remove_action("live.parquet", 20, vector=vector), operation="DELETE")
        clone = AgedTable(lake / "clone", created_days_ago=15)
        cloned_vector = {**vector, "storageType": "p", "pathOrInlineDv": f"file:{source.path}/deletion_vector_one.bin"}
        add = source.add_action("live.parquet", 15, vector=cloned_vector)
        add["add"]["path"] = f"file:{source.path}/live.parquet"
        clone.commit(15, add, operation="CLONE")
        work = Vacuuming(policies(), (source.ref, clone.ref))
        vacuum(lake, source, work, "needed.parquet", "free.parquet")

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

    def test_a_clone_that_is_dropped_and_made_again_is_read_again(self, lake: Path) -> None:
        source = self.lake_of(lake)
        clone = clone_of(source, lake / "clone", "free.parquet")
        work = Vacuuming(policies(), (source.ref, clone.ref))
        work.plan(source)  # a watch keeps what it read of the clone
        shutil.rmtree(clone.path)
        clone_of(source, clone.path, "needed.parquet")
        vacuum(lake, source, work, "free.parquet")

    def test_a_clone_whose_log_was_cleaned_up_since_it_was_read_is_read_again(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = self.lake_of(lake)
        clone = AgedTable(lake / "clone")
        work = Vacuuming(policies(), (source.ref, clone.ref))
        work.plan(source)
        add = source.add_action("needed.parquet", 15)
        add["add"]["path"] = f"file:{source.path}/needed.parquet"
        clone.commit(15, add, operation="CLONE")
        clone.commit(14, operation="SET TBLPROPERTIES")
        newest, facts = work.reader.facts(clone.ref), work.reader.facts
        monkeypatch.setattr(work.reader, "facts", lambda ref: newest if ref == clone.ref else facts(ref))
        for version in (0, 1):  # a checkpoint has what they said
            (clone.path / "_delta_log" / f"{version:020}.json").unlink()
        vacuum(lake, source, work, "free.parquet")

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
            vacuum(
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
            def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
                read.append(uri.removeprefix(f"file:{lake}/"))
                return super().read(uri, first_bytes=first_bytes)

        reader.place_of = lambda ref: (Counting(), f"file:{ref.location}")  # type: ignore[method-assign]
        tables = (source.ref, clone.ref)
        root = f"file:{source.path}"
        references, problems = reader.references.into(root, tables, reader)
        assert (list(references), problems) == ([str(clone.path)], [])
        needed, free = (LocalFiles().status(f"{root}/{name}.parquet") for name in ("needed", "free"))
        assert needed is not None
        assert free is not None
        assert references[str(clone.path)].need_of(needed) == FileNeed(f"{root}/needed.parquet", certain=True)
        assert references[str(clone.path)].need_of(free) is None
        assert sorted(read) == [f"clone/_delta_log/{version:020}.json" for version in (0, 1)]
        read.clear()
        clone.append(1, "own.parquet")
        assert reader.references.into(root, tables, reader)[0] == references
        assert read == [f"clone/_delta_log/{2:020}.json"]

    def test_a_table_that_is_not_there_refers_to_nothing(self, lake: Path) -> None:
        source = self.lake_of(lake)
        work = Vacuuming(policies(), (source.ref, TableRef(str(lake / "not-made-yet"))))
        vacuum(lake, source, work, "needed.parquet", "free.parquet")
