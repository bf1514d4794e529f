"""Ledger rows: made from a plan and its outcome, kept until they are in the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maintainer.journal.event_log import EVENTS_FILE, EventLog
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.journal.ledger.ledger_pending import flush, keep_pending, read_pending
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow, predicted, proof_of, rows_of
from maintainer.model.codec import DecodeError
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.steps import StepKind
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy, TurnOutcome, ZOrderTurn
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof, VacuumReceipt, Verdict
from maintainer.report.run.outcome_text import figures
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.planned_steps import compact, plan_all, plan_of, properties, vacuum
from tests.support.tables.builders import NOW_MS

ROWS_ONLY = Proof(Fingerprint(1, ()), Fingerprint(1, ()), None)
PROOF = Proof(Fingerprint(3, (7,)), Fingerprint(3, (7,)), 3)


def rows() -> tuple[LedgerRow, ...]:
    table = FakeLake().table("t", (1,), (2, 3))
    plan = plan_all(plan_of(table, compact(table), vacuum("x", "y"), owner="team"))
    steps = (
        StepOutcome("t/compact", StepKind.COMPACT, StepStatus.YIELDED, NOW_MS, 2.5,
                    (CommitReceipt(5, 4, 1, 1, 8, 8, proof=PROOF, verdict=Verdict.PASS),
                     CommitReceipt(9, 8, 1, 1, 16, 10, proof=PROOF, verdict=Verdict.PASS)),
                    error=Problem("C701", "another writer won")),
        StepOutcome("t/vacuum", StepKind.VACUUM, StepStatus.SUCCEEDED, NOW_MS, 1.0,
                    vacuum=VacuumReceipt(2, 16, (), 9, 11)),
    )  # fmt: skip
    run = RunOutcome("r", NOW_MS, 4.0, (TableOutcome(plan.tables[0].ref, TableStatus.YIELDED, steps),))
    return rows_of(plan, run)


def test_a_row_holds_what_was_predicted_and_what_was_done() -> None:
    first, second = rows()
    assert first == LedgerRow(
        run_id="r", table="t", table_id="id-t", location="mem:/lake/t", step_id="t/compact", kind="compact",
        status="yielded", reason="small files", version_before=4, version_after=9, num_files_removed=2,
        num_files_added=2, bytes_removed=24, bytes_added=18, predicted_files_removed=2, predicted_files_added=1,
        predicted_bytes_removed=24, predicted_bytes_added=24, started_at_ms=NOW_MS, duration_seconds=2.5,
        proof_level="fingerprint", proof_result="pass", policy_file="policies/t.yml", policy_digest="sha256:policy",
        git_commit=None, environment=None, owner="team", error_code="C701", error="another writer won",
    )  # fmt: skip
    assert (second.num_files_removed, second.bytes_removed, second.version_after) == (2, 16, 11)
    assert (second.proof_level, second.proof_result) == ("none", "none")


def test_a_deletion_that_only_empties_the_trash_has_no_versions() -> None:
    table = FakeLake().table("t", (1,))
    plan = plan_all(plan_of(table, vacuum()))
    receipt = VacuumReceipt(0, 0, version_before=4, num_files_emptied=3, bytes_emptied=24)
    step = StepOutcome("t/vacuum", StepKind.VACUUM, StepStatus.SUCCEEDED, NOW_MS, 1.0, vacuum=receipt)
    (row,) = rows_of(plan, RunOutcome("r", NOW_MS, 4.0, (TableOutcome(plan.tables[0].ref, TableStatus.DONE, (step,)),)))
    assert (row.version_before, row.version_after, row.num_files_removed) == (None, None, 0)
    assert figures(step) == "3 files, 24 B emptied from the trash"


LAYOUT = LayoutFigures(4.0, 100, 2.0, 1.0)


def turns_of(status: StepStatus, *, num_rest: int = 0) -> tuple[LedgerRow, ...]:
    """Three turns of 2 s each in a step of 10 s, and commits that are no turn's."""
    table = FakeLake().table("t", (1,), (2, 3))
    plan = plan_all(plan_of(table, compact(table)))
    commits = tuple(CommitReceipt(version, version - 1, 2, 1, 8, 8, duration_seconds=2.0) for version in (5, 7, 8))
    rest = tuple(CommitReceipt(9 + number, 8 + number, duration_seconds=0.5) for number in range(num_rest))
    turn = ZOrderTurn(Strategy.UNINDEXED, "1:x", 10, (1,), before=LAYOUT)
    step = StepOutcome(
        "t/compact", StepKind.COMPACT, status, NOW_MS, 10.0, (*commits, *rest),
        turns=tuple(TurnOutcome(turn, commit.version, LAYOUT) for commit in commits),
    )  # fmt: skip
    return rows_of(plan, RunOutcome("r", NOW_MS, 11.0, (TableOutcome(plan.tables[0].ref, TableStatus.DONE, (step,)),)))


@pytest.mark.parametrize(
    ("status", "num_rest", "seconds"),
    [
        (StepStatus.SUCCEEDED, 0, [2.0, 2.0, 6.0]),
        (StepStatus.SUCCEEDED, 1, [2.0, 2.0, 2.0, 4.0]),
        (StepStatus.FAILED, 0, [2.0, 2.0, 2.0, 4.0]),
    ],
)
def test_the_rows_of_one_step_follow_one_another_and_add_up(
    status: StepStatus, num_rest: int, seconds: list[float]
) -> None:
    rows = turns_of(status, num_rest=num_rest)
    assert [row.duration_seconds for row in rows] == seconds
    ends = [row.started_at_ms + int(1000 * row.duration_seconds) for row in rows]
    assert [row.started_at_ms for row in rows] == [NOW_MS, *ends[:-1]]
    assert ends[-1] == NOW_MS + 10_000
    assert [row.predicted_files_removed for row in rows] == [2] + [None] * (len(rows) - 1)
    assert [row.predicted_bytes_added for row in rows] == [24] + [None] * (len(rows) - 1)
    assert [row.step_id for row in rows] == ["t/compact", *(f"t/compact#{n}" for n in range(2, len(rows) + 1))]


