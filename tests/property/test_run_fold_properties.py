"""What a fold without outcomes keeps is what the whole one says is open, after any events in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maintainer.journal.memory.recorded_outcome import RunFold
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import StepOutcome, StepStatus
from maintainer.model.run.progress import StepFinished, Verified
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof
from maintainer.model.run.run_events import CommitEnd, Intent, Result, RunEvent, Settled, Writing, WrittenOff
from maintainer.model.table.commit_records import CommitStamp

RUN, STEPS, LATE = "run-1", ("t:compact", "t:vacuum"), ("part-9.parquet",)
PLACE = ("t", "id-1", "/lake/t")
NOTHING = Fingerprint(0, ())


@st.composite
def events(draw: st.DrawFn) -> list[RunEvent]:
    """Events of two batches of two steps, as this run, a late worker and later runs may record them."""
    drawn: list[RunEvent] = []
    for at_ms in range(1, draw(st.integers(0, 14)) + 1):
        step, batch = draw(st.sampled_from(STEPS)), draw(st.integers(0, 1))
        place, stamp = (at_ms, *PLACE), CommitStamp(RUN, step, batch, "digest")
        paths, fate = draw(st.sampled_from([(), LATE])), draw(st.sampled_from(CommitEnd))
        proof = Proof(NOTHING, NOTHING, None, late_paths=paths) if paths else None
        receipt = CommitReceipt(at_ms, 0, late_paths=paths) if draw(st.booleans()) else None
        choices: list[RunEvent] = [
            Writing(*place, RUN, step, batch, (), paths),
            WrittenOff(*place, RUN, step, batch, paths, draw(st.sampled_from([None, "run-2"]))),
            Intent(*place, stamp, "compact", at_ms, True, proof=proof),
            Result(*place, stamp, "compact", fate, receipt),
            Settled(*place, stamp, "compact", fate, receipt, by="run-2"),
            Verified(at_ms, "t", step, "pass", version=at_ms),
            StepFinished(at_ms, "t", 1, StepOutcome(step, StepKind.COMPACT, StepStatus.SUCCEEDED, at_ms, 1.0)),
        ]
        drawn.append(draw(st.sampled_from(choices)))
    return drawn


@given(events())
def test_without_outcomes_it_knows_what_is_open_and_when_steps_ended(recorded: list[RunEvent]) -> None:
    whole, small = RunFold.of(recorded), RunFold.of(recorded, keeps_outcomes=False)
    assert small.open_intents == whole.open_intents
    assert small.open_writings == whole.open_writings
    assert small.last_at_ms == whole.last_at_ms
    assert {key: step.last_at_ms for key, step in small.steps.items()} == {
        key: step.last_at_ms for key, step in whole.steps.items()
    }
    assert not any(step.assertions or step.checks or step.finished for step in small.steps.values())
