"""Rows are counted by the ends of files: one that is not whole, not there or of another size is not counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.transaction.live_files import LiveFiles
from maintainer.delta.verify import version_reader
from maintainer.delta.verify.version_reader import by_log_and_opened, rows_in_footers


class Storage:
    """A folder on this disk, as the storage of a table."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.files = LocalFiles()

    def uri(self, path: str) -> str:
        return f"file:{self._root}/{path}"


def written(root: Path, name: str, num_rows: int, num_columns: int = 1) -> dict[str, Any]:
    columns = {f"c{number}": list(range(num_rows)) for number in range(num_columns)}
    pq.write_table(pa.table(columns), root / name, row_group_size=max(1, num_rows // 3))
    return {"path": name, "size": (root / name).stat().st_size}


def counted(root: Path, *adds: dict[str, Any]) -> int:
    return rows_in_footers(cast(Any, Storage(root)), adds)


def test_rows_of_all_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adds = [written(tmp_path, f"{num_rows}.parquet", num_rows) for num_rows in (0, 1, 700)]
    assert (counted(tmp_path, *adds), counted(tmp_path, adds[0]), counted(tmp_path)) == (701, 0, 0)
    monkeypatch.setattr(version_reader, "FOOTER_BYTES", (64, 64))
    wide = written(tmp_path, "wide.parquet", 9, num_columns=50)
    assert counted(tmp_path, *adds, wide) == 710  # footers that are longer than the first look


class CountedFiles(LocalFiles):
    """A disk that remembers how many bytes of ends were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def read_end(self, file: StoredFile, last_bytes: int) -> bytes:
        self.asked.append(last_bytes)
        return super().read_end(file, last_bytes)


def test_a_usual_footer_takes_one_request_of_a_part_of_the_file_and_a_long_one_a_second(tmp_path: Path) -> None:
    small, large = written(tmp_path, "small.parquet", 9), written(tmp_path, "large.parquet", 100_000)
    wide = written(tmp_path, "wide.parquet", 1, num_columns=300)
    assert (small["size"] < 8 << 10, 128 << 10 < large["size"] < 1 << 20) == (True, True)
    storage = Storage(tmp_path)
    storage.files = counting = CountedFiles()
    assert rows_in_footers(cast(Any, storage), [small, large]) == 100_009
    assert counting.asked == [8 << 10, large["size"] // 16]
    counting.asked.clear()
    assert rows_in_footers(cast(Any, storage), [wide]) == 1
    first, footer = counting.asked
    assert first < footer < wide["size"]


def test_a_file_that_is_no_whole_one_is_not_counted(tmp_path: Path) -> None:
    whole = written(tmp_path, "whole.parquet", 7)
    content = (tmp_path / "whole.parquet").read_bytes()
    for name, data in {"torn": content[:-9], "empty": b"", "text": b"PAR1", "long": b"\xff" * 8 + b"PAR1"}.items():
        (tmp_path / f"{name}.parquet").write_bytes(data)
        with pytest.raises(CannotCompareError):
            counted(tmp_path, whole, {"path": f"{name}.parquet", "size": len(data)})
    with pytest.raises(CannotCompareError):
        counted(tmp_path, {**whole, "size": whole["size"] - 1})
    with pytest.raises(FileNotFoundError):
        counted(tmp_path, {"path": "gone.parquet", "size": 9})


def version(**files: dict[str, Any]) -> LiveFiles:
    vectors = {name: add.get("deletionVector", {}).get("pathOrInlineDv", "") for name, add in files.items()}
    adds = {(name, vectors[name]): {"path": name, "size": 1, **add} for name, add in files.items()}
    return LiveFiles("id", 1, {}, {}, None, adds)


def test_what_both_versions_have_is_counted_by_the_log_and_the_rest_is_opened() -> None:
    ten, uncounted = {"stats": '{"numRecords":10}'}, {"stats": None}
    some_gone = {**ten, "deletionVector": {"pathOrInlineDv": "v", "cardinality": 3}}
    before = version(kept=ten, shrunk=some_gone, changed=ten, silent=uncounted, old=ten)
    after = version(kept=ten, shrunk=some_gone, changed=some_gone, silent=uncounted, new=ten)
    for this, other, names in (
        (before, after, ["changed", "silent", "old"]),
        (after, before, ["changed", "silent", "new"]),
    ):
        counted, opened = by_log_and_opened(this, other)
        assert (counted, [add["path"] for add in opened]) == (17, names)
    counted, opened = by_log_and_opened(after, None)
    assert (counted, len(opened)) == (0, 5)
