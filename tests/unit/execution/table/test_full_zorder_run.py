"""A full Z-order is measured before and after; what cannot be measured costs the step nothing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.errors import NotSupportedYet
from maintainer.execution.table import zorder_loop
from maintainer.execution.table.table_worker import StepWork
from maintainer.execution.table.zorder_loop import run_full_zorder
from maintainer.model.plan.layout_tags import ZORDER_TAG
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.run.outcome import StepStatus
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.table_facts import ColumnRanges, FileRange, TableFacts
from tests.support.tables.builders import make_facts, make_file

STEP = ZOrderStep((), ("a", "b"), 1000, 2, ())
WIDE = [((0, 99), (0, 99))] * 6
NARROW = [((0, 49), (0, 99)), ((50, 99), (0, 99))]


class Table:
    """A table before or after its rewrite, behind the reader's face."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, commits: int = 1, blind: bool = False) -> None:
        self.boxes, self.commits, self.blind, self.looks = WIDE, commits, blind, 0
        monkeypatch.setattr(zorder_loop, "run_rewrite", self.run_rewrite)

    def facts(self, ref: object) -> TableFacts:
        self.looks += 1
        tags = {ZORDER_TAG: '["a","b"]'} if self.boxes is NARROW else {}
        files = [make_file(f"f{number}", size=10, tags=tags) for number in range(len(self.boxes))]
        return make_facts(files=files, columns={"a": "long", "b": "long"})

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        if self.blind:
            raise NotSupportedYet("no ranges over Spark Connect")
        ranges: dict[tuple[str, str], tuple[FileRange, ...]] = {
            file.key: tuple((str(low), str(high), False) for low, high in box)
            for file, box in zip(facts.files, self.boxes, strict=True)
        }
        return ColumnRanges(columns, ranges)

    def run_rewrite(self, worker: object, work: StepWork, step: ZOrderStep) -> StepStatus:
        self.boxes = NARROW
        work.commits += [CommitReceipt(version, version - 1) for version in range(1, self.commits + 1)]
        return StepStatus.SUCCEEDED if self.commits else StepStatus.NOTHING_LEFT

    def run(self) -> StepWork:
        worker: Any = SimpleNamespace(engine=SimpleNamespace(reader=self), plan=SimpleNamespace(ref=None))
        work = StepWork("t/zorder", "zorder")
        wanted = StepStatus.SUCCEEDED if self.commits else StepStatus.NOTHING_LEFT
        assert run_full_zorder(worker, work, STEP) is wanted
        return work


def test_the_layout_before_and_after_is_in_the_steps_record(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Table(monkeypatch).run()
    assert work.layout is not None
    assert work.layout.before.files_read == 6.0
    assert 1.0 <= work.layout.after.files_read < 2.0
    assert work.boxes is not None
    assert (work.boxes.num_before, work.boxes.num_after) == (6, 2)


def test_what_cannot_be_measured_or_was_not_committed_has_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    for commits, blind in ((1, True), (0, False)):
        table = Table(monkeypatch, commits=commits, blind=blind)
        work = table.run()
        assert (work.layout, work.boxes, table.looks) == (None, None, 1)
    monkeypatch.setattr(zorder_loop, "MAX_FILES_MEASURED", 5)
    assert Table(monkeypatch).run().layout is None


def test_equal_values_everywhere_are_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(monkeypatch)
    same = ColumnRanges(("a", "b"), {})
    monkeypatch.setattr(table, "column_ranges", lambda facts, columns: replace(same))
    assert table.run().layout is None
