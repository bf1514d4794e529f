"""What a vacuum keeps in memory of each file that it takes, without a clock: peaks of two sizes are compared."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from maintainer.delta.storage.file_store import local_path
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.plan_document import plan_bytes
from maintainer.model.plan.steps import VacuumStep
from tests.support.tables import local_vacuum
from tests.support.tables.aged_tables import AgedTable
from tests.support.tables.local_vacuum import Vacuuming
from tests.support.tables.vacuum_cases import policies

SMALL, LARGE, COMMITS, FOLDERS = 400, 2_000, 10, 5
NAME = "p={}/part-{:05}-3f2c1a9e-7d64-4b0e-9f1a-0123456789ab.c000.snappy.parquet"
"""As long as Delta's own, so a path is a text of some 125 bytes."""

PLANNED_BYTES, WRITTEN_BYTES, DELETED_BYTES = 400, 10, 750
"""At most, of each file, at the peak: while it is planned, while the plan is written, while it is deleted."""

_Result = TypeVar("_Result")


def expired_table(path: Path, num_files: int) -> AgedTable:
    """A table with one live file, and many that were added and removed long ago and still lie there."""
    table = AgedTable(path, partition_columns=("p",))
    table.append(60, "p=0/live.parquet")
    for folder in range(FOLDERS):
        (path / f"p={folder}").mkdir(exist_ok=True)
    for first in range(0, num_files, num_files // COMMITS):
        names = [NAME.format(number % FOLDERS, number) for number in range(first, first + num_files // COMMITS)]
        for name in names:
            (path / name).write_bytes(b"PAR1")
        values = {"partitionValues": {"p": "0"}, "size": 4, "dataChange": True}
        table.commit(30, *({"add": {"path": name, "modificationTime": 1, **values, "stats": "{}"}} for name in names))
        table.commit(20, *({"remove": {"path": name, "deletionTimestamp": 1, **values}} for name in names))
    return table


def lean_reading(storage: TableStorage, version: int, removed_since_ms: int) -> Iterator[dict[str, Any]]:
    """A second reading that keeps the live files alone."""
    live: dict[str, dict[str, Any]] = {}
    for commit in sorted(Path(local_path(f"{storage.root_uri}/_delta_log")).glob("*.json")):
        with commit.open() as lines:
            for action in map(json.loads, lines):
                if "metaData" in action:
                    yield action
                elif "remove" in action:
                    live.pop(action["remove"]["path"], None)
                elif "add" in action:
                    live[action["add"]["path"]] = action
    yield from live.values()


def peak_of(work: Callable[[], _Result]) -> tuple[int, _Result]:
    """The bytes that were in use at the peak beyond those before, and the result."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    result = work()
    return tracemalloc.get_traced_memory()[1] - before, result


def peaks(folder: Path, num_files: int, trash_seconds: int) -> tuple[int, int, int]:
    """The peaks of planning, of writing the plan and of the deletion, which begins with what the plan holds."""
    table, work = expired_table(folder / "t", num_files), Vacuuming(policies(trash_seconds=trash_seconds))

    def written(plan: TablePlan) -> None:
        with (folder / "plan.json").open("wb") as file:
            file.writelines(plan_bytes(Plan(1, 2, (plan,))))

    tracemalloc.start()
    try:
        while_planned, plan = peak_of(lambda: work.plan(table))
        (step,) = (step for step in plan.steps if isinstance(step, VacuumStep))
        assert len(step.files) == num_files
        while_written, _ = peak_of(lambda: written(plan))
        held, _ = tracemalloc.get_traced_memory()
        while_deleted, receipt = peak_of(lambda: work.delete(table, step))
        assert (receipt.num_files_deleted, receipt.remaining) == (num_files, ())
    finally:
        tracemalloc.stop()
    assert [path.name for path in table.path.rglob("*.parquet")] == ["live.parquet"]
    return while_planned, while_written, held + while_deleted


@pytest.mark.slow
@pytest.mark.parametrize(
    "trash_seconds", [0, pytest.param(7 * 86_400, marks=pytest.mark.nightly)], ids=["deleted", "moved"]
)
def test_what_is_kept_of_a_file_has_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trash_seconds: int
) -> None:
    for constant in ("untracked_files.PART", "tombstones.NAMES_AT_ONCE", "file_deletion.CHUNK"):
        monkeypatch.setattr(f"maintainer.delta.vacuum.{constant}", 100)
    monkeypatch.setattr("maintainer.model.plan.plan_document.FILES_AT_ONCE", 100)
    monkeypatch.setattr(local_vacuum, "plain_reading", lean_reading)
    sizes = (
        (tmp_path / str(number), size) for number, size in enumerate((SMALL, SMALL, LARGE))
    )  # the first one loads what is loaded once
    _, small, large = (peaks(folder, size, trash_seconds) for folder, size in sizes)
    growth = [(more - less) / (LARGE - SMALL) for less, more in zip(small, large, strict=True)]
    bounds = (PLANNED_BYTES, WRITTEN_BYTES, DELETED_BYTES)
    assert all(each <= bound for each, bound in zip(growth, bounds, strict=True)), growth
