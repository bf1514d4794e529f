"""Name the files of a plan whose bounds in the log cannot be trusted, as far as the log tells who wrote them."""

from __future__ import annotations

from collections.abc import Iterable

from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.statistics_writers import doubts_about
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.units import count_of

MAX_NAMED_COLUMNS = 3


def doubtful_notes(facts: TableFacts, files: Iterable[DataFile]) -> tuple[Reason, ...]:
    """Say of files that are rewritten whose bounds are computed anew and may be wrong now: one note at most."""
    if not facts.doubtful_files:
        return ()
    paths, parts = {file.path for file in files}, []
    columns = [column for column in planned_columns(facts) if column.name in facts.columns_with_stats]
    for writer, added in facts.doubtful_files:
        said = []
        for doubt in doubts_about(writer):
            if names := [column.name for column in columns if doubt.is_about(column.type)]:
                more = f" and {len(names) - MAX_NAMED_COLUMNS} more" if len(names) > MAX_NAMED_COLUMNS else ""
                said.append(f"{', '.join(names[:MAX_NAMED_COLUMNS])}{more}: {doubt.why}")
        if said and (num_files := len(paths & added)):
            parts.append(f"{count_of(num_files, 'file')} of {writer} ({'; '.join(said)})")
    if not parts:
        return ()
    text = f"bounds are computed anew, and those in the log may miss rows: {'; '.join(parts)}"
    return (Reason(ReasonCode.DOUBTFUL_BOUNDS, text),)
