"""Deletion vectors that are written are those that the protocol's reader reads, and a failed one leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.delta.proof.second_engine.column_values import deleted_rows
from maintainer.delta.rewrite.commit.carried_deletes import write_vectors
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.model.table.log_names import vector_path, z85_decode, z85_encode


class Storage:
    """What is asked of a table's storage: where a vector with an encoded name lies, and to write it."""

    def __init__(self, root: Path) -> None:
        self.root, self.files = root, LocalFiles()

    def vector_uri(self, kind: str, name: str) -> str:
        assert kind == "u"
        return f"file:{self.root}/{vector_path(name)}"


@pytest.mark.parametrize(
    "rows", [[0], [1, 2, 3], [7, 2**20, 2**31, 2**32 + 1, 2**40], list(range(0, 200_000, 3))], ids=len
)
def test_what_is_written_is_read_again(tmp_path: Path, rows: list[int]) -> None:
    uri, vectors = write_vectors(Storage(tmp_path), {"a": rows, "b": [5]})  # type: ignore[arg-type]
    path = uri.removeprefix("file:")
    assert deleted_rows(vectors["a"], path) == rows
    assert deleted_rows(vectors["b"], path) == [5]
    assert [file.name for file in tmp_path.iterdir()] == [Path(path).name]
    assert os.path.getsize(path) == 1 + sum(8 + vector["sizeInBytes"] for vector in vectors.values())


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_vectors(Storage(tmp_path), {"a": [1]})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@given(st.binary(min_size=0, max_size=40).filter(lambda data: len(data) % 4 == 0))
def test_base_85_is_read_as_it_was_written(data: bytes) -> None:
    assert z85_decode(z85_encode(data)) == data


def test_base_85_of_a_broken_length_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of four"):
        z85_encode(b"abc")
