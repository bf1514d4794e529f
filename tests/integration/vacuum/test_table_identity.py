"""One table by many paths, on real Delta: what protects its files holds after a move, through links and in copies."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.integration.vacuum.test_vacuum_whole import aged, command, compacted, write_policy
from tests.support.product import Journal, update_state
from tests.support.tables.builders import NOW_MS, make_facts
from tests.support.tables.delta_tables import age, files_on_disk, forget_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "policies").mkdir(parents=True)
    return tmp_path / "project"


def quarantine(project: Path, path: Path) -> None:
    """What a run leaves behind when a check of a table fails."""
    facts = make_facts(
        name="lake/t", location=f"file:{path}", table_id=str(deltalake.DeltaTable(str(path)).metadata().id), version=1
    )
    runs = project / ".maintainer" / "runs"
    journal = Journal.open(runs, "20261121T220001Z-0000", lambda: NOW_MS)
    journal.quarantine(facts, "V503: a row is missing")
    journal.finished()
    journal.close()
    update_state(runs)


def moved(project: Path) -> Path:
    target = project.parent / "elsewhere"
    project.rename(target)
    return target


def linked(project: Path) -> Path:
    link = project.parent / "link"
    link.symlink_to(project.parent)
    return link / project.name


@pytest.mark.parametrize("change", [moved, linked])
def test_a_quarantine_keeps_the_old_files_wherever_the_project_is(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], Path]
) -> None:
    path = write_policy(project, "t")
    old = compacted(spark, path)
    aged(spark, path)
    quarantine(project, path)
    project = change(project)
    code, out = command(project, capsys, "apply", "--yes")
    assert code != 0, out
    assert "V503: a row is missing" in out
    assert old <= files_on_disk(project / "lake" / "t")


def test_a_copy_is_kept_for_the_quarantine_of_its_original_and_is_told_apart(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original, path = project / "lake" / "original", write_policy(project, "t")
    old = compacted(spark, original)
    shutil.copytree(original, path)
    aged(spark, path)
    quarantine(project, original)
    code, out = command(project, capsys, "apply", "--yes")
    assert code != 0, out
    assert "one is a copy" in " ".join(out.split())
    assert old <= files_on_disk(path)
    # A person who has looked at the copy frees the copy and not the original.
    assert command(project, capsys, "verify", "lake/t", "--accept", "looked at it")[0] == 0
    write_policy(project, "original")
    aged(spark, original)
    code, out = command(project, capsys, "apply", "--yes")
    assert (old & files_on_disk(path), old & files_on_disk(original)) == (set(), old), out


@pytest.mark.parametrize("spelling", ["link", "link_above", "file_uri", "name"])
@pytest.mark.sampled(1)
def test_nothing_goes_from_a_table_that_a_policy_not_selected_keeps(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str], spelling: str
) -> None:
    path = write_policy(project, "t")
    old = compacted(spark, path)
    age(path, 10)
    forget_logs(spark)
    link, above = project.parent / "link", project.parent / "above"
    link.symlink_to(path)
    above.symlink_to(path.parent)
    if spelling == "name":
        spark.sql(f"CREATE TABLE default.kept_by_another USING delta LOCATION '{path}'")
    other = {
        "link": str(link), "link_above": f"{above}/t", "file_uri": f"file://{above}/./t/",
        "name": "default.kept_by_another",
    }[spelling]  # fmt: skip
    text = f"version: 1\ntable: {other}\nvacuum: {{retention: 90d}}\n"
    (project / "policies" / "other.yaml").write_text(text, encoding="utf-8")
    try:
        code, out = command(project, capsys, "apply", "--yes", "-s", "lake/t")
        assert code != 0, out
        assert "T409" in out
        assert old <= files_on_disk(path)
    finally:
        spark.sql("DROP TABLE IF EXISTS default.kept_by_another")
