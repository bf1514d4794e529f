"""What a plan keeps of each table in memory, without a clock: what is held for two sizes of a fleet is compared."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from maintainer.app import operations
from maintainer.app.project_folders import Project
from maintainer.app.selection.run_spec import RunSpec
from tests.support.policies.projects import write_project
from tests.support.tables.aged_tables import AgedTable

FEW, MANY, FILES = 20, 100, 4

HELD_BYTES = 6_500
"""At most, of each table: its policy file, its policy, and the plan of a step that compacts its files."""


def held_after_planning(root: Path, num_tables: int) -> int:
    """The bytes that the project and its plan take."""
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
    return after - before


def test_what_is_kept_of_a_table_has_a_bound(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        # The first one loads what is loaded once.
        _, few, many = (held_after_planning(tmp_path / str(turn), size) for turn, size in enumerate((FEW, FEW, MANY)))
    finally:
        tracemalloc.stop()
    growth = (many - few) / (MANY - FEW)
    assert growth <= HELD_BYTES, growth
