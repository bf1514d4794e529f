"""Tables with a broken log or broken data beside a whole one: nothing is written to them, and the true cause is said.

Each seed makes every kind of damage anew and applies to all tables at once, within a bound of time. Besides: a clock
that is hours away deletes nothing early.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.policies.projects import write_project
from tests.support.product import run
from tests.support.runs.app_runs import newest_version
from tests.support.tables.delta_tables import (
    actions_of,
    age,
    age_by_hours,
    commit_file,
    files_on_disk,
    forge_commit,
    second_engine_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SEEDS = range(5)
LONGEST_SECONDS = 120.0
POLICY = "table: lake/{}\noptimize: {{}}\nvacuum: {{retention: 7d, allowLargeDelete: true}}\n"
CAUSES = {
    "truncated_json": ("T403", ".json"),
    "gap": ("T403", "not contiguous"),
    "bad_checkpoint": ("T403", ".checkpoint.parquet"),
    "bad_checksum": ("T403", ".crc counts"),
    "empty_commit": ("T403", ".json has no bytes"),
    "commit_is_a_folder": ("T403", ".json"),
    "garbage_utf8": ("T403", ".json"),
    "future_protocol": ("Delta protocol version",),
    "protocol_without_features": ("T403", "minReaderVersion"),
    "no_metadata": ("T403", "metadata"),
    "no_protocol": ("T403", "protocol"),
    "no_object": ("T403", ".json"),
    "missing_data": ("T422", "missing", ".parquet"),
    "truncated_data": ("T434", ".parquet"),
    "garbage_data": ("T434", ".parquet"),
    "hanging_data": ("T422", "a pipe", ".parquet"),
}
"""Code and words of each damage for which a table is refused."""

HARMLESS = ("doubled_version", "bad_last_checkpoint", "remove_of_nothing")
"""Damage that hides nothing: every reader finds the same rows. Such a table may be maintained."""
HOUR_SECONDS = 3600.0


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


def _some(path: Path, chance: random.Random) -> int:
    """The version of any commit but the first one."""
    return chance.randint(1, newest_version(path))


def _some_file(path: Path, chance: random.Random) -> Path:
    return commit_file(path, _some(path, chance))


def truncated_json(path: Path, chance: random.Random) -> None:
    """A commit ends in the middle of an action."""
    file = _some_file(path, chance)
    whole = file.read_bytes()
    file.write_bytes(whole[: chance.randint(len(whole) // 2, len(whole) - 5)].rstrip(b"\n") + b'{"add":{"pa')


def gap(path: Path, chance: random.Random) -> None:
    """A commit between two others is gone."""
    commit_file(path, chance.randint(1, newest_version(path) - 1)).unlink()


def doubled_version(path: Path, chance: random.Random) -> None:
    """The actions of a version stand in its file twice, the second time with other sizes."""

    def double(actions: list[dict[str, Any]]) -> None:
        again = json.loads(json.dumps(actions))
        for action in again:
            if "add" in action:
                action["add"]["size"] += chance.randint(1, 99)
        actions += again

    forge_commit(path, _some(path, chance), double)


def bad_last_checkpoint(path: Path, chance: random.Random) -> None:
    """`_last_checkpoint` is garbage; the checkpoint that it should name is whole."""
    deltalake.DeltaTable(str(path)).create_checkpoint()
    (path / "_delta_log" / "_last_checkpoint").write_bytes(chance.randbytes(60))


def bad_checkpoint(path: Path, chance: random.Random) -> None:
    """The only checkpoint is no Parquet, and the commits that it replaced are cleaned up."""
    deltalake.DeltaTable(str(path)).create_checkpoint()
    (checkpoint,) = (path / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1" + chance.randbytes(chance.randint(50, 400)) + b"PAR1")
    for version in range(newest_version(path)):
        commit_file(path, version).unlink()


def bad_checksum(path: Path, chance: random.Random) -> None:
    """The checksum file of the newest version counts other files than the log."""
    version = newest_version(path)
    first = {name: body for action in actions_of(path, 0) for name, body in action.items()}
    checksum = {
        "tableSizeBytes": chance.randint(1, 99), "numFiles": chance.randint(100, 999), "numMetadata": 1,
        "numProtocol": 1, "metadata": first["metaData"], "protocol": first["protocol"],
    }  # fmt: skip
    (path / "_delta_log" / f"{version:020d}.crc").write_text(json.dumps(checksum), encoding="utf-8")


def empty_commit(path: Path, chance: random.Random) -> None:
    """A commit has no bytes, as a disk that was full leaves it."""
    _some_file(path, chance).write_bytes(b"")


def commit_is_a_folder(path: Path, chance: random.Random) -> None:
    """A folder lies in the place of a commit."""
    file = _some_file(path, chance)
    file.unlink()
    file.mkdir()


def garbage_utf8(path: Path, chance: random.Random) -> None:
    """A commit is bytes that are no text."""
    _some_file(path, chance).write_bytes(b"\xff\xfe\x80" + chance.randbytes(chance.randint(20, 300)))


def future_protocol(path: Path, chance: random.Random) -> None:
    """The newest commit asks for a protocol that nobody knows yet."""
    _set_protocol(path, chance, {"readerFeatures": ["timeTravel"], "writerFeatures": ["timeTravel"]})


def protocol_without_features(path: Path, chance: random.Random) -> None:
    """The newest commit asks for such a protocol and lists no features, which every later one must."""
    _set_protocol(path, chance, {})


def _set_protocol(path: Path, chance: random.Random, features: dict[str, list[str]]) -> None:
    versions = {"minReaderVersion": chance.randint(4, 99), "minWriterVersion": chance.randint(8, 99)}
    forge_commit(path, newest_version(path), lambda actions: actions.append({"protocol": {**versions, **features}}))


def no_metadata(path: Path, chance: random.Random) -> None:
    """No commit says what the table's schema is."""
    _without(path, "metaData")


