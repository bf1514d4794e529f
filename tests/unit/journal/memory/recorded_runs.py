"""Runs of one table, written down one after the other as the executor does."""

from __future__ import annotations

from pathlib import Path

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered, update_state
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import StepOutcome, StepStatus
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof, VacuumReceipt
from maintainer.model.run.run_events import CommitEnd
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableRecord
from tests.support.tables.builders import NOW_MS, make_facts
from tests.support.writers import recorded_events

FACTS = make_facts(name="t", location="mem:/t", table_id="id-t")
PROOF = Proof(Fingerprint(5, (2**70,)), Fingerprint(5, (2**70,)), 5)


class Runs:
    """Writes runs as the executor does, one after the other."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.count = 0

    def start(self) -> Journal:
        self.count += 1
        return Journal.open(self.runs_dir, f"20261121T2200{self.count:02}Z-0000", lambda: NOW_MS + self.count)

    def intent(self, journal: Journal, read_version: int = 1, kind: str = "compact") -> CommitStamp:
        stamp = CommitStamp(journal.run_id, f"t/{kind}", 0, "sha256:p")
        recorded_events.intent(
            journal, stamp, FACTS, kind, read_version=read_version, num_files=2, size_bytes=10, proof=PROOF
        )
        return stamp

    def landed(self, journal: Journal, version: int, *, verified: str | None = "pass", kind: str = "compact") -> None:
        stamp = self.intent(journal, version - 1, kind)
        recorded_events.result(
            journal, stamp, FACTS, kind, CommitEnd.LANDED, receipt=CommitReceipt(version, version - 1)
        )
        if verified:
            recorded_events.verified(journal, FACTS, f"t/{kind}", version, verified, None)

    def step(self, journal: Journal, kind: str, status: StepStatus = StepStatus.SUCCEEDED) -> None:
        recorded_events.step_finished(
            journal, "t", ("id-t", "mem:/t"), StepOutcome(f"t/{kind}", StepKind(kind), status, NOW_MS, 1.0)
        )

    def vacuumed(self, journal: Journal, num_bytes: int) -> None:
        stamp = self.intent(journal, kind="vacuum")
        receipt = VacuumReceipt(num_files_deleted=1, bytes_deleted=num_bytes)
        recorded_events.result(journal, stamp, FACTS, "vacuum", CommitEnd.LANDED, receipt=receipt)

    def end(self, journal: Journal) -> None:
        journal.finished()
        journal.close()
        update_state(self.runs_dir)

    def record(self) -> TableRecord:
        return remembered(self.runs_dir).record_of("id-t", "mem:/t/", StoragePlaces())
