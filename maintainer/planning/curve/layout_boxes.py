"""Boxes of a table's files in its first two Z-order columns, for a picture: from facts that the loop has in hand."""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.table.files_seen import MAX_BOXES, FileBox, LayoutBoxes
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.revision import Revision


def layout_boxes(revision: Revision | None, facts: TableFacts, earlier: LayoutBoxes | None) -> LayoutBoxes | None:
    """Return the boxes with those of this look added: the first look is before the step, the newest after it.

    Args:
        revision: The layout that is worked on; None where the table does not have it yet.
        facts: The table with the ranges of the revision's columns.
        earlier: What looks before this one gave; None for the first.

    Returns:
        What was given where nothing can be drawn: a single column, or ranges of other columns.
    """
    ranges = facts.column_ranges
    if revision is None or ranges is None or ranges.columns != revision.names() or len(ranges.columns) < 2:
        return earlier
    files = sorted(key for key in facts.file_keys if key in ranges.by_file)
    every = -(-len(files) // MAX_BOXES) or 1
    boxes: list[FileBox] = []
    for key in files[::every]:
        low, high = revision.box(ranges.by_file[key])
        boxes.append((low[0], high[0], low[1], high[1]))
    if earlier is not None:
        return replace(earlier, after=tuple(boxes), num_after=len(facts.files))
    first, second = revision.columns[:2]
    return LayoutBoxes((first.name, second.name), (first.num_ranks, second.num_ranks), tuple(boxes), len(facts.files))
