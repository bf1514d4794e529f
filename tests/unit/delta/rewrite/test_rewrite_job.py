"""What lies in a data file's place is looked at before it is read: a pipe would never end."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.file_store import LocalFiles, java_quote
from maintainer.delta.transaction.requirements import MAX_NAMED, refuse_irregular_files
from maintainer.errors import CommitConflict, TableError
from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.table.table_facts import DataFile


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


@pytest.mark.parametrize(
    ("now", "is_planned"),
    [({"p": "2020-05-05 00:00:00"}, True), ({"p": "2020-05-05T00:00:00Z"}, False), ({"p": None}, False), ({}, False)],
)
def test_a_file_with_another_text_of_its_partition_is_not_the_planned_one(
    now: dict[str, str | None], is_planned: bool
) -> None:
    """Its path, its deleted rows and, in UTC, its moment are as planned; its text in the log decides."""
    text = "2020-05-05 00:00:00"
    file = DataFile("f", 1, 1, (("p", "2020-05-05T00:00:00Z"),), stored_values=(("p", text),))
    schema = {"fields": [{"name": "p", "type": "timestamp", "metadata": {}}]}
    metadata = {"schemaString": json.dumps(schema), "partitionColumns": ["p"]}
    job = SimpleNamespace(
        metadata=metadata, batch=Batch((Bin((file,)),)), storage=SimpleNamespace(commits=lambda after_version: []),
        facts=SimpleNamespace(version=3), where="lake/t",
    )  # fmt: skip
    with nullcontext() if is_planned else pytest.raises(CommitConflict, match="1 of 1 files are no longer live"):
        RewriteJob._check_all_live(cast(Any, job), {file.key: {"path": "f", "partitionValues": now}})


def test_an_object_store_is_not_asked(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.files = SimpleNamespace(asks_by_request=True)
    os.mkfifo(tmp_path / "pipe")
    refuse(storage, "pipe")
