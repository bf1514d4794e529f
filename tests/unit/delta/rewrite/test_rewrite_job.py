"""What lies in a data file's place is looked at before it is read: a pipe would never end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest

from maintainer.delta.rewrite.rewrite_job import MAX_NAMED, refuse_irregular_files
from maintainer.delta.storage.file_store import LocalFiles, java_quote
from maintainer.errors import TableError


class Storage:
    """A table's folder on this disk."""

    def __init__(self, root: Path) -> None:
        self.files: object = LocalFiles()
        self._root = root

    def uri(self, relative: str) -> str:
        return f"file:{java_quote(str(self._root))}/{java_quote(relative)}"


def refuse(storage: Storage, *paths: str) -> None:
    refuse_irregular_files(cast(Any, storage), paths, "lake/t")


def test_files_and_links_to_files_are_read_and_what_is_missing_is_told_by_whoever_reads(tmp_path: Path) -> None:
    (tmp_path / "a b.parquet").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a b.parquet")
    refuse(Storage(tmp_path), "a b.parquet", "link", "gone")


def test_a_pipe_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError) as caught:
        refuse(Storage(tmp_path), "good", "pipe", "folder")
    assert (caught.value.code, caught.value.where, caught.value.found) == ("T422", "lake/t", "pipe\nfolder")
    assert caught.value.what.startswith("2 live files of the table are not regular files")


def test_of_many_a_few_are_named(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(MAX_NAMED + 3)]
    for name in names:
        os.mkfifo(tmp_path / name)
    with pytest.raises(TableError) as caught:
        refuse(Storage(tmp_path), *names)
    assert caught.value.found is not None
    assert caught.value.found.splitlines() == names[:MAX_NAMED]


def test_an_object_store_is_not_asked(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.files = object()
    os.mkfifo(tmp_path / "pipe")
    refuse(storage, "pipe")
