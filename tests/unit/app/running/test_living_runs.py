"""What `verify` finds, or a person accepts, of a version whose run goes on: it counts when that run is over, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.journal.event_log import ONE_WRITER
from maintainer.journal.journal import Journal
from maintainer.journal.memory.past_runs import read_record
from maintainer.model.run.commit_verdict import CommitVerification
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import CommitEnd
from maintainer.model.table.commit_records import CommitStamp
from tests.support.tables.builders import make_facts
from tests.support.writers import recorded_events
from tests.unit.app.running.test_verify import GONE, GOOD, Answers, Bench

FACTS = make_facts(name="a.t", location="mem:/a.t", table_id="id-a.t")


class Living:
    """A run that goes on: its commit of version 7 is not proven."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.about = (journal, CommitStamp(journal.run_id, "a.t/compact", 0, "sha256:p"), FACTS, "compact")
        recorded_events.intent(*self.about, read_version=6)

    def lands(self) -> None:
        recorded_events.result(*self.about, CommitEnd.LANDED, receipt=CommitReceipt(7, 6))
        recorded_events.verified(self.journal, FACTS, "a.t/compact", 7, "error", "storage did not answer")

    def ends(self) -> None:
        self.journal.finished()
        self.journal.close()
        self.journal.update_state()


@pytest.fixture(params=["here", "shared"])
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Bench:
    made = Bench(tmp_path)
    if request.param == "shared":  # what is added to a record stands beside it, and is read after it
        made.project.runs_dir.mkdir(parents=True, exist_ok=True)
        (made.project.runs_dir.parent / ONE_WRITER).touch()
    return made


@pytest.mark.parametrize(("answer", "accept"), [(GONE, "looked at"), (GOOD, None)], ids=["accepted", "proven"])
def test_it_counts_after_the_run_has_ended(bench: Bench, answer: CommitVerification, accept: str | None) -> None:
    run = Living(bench.journal())
    run.lands()
    assert bench.record().unproven_versions == (7,)
    bench.verify(Answers({"a.t": answer}), "a.t", accept=accept)
    assert bench.record().unproven_versions == ()
    run.ends()
    assert bench.record().unproven_versions == ()
    # The step that made it says so, too, and there is no other one.
    (step,) = read_record(run.journal.folder.path, with_plan=False).fold.steps.values()
    assert step.checks[7].result == ("error" if accept else "pass")


def test_what_had_not_landed_when_it_was_accepted_is_not_proven(bench: Bench) -> None:
    run = Living(bench.journal())
    assert bench.record().unproven_versions == (7,), "what its open intent may become"
    bench.verify(Answers({"a.t": GONE}), "a.t", accept="looked at")
    run.lands()
    assert bench.record().unproven_versions == (7,)
    run.ends()
    assert bench.record().unproven_versions == (7,)
