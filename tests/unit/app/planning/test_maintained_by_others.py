"""What anybody did to a table counts for `every`, also below the checkpoint from which its files are read."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from maintainer.cli.main import run
from maintainer.model.table.commit_records import MAX_COMMITS_BEYOND, CommitStamp
from maintainer.planning.budget.other_writers import MAX_COMMITS
from tests.support.policies.projects import write_project

HOUR_MS = 3_600_000
DAILY = "optimize: {every: 1d, quietAfterUpdates: 0s, when: {minSmallFiles: 2}}\n"
STAMP = CommitStamp("20261121T220000Z-7f3a", "lake/t/auto_compact", 0, "sha256:p")


class Table:
    """A table of delta-rs with one small file a commit, and commits of others by hand."""

    def __init__(self, root: Path, policy: str) -> None:
        self.root = write_project(root, {"policies/t.yml": f"table: lake/t\n{policy}"})
        self.path = root / "lake" / "t"
        self.append()
        self.append()

    def append(self) -> None:
        deltalake.write_deltalake(self.path, pa.table({"a": [time.time_ns()]}), mode="append")

    def checkpoint(self) -> None:
        deltalake.DeltaTable(self.path).create_checkpoint()

    def commit(self, operation: str, hours_ago: float = 2, *, at: int | None = None, **info: object) -> None:
        """Commit what changes nothing but says who did what."""
        version = deltalake.DeltaTable(self.path).version() + 1
        body = {"operation": operation, "userName": "jane", "operationParameters": {}, **info}
        body["timestamp"] = int(time.time() * 1000 - hours_ago * HOUR_MS) if at is None else at
        (self.path / "_delta_log" / f"{version:020d}.json").write_text(json.dumps({"commitInfo": body}) + "\n")

    def plan(self, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[str], list[str]]:
        """The kinds of its steps, why nothing is due, and its notes."""
        assert run(["--project", str(self.root), "plan", "-o", "json"]) in (0, 2)
        table: dict[str, Any]
        (table,) = json.loads(capsys.readouterr().out)["tables"]
        waits = [entry["reason"]["text"] for entry in table["left_alone"] if entry["reason"]["code"] == "not_due"]
        return [step["kind"] for step in table["steps"]], waits, [note["text"] for note in table["notes"]]


def test_a_rewrite_by_others_below_the_checkpoint_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(tmp_path, DAILY)
    assert table.plan(capsys)[0] == ["compact"]
    table.commit("OPTIMIZE")
    said = "OPTIMIZE by jane ran 2h ago, at most every 1d: due in 21h"
    above = table.plan(capsys)
    table.checkpoint()
    table.append()
    for steps, waits, notes in (above, table.plan(capsys)):
        assert (steps, [_minutes(wait) for wait in waits]) == ([], [said])
        assert notes == ["maintained twice: OPTIMIZE by jane"]


def test_it_is_looked_for_as_far_back_as_every_reaches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A busy table has more commits in a day than its writers' rhythm needs."""
    table = Table(tmp_path, DAILY)
    table.commit("OPTIMIZE", 3)
    for _ in range(MAX_COMMITS):
        table.commit("WRITE", 1)
    table.checkpoint()
    table.append()
    steps, waits, _ = table.plan(capsys)
    assert (steps, waits[0].startswith("OPTIMIZE by jane ran 3h ")) == ([], True)
    assert MAX_COMMITS_BEYOND > MAX_COMMITS + 2


def test_a_vacuum_by_others_below_the_checkpoint_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = "vacuum: {retention: 7d, every: 7d, allowLargeDelete: true}\n"
    table = Table(tmp_path, policy)
    deltalake.DeltaTable(table.path).delete()
    for file in table.path.glob("_delta_log/*.json"):
        _made_older(file, 9 * 24)
    assert table.plan(capsys)[0] == ["vacuum"]
    table.commit("VACUUM START", 48)
    table.commit("VACUUM END", 48, operationParameters={"status": "FAILED"})
    table.checkpoint()
    assert table.plan(capsys)[0] == ["vacuum"]
    table.commit("VACUUM END", 48, operationParameters={"status": "COMPLETED"})
    table.checkpoint()
    steps, waits, _ = table.plan(capsys)
    assert (steps, waits[0].startswith("VACUUM END by jane ran 2d ")) == ([], True)


