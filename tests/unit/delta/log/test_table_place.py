"""Where a table physically is: spellings, links, moves, encodings and copies of real folders."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maintainer.app.planning.policy_places import PolicyPlaces
from maintainer.delta.log.table_place import SpelledPlaces, StoragePlaces, place_key, table_id_at
from maintainer.delta.storage.file_store import java_quote
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.engine.protocols import TableReader, is_one_place
from maintainer.model.plan.plan import Observed, TablePlan
from maintainer.model.table.table_facts import Protocol, TableRef
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.suites.example_counts import examples
from tests.support.tables.bind_mounts import BindMount, bind_mounts, mounts_permitted
from tests.support.tables.vacuum_cases import policies

PLACES = StoragePlaces()
OBSERVED = Observed("", "id-t", 0, (), (), Protocol(1, 2), 0, 0)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 80
)


def table(path: Path, table_id: str = "id-t") -> Path:
    (path / "_delta_log").mkdir(parents=True)
    action = {"metaData": {"id": table_id}}
    (path / "_delta_log" / f"{0:020}.json").write_text('{"commitInfo":{}}\n' + json.dumps(action) + "\n")
    return path


@pytest.fixture(scope="module")
def lake() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder).resolve()


class Way:
    """Spells the way to a table in some other manner, step by step."""

    def __init__(self, root: Path, number: int, mount: BindMount) -> None:
        self.root, self.number, self.mount, self.links = root, number, mount, 0
        self.mounts: set[str] = set()

    def linked(self, path: str) -> str:
        self.links += 1
        link = self.root / f"link-{self.number}-{self.links}"
        link.symlink_to(path)
        return str(link)

    def linked_above(self, path: str) -> str:
        return f"{self.linked(os.path.dirname(path))}/{os.path.basename(path)}"

    def mounted(self, path: str) -> str:
        self.links += 1
        target = self.root / f"mount-{self.number}-{self.links}"
        self.mount(Path(path), target)
        self.mounts.add(str(target))
        return str(target)

    def mounted_above(self, path: str) -> str:
        above, name = os.path.split(os.path.realpath(path))  # `..` behind a mount leads elsewhere
        # A mount of a folder does not take along what is mounted in it.
        return self.mounted(path) if f"{above}/{name}" in self.mounts else f"{self.mounted(above)}/{name}"

    def dotted(self, path: str) -> str:
        return f"{os.path.dirname(path)}/./{os.path.basename(path)}"

    def there_and_back(self, path: str) -> str:
        return f"{path}/_delta_log/.."

    def doubled(self, path: str) -> str:
        return path[0] + path[1:].replace("/", "//")

    def trailing(self, path: str) -> str:
        return f"{path}/"


STEPS = (
    "linked", "linked_above", "dotted", "there_and_back", "doubled",
    *(("mounted", "mounted_above") if mounts_permitted() else ()),
)  # fmt: skip
ENDS = (
    str,
    lambda path: f"{path}/",
    lambda path: f"file:{java_quote(path)}",
    lambda path: f"file://{java_quote(path)}/",
)
COUNT = iter(range(10**9))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, steps=st.lists(st.sampled_from(STEPS), max_size=4), end=st.sampled_from(ENDS))
def test_every_way_to_a_table_is_one_place_and_a_copy_another(
    lake: Path, name: str, steps: list[str], end: Callable[[str], str]
) -> None:
    number = next(COUNT)
    root = table(lake / f"{number}" / name)
    with bind_mounts() as mount:
        way, spelled = Way(lake, number, mount), str(root)
        for step in steps:
            spelled = getattr(way, step)(spelled)
        spelled = end(spelled)
        assert is_one_place(PLACES, str(root), spelled)
        assert is_one_place(PLACES, spelled, f"file:{java_quote(str(root))}")
        assert place_key(PLACES, spelled) == place_key(PLACES, str(root))
        assert PLACES.may_hold(spelled, "id-t")
        assert not PLACES.may_hold(spelled, "another")
        assert table_id_at(spelled) == "id-t"
        by_path, by_spelling = policies()(TableRef(str(root))), policies()(TableRef(f"spelled/{number}", spelled))
        assert both_refused(by_path, by_spelling)

        copy = lake / f"{number}" / "copy of it" / "t"
        shutil.copytree(root, copy)
        assert not is_one_place(PLACES, spelled, str(copy))
        assert not both_refused(policies()(TableRef(str(copy))), by_spelling)

    before = PLACES.place_at(str(root))
    moved = lake / f"{number}" / "moved"
    root.rename(moved)
    assert PLACES.place_at(str(moved)) == before
    assert not PLACES.may_hold(str(root), "id-t")
    shutil.rmtree(copy.parent)


def both_refused(*chosen: ResolvedPolicy) -> bool:
    """Whether policies are for one table: then all plans are problems, else none is."""
    plans = [
        TablePlan(
            file.table, file.file, file.digest, Observed(file.table.location, "id-t", 0, (), (), Protocol(1, 2), 0, 0)
        )
        for file in chosen
    ]
    places = PolicyPlaces(chosen, PLACES)
    codes = {plan.problem and plan.problem.code for plan in places.each_once(plans)}
    assert codes in ({"T409"}, {None})
    return codes == {"T409"}


def test_an_address_that_people_write_is_the_place_that_a_catalog_knows() -> None:
    by_name, by_address = policies()(TableRef("sales.t")), policies()(TableRef("s3://lake/a 50% t"))
    found = replace(OBSERVED, location="s3a://lake/a%2050%25%20t")
    places = PolicyPlaces((by_name, by_address), PLACES)
    plan = TablePlan(by_name.table, by_name.file, by_name.digest, found)
    places.opened(plan, cast(TableReader, None))  # nothing is asked where nothing is to be deleted
    (checked,) = places.each_once((plan,))
    assert checked.problem is not None
    assert checked.problem.code == "T409"


def test_a_second_mount_is_one_place_and_has_the_same_files(lake: Path) -> None:
    root = table(lake / "a table that is mounted")
    (root / "part.parquet").write_bytes(b"PAR1")
    with bind_mounts() as mount:
        mount(root, lake / "mounted")
        mount(lake / "mounted" / "part.parquet", root / "second.parquet")
        assert is_one_place(PLACES, str(root), f"file:{lake}/mounted/")
        files = LocalFiles()
        first, second, third = (
            files.status(f"file:{path}")
            for path in (f"{java_quote(str(root))}/part.parquet", f"{lake}/mounted/part.parquet",
                         f"{java_quote(str(root))}/second.parquet")
        )  # fmt: skip
        assert first is not None
        assert second is not None
        assert third is not None
        assert first.device_and_inode is not None
        assert first.device_and_inode == second.device_and_inode == third.device_and_inode
    assert not is_one_place(PLACES, str(root), f"file:{lake}/mounted/")


def test_another_table_at_the_old_place_does_not_hold_the_one_that_left(tmp_path: Path) -> None:
    table(tmp_path / "t").rename(tmp_path / "moved")
    table(tmp_path / "t", "id-new")
    assert not PLACES.may_hold(str(tmp_path / "t"), "id-t")
    assert PLACES.may_hold(str(tmp_path / "moved"), "id-t")


def test_what_cannot_be_read_may_hold_it(tmp_path: Path) -> None:
    root = table(tmp_path / "t")
    (root / "_delta_log" / f"{0:020}.json").write_text("{")
    assert PLACES.may_hold(str(root), "id-t")
    (root / "_delta_log" / f"{0:020}.json").unlink()  # all that is left may be a checkpoint
    assert PLACES.may_hold(str(root), "id-t")
    assert PLACES.may_hold("s3a://lake/t", "id-t")


def test_a_servers_paths_are_compared_by_their_spelling_alone(tmp_path: Path) -> None:
    assert is_one_place(SpelledPlaces(), "s3://lake/t/", "s3a://lake/t")
    assert not is_one_place(SpelledPlaces(), "s3a://lake/t", "s3a://lake/u")
    assert SpelledPlaces().may_hold(str(tmp_path / "gone"), "id-t")
