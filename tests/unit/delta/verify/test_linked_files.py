"""A live file may be a symlink: its target counts, by its own size."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.verify.version_reader import DeltaVersionReader
from tests.support.tables.aged_tables import AgedTable
from tests.support.tables.local_vacuum import LocalReader, LocalTable


@pytest.fixture
def table(tmp_path: Path) -> AgedTable:
    """Two live files, one of them moved away with a link in its place."""
    made = AgedTable(tmp_path / "t")
    made.append(60, "here.parquet", "linked.parquet")
    (made.path / "linked.parquet").rename(tmp_path / "elsewhere.parquet")
    (made.path / "linked.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    return made


def looked_at(table: AgedTable) -> tuple[tuple[str, ...], set[str]]:
    """Live files that are missing or not whole, and those that are there."""
    jvm = SimpleNamespace(set_settings=lambda settings: None)
    live_files = SimpleNamespace(storage=lambda location: LocalTable(table.path))
    facts = LocalReader().facts(table.ref)
    versions = DeltaVersionReader(cast(Any, jvm), cast(Any, live_files))
    there = versions.files_there(facts, [file.path for file in facts.files])
    looked_for = versions.missing_files(facts, facts.version)
    assert looked_for.num_files == 2
    return looked_for.paths, set(there)


def test_a_link_to_a_whole_file_is_not_missing(table: AgedTable) -> None:
    assert looked_at(table) == ((), {"here.parquet", "linked.parquet"})


@pytest.mark.parametrize("target", ["cut off", "gone", "itself", "below a file"])
def test_a_link_to_none_is(table: AgedTable, tmp_path: Path, target: str) -> None:
    link, elsewhere = table.path / "linked.parquet", tmp_path / "elsewhere.parquet"
    if target == "cut off":
        elsewhere.write_bytes(elsewhere.read_bytes()[:-1])
    elif target == "gone":
        elsewhere.unlink()
    else:
        link.unlink()
        link.symlink_to(link if target == "itself" else elsewhere / "x")
    there = {"here.parquet", *(["linked.parquet"] if target == "cut off" else [])}
    assert looked_at(table) == (("linked.parquet",), there)