def no_protocol(path: Path, chance: random.Random) -> None:
    """No commit says which protocol the table has."""
    _without(path, "protocol")


def _without(path: Path, name: str) -> None:
    actions = [action for action in actions_of(path, 0) if name not in action]
    forge_commit(path, 0, lambda before: before.__setitem__(slice(None), actions))


def remove_of_nothing(path: Path, chance: random.Random) -> None:
    """A commit removes a file that no commit added."""
    version = _some(path, chance)
    removed = {"path": f"part-{chance.randint(0, 9999):05d}-never.parquet", "deletionTimestamp": 1, "dataChange": True}
    forge_commit(path, version, lambda actions: actions.append({"remove": removed}))


def no_object(path: Path, chance: random.Random) -> None:
    """A line of a commit is JSON, and no action."""
    file = _some_file(path, chance)
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


def tree_of(path: Path) -> dict[str, str]:
    """Everything below a folder: names, kinds and content, without checksum files, which a rewrite writes at first."""
    return {
        str(entry.relative_to(path)): hashlib.sha256(entry.read_bytes()).hexdigest() if entry.is_file() else "other"
        for entry in sorted(path.rglob("*"))
        if entry.suffix != ".crc"
    }


def untouched(path: Path, chance: random.Random) -> None:
    """Damage nothing."""


def ended(project: Path) -> dict[str, dict[str, Any]]:
    """How each table ended in the newest run."""
    results = sorted((project / ".maintainer" / "runs").glob("2*/results.json"))[-1]
    tables = json.loads(results.read_text(encoding="utf-8"))["tables"]
    return {Path(table["ref"]["identifier"]).name: table for table in tables}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.contradicts("live_files_are_there", "logs_can_be_read", reason="files and logs are damaged")
