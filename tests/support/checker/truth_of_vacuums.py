"""Rules about deletions: what a vacuum says it deleted is gone, what it left is there, and its commits say the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.checker.truth_log import LogCommit, LogTable, local_file
from tests.support.checker.truth_records import Evidence, RunRecord


@dataclass(frozen=True)
class Vacuum:
    """One vacuum step of a run: what was planned, what results.json says, and its table."""

    run: RunRecord
    table: LogTable
    step: dict[str, Any]
    planned: tuple[dict[str, Any], ...]

    @property
    def receipt(self) -> dict[str, Any]:
        """What results.json says of the deletion."""
        return dict(self.step["vacuum"])

    @property
    def where(self) -> str:
        """Run and step, for messages."""
        return f"run {self.run.run_id} {self.step['step_id']}"

    @property
    def remaining(self) -> list[str]:
        """The table's files that it could not delete; those of the trash are told beside them."""
        names = [name.split(" (")[0] for name in self.receipt["remaining"]]
        return [name for name in names if not name.startswith(".maintainer-trash: ")]

    def files(self) -> list[Path]:
        """The planned files."""
        return [local_file(self.table.root, file["path"]) for file in self.planned]

    def commits(self, operation: str) -> list[LogCommit]:
        """Its commits of one operation."""
        return [
            commit
            for commit, stamp in self.table.stamped()
            if (stamp.run_id, stamp.step_id) == (self.run.run_id, self.step["step_id"])
            and commit.operation == operation
        ]


def vacuums(evidence: Evidence) -> Iterator[Vacuum]:
    """Every vacuum that has a receipt and whose table is here, oldest first."""
    for run in evidence.runs:
        plans = {table["ref"]["identifier"]: table for table in run.planned_tables}
        for outcome, step in run.steps():
            plan = plans.get(outcome["ref"]["identifier"])
            if step["vacuum"] is None or plan is None or not plan.get("observed"):
                continue
            table = evidence.table_at(plan["observed"]["location"], plan["observed"]["table_id"])
            planned = next((planned_step for planned_step in plan["steps"] if planned_step["kind"] == "vacuum"), None)
            if table is not None and planned is not None:
                yield Vacuum(run, table, step, tuple(planned["files"]))


def _newest(evidence: Evidence) -> list[Vacuum]:
    """The last vacuum of each table: what was deleted before may have been brought back since."""
    return list({vacuum.table.root: vacuum for vacuum in vacuums(evidence)}.values())


def deleted_files_are_gone(evidence: Evidence) -> Iterator[str]:
    """As many planned files are gone as the vacuum says; each that it names as remaining is there."""
    for vacuum in _newest(evidence):
        receipt, files = vacuum.receipt, vacuum.files()
        if _was_undone(evidence, vacuum):
            continue
        gone = [file for file in files if not file.exists()]
        if len(gone) < receipt["num_files_deleted"]:
            yield (
                f"{vacuum.where} says it deleted {receipt['num_files_deleted']} files; {len(gone)} of "
                f"{len(files)} planned are gone"
            )
        for file in gone:
            checksum = file.with_name(f".{file.name}.crc")
            if checksum.exists():
                yield f"{vacuum.where} deleted {file} and left {checksum}"
        for name in vacuum.remaining:
            if not local_file(vacuum.table.root, name).exists():
                yield f"{vacuum.where} says {name} remains, it is gone"


def vacuum_commits_agree(evidence: Evidence) -> Iterator[str]:
    """VACUUM END has the number of files that results.json has, and is COMPLETED only if none remain."""
    for vacuum in vacuums(evidence):
        receipt = vacuum.receipt
        for commit in vacuum.commits("VACUUM END"):
            counted = int(commit.metrics.get("numDeletedFiles", -1))
            where = f"{vacuum.table.root}@{commit.version}"
            if counted != receipt["num_files_deleted"]:
                yield f"{where}: VACUUM END says {counted} files, {vacuum.where} {receipt['num_files_deleted']}"
            status = (commit.info.get("operationParameters") or {}).get("status")
            # What was stopped after all planned files had gone was the emptying of the trash, which comes after END.
            stopped = receipt["stopped"] and counted < len(vacuum.planned)
            if status == "COMPLETED" and (vacuum.remaining or stopped):
                yield (
                    f"{where}: VACUUM END is COMPLETED, but {len(vacuum.remaining)} files remain "
                    f"(stopped: {receipt['stopped']})"
                )
        is_cleaned = min(vacuum.table.commits) > (receipt["version_before"] or 0) + 1
        if receipt["num_files_deleted"] and not is_cleaned and not vacuum.commits("VACUUM START"):
            yield (
                f"{vacuum.where} deleted {receipt['num_files_deleted']} files without a VACUUM START in "
                f"{vacuum.table.root}"
            )


