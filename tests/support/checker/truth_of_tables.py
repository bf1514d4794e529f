"""Rules about one table: what its log says against the files on disk, and our commits against themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.support.checker.truth_log import LogCommit, LogTable, local_file, removes_a_request, vector_file
from tests.support.checker.truth_records import REWRITES, Evidence

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_METRICS = (("numRemovedFiles", "remove", None), ("numAddedFiles", "add", None),
            ("numRemovedBytes", "remove", "size"), ("numAddedBytes", "add", "size"))  # fmt: skip


def ours(evidence: Evidence) -> list[LogTable]:
    """Tables that a run worked on: with a commit of ours, or named by an intent."""
    touched = {
        table.root
        for run in evidence.runs
        for event in run.of_type("intent")
        if (table := evidence.table_at(event.get("location"), event.get("table_id"))) is not None
    }
    return [table for table in evidence.tables if table.root in touched or any(True for _ in table.stamped())]


def live_files_are_there(evidence: Evidence) -> Iterator[str]:
    """Every live file lies on disk with the size that the log says, and so does its deletion vector."""
    for table in ours(evidence):
        for add in table.live.values():
            path = local_file(table.root, add["path"])
            size = _size(path)
            where = f"{table.root}@{table.version}"
            if size is None:
                yield f"{where}: the log says that {path} is live, it is not on disk"
            elif size != add["size"]:
                yield f"{where}: the log says {path} has {add['size']} bytes, on disk it has {size}"
            vector = add.get("deletionVector")
            file = vector_file(table.root, vector) if vector else None
            if file is not None and _size(file) is None:
                yield f"{where}: {path} needs the deletion vector {file}, which is not on disk"


def logs_can_be_read(evidence: Evidence) -> Iterator[str]:
    """A table that the newest run calls done or up to date has a log without holes."""
    for folder, error in evidence.unreadable.items():
        for run in evidence.runs[-1:]:
            for table in run.planned_tables:
                status = next((result["status"] for result in run.tables if result["ref"] == table["ref"]), None)
                path = table["ref"].get("path")
                if path and Path(os.path.realpath(path)) == folder and status in ("done", "up_to_date"):
                    yield f"run {run.run_id} calls {path} {status}, but its log cannot be read: {error}"


def rewrites_change_no_data(evidence: Evidence) -> Iterator[str]:
    """A rewrite of ours has dataChange=false in each action, keeps the number of rows, and changes nothing else."""
    for table, commit in _stamped_rewrites(evidence):
        where = f"{table.root}@{commit.version}"
        for name in ("add", "remove"):
            for action in commit.named(name):
                if action.get("dataChange") is not False:
                    yield (
                        f"{where}: a rewrite of ours, but {name} {action['path']} has dataChange "
                        f"{action.get('dataChange')}"
                    )
        for name in ("cdc", "protocol"):
            if commit.named(name):
                yield f"{where}: a rewrite of ours, but it has an action {name}"
        read, written = _rows(table, commit, "remove"), _rows(table, commit, "add")
        if read is not None and written is not None and read != written:
            yield f"{where}: a rewrite of ours removed files with {read} rows and added files with {written}"


def metrics_agree_with_actions(evidence: Evidence) -> Iterator[str]:
    """What a rewrite of ours says in its operationMetrics is what its actions say."""
    for table, commit in _stamped_rewrites(evidence):
        if removes_a_request(commit):
            continue
        if commit.operation not in ("OPTIMIZE", "REORG"):
            yield f"{table.root}@{commit.version}: a rewrite of ours calls itself {commit.operation}"
        for metric, name, field in _METRICS:
            actions = commit.named(name)
            if metric not in commit.metrics or (field and any(action.get(field) is None for action in actions)):
                continue
            counted = sum(int(action[field]) for action in actions) if field else len(actions)
            if int(commit.metrics[metric]) != counted:
                yield (
                    f"{table.root}@{commit.version}: {metric} is {commit.metrics[metric]}, the actions "
                    f"come to {counted}"
                )


def other_commits_touch_no_file(evidence: Evidence) -> Iterator[str]:
    """A commit of ours that is no rewrite (properties, VACUUM START and END) adds and removes nothing."""
    for table in evidence.tables:
        for commit, stamp in table.stamped():
            if stamp.kind in ("set_properties", "vacuum") and (commit.named("add") or commit.named("remove")):
                yield f"{table.root}@{commit.version}: our step {stamp.kind} adds or removes files"


def partition_folders_agree(evidence: Evidence) -> Iterator[str]:
    """Where a file that we wrote lies in a folder `column=value`, the log says the same value."""
    for table, commit in _stamped_rewrites(evidence):
        for add in commit.named("add"):
            folders = dict(part.split("=", 1) for part in unquote(add["path"]).split("/")[:-1] if "=" in part)
            for column, value in (add.get("partitionValues") or {}).items():
                value_in_path = folders.get(column)
                # The folder of a time is written in other words than the log's value.
                if value_in_path is None or ":" in str(value) or ":" in unquote(value_in_path):
                    continue
                if unquote(value_in_path) != (_NULL_FOLDER if value in (None, "") else value):
                    lies_in = f"{add['path']} lies in {column}={value_in_path}"
                    yield f"{table.root}@{commit.version}: {lies_in}, the log says {value!r}"


def stamps_are_single(evidence: Evidence) -> Iterator[str]:
    """A stamp marks one commit; that of a vacuum its START and its END."""
    for table in evidence.tables:
        seen: dict[tuple[object, str], int] = {}
        for commit, stamp in table.stamped():
            key = (stamp, commit.operation if stamp.kind == "vacuum" else "")
            if key in seen:
                yield (
                    f"{table.root}: versions {seen[key]} and {commit.version} carry the same stamp, "
                    f"run {stamp.run_id} step {stamp.step_id} batch {stamp.batch}"
                )
            seen[key] = commit.version


def _stamped_rewrites(evidence: Evidence) -> Iterator[tuple[LogTable, LogCommit]]:
    for table in evidence.tables:
        for commit, stamp in table.stamped():
            if stamp.kind in (*REWRITES, "auto_compact"):
                yield table, commit


def _rows(table: LogTable, commit: LogCommit, name: str) -> int | None:
    """Rows of the files of a commit, without those that vectors hide; None where the log does not say for each."""
    rows = 0
    for action in commit.named(name):
        stats = _stats(table, action)
        if stats is None or stats.get("numRecords") is None:
            return None
        rows += int(stats["numRecords"]) - int((action.get("deletionVector") or {}).get("cardinality", 0))
    return rows


def _stats(table: LogTable, action: dict[str, Any]) -> dict[str, Any] | None:
    """Statistics of an `add`, or of the `add` that a `remove` speaks of."""
    text = action.get("stats") or table.stats.get(action["path"])
    return dict(json.loads(text)) if text else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


RULES = (
    live_files_are_there,
    logs_can_be_read,
    rewrites_change_no_data,
    metrics_agree_with_actions,
    other_commits_touch_no_file,
    partition_folders_agree,
    stamps_are_single,
)