@pytest.mark.sampled(1)
def test_nothing_is_written_to_a_broken_table_and_the_cause_is_said(
    seed: int, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"maintainer.yml": "version: 1\n"}
    for name, damage in {**BROKEN_LOGS, **BROKEN_DATA, "whole": untouched}.items():
        chance = random.Random(f"{seed}/{name}")
        make_breakable_table(tmp_path / "lake" / name, chance)
        damage(tmp_path / "lake" / name, chance)
        files[f"policies/{name}.yml"] = POLICY.format(name)
    write_project(tmp_path, files)
    rows = {name: second_engine_rows(tmp_path / "lake" / name) for name in ("whole", *HARMLESS)}
    before = {name: tree_of(tmp_path / "lake" / name) for name in CAUSES}

    started = time.monotonic()
    code = run(["--project", str(tmp_path), "apply", "--yes"])
    seconds = time.monotonic() - started
    said = capsys.readouterr()
    assert seconds <= LONGEST_SECONDS
    assert code == 1, said
    assert "Traceback" not in said.out + said.err
    tables = ended(tmp_path)
    for name, words in CAUSES.items():
        assert tree_of(tmp_path / "lake" / name) == before[name], name
        text = json.dumps(tables[name])
        assert all(word in text for word in words), (name, text[:1500])
    for name, rows_before in rows.items():
        assert tables[name]["status"] == "done", name
        assert second_engine_rows(tmp_path / "lake" / name) == rows_before, name
        assert len(deltalake.DeltaTable(str(tmp_path / "lake" / name)).file_uris()) == 1, name


OPTIMIZE = "optimize: {}\n"
VACUUM = "optimize: null\nvacuum: {retention: 7d, allowLargeDelete: true}\n"


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("empty_commit", OPTIMIZE),
        ("empty_commit", VACUUM),
        ("empty_commit", "autoCompact: true\n"),
        ("bad_checksum", OPTIMIZE),
    ],
)
@pytest.mark.every_run
def test_damage_that_readers_pass_over_is_no_reason_to_write(
    name: str, steps: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lake" / "t"
    make_breakable_table(path, random.Random(1))
    BROKEN_LOGS[name](path, random.Random(1))
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": f"table: lake/t\n{steps}"})
    before = tree_of(path)
    code = run(["--project", str(tmp_path), "apply", "--yes"])
    said = capsys.readouterr()
    assert code == 1, said
    assert "error[T403]" in said.out + said.err, said
    assert tree_of(path) == before


@pytest.mark.parametrize("hours", [-240.0, -3.0, -0.25, 0.0, 0.25, 3.0, 240.0])
@pytest.mark.sampled(1)
def test_a_clock_that_is_away_deletes_nothing_early(
    hours: float,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two generations were overwritten: one is past the retention by a day, the other short of it by six minutes."""
    path = tmp_path / "lake" / "t"
    policy = "table: lake/t\nvacuum: {retention: 7d, allowLargeDelete: true}\n"
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": policy})
    generations: list[set[str]] = []
    for number in range(3):
        known = files_on_disk(path) if path.exists() else set()
        deltalake.write_deltalake(str(path), pa.table({"id": [number, number]}), mode="overwrite")
        generations.append(files_on_disk(path) - known)
        # All that lies there grows older: by a day, and at last by the retention less six minutes.
        age_by_hours(path, 24 if number < 2 else 7 * 24 - 0.1)
    late, early, live = generations
    rows = second_engine_rows(path)

    away_ns = int(hours * HOUR_SECONDS * 1e9)
    real_ns, real = time.time_ns, time.time
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + away_ns)
    monkeypatch.setattr(time, "time", lambda: real() + away_ns / 1e9)
    code = run(["--project", str(tmp_path), "apply", "--yes"])
    monkeypatch.undo()

    said = capsys.readouterr()
    there = files_on_disk(path)
    assert live | early <= there, said
    assert second_engine_rows(path) == rows
    if hours == 0.0:
        assert (code, late & there) == (0, set()), said
    else:
        assert late <= there, said
        assert "clock" in said.out + said.err, said
