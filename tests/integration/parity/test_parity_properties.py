"""Retention properties: the behaviours J of Delta's own suites, through policies and one apply.

Named and marked as in test_parity_a_compaction.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import DeltaEngine, SessionLease
from tests.support.runs.app_runs import newest_version
from tests.support.tables.delta_tables import actions_of as commit_actions
from tests.support.tables.parity_lake import Applied, Case, run_cases, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]

FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def one_file(**properties: str) -> Callable[[Path], None]:
    """A table of one file; properties are put into its log as they are, also ones that Delta would refuse."""

    def build(path: Path) -> None:
        table_of([{"id": 1}])(path)
        first = path / "_delta_log" / f"{0:020d}.json"
        actions = [json.loads(line) for line in first.read_text().splitlines()]
        for action in actions:
            if "metaData" in action:
                action["metaData"]["configuration"] |= {
                    key.replace("__", "."): value for key, value in properties.items()
                }
        first.write_text("".join(json.dumps(action) + "\n" for action in actions))

    return build


def hold(**properties: str) -> str:
    return "properties:\n" + "".join(f"  {key.replace('__', '.')}: {value}\n" for key, value in properties.items())


CASES = {
    "j1_files_45": Case(one_file(), hold(delta__deletedFileRetentionDuration="interval 45 days")),
    "j1_log_5": Case(one_file(), hold(delta__logRetentionDuration="interval 5 days")),
    "j1_both": Case(
        one_file(),
        hold(delta__DELETEDfileRetentionDuration="interval 40 days", delta__logretentionduration="interval 30 days"),
    ),
    "j1_invalid_already": Case(
        one_file(delta__logRetentionDuration="interval 1 days"), hold(delta__checkpointInterval="20")
    ),
    "j2": Case(
        table_of([{"id": 1}], [{"id": 2}]),
        "optimize: {minFileSize: 1, maxFileSize: 1GiB}\n"
        + hold(delta__deletedFileRetentionDuration="interval 1 seconds"),
    ),
}


@pytest.fixture(scope="module")
def lake(lease: SessionLease, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    return run_cases(DeltaEngine(lease), tmp_path_factory.mktemp("parity_j"), CASES)


def properties_of(lake: Applied, case: str) -> dict[str, str]:
    path = lake.path(case)
    actions = [action for version in range(newest_version(path) + 1) for action in commit_actions(path, version)]
    configuration: dict[str, str] = [action["metaData"]["configuration"] for action in actions if "metaData" in action][
        -1
    ]
    return configuration


def test_j1_the_log_is_kept_at_least_as_long_as_deleted_files(lake: Applied) -> None:
    """On purpose: Delta refuses 45 days beside a log of 30; we raise the log's retention in the same commit."""
    assert properties_of(lake, "j1_files_45") == {FILES: "interval 45 days", LOG: "interval 45 days"}
    assert [info["operation"] for info in lake.commits("j1_files_45")] == ["SET TBLPROPERTIES"]
    lake.check_nothing_is_left("j1_files_45")


@pytest.mark.parametrize("case", ["j1_log_5", "j1_both"])
def test_j1_a_log_shorter_than_deleted_files_is_refused_before_anything_runs(lake: Applied, case: str) -> None:
    problem = lake.planned(case).problem
    assert problem is not None
    assert (problem.code, "shorter than the retention of deleted files" in problem.what) == ("T417", True)
    assert lake.commits(case) == []


def test_j1_an_unrelated_property_of_a_table_that_is_invalid_already(lake: Applied) -> None:
    assert properties_of(lake, "j1_invalid_already") == {LOG: "interval 1 days", "delta.checkpointInterval": "20"}


def test_j2_time_travel_is_bound_to_the_retention_of_deleted_files(spark: SparkSession, lake: Applied) -> None:
    path = str(lake.path("j2"))
    assert properties_of(lake, "j2") == {FILES: "interval 1 seconds"}
    if not version("delta-spark").startswith("4.0."):  # which binds it to nothing
        with pytest.raises(Exception, match=r"delta\.deletedFileRetentionDuration"):
            spark.read.format("delta").option("versionAsOf", 0).load(path).collect()
    assert spark.read.format("delta").load(path).count() == 2
