"""How a full Z-order changed the layout of a table, by what the log says of its files before and after.

Nothing of a full Z-order says which values are how frequent. So both looks together make a scale: the rows of a file
are taken to lie evenly between its smallest and largest values, and each step of the scale has about as many rows.
Only the log is read for it, and the scale is forgotten: figures of two runs are measured by two scales.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from maintainer.model.plan.zorder_turn import LayoutChange, LayoutFigures
from maintainer.model.table.table_facts import ColumnRanges, DataFile, FileRange, LayoutBoxes, TableFacts
from maintainer.planning.curve.curve import ValueKey, key_of, num_shared, upper_key
from maintainer.planning.curve.curve_files import boxes_of, figures_of_boxes, layout_boxes
from maintainer.planning.curve.revision import Revision, make_column

MAX_FILES_MEASURED = 20_000
"""Tables with more files are not measured: reading the statistics of each would take seconds."""

_SCALE_BITS = 6
_MAX_FILES_OF_SCALE, _POINTS = 2_000, 4_096
_TEXT_BYTES = 6
"""A text is placed by so many bytes after what all of them begin with: as many as a float keeps apart."""

FileKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class OrderChange:
    """A full Z-order's layout before and after: boxes for a picture (None for one column), and figures."""

    boxes: LayoutBoxes | None
    layout: LayoutChange


def order_change(
    columns: Mapping[str, str], tag: tuple[str, str], before: TableFacts, after: TableFacts
) -> OrderChange | None:
    """Measure two looks at a table by one scale.

    Args:
        columns: The Z-order's columns in their order, with Spark's names of their types.
        tag: What files in this order carry.
        before: The table before the step, with the ranges of the columns.
        after: The table after it, with the same ranges.

    Returns:
        None where the log says nothing of the columns, or too many files would have to be measured.
    """
    looks = [(facts, _placed(facts, columns)) for facts in (before, after)]
    if any(len(facts.files) > MAX_FILES_MEASURED for facts, _ in looks):
        return None
    scale = Revision(0, tuple(
        make_column(
            name, "double", [text for facts, placed in looks for text in _points(facts.files, placed, number)],
            max_bits=_SCALE_BITS,
        )
        for number, name in enumerate(columns)
    ))  # fmt: skip
    if all(column.num_ranks == 1 for column in scale.columns):
        return None
    boxes: LayoutBoxes | None = None
    for facts, placed in looks:
        boxes = layout_boxes(scale, replace(facts, column_ranges=ColumnRanges(tuple(columns), placed)), boxes)
    first, last = (_figures(facts.files, scale, placed, tag) for facts, placed in looks)
    return OrderChange(boxes, LayoutChange(first, last))


def _figures(
    files: Sequence[DataFile], scale: Revision, placed: Mapping[FileKey, tuple[FileRange, ...]], tag: tuple[str, str]
) -> LayoutFigures:
    total = sum(file.size_bytes for file in files)
    others = sum(file.size_bytes for file in files if file.tag(tag[0]) != tag[1])
    in_order = sorted(files, key=lambda file: file.key)
    return figures_of_boxes(boxes_of(in_order, scale, placed), scale, others / total if total else 0.0)


def _placed(facts: TableFacts, columns: Mapping[str, str]) -> dict[FileKey, tuple[FileRange, ...]]:
    """Return each live file's ranges as numbers, spelled as texts: what a scale of any type is made of."""
    ranges = facts.column_ranges
    if ranges is None or ranges.columns != tuple(columns):
        return {}
    by_column = [_column(type_name, number, ranges.by_file) for number, type_name in enumerate(columns.values())]
    return {key: tuple(column[key] for column in by_column) for key in ranges.by_file if key in facts.file_keys}


def _column(type_name: str, number: int, by_file: Mapping[FileKey, tuple[FileRange, ...]]) -> dict[FileKey, FileRange]:
    keys: dict[FileKey, tuple[ValueKey | None, ValueKey | None]] = {}
    for key, of_file in by_file.items():
        low, high, _ = of_file[number]
        keys[key] = (
            None if low is None else key_of(type_name, low),
            None if high is None else upper_key(type_name, high),
        )
    texts = [end for ends in keys.values() for end in ends if isinstance(end, str)]
    # What the lowest and the highest share, all share.
    shared = num_shared(min(texts), max(texts)) if texts else 0
    return {
        key: (_place(low, shared), _place(high, shared), by_file[key][number][2]) for key, (low, high) in keys.items()
    }


def _place(key: ValueKey | None, shared: int) -> str | None:
    """Return where a value lies, as the text of a number; None where nobody knows."""
    if key is None:
        return None
    if isinstance(key, str):
        encoded = key[shared:].encode("utf-8", "surrogatepass")[:_TEXT_BYTES]
        return str(int.from_bytes(encoded.ljust(_TEXT_BYTES, b"\0"), "big"))
    try:
        number = float(key)
    except OverflowError:
        return None
    return repr(number) if math.isfinite(number) else None


def _points(files: Sequence[DataFile], placed: Mapping[FileKey, tuple[FileRange, ...]], number: int) -> list[str]:
    """Return values as a column's rows would have them if those of each file lay evenly; more for larger files."""
    chosen = sorted(files, key=lambda file: file.key)[:: -(-len(files) // _MAX_FILES_OF_SCALE) or 1]
    total = sum(file.size_bytes for file in chosen) or 1
    points: list[str] = []
    for file in chosen:
        low, high, _ = placed[file.key][number] if file.key in placed else (None, None, True)
        if low is None or high is None:
            continue
        least, width, steps = float(low), float(high) - float(low), max(1, _POINTS * file.size_bytes // total)
        points += [repr(least + width * step / steps) for step in range(steps + 1)]
    return points
