"""Look at a table's files before a rewrite's first commit and after its last, for reports.

A look never costs a step: where the log cannot be asked, the figures are left out. Of a very large table only sizes
are kept, for reading every file's statistics twice would take longer than a report is worth.
"""

from __future__ import annotations

from dataclasses import replace

from maintainer.engine.protocols import TableReader
from maintainer.execution.table.commit_attempt import StepWork, Worker
from maintainer.model.plan.steps import ClusterStep, RewriteStep, Step, ZOrderStep
from maintainer.model.run.table_look import StepLook, TableLook
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.curve import has_min_and_max
from maintainer.planning.curve.lookup_cost import LookupCost, RangedFile, compare_lookups
from maintainer.planning.selection.schema_columns import FoundColumn, find_column

MAX_FILES_RANGED = 50_000
"""Statistics of a table with more files are not read."""

MAX_COLUMNS = 4


def meet(reader: TableReader, step: RewriteStep, facts: TableFacts) -> TableFacts:
    """Return the facts with the ranges of the step's columns, read before its first commit."""
    return _ranged(reader, facts, tuple(column.quoted for column in _columns(step, facts)))


def look_back(worker: Worker, step: Step, work: StepWork) -> StepLook | None:
    """Compare the table as the step met it with what it is now; None where nothing was rewritten or nobody can say."""
    met = work.met
    if met is None or not work.commits or not isinstance(step, RewriteStep):
        return None
    reader, now_ms = worker.engine.reader, worker.context.clock.now_ms()
    try:
        after = reader.facts(worker.plan.ref)
    except Exception:  # the step is done and recorded; what a report shows beside it is not worth its outcome
        return None
    columns = _columns(step, met)
    asked = met.column_ranges is not None and len(columns) == len(met.column_ranges.columns)
    after = _ranged(reader, after, met.column_ranges.columns if asked and met.column_ranges is not None else ())
    first, second = _costs(columns, met, after)
    return StepLook(
        _look(met, work.met_at_ms, first),
        _look(after, now_ms, second),
        tuple(column.dotted for column in columns) if first.lookups else (),
    )


def _columns(step: RewriteStep, facts: TableFacts) -> list[FoundColumn]:
    """The step's columns of which the log keeps smallest and largest values."""
    names = step.columns if isinstance(step, (ZOrderStep, ClusterStep)) else ()
    columns = [column for name in names[:MAX_COLUMNS] if (column := find_column(facts, name)) is not None]
    return [column for column in columns if has_min_and_max(column.type_name)]


def _ranged(reader: TableReader, facts: TableFacts, columns: tuple[str, ...]) -> TableFacts:
    if not columns or len(facts.files) > MAX_FILES_RANGED:
        return replace(facts, column_ranges=None)
    try:
        return replace(facts, column_ranges=reader.column_ranges(facts, columns))
    except Exception:  # an engine that does not read them, or a log that cannot be read just now
        return replace(facts, column_ranges=None)


def _costs(columns: list[FoundColumn], met: TableFacts, after: TableFacts) -> tuple[LookupCost, LookupCost]:
    if not columns or met.column_ranges is None or after.column_ranges is None:
        return LookupCost((), ()), LookupCost((), ())
    before_files, after_files = (
        [RangedFile(file.size_bytes, ranges.by_file.get(file.key)) for file in sorted(facts.files, key=lambda f: f.key)]
        for facts, ranges in ((met, met.column_ranges), (after, after.column_ranges))
    )
    return compare_lookups([column.type_name for column in columns], before_files, after_files)


def _look(facts: TableFacts, at_ms: int, cost: LookupCost) -> TableLook:
    sizes = file_sizes(file.size_bytes for file in facts.files)
    return TableLook(facts.version, at_ms, len(facts.files), facts.size_bytes, sizes, cost.lookups, cost.boxes)
