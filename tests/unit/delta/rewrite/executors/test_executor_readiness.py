"""Whether bins go to executors, and how much room there is for what their tasks fetch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.rewrite import bin_writer
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.executors import executor_bins, executor_tasks
from maintainer.delta.rewrite.executors.executor_bins import Executors
from maintainer.delta.rewrite.executors.executor_tasks import BinAnswer, BinTask
from maintainer.delta.storage.fetched_files import SCRATCH_ROOM
from maintainer.errors import CommitNotLanded
from tests.support.writers.tasks_here import Cluster, Rewrite, Tasks, never


@pytest.fixture
def rewrite(tmp_path: Path) -> Rewrite:
    return Rewrite(tmp_path / "t")


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({"spark.executor.cores": "8", "spark.task.cpus": "2"}, 4),
        ({"spark.executor.cores": "2", "spark.task.cpus": "2"}, 1),
        ({"spark.master": "k8s://https://host"}, 1),
        ({"spark.master": "yarn"}, 1),
        ({"spark.task.cpus": "2"}, os.cpu_count()),
    ],
)
def test_tasks_beside_each_other_share_the_room_for_copies(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], shares: int
) -> None:
    rooms: list[tuple[int | None, int]] = []

    def answer(task: BinTask, work: Any, here: Any, attempt: int) -> BinAnswer:
        rooms.append((SCRATCH_ROOM.most_bytes, SCRATCH_ROOM.shares))
        return BinAnswer(task.task_id, attempt, unfit="not today")

    monkeypatch.setattr(executor_tasks, "_answer", answer)
    monkeypatch.setattr(bin_writer, "write_by_spark", lambda job, number, bin_, sources: [])
    monkeypatch.setattr(SCRATCH_ROOM, "most_bytes", 80)
    monkeypatch.setattr(SCRATCH_ROOM, "shares", 1)
    with rewrite.job(Tasks(), None, **settings) as job:
        write_bins(job)
    assert rooms == [(80, shares)] * 2


def test_where_executors_lack_the_package_it_is_said_once_and_this_process_writes(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_tasks, "version_here", lambda: "maintainer 0.0.1")
    with rewrite.job(Tasks(never)) as job:
        write_bins(job)
        assert [choice.reason for choice in job.lanes.values()] == ["small", "small"]
    assert rewrite.lacks == ["bins are written in this process, and none on executors: maintainer 0.0.1"]


def test_a_look_that_ends_with_its_table_says_nothing_of_the_others(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job is cancelled with those of the table that looks first."""
    with rewrite.job(Tasks()) as job:
        assert job.spread is not None

        def cancelled(context: Any) -> str:
            job.stop.set()
            return "no task in Python runs there: cancelled"

        with monkeypatch.context() as patched:
            patched.setattr(executor_bins, "_lack", cancelled)
            with pytest.raises(CommitNotLanded):
                write_bins(job)
        with job.spread.executors._looking, pytest.raises(CommitNotLanded):
            job.spread.are_ready(job)  # while another one looks
        monkeypatch.setattr(executor_bins, "POLL_SECONDS", 0.01)
        with pytest.raises(CommitNotLanded):
            job.spread.are_ready(job)  # nobody would cancel this look
        job.stop.clear()
        assert job.spread.are_ready(job)
    assert rewrite.lacks == []


@pytest.mark.parametrize(
    ("master", "spread", "ready"),
    [
        ("local[*]", None, False),
        ("local-cluster[2,1,1024]", None, True),
        ("k8s://https://host", None, True),
        ("spark://host:7077", False, False),
        ("local[2]", True, True),
    ],
)
def test_who_writes_follows_from_the_master_unless_it_is_said(master: str, spread: bool | None, ready: bool) -> None:
    executors = Executors(spread, never)
    assert executors.are_ready(Cluster(Tasks(), **{"spark.master": master}), lambda: None) is ready
