"""Tables whose log or data are broken in one way each; a seed says how large they are and where the damage lies.

They are made by a second engine, and then damaged by hand. All of them are due for a compaction and a vacuum.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from tests.support.tables.delta_tables import age
from tests.support.tables.sick_tables import commit

Breakage = Callable[[Path, random.Random], object]


def make_breakable_table(path: Path, chance: random.Random) -> int:
    """Write a table of small files, of which some were overwritten a month ago; return its newest version."""
    num_old, num_live = chance.randint(1, 3), chance.randint(3, 6)
    for number in range(num_old + num_live):
        ids = list(range(number * 100, number * 100 + chance.randint(5, 30)))
        rows = pa.table({"id": ids, "text": [f"row {row_id}" for row_id in ids]})
        deltalake.write_deltalake(str(path), rows, mode="overwrite" if number == num_old else "append")
    age(path, days=30)
    return num_old + num_live - 1


def _newest(path: Path) -> int:
    return max(int(file.name[:20]) for file in (path / "_delta_log").glob("*[0-9].json"))


def _some(path: Path, chance: random.Random) -> Path:
    """Any commit but the first one."""
    return commit(path, chance.randint(1, _newest(path)))


def _actions(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _write(file: Path, actions: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")


def truncated_json(path: Path, chance: random.Random) -> None:
    """A commit ends in the middle of an action."""
    file = _some(path, chance)
    whole = file.read_bytes()
    file.write_bytes(whole[: chance.randint(len(whole) // 2, len(whole) - 5)].rstrip(b"\n") + b'{"add":{"pa')


def gap(path: Path, chance: random.Random) -> None:
    """A commit between two others is gone."""
    commit(path, chance.randint(1, _newest(path) - 1)).unlink()


def doubled_version(path: Path, chance: random.Random) -> None:
    """The actions of a version stand in its file twice, the second time with other sizes."""
    file = _some(path, chance)
    actions = _actions(file)
    again = json.loads(json.dumps(actions))
    for action in again:
        if "add" in action:
            action["add"]["size"] += chance.randint(1, 99)
    _write(file, actions + again)


def bad_last_checkpoint(path: Path, chance: random.Random) -> None:
    """`_last_checkpoint` is garbage; the checkpoint that it should name is whole."""
    deltalake.DeltaTable(str(path)).create_checkpoint()
    (path / "_delta_log" / "_last_checkpoint").write_bytes(chance.randbytes(60))


def bad_checkpoint(path: Path, chance: random.Random) -> None:
    """The only checkpoint is no Parquet, and the commits that it replaced are cleaned up."""
    deltalake.DeltaTable(str(path)).create_checkpoint()
    (checkpoint,) = (path / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1" + chance.randbytes(chance.randint(50, 400)) + b"PAR1")
    for version in range(_newest(path)):
        commit(path, version).unlink()


def bad_checksum(path: Path, chance: random.Random) -> None:
    """The checksum file of the newest version counts other files than the log."""
    version = _newest(path)
    metadata = next(action["metaData"] for action in _actions(commit(path, 0)) if "metaData" in action)
    protocol = next(action["protocol"] for action in _actions(commit(path, 0)) if "protocol" in action)
    checksum = {
        "tableSizeBytes": chance.randint(1, 99), "numFiles": chance.randint(100, 999), "numMetadata": 1,
        "numProtocol": 1, "metadata": metadata, "protocol": protocol,
    }  # fmt: skip
    (path / "_delta_log" / f"{version:020d}.crc").write_text(json.dumps(checksum), encoding="utf-8")


def empty_commit(path: Path, chance: random.Random) -> None:
    """A commit has no bytes, as a disk that was full leaves it."""
    _some(path, chance).write_bytes(b"")


def commit_is_a_folder(path: Path, chance: random.Random) -> None:
    """A folder lies in the place of a commit."""
    file = _some(path, chance)
    file.unlink()
    file.mkdir()


def garbage_utf8(path: Path, chance: random.Random) -> None:
    """A commit is bytes that are no text."""
    _some(path, chance).write_bytes(b"\xff\xfe\x80" + chance.randbytes(chance.randint(20, 300)))


def future_protocol(path: Path, chance: random.Random) -> None:
    """The newest commit asks for a protocol that nobody knows yet."""
    _set_protocol(path, chance, {"readerFeatures": ["timeTravel"], "writerFeatures": ["timeTravel"]})


def protocol_without_features(path: Path, chance: random.Random) -> None:
    """The newest commit asks for such a protocol and lists no features, which every later one must."""
    _set_protocol(path, chance, {})


def _set_protocol(path: Path, chance: random.Random, features: dict[str, list[str]]) -> None:
    file = commit(path, _newest(path))
    versions = {"minReaderVersion": chance.randint(4, 99), "minWriterVersion": chance.randint(8, 99)}
    _write(file, [*_actions(file), {"protocol": {**versions, **features}}])


def no_metadata(path: Path, chance: random.Random) -> None:
    """No commit says what the table's schema is."""
    _write(commit(path, 0), [action for action in _actions(commit(path, 0)) if "metaData" not in action])


def no_protocol(path: Path, chance: random.Random) -> None:
    """No commit says which protocol the table has."""
    _write(commit(path, 0), [action for action in _actions(commit(path, 0)) if "protocol" not in action])


def remove_of_nothing(path: Path, chance: random.Random) -> None:
    """A commit removes a file that no commit added."""
    file = _some(path, chance)
    removed = {"path": f"part-{chance.randint(0, 9999):05d}-never.parquet", "deletionTimestamp": 1, "dataChange": True}
    _write(file, [*_actions(file), {"remove": removed}])


def no_object(path: Path, chance: random.Random) -> None:
    """A line of a commit is JSON, and no action."""
    file = _some(path, chance)
    file.write_text(file.read_text(encoding="utf-8") + "[1, 2, 3]\n", encoding="utf-8")


BROKEN_LOGS: dict[str, Breakage] = {
    breakage.__name__: breakage
    for breakage in (
        truncated_json, gap, doubled_version, bad_last_checkpoint, bad_checkpoint, bad_checksum, empty_commit,
        commit_is_a_folder, garbage_utf8, future_protocol, protocol_without_features, no_metadata, no_protocol,
        remove_of_nothing, no_object,
    )
}  # fmt: skip
"""Each way by its name."""


def _live(path: Path, chance: random.Random) -> Path:
    names = [Path(uri).name for uri in deltalake.DeltaTable(str(path)).file_uris()]
    return path / chance.choice(sorted(names))


def missing_data(path: Path, chance: random.Random) -> None:
    """A live file is gone."""
    _live(path, chance).unlink()


def truncated_data(path: Path, chance: random.Random) -> None:
    """A live file ends too soon."""
    file = _live(path, chance)
    whole = file.read_bytes()
    file.write_bytes(whole[: chance.randint(1, len(whole) - 9)])


def garbage_data(path: Path, chance: random.Random) -> None:
    """A live file has its length, and other bytes."""
    file = _live(path, chance)
    file.write_bytes(chance.randbytes(file.stat().st_size))


def hanging_data(path: Path, chance: random.Random) -> None:
    """A live file is a pipe into which nobody writes."""
    file = _live(path, chance)
    file.unlink()
    os.mkfifo(file)


BROKEN_DATA: dict[str, Breakage] = {
    breakage.__name__: breakage for breakage in (missing_data, truncated_data, garbage_data, hanging_data)
}
"""Each way by its name."""
