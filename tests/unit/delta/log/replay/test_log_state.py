"""Replaying a log: which files make up a version, and what they add up to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.actions import LoggedFile
from maintainer.delta.log.replay.version_replay import IncompleteLog, LogState, segment
from tests.unit.delta.log.replay.test_version_replay import METADATA, PROTOCOL, Log, add, remove


def commit(version: int) -> str:
    return f"{version:020d}.json"


def test_commits_alone() -> None:
    log_segment = segment([commit(1), commit(0), "_last_checkpoint", "00000000000000000000.crc", commit(2)])
    assert (log_segment.version, log_segment.checkpoint, log_segment.commits) == (
        2,
        (),
        (commit(0), commit(1), commit(2)),
    )
    assert segment([commit(0), commit(1)], 0).commits == (commit(0),)


def test_the_newest_whole_checkpoint_is_taken() -> None:
    classic = f"{3:020d}.checkpoint.parquet"
    parts = [f"{5:020d}.checkpoint.{part:010d}.0000000003.parquet" for part in (1, 2, 3)]
    v2 = f"{4:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    commits = [commit(version) for version in range(2, 8)]
    whole = segment([classic, v2, *parts, *commits])
    assert whole.checkpoint == tuple(parts)
    assert whole.commits == (commit(6), commit(7))
    torn = segment([classic, v2, *parts[:2], *commits])
    assert torn.checkpoint == (v2,)
    older = segment([classic, v2, *parts, *commits], 3)
    assert (older.version, older.checkpoint, older.commits) == (3, (classic,), ())


def test_a_gap_is_an_error() -> None:
    with pytest.raises(IncompleteLog, match="version 1 is missing"):
        segment([commit(0), commit(2)])
    with pytest.raises(IncompleteLog, match="version 0 is missing"):
        segment([commit(1)])
    with pytest.raises(IncompleteLog, match="no version 0"):
        segment(["_last_checkpoint"])
    with pytest.raises(IncompleteLog, match="no version 9"):
        segment([commit(0)], 9)


def added(path: str, **more: object) -> dict[str, Any]:
    return {"add": LoggedFile.of({"path": path, **more})}


def test_the_newest_action_wins() -> None:
    state = LogState(2)
    vector = {"storageType": "u", "pathOrInlineDv": "x" * 20, "offset": 1, "cardinality": 2, "sizeInBytes": 30}
    state.take([{"protocol": {"v": 1}}, {"metaData": {"id": "a"}}, added("1"), added("2")])
    state.take(
        [
            added("1", deletionVector=vector),
            {"remove": {"path": "1"}},
            {"commitInfo": {"operation": "DELETE"}},
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        ]
    )
    assert set(state.files) == {("1", "u" + "x" * 20 + "@1"), ("2", "")}
    assert (state.domains, state.commit_info) == ({"d": "{}"}, {"operation": "DELETE"})
    state.take([{"remove": {"path": "2"}}, {"domainMetadata": {"domain": "d", "removed": True}}, {"txn": {}}])
    assert set(state.files) == {("1", "u" + "x" * 20 + "@1")}
    assert (state.domains, state.commit_info, state.metadata) == ({}, {}, {"id": "a"})


OUTSIDE = [add("file:/elsewhere/x"), add("/elsewhere/y"), add("b")]


@pytest.mark.parametrize("action", [remove("/elsewhere/x"), add("/elsewhere/x"), remove("./b")])
def test_a_file_in_two_spellings_is_for_another_reader(tmp_path: Path, action: dict[str, Any]) -> None:
    log = Log(tmp_path)
    log.commit(0, {"commitInfo": {}}, PROTOCOL, METADATA, *OUTSIDE)
    assert len(log.paths()) == 3
    log.commit(1, action)
    with pytest.raises(IncompleteLog, match="named in two ways"):
        log.read()


def test_a_file_outside_that_is_removed_as_it_was_added_is_gone(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.commit(0, {"commitInfo": {}}, PROTOCOL, METADATA, *OUTSIDE)
    log.commit(1, remove("file:/elsewhere/x"), remove("/elsewhere/y"))
    assert log.paths() == ["b"]