def trash_holds_what_was_moved(evidence: Evidence) -> Iterator[str]:
    """Files that were moved to the trash lie there, until they are emptied or brought back."""
    for vacuum in _newest(evidence):
        trash = vacuum.receipt["trash"]
        if trash is None or _was_undone(evidence, vacuum):
            continue
        folder = local_file(vacuum.table.root, trash) / "files"
        there = [file for file in vacuum.planned if local_file(folder, file["path"]).exists()]
        if len(there) < vacuum.receipt["num_files_deleted"]:
            text = (
                f"{vacuum.where} says it moved {vacuum.receipt['num_files_deleted']} files, {folder} holds {len(there)}"
            )
            yield text


def promised_versions_are_whole(evidence: Evidence) -> Iterator[str]:
    """Every version from the oldest that a vacuum looked at has all of its files, until a later one begins."""
    for vacuum in _newest(evidence):
        if _was_overtaken(evidence, vacuum):
            continue
        oldest = vacuum.receipt["oldest_version"]
        after = vacuum.receipt["version_after"]
        for version, files in sorted(vacuum.table.history.items()):
            # Later commits are somebody else's, and what became of their files is no claim of this vacuum's.
            if oldest is None or not oldest <= version <= (after or version):
                continue
            for file in sorted(files):
                if not file.exists():
                    yield (
                        f"{vacuum.where} says every version from {oldest} on is whole; {version} needs "
                        f"{file}, it is gone"
                    )


def deletions_spare_live_files(evidence: Evidence) -> Iterator[str]:
    """No planned deletion that was carried out names a file that is live now."""
    for vacuum in _newest(evidence):
        live = vacuum.table.history.get(vacuum.table.version, frozenset())
        for file in vacuum.files():
            if file in live and not file.exists():
                yield f"{vacuum.where} deleted {file}, which is live"


def interrupted_deletions_are_told(evidence: Evidence) -> Iterator[str]:
    """What a deletion took before its run was killed is a row, once a later run has appended its own.

    Counted are the files of its plan that are gone, less those that a later run planned to take again.
    """
    appended = {row["run_id"] for row in evidence.ledger_rows}
    for number, run in enumerate(evidence.runs):
        if run.is_finished or run.is_alive or not any(later > run.run_id for later in appended):
            continue
        for event in run.of_type("intent"):
            table = evidence.table_at(event["location"], event["table_id"])
            if event["kind"] != "vacuum" or table is None:
                continue
            again = {path for later in evidence.runs[number + 1 :] for path in _planned_paths(later, event["step"])}
            gone = [
                path for path in _planned_paths(run, event["step"]) - again if not local_file(table.root, path).exists()
            ]
            rows = [
                row["num_files_removed"]
                for row in evidence.ledger_rows
                if (row["run_id"], row["step_id"].partition("#")[0]) == (run.run_id, event["step"])
            ]
            if gone and sum(rows) != len(gone):
                ledger_text = f"the ledger says {sum(rows)}" if rows else "no row of the ledger tells it"
                killed = f"run {run.run_id} was killed in {event['step']} when {len(gone)} of its files were gone"
                yield f"{killed}; {ledger_text}"


def _planned_paths(run: RunRecord, step_id: str) -> set[str]:
    """Files that a run planned to delete in a step."""
    return {
        file["path"]
        for table in run.planned_tables
        for step in table["steps"]
        if step["kind"] == "vacuum" and f"{table['ref']['identifier']}/vacuum" == step_id
        for file in step["files"]
    }


def _was_overtaken(evidence: Evidence, vacuum: Vacuum) -> bool:
    """Whether a later run began to delete in the same table; killed, it has no results that would say so."""
    return any(
        event["kind"] == "vacuum" and evidence.table_at(event["location"], event["table_id"]) is vacuum.table
        for run in evidence.runs
        if run.run_id > vacuum.run.run_id
        for event in run.of_type("intent")
    )


def _was_undone(evidence: Evidence, vacuum: Vacuum) -> bool:
    """Whether an undelete of its files was run since."""
    return any(event.get("of_run") == vacuum.run.run_id for run in evidence.runs for event in run.of_type("note"))


RULES = (
    deleted_files_are_gone,
    vacuum_commits_agree,
    trash_holds_what_was_moved,
    promised_versions_are_whole,
    deletions_spare_live_files,
    interrupted_deletions_are_told,
)
