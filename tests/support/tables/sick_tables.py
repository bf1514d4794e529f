"""Tables that are wrong in one way each, made with a second engine; what is damaged is damaged by hand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa

from tests.support.tables.delta_tables import commit_file, forge_commit


def make_table(
    path: Path | str, num_files: int = 2, rows_each: int = 10, options: dict[str, str] | None = None
) -> None:
    """A table of small files, one commit each; ``options`` are delta-rs's for a store."""
    for number in range(num_files):
        ids = list(range(number * rows_each, (number + 1) * rows_each))
        rows = pa.table({"id": ids, "k": [row_id % 3 for row_id in ids]})
        deltalake.write_deltalake(str(path), rows, mode="append", storage_options=options)


def let_rest(path: Path, seconds: float = 60) -> None:
    """Make the commits of a table some time old, as of writers that are done with what they do right after one."""
    for commit in (path / "_delta_log").glob("*.json"):
        moment = commit.stat().st_mtime - seconds
        os.utime(commit, (moment, moment))


def rows_and_files(path: Path | str, options: dict[str, str] | None = None) -> tuple[list[int], int]:
    """The ids of a table and how many files it has, by an engine that shares nothing with ours."""
    table = deltalake.DeltaTable(str(path), storage_options=options)
    return sorted(table.to_pyarrow_table()["id"].to_pylist()), len(table.file_uris())


def truncated_json(path: Path) -> None:
    """The newest commit ends in the middle of an action."""
    make_table(path)
    whole = commit_file(path, 1).read_bytes()
    commit_file(path, 1).write_bytes(whole[: len(whole) - 40].rstrip(b"\n"))


def log_gap(path: Path) -> None:
    """A commit between two others is gone."""
    make_table(path, 3)
    commit_file(path, 1).unlink()


def corrupt_checkpoint(path: Path) -> None:
    """The newest checkpoint is no Parquet, and the commits that it replaced are cleaned up."""
    make_table(path, 3)
    deltalake.DeltaTable(str(path)).create_checkpoint()
    (checkpoint,) = (path / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1" + b"\0" * 200 + b"PAR1")
    commit_file(path, 0).unlink()
    commit_file(path, 1).unlink()


def unreadable(path: Path) -> None:
    """The log is a link to itself, which nobody can follow, whatever they may read."""
    make_table(path)
    shutil.rmtree(path / "_delta_log")
    (path / "_delta_log").symlink_to(path / "_delta_log")


def dropped(path: Path) -> None:
    """There is nothing."""
    make_table(path)
    shutil.rmtree(path)


def fifo(path: Path) -> None:
    """A data file is a pipe that nobody writes into."""
    make_table(path)
    file = sorted(path.glob("*.parquet"))[0]
    file.unlink()
    os.mkfifo(file)


def unknown_feature(path: Path) -> None:
    """The protocol asks for a feature that nobody has."""
    make_table(path)
    ask_for_features(path, ["levitation"], ["levitation"])


def ask_for_features(path: Path, reader: list[str], writer: list[str]) -> None:
    """Let the protocol name these features."""
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": reader, "writerFeatures": writer}
    forge_commit(path, 0, lambda actions: [one.update(protocol=protocol) for one in actions if "protocol" in one])


SICK: dict[str, Callable[[Path], None]] = {
    sickness.__name__: sickness
    for sickness in (truncated_json, log_gap, corrupt_checkpoint, unreadable, dropped, fifo, unknown_feature)
}
"""Each way by its name."""
