"""Our steps beside everyone else's commits: nothing told twice, nothing left out."""

from __future__ import annotations

from dataclasses import replace

from maintainer.app.lookback.table_history import beside_ours
from maintainer.model.run.history_rows import LOST, NOT_RECORDED, HistoryRow
from maintainer.model.table.commit_records import CommitStamp, TableCommit

RUN = "20261121T220000Z-7f3a"


def ours(step: str, before: int | None, after: int | None, status: str = "succeeded") -> HistoryRow:
    return HistoryRow(5000, "lake/t", step, status, RUN, before, after)


def commit(version: int, kind: str, run: str = RUN) -> TableCommit:
    return TableCommit(version, 1000 * version, "OPTIMIZE", stamp=CommitStamp(run, f"lake/t/{kind}", 0, "sha256:p"))


def told(rows: list[HistoryRow]) -> list[tuple[str, str | None, int | None]]:
    return [(row.step, row.run_id, row.version_after) for row in rows]


def test_a_commit_of_a_step_is_told_once_and_others_stand_beside_it() -> None:
    rows = beside_ours(
        [ours("compact", 3, 5)],
        [
            TableCommit(6, 6000, "OPTIMIZE", by="ana", num_files_removed=4, num_files_added=1, detail="auto true"),
            commit(5, "compact"),
            commit(4, "compact"),
            TableCommit(3, 3000, "WRITE", by="etl"),
        ],
        "lake/t",
    )
    assert told(rows) == [("OPTIMIZE", None, 6), ("compact", RUN, 5), ("WRITE", None, 3)]
    assert (rows[0].by, rows[0].reason, rows[0].num_files_removed) == ("ana", "auto true", 4)


def test_a_commit_of_ours_that_no_run_folder_tells_of_is_not_lost() -> None:
    rows = beside_ours([], [commit(5, "purge", "20261120T220000Z-aaaa")], "lake/t")
    assert [(row.step, row.run_id, row.status, row.reason) for row in rows] == [
        ("purge", "20261120T220000Z-aaaa", "succeeded", LOST)
    ]


def test_a_step_of_unknown_fate_does_not_hide_the_commit_that_landed() -> None:
    rows = beside_ours([ours("compact", None, None, "unknown")], [commit(5, "compact")], "lake/t")
    assert told(rows) == [("compact", RUN, 5), ("compact", RUN, None)]


def test_the_two_commits_of_a_vacuum_are_one_row() -> None:
    rows = beside_ours(
        [],
        [
            TableCommit(8, 8000, "VACUUM END", num_files_removed=2),
            TableCommit(7, 7000, "VACUUM START", num_files_removed=3, bytes_removed=300),
            TableCommit(6, 6000, "VACUUM START", num_files_removed=9),
        ],
        "lake/t",
    )
    assert [(row.step, row.version_after, row.num_files_removed, row.bytes_removed) for row in rows] == [
        ("VACUUM", 8, 2, 0),  # 300 bytes were planned of three files: of the two nobody knows
        ("VACUUM START", 6, 0, 0),
    ]
    assert rows[1].reason == "VACUUM START without VACUUM END: the log does not say what was deleted"


def test_a_deletion_of_ours_without_an_end_claims_nothing() -> None:
    start = replace(commit(7, "vacuum"), operation="VACUUM START", num_files_removed=60, bytes_removed=600)
    (row,) = beside_ours([], [start], "lake/t", runs_here=lambda run_id: run_id == RUN)
    assert (row.status, row.num_files_removed, row.bytes_removed) == ("unknown", 0, 0)
    assert row.reason is not None
    assert row.reason.endswith(NOT_RECORDED)


def test_a_commit_whose_run_folder_is_here_is_not_said_to_be_of_elsewhere() -> None:
    (row,) = beside_ours([], [commit(5, "compact")], "lake/t", runs_here=lambda run_id: run_id == RUN)
    assert row.reason == NOT_RECORDED
