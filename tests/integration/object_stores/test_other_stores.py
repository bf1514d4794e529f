"""Whole commands on tables on real servers of Azure's and Google's protocols and HDFS; another engine reads rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.stores.cloud_projects import (
    Cloud,
    CloudProject,
    azure_cloud,
    file_names,
    google_cloud,
    hdfs_cloud,
    rows_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(900)]

RETENTION_SECONDS = 1
VACUUM = f"retention: {RETENTION_SECONDS}s, allowShortRetention: true, allowLargeDelete: true"


HDFS = pytest.param(hdfs_cloud, id="hdfs")


@pytest.fixture(
    scope="module",
    params=[pytest.param(azure_cloud, id="azure"), pytest.param(google_cloud, id="google"), HDFS],
)
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    start = request.param
    with start(tmp_path_factory.mktemp("host") / "host.log") as cloud:
        yield cloud


@pytest.fixture
def orders(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> CloudProject:
    return CloudProject(cloud, tmp_path_factory.mktemp("orders"), "orders", "optimize: {}")


def test_each_command_says_the_truth_of_a_table_there(orders: CloudProject) -> None:
    written = orders.create(6)
    rows = rows_of(written)

    plan = orders.run("plan", "--detailed-exitcode", "-o", "json")
    assert plan.returncode == 3, plan.err
    assert [step["kind"] for table in plan.document["tables"] for step in table["steps"]] == ["compact"]
    assert orders.fetched().version() == 5

    first = orders.run("apply", "--yes", "-o", "json")
    assert (first.returncode, first.document["problems"]) == (0, []), first.out
    after = orders.fetched()
    assert (after.version(), len(after.file_uris()), rows_of(after)) == (6, 1, rows)

    again = orders.run("apply", "--yes", "-o", "json")
    assert (again.returncode, again.document["counts"]["up_to_date"]) == (0, 1), again.err
    assert orders.fetched().version() == 6

    verified = orders.run("verify", orders.address, "-o", "json")
    assert [table["result"] for table in verified.document["tables"]] == ["proven"], verified.err
    verification, compaction, *writes = orders.run("history", orders.address, "-o", "json").document["history"]
    assert verification["step"] == "verify"
    assert (compaction["step"], compaction["run_id"]) == ("compact", first.document["run_id"])
    assert (compaction["num_files_removed"], compaction["num_files_added"]) == (6, 1)
    assert [row["run_id"] for row in writes] == [None] * 6
    (from_ledger,) = orders.run("history", "--ledger", "-o", "json").document["history"]
    assert (from_ledger["step"], from_ledger["table"]) == ("compact", orders.address)

    refused = orders.run("undelete", orders.address, "--run", first.document["run_id"], "--yes")
    assert (refused.returncode, "error[T430]" in refused.err) == (1, True), refused.err


def test_doctor_finds_nothing_wrong(orders: CloudProject) -> None:
    done = orders.run("doctor")
    assert done.returncode == 0, done.out + done.err


def rewritten(project: CloudProject) -> tuple[Counter[int], set[str], str]:
    """Make a table of six files that another engine replaced by one; returns its rows, those files, and the one."""
    written = project.create(6, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    rows, old = rows_of(written), file_names(written)
    written.optimize.compact()
    (new,) = file_names(written)
    project.upload()
    assert project.data_files() == old | {new}
    time.sleep(RETENTION_SECONDS + 1)
    return rows, old, new


def test_a_vacuum_deletes_what_the_log_removed_and_nothing_else(
    cloud: Cloud, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = CloudProject(cloud, tmp_path_factory.mktemp("old"), "old", f"vacuum: {{{VACUUM}}}")
    rows, _, new = rewritten(project)
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert project.data_files() == {new}
    assert rows_of(project.fetched()) == rows


@pytest.mark.parametrize("cloud", [HDFS], indirect=True)
def test_what_a_vacuum_moved_into_the_trash_comes_back(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> None:
    project = CloudProject(cloud, tmp_path_factory.mktemp("moved"), "moved", f"vacuum: {{{VACUUM}, trash: 1d}}")
    rows, old, new = rewritten(project)
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, project.data_files()) == (0, {new}), done.err
    back = project.run("undelete", project.address, "--run", done.document["run_id"], "--yes")
    assert (back.returncode, project.data_files()) == (0, old | {new}), back.err
    assert rows_of(project.fetched()) == rows
