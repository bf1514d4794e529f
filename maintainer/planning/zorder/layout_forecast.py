"""Forecast the layout after a turn: its files replaced by even parts of the cube they lie in."""

from __future__ import annotations

from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.table.table_facts import DataFile
from maintainer.planning.curve.curve import box_of
from maintainer.planning.curve.curve_files import Ranges
from maintainer.planning.curve.revision import Revision
from maintainer.planning.curve.skipping_metrics import Box, boxes_of, figures_of_boxes
from maintainer.planning.zorder.turn_choice import Chosen


def forecast(
    files: tuple[DataFile, ...], chosen: Chosen, target: Revision, ranges: Ranges, unindexed_bytes: int
) -> tuple[LayoutFigures, LayoutFigures]:
    """Return the figures of the table's layout now, and as they are expected after the turn.

    Args:
        files: Live files of the table.
        chosen: The turn.
        target: The revision that queries are laid over, and that the turn writes.
        ranges: Smallest and largest values of its columns in each file.
        unindexed_bytes: Bytes that are not in the revision now.
    """
    taken = {file.key for file in chosen.batch.files}
    now = boxes_of(files, target, ranges)
    untouched = [box for file, box in zip(files, now, strict=True) if file.key not in taken]
    made = [
        box
        for bin_, num_files, cube in zip(chosen.batch.bins, chosen.turn.num_files, chosen.cubes, strict=True)
        for box in even_parts(target, cube, num_files, bin_.size_bytes)
    ]
    total = sum(file.size_bytes for file in files)
    indexed_by_it = chosen.batch.size_bytes if not chosen.groups and chosen.piece is None else 0
    unindexed_after = max(0, unindexed_bytes - indexed_by_it)
    return (
        figures_of_boxes(now, target, unindexed_bytes / total if total else 0.0),
        figures_of_boxes([*untouched, *made], target, unindexed_after / total if total else 0.0),
    )


def even_parts(revision: Revision, cube: str, num_files: int, size_bytes: int) -> list[Box]:
    """Cut a cube into so many cubes of about one size: the widest first, as if its rows were spread evenly."""
    cubes = [cube]
    while len(cubes) < num_files:
        widest = min(cubes, key=len)
        if len(widest) >= revision.num_bits:
            break
        cubes.remove(widest)
        cubes += [f"{widest}0", f"{widest}1"]
    most = [column.num_ranks - 1 for column in revision.columns]
    boxes = []
    for part in cubes:
        low, high = box_of(part, revision.bits)
        inside = tuple(min(pair) for pair in zip(low, most, strict=True))
        boxes.append(Box(inside, tuple(min(pair) for pair in zip(high, most, strict=True)), size_bytes // len(cubes)))
    return boxes