@pytest.mark.parametrize(
    "at",
    [time.time_ns() // 1000, int(time.time() * 1000) + 400 * 24 * HOUR_MS, 10**30],
    ids=["microseconds", "ahead", "never"],
)
def test_a_commit_is_never_later_than_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], at: int) -> None:
    """A clock that is ahead, or microseconds: `every` counts from when the file was written, and comes to an end."""
    table = Table(tmp_path, DAILY)
    table.commit("OPTIMIZE", at=at)
    log = table.path / "_delta_log"
    assert table.plan(capsys)[0] == []
    _made_older(max(log.glob("*.json")), 24, what_it_says=False)
    assert table.plan(capsys)[0] == ["compact"]


@pytest.mark.parametrize("stamp", ["", STAMP.to_json()], ids=["of the writer", "of our hook"])
def test_an_auto_compaction_counts_whoever_made_it_but_puts_off_no_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stamp: str
) -> None:
    """The policy that asks for auto compactions is not warned of them."""
    auto_said = "auto compaction by jane ran 2h"
    auto: dict[str, Any] = {"operationParameters": {"predicate": "x" * 200, "auto": "true"}, "userMetadata": stamp}
    for number, (policy, steps, waits, is_twice) in enumerate((
        (DAILY, [], [auto_said], True),
        (f"{DAILY}autoCompact: true\n", ["set_properties"], [auto_said], False),
        (DAILY.replace("when:", "zorder: {columns: [a], mode: full}, when:"), ["zorder"], [], True),
    )):  # fmt: skip
        table = Table(tmp_path / str(number), policy)
        table.commit("OPTIMIZE", **auto)
        found, said, notes = table.plan(capsys)
        assert (found, [wait[: len(auto_said)] for wait in said]) == (steps, waits)
        assert (notes == ["maintained twice: auto compaction by jane"]) is is_twice


def test_a_run_of_ours_that_did_not_end_is_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its records say whether anything is left to do."""
    table = Table(tmp_path, DAILY)
    table.commit("OPTIMIZE", userMetadata=CommitStamp("r", "lake/t/compact", 0, "d").to_json())
    assert table.plan(capsys)[0] == ["compact"]


def test_texts_of_others_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(tmp_path, DAILY)
    table.commit("OPTIMIZE", userName="j" * 100_000, userMetadata="[" * 200_000)
    steps, (wait,), _ = table.plan(capsys)
    assert steps == []
    assert len(wait) < 300


def test_a_group_says_which_tables_others_maintain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(tmp_path, {f"policies/t{number}.yml": f"table: lake/t{number}\n" for number in range(3)})
    for number in range(3):
        properties = {"delta.autoOptimize.autoCompact": "true"}
        deltalake.write_deltalake(tmp_path / f"lake/t{number}", pa.table({"a": [1]}), configuration=properties)
    for is_due in (False, True):
        assert run(["--project", str(tmp_path), "status"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        note = "maintained twice: delta.autoOptimize.autoCompact is true"
        assert f"{note}: lake/t0, lake/t1, lake/t2" in said, is_due
        for number in range(3):
            deltalake.write_deltalake(tmp_path / f"lake/t{number}", pa.table({"a": [1]}), mode="append")


def _minutes(text: str) -> str:
    """Leave out the seconds that the test itself took."""
    return re.sub(r" \d+s ago", " ago", text).replace("20h 59m", "21h")


def _made_older(commit: Path, hours: float, *, what_it_says: bool = True) -> None:
    """Give a commit, and what it says of itself, another time."""
    at = time.time() - hours * 3600
    if what_it_says:
        lines = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in lines:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = int(at * 1000)
            if "remove" in action:
                action["remove"]["deletionTimestamp"] = int(at * 1000)
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(commit, (at, at))