def test_rows_come_back_from_json() -> None:
    for row in rows():
        assert LedgerRow.from_document(json.loads(row.to_json())) == row


def test_a_row_of_another_version_is_read_and_anything_else_is_refused() -> None:
    document = json.loads(rows()[0].to_json())
    assert LedgerRow.from_document({**document, "later": 1}) == rows()[0]
    earlier = {key: value for key, value in document.items() if key not in ("strategy", "source")}
    assert LedgerRow.from_document(earlier) == rows()[0]
    for damaged in (3, {}, {**document, "table": None}, {**document, "bytes_added": "8"}):
        with pytest.raises(DecodeError):
            LedgerRow.from_document(damaged)


def test_properties_predict_no_files() -> None:
    figures = predicted(properties(**{"delta.x": "1"}))
    assert (figures.num_files_removed, figures.bytes_removed) == (0, 0)


def receipt(version: int, verdict: Verdict | None) -> CommitReceipt:
    return CommitReceipt(version, version - 1, proof=ROWS_ONLY, verdict=verdict)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"status": StepStatus.VERIFY_FAILED}, ("none", "fail")),
        ({"status": StepStatus.FAILED, "error": Problem("V504", "x")}, ("none", "error")),
        ({"status": StepStatus.SUCCEEDED, "assertions": (Assertion("x", Verdict.PASS),)}, ("none", "pass")),
        ({"status": StepStatus.SUCCEEDED, "commits": (receipt(1, Verdict.PASS),)}, ("rows", "pass")),
        # Proven before the commit, and then the engine died: nobody has looked at the new version.
        ({"status": StepStatus.FAILED, "commits": (receipt(1, None),)}, ("rows", "error")),
        ({"status": StepStatus.FAILED, "commits": (receipt(1, Verdict.PASS), receipt(2, None))}, ("rows", "error")),
        ({"status": StepStatus.INTERRUPTED, "commits": (receipt(1, Verdict.ERROR),)}, ("rows", "error")),
        ({"status": StepStatus.SUCCEEDED, "commits": (receipt(1, Verdict.FAIL),)}, ("rows", "fail")),
    ],
)  # fmt: skip
def test_the_proof_column_tells_wrong_from_not_checked(step: dict[str, object], expected: tuple[str, str]) -> None:
    assert proof_of(StepOutcome("s", "compact", started_at_ms=0, duration_seconds=0.0, **step)) == expected  # type: ignore[arg-type]


class Sink:
    def __init__(self, **step_ids: str) -> None:
        self.got: list[str] = []
        self.num_rows: list[int] = []
        self.there = step_ids

    location = "ledger"

    def mark(self) -> LedgerMark | None:
        return None

    def steps_of(self, run_id: str) -> frozenset[str]:
        return frozenset(self.there.get("steps", "").split())

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        self.got.append(run_id)
        self.num_rows.append(len(rows))


def folder_of(tmp_path: Path, number: int) -> RunFolder:
    return RunFolder.create(tmp_path / ".maintainer" / "runs", f"20261121T22{number:04d}Z-0000")


def test_waiting_rows_of_dead_runs_are_taken_along_and_those_of_living_ones_left(tmp_path: Path) -> None:
    dead, living, own = (folder_of(tmp_path, number) for number in (1, 2, 3))
    for folder in (dead, living):
        keep_pending(folder, rows(), by=folder.run_id)
    log = EventLog(living.path / EVENTS_FILE)
    sink = Sink()
    assert flush(own, rows(), sink) is None
    log.close()
    assert sink.got == [dead.run_id, own.run_id]
    assert [bool(read_pending(folder.path / "ledger_pending.jsonl")) for folder in (dead, living, own)] == [
        False, True, False
    ]  # fmt: skip


@pytest.mark.parametrize(("there", "num_rows"), [("", [2, 2]), ("t/compact", [1, 2]), ("t/compact t/vacuum", [2])])
def test_a_waiting_row_that_another_machine_brought_in_comes_once(
    tmp_path: Path, there: str, num_rows: list[int]
) -> None:
    dead, own = folder_of(tmp_path, 1), folder_of(tmp_path, 2)
    keep_pending(dead, rows(), by=dead.run_id)
    sink = Sink(steps=there)
    assert flush(own, rows(), sink) is None
    assert sink.num_rows == num_rows
    assert not any((folder.path / "ledger_pending.jsonl").exists() for folder in (dead, own))


def test_a_damaged_file_holds_up_nobody_else(tmp_path: Path) -> None:
    damaged, own = folder_of(tmp_path, 1), folder_of(tmp_path, 2)
    (damaged.path / "ledger_pending.jsonl").write_text("{")
    sink = Sink()
    problem = flush(own, rows(), sink)
    assert sink.got == [own.run_id]
    assert problem is not None
    assert problem.code == "E658"


def test_without_a_ledger_the_rows_stay_in_the_folder(tmp_path: Path) -> None:
    own = folder_of(tmp_path, 1)
    assert flush(own, rows(), None) is None
    assert read_pending(own.path / "ledger_pending.jsonl") == rows()
