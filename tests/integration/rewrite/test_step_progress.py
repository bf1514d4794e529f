"""How far a rewrite is, in each lane, while it goes on: phases in their order, bytes that grow up to the whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import numpy as np
import pyarrow as pa
import pytest

from tests.support.product import (
    DeltaEngine,
    DeltaTableEngine,
    Lane,
    Phase,
    SessionLease,
    StepMeter,
    StepProgress,
    TableRef,
    copy_lane,
    step_meter,
)
from tests.support.runs.rewrites import in_lane
from tests.support.tables.delta_tables import compaction, no_intent, stamp, zorder

if TYPE_CHECKING:
    from tests.support.product import CommitReceipt

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

NUM_FILES, ROWS_A_FILE = 4, 150_000


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("progress") as worker:
        yield worker


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[StepProgress]:
    """What a meter would show after each thing that it hears."""
    shown: list[StepProgress] = []

    def recording(name: str) -> None:
        method = getattr(StepMeter, name)

        def heard(meter: StepMeter, *values: object) -> None:
            method(meter, *values)
            shown.append(meter.progress())

        monkeypatch.setattr(StepMeter, name, heard)

    for name in ("begin", "read", "written", "written_as_read", "tasks"):
        recording(name)
    monkeypatch.setattr(step_meter, "POLL_SECONDS", 0.005)
    return shown


def rewritten(engine: DeltaTableEngine, path: Path, lane: Lane, *, in_order: bool) -> CommitReceipt:
    values = np.random.default_rng(7)
    for _ in range(NUM_FILES):
        rows = pa.table({"id": values.integers(0, 1 << 60, ROWS_A_FILE)})
        deltalake.write_deltalake(path, rows, mode="append")
    facts = engine.reader.facts(TableRef(str(path)))
    planned, files = zorder(facts, "id") if in_order else compaction(facts)
    step, batch = in_lane(facts, planned, files, lane)
    return engine.writer.rewrite(facts, step, batch, stamp(), no_intent)


def bytes_in(seen: list[StepProgress], phase: Phase) -> list[int]:
    return [progress.bytes_done for progress in seen if progress.phase is phase]


@pytest.mark.parametrize(
    ("lane", "in_order"), [(Lane.COPY, False), (Lane.LOCAL, False), (Lane.LOCAL, True), (Lane.SPARK, False)]
)
def test_each_lane_says_how_far_it_is(
    engine: DeltaTableEngine,
    lake: Path,
    seen: list[StepProgress],
    monkeypatch: pytest.MonkeyPatch,
    lane: Lane,
    in_order: bool,
) -> None:
    monkeypatch.setattr(copy_lane, "MIN_ROW_GROUP_BYTES", 1)  # small files show it as well
    receipt = rewritten(engine, lake / f"{lane}-{in_order}", lane, in_order=in_order)
    assert receipt.proof is not None
    assert [use.lane for use in receipt.proof.lanes] == [lane]
    phases = [phase for phase, _ in groupby(progress.phase for progress in seen)]
    assert phases == [Phase.READING, Phase.WRITING, Phase.PROVING, Phase.COMMITTING]
    size_bytes = receipt.bytes_removed
    assert {progress.bytes_total for progress in seen} == {size_bytes}
    for phase in phases:
        assert bytes_in(seen, phase) == sorted(bytes_in(seen, phase))
    assert bytes_in(seen, Phase.WRITING)[-1] == size_bytes
    if lane is Lane.LOCAL:
        steps = bytes_in(seen, Phase.READING if in_order else Phase.WRITING)
        assert sum(0 < done < size_bytes for done in set(steps)) >= NUM_FILES  # within files, too
        assert bytes_in(seen, Phase.PROVING)[-1] == size_bytes
    if lane is Lane.COPY:
        assert bytes_in(seen, Phase.PROVING)[-1] == size_bytes
    if lane is Lane.SPARK:
        counts = {(progress.num_tasks_done, progress.num_tasks) for progress in seen if progress.num_tasks}
        assert counts
        assert all(0 <= done <= total for done, total in counts)
