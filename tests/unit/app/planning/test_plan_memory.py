"""What a plan keeps of each table in memory, without a clock: what is held for two sizes of a fleet is compared."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from maintainer.app import operations
from maintainer.app.planning.plan_output import read_saved_plan, save_plan
from maintainer.app.project_folders import Project
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.main import run
from maintainer.delta.storage.file_store import FileSource
from tests.support.policies.projects import write_project
from tests.support.tables.aged_tables import AgedTable

FEW, MANY, FILES = 20, 100, 4

HELD_BYTES, READ_BYTES = 5_000, 4_500
"""At most, of each table: its policy file, its policy, and the plan of a step that compacts its files; and at the peak
while the saved plan, of 9 kB a table, is read."""


def bytes_taken(root: Path, num_tables: int) -> tuple[int, int]:
    """The bytes that the project and its plan take, and those of reading the saved plan at the peak."""
    texts = {"maintainer.yml": ""}
    for number in range(num_tables):
        table = AgedTable(root / f"lake/t{number:03}", properties={"delta.enableChangeDataFeed": "false"})
        for file in range(FILES):
            table.append(30, f"part-{file:05}-{table.table_id}-c000.snappy.parquet")
        texts[f"policies/t{number:03}.yml"] = f"table: lake/t{number:03}\nvacuum: {{retention: 7d}}\n"
    write_project(root, texts)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    project = Project.load(root)
    planned = operations.plan(project, RunSpec())
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    assert [len(table.steps) for table in planned.plan.user_tables] == [1] * num_tables
    save_plan(planned.plan, root / "plan.json")
    tracemalloc.reset_peak()
    read_before, _ = tracemalloc.get_traced_memory()
    assert read_saved_plan(root / "plan.json") == planned.plan
    return after - before, tracemalloc.get_traced_memory()[1] - read_before


def test_only_where_nothing_follows_a_plan_are_logs_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[str] = []

    def forget(files: FileSource, folder: str) -> int:
        forgotten.append(folder)
        return 0

    monkeypatch.setattr(FileSource, "forget", forget)
    for name in "abc":
        AgedTable(tmp_path / f"lake/{name}").append(30, "part-0.parquet")
    policies = {f"policies/{name}.yml": f"table: lake/{name}\n" for name in "abc"}
    write_project(tmp_path, {"maintainer.yml": "", **policies})
    operations.plan(Project.load(tmp_path), RunSpec(plan_jobs=1))
    assert forgotten == [], "an apply may come next"
    assert run(["--project", str(tmp_path), "plan", "-j", "1"]) == 0
    assert [Path(folder).name for folder in forgotten] == ["a", "b"]


@pytest.mark.slow
def test_what_is_kept_of_a_table_has_a_bound(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        # The first one loads what is loaded once.
        _, few, many = (bytes_taken(tmp_path / str(turn), size) for turn, size in enumerate((FEW, FEW, MANY)))
    finally:
        tracemalloc.stop()
    held, read = ((more - less) / (MANY - FEW) for less, more in zip(few, many, strict=True))
    assert held <= HELD_BYTES, held
    assert read <= READ_BYTES, read
