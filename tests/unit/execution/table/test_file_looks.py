"""What is kept of a table's files around a rewrite: true figures, and never at the price of the step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from maintainer.execution.table.commit_attempt import StepWork
from maintainer.execution.table.file_looks import MAX_FILES_RANGED, look_back, meet
from maintainer.model.plan.steps import Batch, Bin, CompactStep, ZOrderStep
from maintainer.model.run.outcome import CommitReceipt
from maintainer.model.table.table_facts import ColumnRanges, DataFile, TableFacts
from tests.support.tables.builders import make_facts


class Log:
    """A table before and after a rewrite, behind the reader's face."""

    def __init__(self, *versions: list[DataFile]) -> None:
        self.looks = [
            make_facts(files=files, columns={"a": "long", "b": "long"}, version=at) for at, files in enumerate(versions)
        ]
        self.at = 0
        self.broken = self.no_ranges = False

    def facts(self, ref: object) -> TableFacts:
        if self.broken:
            raise OSError("the storage is away")
        return self.looks[self.at]

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        if self.no_ranges:
            raise ValueError("not by this engine")
        parts = {file.key: file.path.split("-") for file in facts.files}
        return ColumnRanges(columns, {key: ((low, high, False),) * 2 for key, (_, low, high) in parts.items()})

    def met(self, step: Any) -> StepWork:
        work = StepWork("t/x", step.kind)
        work.met, work.met_at_ms = meet(self, step, self.facts(None)), 5  # type: ignore[arg-type]
        work.commits.append(CommitReceipt(version=1, read_version=0))
        self.at = 1
        return work

    def back(self, step: Any, work: StepWork) -> Any:
        clock, engine = SimpleNamespace(now_ms=lambda: 9), SimpleNamespace(reader=self)
        worker: Any = SimpleNamespace(
            engine=engine, context=SimpleNamespace(clock=clock), plan=SimpleNamespace(ref=self.looks[0].ref)
        )
        return look_back(worker, step, work)


BEFORE = [DataFile(f"f{n}-10-90", 100, 0) for n in range(3)]
AFTER = [DataFile("g0-10-50", 150, 0), DataFile("g1-51-90", 130, 0)]
BATCH = Batch((Bin(tuple(BEFORE)),))
ORDER = ZOrderStep((BATCH,), ("a", "b"), 1000, 1, ())
COMPACT = CompactStep((BATCH,), 1000, 1, ())


def test_a_z_order_keeps_sizes_look_ups_and_boxes_of_both_sides() -> None:
    log = Log(BEFORE, AFTER)
    look = log.back(ORDER, log.met(ORDER))
    assert (look.columns, look.before.at_ms, look.after.at_ms) == (("a", "b"), 5, 9)
    assert (look.before.num_files, look.after.num_files, look.after.size_bytes) == (3, 2, 280)
    assert (look.before.files_read, look.after.files_read) == (3.0, 1.0)
    assert (len(look.before.boxes), len(look.after.boxes)) == (3, 2)
    assert sum(bucket.num_files for bucket in look.before.file_sizes) == 3


def test_a_compaction_has_no_order_and_its_typical_query_reads_all_files() -> None:
    log = Log(BEFORE, AFTER)
    look = log.back(COMPACT, log.met(COMPACT))
    assert (look.columns, look.before.files_read, look.after.files_read) == ((), 3.0, 2.0)


def test_where_the_log_cannot_be_asked_figures_are_left_out_and_nothing_is_raised() -> None:
    log = Log(BEFORE, AFTER)
    work = log.met(ORDER)
    log.no_ranges = True
    look = log.back(ORDER, work)
    assert (look.columns, look.before.lookups, look.after.boxes, look.after.num_files) == ((), (), (), 2)
    log.broken = True
    assert log.back(ORDER, work) is None


def test_without_a_commit_there_is_no_look_and_a_huge_tables_statistics_stay_unread() -> None:
    log = Log(BEFORE, AFTER)
    work = log.met(ORDER)
    work.commits.clear()
    assert log.back(ORDER, work) is None
    huge = Log([DataFile(f"f{n}-1-2", 1, 0) for n in range(MAX_FILES_RANGED + 1)])
    assert meet(huge, ORDER, huge.facts(None)).column_ranges is None  # type: ignore[arg-type]
