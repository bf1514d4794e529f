"""A ledger that is gone, was exchanged or lost versions is said, and nothing is appended to what lies in its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from maintainer.errors import CommitUnknown, EngineGone, EnvironmentUnfit, LedgerUnfit, MaintainerError
from maintainer.journal.event_log import EVENTS_FILE, EventLog, add_event
from maintainer.journal.folder.run_folder import PLAN_FILE, RESULTS_FILE, RunFolder
from maintainer.journal.ledger import ledger_pending
from maintainer.journal.ledger.ledger_pending import OLD_ROWS, PENDING_FILE, check_mark, flush, keep_pending, read_mark
from maintainer.journal.ledger.ledger_rebuild import recorded_rows
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow, rows_of
from maintainer.journal.memory.past_runs import read_record
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus, run_to_json
from maintainer.model.run.progress import RunFinished, StepFinished
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import CommitEnd, Intent, Result, RunEvent, Settled
from maintainer.model.table.commit_records import CommitStamp
from maintainer.policy.project.project_settings import may_be_there
from maintainer.policy.table_names import table_ref
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.planned_steps import compact, plan_all, plan_of
from tests.support.tables.builders import NOW_MS

WAS = LedgerMark("lake/ledger", "id-1", 7)
LANDED = CommitReceipt(5, 4)


@dataclass
class Sink:
    """A ledger that is as it is told to be."""

    now: LedgerMark | None
    error: EnvironmentUnfit | None = None
    rows: list[LedgerRow] = field(default_factory=list)
    location: str = "lake/ledger"

    def mark(self) -> LedgerMark | None:
        if self.error is not None:
            raise self.error
        return self.now

    def steps_of(self, run_id: str) -> frozenset[str]:
        return frozenset(row.step_id for row in self.rows if row.run_id == run_id)

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        self.rows += rows
        before = self.now or LedgerMark(self.location, "id-new", -1)
        self.now = LedgerMark(before.location, before.table_id, before.version + 1)


def row() -> LedgerRow:
    lake = FakeLake()
    table = lake.table("t", (1,), (2,))
    plan = plan_all(plan_of(table, compact(table)))
    return LedgerRow(
        run_id="r", table="t", step_id="t/compact", kind="compact", status="succeeded", reason="", version_before=1,
        version_after=2, num_files_removed=2, num_files_added=1, bytes_removed=16, bytes_added=16,
        predicted_files_removed=2, predicted_files_added=1, predicted_bytes_removed=16, predicted_bytes_added=16,
        policy_file=plan.tables[0].policy_file, policy_digest="d",
    )  # fmt: skip


def run_folder(tmp_path: Path, number: int) -> RunFolder:
    folder = RunFolder.create(tmp_path / ".maintainer" / "runs", f"20261121T22{number:04d}Z-0000")
    EventLog(folder.path / EVENTS_FILE).close()
    return folder


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (None, "the ledger is gone"),
        (LedgerMark("lake/ledger", "id-2", 9), "another table lies where the ledger was"),
        (LedgerMark("lake/ledger", "id-1", 6), "the ledger has lost versions"),
    ],
)
def test_a_ledger_that_is_not_the_one_of_before_is_said(now: LedgerMark | None, what: str) -> None:
    with pytest.raises(EnvironmentUnfit) as caught:
        check_mark(WAS, now, "lake/ledger")
    assert (caught.value.code, caught.value.what) == ("E655", what)


@pytest.mark.parametrize("known", [None, WAS, LedgerMark("lake/ledger", "id-1", 6), LedgerMark("other", "x", 99)])
def test_the_same_ledger_and_one_at_another_place_are_taken(known: LedgerMark | None) -> None:
    check_mark(known, WAS, "lake/ledger")


def test_rows_wait_while_the_ledger_is_gone_and_the_run_ends_with_1(tmp_path: Path) -> None:
    first = run_folder(tmp_path, 1)
    sink = Sink(None)
    assert flush(first, (row(),), sink) is None
    assert read_mark(first.path.parent) == LedgerMark("lake/ledger", "id-new", 0)
    sink.now = None
    later = run_folder(tmp_path, 2)
    problem = flush(later, (row(),), sink)
    assert problem is not None
    assert (problem.code, len(sink.rows)) == ("E655", 1)
    assert "`maintainer ledger rebuild`" in (problem.help or "")
    assert (later.path / PENDING_FILE).is_file()
    outcome = RunOutcome("r", 0, 0.0, (), problems=(problem,))
    assert exit_code(outcome) == 1


def test_a_damaged_ledger_keeps_its_own_code(tmp_path: Path) -> None:
    sink = Sink(None, LedgerUnfit("the ledger is damaged", code="E656", help="move it away"))
    problem = flush(run_folder(tmp_path, 1), (row(),), sink)
    assert problem == Problem("E656", "the ledger is damaged", None, "move it away")


@pytest.mark.parametrize("kind", [EngineGone, CommitUnknown])
def test_of_an_append_whose_engine_ended_nobody_says_that_it_failed(
    tmp_path: Path, kind: type[MaintainerError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(*args: object) -> None:
        raise kind("the Spark JVM has gone")

    sink = Sink(None)
    monkeypatch.setattr(sink, "append", append)
    problem = flush(run_folder(tmp_path, 1), (row(),), sink)
    assert problem is not None
    assert problem.code == "E652"
    assert problem.what == "whether the ledger has this run's rows is not known: the Spark JVM has gone"


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_killed_run_whose_plan_cannot_be_read_is_said_once_where_nothing_can_mend_it(
    tmp_path: Path, *, is_damaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = run_folder(tmp_path, 1)
    dead.write_plan('{"format_version": 0}')
    dead.write_results("{}")

    def away(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    if not is_damaged:
        monkeypatch.setattr(ledger_pending, "read_record", away)
    sink = Sink(None)
    problems = [flush(run_folder(tmp_path, number), (row(),), sink) for number in (2, 3, 4)]
    assert len(sink.rows) == 3
    first, *later = problems
    assert first is not None
    assert (first.code, first.where) == (OLD_ROWS, str(dead.path))
    assert "`maintainer ledger rebuild`" in (first.help or "")
    assert later == ([None, None] if is_damaged else [first, first])


def test_a_first_append_that_was_cut_off_is_no_ledger_yet(tmp_path: Path) -> None:
    log = tmp_path / "ledger" / "_delta_log"
    ref = table_ref(str(tmp_path / "ledger"), tmp_path)
    assert not may_be_there(ref)
    log.mkdir(parents=True)
    (log / ".00000000000000000000.json.tmp").write_text("")
    assert not may_be_there(ref)
    (log / "00000000000000000000.json").write_text("{}")
    assert may_be_there(ref)


@pytest.mark.parametrize(
    ("in_ledger", "killed_before", "receipt", "expected"),
    [
        pytest.param(False, False, LANDED, [("t/compact", "interrupted", 5)], id="waiting"),
        pytest.param(False, False, None, [("t/compact", "failed", None)], id="waiting, not landed"),
        pytest.param(False, True, LANDED, [("t/compact", "interrupted", 5)], id="waiting, killed before"),
        pytest.param(
            True, False, LANDED, [("t/compact", "unknown", None), ("t/compact#settled", "interrupted", 5)],
            id="appended before its run could say so",
        ),
    ],
)  # fmt: skip
def test_what_was_settled_comes_with_the_rows_that_wait_of_the_same_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    receipt: CommitReceipt | None,
    expected: list[tuple[str, str, int | None]],
    *,
    in_ledger: bool,
    killed_before: bool,
) -> None:
    """The run that settles a commit may be the last one for long: it brings all rows, and each once.

    A row that only waited becomes the row of what was found out; one that the ledger has stays, and gets a second one.
    Also where another run was killed after it had written them, and before it recorded that they are known.
    """
    table = FakeLake().table("t", (1,), (2,))
    plan = plan_all(plan_of(table, compact(table)))
    dead, later = run_folder(tmp_path, 1), run_folder(tmp_path, 2)
    step = StepOutcome("t/compact", StepKind.COMPACT, StepStatus.UNKNOWN, NOW_MS, 2.5)
    results = RunOutcome(dead.run_id, NOW_MS, 3.0, (TableOutcome(plan.tables[0].ref, TableStatus.FAILED, (step,)),))
    (dead.path / PLAN_FILE).write_text(to_json(plan), encoding="utf-8")
    (dead.path / RESULTS_FILE).write_text(run_to_json(results), encoding="utf-8")
    stamp = CommitStamp(dead.run_id, "t/compact", 0, "sha256:p")
    about = (NOW_MS, "t", "id-t", "mem:/lake/t", stamp, "compact")

    def record(event: RunEvent) -> None:
        add_event(dead.path.parent, dead.run_id, event, by=dead.run_id)

    record(Intent(*about, read_version=4, proven=True))
    record(Result(*about, CommitEnd.UNKNOWN))
    record(StepFinished(NOW_MS, "t", 1, step))
    keep_pending(dead, rows_of(plan, results), by=dead.run_id)
    record(RunFinished(NOW_MS, results))
    record(Settled(*about, CommitEnd.NOT_LANDED if receipt is None else CommitEnd.LANDED, receipt, by=later.run_id))
    sink = Sink(None, rows=list(rows_of(plan, results)) if in_ledger else [])
    if killed_before:
        with monkeypatch.context() as patch:
            patch.setattr(ledger_pending, "add_event", interrupted)
            with pytest.raises(KeyboardInterrupt):
                flush(later, (), sink)
    assert flush(later, (), sink) is None
    assert [(row.step_id, row.status, row.version_after) for row in sink.rows] == expected
    assert not (dead.path / PENDING_FILE).exists()
    assert flush(run_folder(tmp_path, 3), (), sink) is None
    rebuilt = {row.step_id for row in recorded_rows(read_record(dead.path))}
    assert [row.step_id for row in sink.rows] == sorted(rebuilt)


def interrupted(*args: object, **named: object) -> None:
    raise KeyboardInterrupt
