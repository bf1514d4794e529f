"""Ageing moves every time in a log and on its files by the same amount, and nothing else."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from examples.demo.demo_session import age_action, age_table

TEN_DAYS = timedelta(days=10)
TEN_DAYS_MS = 864_000_000


def make_table(root: Path) -> Path:
    table = root / "t"
    log = table / "_delta_log"
    log.mkdir(parents=True)
    first: list[dict[str, dict[str, Any]]] = [
        {"commitInfo": {"timestamp": 1_700_000_000_123, "operation": "WRITE"}},
        {"metaData": {"id": "x", "createdTime": 1_700_000_000_000, "configuration": {"timestamp": "7"}}},
        {"add": {"path": "a é.parquet", "size": 3, "modificationTime": 1_700_000_000_001, "stats": '{"numRecords":1}'}},
    ]
    second: list[dict[str, dict[str, Any]]] = [
        {"commitInfo": {"timestamp": 1_700_000_100_000}},
        {"remove": {"path": "a é.parquet", "deletionTimestamp": 1_700_000_100_000, "dataChange": True}},
        {"txn": {"appId": "s", "version": 3, "lastUpdated": 1_700_000_100_000}},
    ]
    for version, actions in enumerate((first, second)):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{version:020d}.json").write_text(text, encoding="utf-8")
        (log / f".{version:020d}.json.crc").write_bytes(b"crc")
        (log / f"{version:020d}.crc").write_text("{}")
    (table / "a é.parquet").write_bytes(b"abc")
    (table / ".a é.parquet.crc").write_bytes(b"crc")
    return table


def actions_of(table: Path, version: int) -> list[dict[str, dict[str, object]]]:
    text = (table / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_every_time_in_the_log_moves_and_nothing_else(tmp_path: Path) -> None:
    table = make_table(tmp_path)

    aged = age_table(table, TEN_DAYS)

    assert aged.commits == 2
    assert actions_of(table, 0) == [
        {"commitInfo": {"timestamp": 1_700_000_000_123 - TEN_DAYS_MS, "operation": "WRITE"}},
        {
            "metaData": {
                "id": "x",
                "createdTime": 1_700_000_000_000 - TEN_DAYS_MS,
                "configuration": {"timestamp": "7"},
            }
        },
        {
            "add": {
                "path": "a é.parquet",
                "size": 3,
                "modificationTime": 1_700_000_000_001 - TEN_DAYS_MS,
                "stats": '{"numRecords":1}',
            }
        },
    ]
    assert actions_of(table, 1) == [
        {"commitInfo": {"timestamp": 1_700_000_100_000 - TEN_DAYS_MS}},
        {
            "remove": {
                "path": "a é.parquet",
                "deletionTimestamp": 1_700_000_100_000 - TEN_DAYS_MS,
                "dataChange": True,
            }
        },
        {"txn": {"appId": "s", "version": 3, "lastUpdated": 1_700_000_100_000 - TEN_DAYS_MS}},
    ]


def test_times_on_disk_move_and_checksums_of_commits_go(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    data, commit = table / "a é.parquet", table / "_delta_log" / f"{0:020d}.json"
    for path in (data, commit):
        os.utime(path, ns=(1_700_000_000 * 10**9, 1_700_000_000 * 10**9))

    aged = age_table(table, TEN_DAYS)

    assert data.stat().st_mtime_ns == (1_700_000_000 - 864_000) * 10**9
    assert commit.stat().st_mtime_ns == (1_700_000_000 - 864_000) * 10**9
    # Two commits, the data file and its own checksum, which still fits.
    assert aged.files == 4
    assert sorted(path.name for path in (table / "_delta_log").iterdir()) == [f"{v:020d}.json" for v in (0, 1)]
    assert (table / ".a é.parquet.crc").exists()


@pytest.mark.parametrize("name", ["00000000000000000001.checkpoint.parquet", "_last_checkpoint"])
def test_a_log_with_a_checkpoint_is_refused_untouched(tmp_path: Path, name: str) -> None:
    table = make_table(tmp_path)
    (table / "_delta_log" / name).write_bytes(b"")
    before = (table / "_delta_log" / f"{0:020d}.json").read_bytes()

    with pytest.raises(ValueError, match="checkpoint"):
        age_table(table, TEN_DAYS)

    assert (table / "_delta_log" / f"{0:020d}.json").read_bytes() == before


def test_no_log_and_no_age_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be aged"):
        age_table(tmp_path, TEN_DAYS)
    with pytest.raises(ValueError, match="older"):
        age_table(make_table(tmp_path), timedelta(0))


def test_a_time_that_is_not_there_is_not_made_up() -> None:
    line = '{"remove":{"path":"p","dataChange":false}}'
    assert age_action(line, TEN_DAYS) == line
