"""A table's commits as its log tells them: who did what, under whichever names the writer gives its figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from maintainer.delta.log.commit_history import MAX_DETAIL, read_commits
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.table_log import TableLog, local_folder, log_on_disk
from maintainer.model.table.commit_records import CommitStamp, CommitsWanted

STAMP = CommitStamp("20261121T220000Z-7f3a", "lake/t/compact#2", 0, "sha256:p")


def write_log(root: Path, *commits: list[dict[str, Any]]) -> TableLog:
    log = root / "_delta_log"
    log.mkdir(parents=True)
    for version, actions in enumerate(commits):
        (log / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return TableLog(LocalFiles(), f"file:{root}")


def info(operation: str, **more: Any) -> dict[str, Any]:
    return {"commitInfo": {"timestamp": 1000, "operation": operation, **more}}


def test_commits_of_another_writer_are_read_with_their_own_figures(tmp_path: Path) -> None:
    for number in range(3):
        deltalake.write_deltalake(tmp_path, pa.table({"a": [number] * 10}), mode="append")
    table = deltalake.DeltaTable(tmp_path)
    table.optimize.compact()
    (path,) = table.file_uris()
    size = os.path.getsize(path)
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)

    log = log_on_disk(f"file://{tmp_path}")
    assert log is not None
    history = read_commits(log, str(tmp_path), CommitsWanted(limit=10))
    assert history.oldest_version == 0
    assert [(commit.version, commit.operation) for commit in history.commits] == [
        (5, "VACUUM END"),
        (4, "VACUUM START"),
        (3, "OPTIMIZE"),
        (2, "WRITE"),
        (1, "WRITE"),
        (0, "WRITE"),
    ]
    end, start, optimize, write = history.commits[:4]
    assert (end.num_files_removed, start.num_files_removed, start.bytes_removed > 0) == (3, 3, True)
    assert (optimize.num_files_removed, optimize.num_files_added, optimize.bytes_added) == (3, 1, size)
    assert (write.num_files_added, write.num_files_removed, write.stamp) == (1, 0, None)
    assert write.by is not None
    assert write.by.startswith("delta-rs")


def test_figures_of_ours_can_be_counted_from_the_actions(tmp_path: Path) -> None:
    actions = [
        info("OPTIMIZE", userMetadata=STAMP.to_json(), operationMetrics={"numAddedFiles": "7"}),
        {"remove": {"path": "a", "size": 5, "dataChange": False}},
        {"remove": {"path": "b", "size": 6, "dataChange": False}},
        {"add": {"path": "c", "size": 10, "dataChange": False}},
    ]
    log = write_log(tmp_path, actions)
    (commit,) = read_commits(log, "x", CommitsWanted(limit=1)).commits
    (counted,) = read_commits(log, "x", CommitsWanted(limit=1, counted=True)).commits
    assert (commit.num_files_added, commit.num_files_removed) == (7, 0)
    assert (counted.num_files_removed, counted.num_files_added) == (2, 1)
    assert (counted.bytes_removed, counted.bytes_added) == (11, 10)
    assert counted.stamp == STAMP
    assert counted.stamp.kind == "compact"


def test_merge_of_delta_names_its_figures_after_the_target(tmp_path: Path) -> None:
    metrics = {
        "numTargetFilesAdded": "2",
        "numTargetFilesRemoved": "1",
        "numTargetBytesAdded": "20",
        "executionTimeMs": "1500",
    }
    log = write_log(tmp_path, [info("MERGE", operationMetrics=metrics, userName="ana", engineInfo="Spark/4")])
    (merge,) = read_commits(log, "x", CommitsWanted(limit=1)).commits
    assert (merge.num_files_added, merge.num_files_removed, merge.bytes_added) == (2, 1, 20)
    assert (merge.duration_seconds, merge.by) == (1.5, "ana (Spark/4)")


def test_commits_are_bounded_by_number_and_by_time(tmp_path: Path) -> None:
    log = write_log(tmp_path, *([info("WRITE", inCommitTimestamp=1000 + 10 * number)] for number in range(5)))
    assert [commit.version for commit in read_commits(log, "x", CommitsWanted(limit=2)).commits] == [4, 3]
    since = read_commits(log, "x", CommitsWanted(limit=9, since_ms=1030))
    assert [commit.at_ms for commit in since.commits] == [1040, 1030]


def test_a_commit_that_says_nothing_has_the_time_of_its_file(tmp_path: Path) -> None:
    log = write_log(tmp_path, [{"add": {"path": "c"}}], [{"commitInfo": {"operationMetrics": {"numFiles": "many"}}}])
    os.utime(tmp_path / "_delta_log" / f"{0:020d}.json", (7, 7))
    second, first = read_commits(log, "x", CommitsWanted(limit=9)).commits
    assert (first.at_ms, first.operation, first.by) == (7000, "", None)
    assert second.num_files_added == 0


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"mode": "Append", "predicate": "[]"}, ""),
        ({"mode": "Overwrite"}, "mode Overwrite"),
        ({"zOrderBy": '["a"]', "auto": "false", "predicate": "[]"}, 'zOrderBy ["a"]'),
        ({"zOrderBy": "[]", "clusterBy": "[]", "auto": False, "predicate": "[]"}, ""),
        ({"zOrderBy": "[]", "clusterBy": "[]", "auto": True, "predicate": "[]"}, "auto true"),
        ({"predicate": '["(d#28357L < 1995)"]'}, 'predicate ["(d < 1995)"]'),
        ({"predicate": "x" * 300}, "predicate " + "x" * (MAX_DETAIL - 11) + "…"),
        ("not a map", ""),
    ],
)
def test_parameters_worth_a_word(tmp_path: Path, parameters: object, expected: str) -> None:
    log = write_log(tmp_path, [info("WRITE", operationParameters=parameters)])
    assert read_commits(log, "x", CommitsWanted(limit=1)).commits[0].detail == expected


def test_only_a_table_on_this_machine_has_a_local_log(tmp_path: Path) -> None:
    write_log(tmp_path / "a b", [info("WRITE")])
    assert log_on_disk(f"file:{tmp_path}/a%20b") is not None
    assert log_on_disk(str(tmp_path / "none")) is None
    assert log_on_disk("s3a://bucket/t") is None
    assert local_folder("abfss://c@a.dfs.core.windows.net/t") is None


def test_a_link_in_the_log_is_a_commit_as_it_is_to_delta(tmp_path: Path) -> None:
    log = write_log(tmp_path / "t", [info("WRITE")])
    (tmp_path / "elsewhere.json").write_text(json.dumps(info("MERGE")))
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").symlink_to(tmp_path / "elsewhere.json")
    assert [commit.operation for commit in read_commits(log, "t", CommitsWanted()).commits] == ["MERGE", "WRITE"]


@pytest.mark.parametrize(
    ("operation", "parameters", "metrics", "takes"),
    [
        ("WRITE", {"mode": "Append"}, {"numFiles": "3"}, False),
        ("WRITE", {"mode": "Overwrite"}, {"numFiles": "3"}, True),
        ("STREAMING UPDATE", {"outputMode": "Append"}, {"numAddedFiles": "3", "numRemovedFiles": "0"}, False),
        ("STREAMING UPDATE", {"outputMode": "Complete"}, {}, True),
        ("MERGE", {}, {"numTargetFilesRemoved": "0", "numTargetFilesAdded": "2"}, False),
        ("MERGE", {}, {"numTargetFilesRemoved": "0", "numTargetDeletionVectorsAdded": "1"}, True),
        ("MERGE", {}, {"num_target_files_removed": 2}, True),
        ("UPDATE", {}, {"numRemovedFiles": "0", "numDeletionVectorsUpdated": "1"}, True),
        ("DELETE", {}, {}, True),  # it does not say
        ("DELETE", {}, {"num_removed_files": 0}, False),
        ("OPTIMIZE", {}, {"numRemovedFiles": "4"}, True),
        ("OPTIMIZE", {}, {"numRemovedFiles": "0"}, False),
        ("VACUUM END", {}, {"numDeletedFiles": "4"}, False),
        ("RESTORE", {}, {}, True),
        ("CREATE OR REPLACE TABLE AS SELECT", {}, {}, True),
        ("SET TBLPROPERTIES", {}, {}, False),
        ("", {}, {}, False),
    ],
)
def test_which_commits_a_rewrite_cannot_survive(
    tmp_path: Path, operation: str, parameters: dict[str, str], metrics: dict[str, Any], takes: bool
) -> None:
    log = write_log(tmp_path, [info(operation, operationParameters=parameters, operationMetrics=metrics)])
    assert read_commits(log, "x", CommitsWanted(limit=1)).commits[0].takes_files is takes


def test_what_a_second_writer_really_logs_is_understood(tmp_path: Path) -> None:
    rows = pa.table({"a": list(range(10))})
    deltalake.write_deltalake(tmp_path, rows, mode="append")
    table = deltalake.DeltaTable(tmp_path)
    table.delete("a = 3")
    table.update({"a": "99"}, predicate="a = 4")
    new = pa.table({"a": [5, 100]})
    merge = table.merge(new, "t.a = s.a", source_alias="s", target_alias="t")
    merge.when_not_matched_insert_all().when_matched_delete().execute()
    deltalake.write_deltalake(tmp_path, rows, mode="overwrite")
    deltalake.write_deltalake(tmp_path, rows, mode="append")
    log = log_on_disk(f"file://{tmp_path}")
    assert log is not None
    commits = read_commits(log, str(tmp_path), CommitsWanted(limit=10)).commits
    assert [(past_commit.operation, past_commit.takes_files) for past_commit in reversed(commits)] == [
        ("WRITE", False),
        ("DELETE", True),
        ("UPDATE", True),
        ("MERGE", True),
        ("WRITE", True),
        ("WRITE", False),
    ]


def test_files_of_writers_whose_bounds_cannot_be_trusted_are_named_where_that_is_asked_for(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1.5]}))
    (path,) = deltalake.DeltaTable(tmp_path).file_uris()
    old, new, utc = "1850-01-01T01:01:01.000+00:53", "1972-01-01T00:00:00.000+00:53", "1850-01-01T00:07:33.000Z"
    for version, moment in enumerate((new, utc, old, "1971-12-31T00:00:00.000-00:44"), start=1):
        stats = json.dumps({"numRecords": 1, "minValues": {"ts": moment}, "maxValues": {"ts": moment}})
        add = {"path": f"spark-{version}", "size": 1, "stats": stats}
        actions = [info("WRITE", engineInfo="Apache-Spark/3.5.0 Delta-Lake/3.2.1"), {"add": add}]
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (tmp_path / "_delta_log" / f"{version:020d}.json").write_text(text)
    log = log_on_disk(f"file://{tmp_path}")
    assert log is not None
    types = frozenset({"double", "timestamp", "long"})
    spark, rust = read_commits(log, "t", CommitsWanted(since_ms=0, doubtful_types=types)).doubtful_files
    assert spark == ("Apache-Spark/3.5.0 Delta-Lake/3.2.1", frozenset({"spark-3", "spark-4"}))
    assert (rust[0].startswith("delta-rs"), rust[1]) == (True, frozenset({Path(path).name}))
    assert read_commits(log, "t", CommitsWanted()).doubtful_files == ()
    assert read_commits(log, "t", CommitsWanted(doubtful_types=frozenset({"long"}))).doubtful_files == ()
