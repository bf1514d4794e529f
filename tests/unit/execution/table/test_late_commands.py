"""A command that a server goes on with after its run was killed: it is not settled before it can have ended."""

from __future__ import annotations

import pytest

from maintainer.errors import CommitUnknown
from maintainer.execution.table.recovery import LATE_MS
from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.receipts import Verdict
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_of, properties, vacuum
from tests.support.writers.recorded_events import unfinished
from tests.unit.execution.table.table_bench import Bench, three_files


@pytest.mark.parametrize("lands", [True, False])
def test_what_a_server_may_still_commit_is_not_settled_yet(bench: Bench, lands: bool) -> None:
    """A command is proven after its commit: a server that lost its client may commit minutes after the kill."""
    table = three_files(bench)
    bench.lake.proves_after = True

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("commit", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    (intent,) = unfinished(bench.runs_dir)
    bench.lake.proves_after = False
    # The table can be worked on meanwhile.
    table.append(6)
    assert bench.run(plan_of(table, properties(a="1"))).status is TableStatus.DONE
    assert bench.recorded("settled_earlier") == []
    (note,) = [event["what"] for event in bench.recorded("note")]
    assert note == (
        "run 20261121T220001Z-0000 ended in the middle of a commit that is not in the log; a server may still be at "
        "work on it, so it stays open until 2026-11-21 23:00 UTC, and a run after that settles it"
    )
    assert unfinished(bench.runs_dir) == (intent,)
    if lands:
        version = table.commit({"f0", "f1", "f2"}, {"packed": (1, 2, 3, 4, 5)}, intent.stamp)
        bench.verifier.order = [Verdict.ERROR, Verdict.ERROR]
    else:
        bench.passed_ms = LATE_MS
    bench.run(plan_of(table))
    assert unfinished(bench.runs_dir) == ()
    if lands:
        assert bench.verifier.asked[-1] == ("pair", "t", version)
        assert bench.record(plan_of(table)).unproven_versions == (version,)
        outcome = bench.run(plan_of(table, vacuum("f0", removed_in_version=version)))
        assert "f0" in table.storage, outcome
    else:
        assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [("not_landed", None)]
        assert bench.record(plan_of(table)).unproven_versions == ()
