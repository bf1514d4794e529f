"""Tables are looked for below a root: on a store many folders at once, and the top of a bucket is a folder, too."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from obstore.store import MemoryStore

from maintainer.delta.snapshot.find_tables import FOLDERS_AT_ONCE, SearchLimits, tables_below
from maintainer.delta.storage.file_store import FileStore, StoredFile
from maintainer.delta.storage.object_files import Bucket, ObjectFiles
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.errors import ProjectError


class Lake(ObjectFiles):
    """A bucket in memory; notes how many questions are asked side by side, and has folders that nobody may list."""

    def __init__(self, *tables: str, refused: Collection[str] = ()) -> None:
        storage = ObjectStorage(MemoryStore(), "memory://lake")
        for table in tables:
            storage.write(f"{table}/_delta_log/{0:020}.json", b"{}")
        super().__init__("s3://lake", Bucket(storage), self._no_hadoop)
        self.refused = refused
        self.groups: list[int] = []

    def _no_hadoop(self) -> FileStore:
        raise AssertionError("Hadoop was asked")

    def abreast(self, ask: Callable[[Any], Any], questions: Collection[Any]) -> list[Any]:
        self.groups.append(len(questions))
        return super().abreast(ask, questions)

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        if uri in self.refused:
            raise PermissionError(13, "not yours", uri)
        return super().children(uri, after=after)


def test_the_top_of_a_bucket_is_looked_through_level_by_level() -> None:
    lake = Lake("b", "a/x", "a/y", "a/day=1/t", "_old/t", "c/d/e")
    assert list(tables_below(lake, "s3://lake")) == [f"s3://lake/{name}" for name in ("b", "a/x", "a/y", "c/d/e")]
    assert lake.groups == [1, 3, 3, 1]


def test_many_folders_are_asked_about_side_by_side() -> None:
    tables = [f"t{number:03}" for number in range(2 * FOLDERS_AT_ONCE + 1)]
    lake = Lake(*(f"p/{table}" for table in tables))
    assert list(tables_below(lake, "s3://lake/p")) == [f"s3://lake/p/{table}" for table in tables]
    assert lake.groups == [1, FOLDERS_AT_ONCE, FOLDERS_AT_ONCE, 1]


def test_a_folder_that_cannot_be_listed_is_said_after_the_tables_beside_it() -> None:
    lake, found = Lake("a/x", "b/y", refused={"s3://lake/a"}), list[str]()
    with pytest.raises(ProjectError) as said:
        found.extend(tables_below(lake, "s3://lake"))
    assert (said.value.code, said.value.where, found) == ("E645", "s3://lake/a", ["s3://lake/b/y"])


def test_a_bound_holds_in_the_midst_of_a_group() -> None:
    lake, found = Lake(*"abcdef"), list[str]()
    with pytest.raises(ProjectError) as said:
        found.extend(tables_below(lake, "s3://lake", SearchLimits(max_tables=3)))
    assert (said.value.code, found) == ("E646", [f"s3://lake/{name}" for name in "abc"])
