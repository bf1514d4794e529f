"""Plan full Z-order: every selected partition is rewritten in Z-order, unless it already is.

As ``OPTIMIZE ... ZORDER BY``, it puts all files of a partition into one bin, and a bin gives
``max(1, floor(bytes / maxFileSize))`` files. Unlike it, partitions in order are left alone: files that our Z-order
wrote carry its columns as a tag, and a partition whose files all carry the same tag has not changed since. Where
Z-order is configured, compaction is not planned separately.

How it changed the layout is measured by what the log says of the files before and after. Nothing of a full Z-order says
which values are how frequent. So both looks together make a scale: the rows of a file are taken to lie evenly between
its smallest and largest values, and each step of the scale has about as many rows. Only the log is read for it, and the
scale is forgotten: figures of two runs are measured by two scales.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from maintainer.model.plan.layout_tags import PACKED_TAG, ZORDER_TAG, zorder_tag_value
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutChange, LayoutFigures
from maintainer.model.table.table_facts import ColumnRanges, DataFile, FileKey, FileRange, LayoutBoxes, TableFacts
from maintainer.planning.curve.curve import ValueKey, key_of, num_shared, upper_key
from maintainer.planning.curve.curve_files import boxes_of, figures_of_boxes, layout_boxes
from maintainer.planning.curve.revision import Revision, make_column
from maintainer.planning.operations.compaction import sort_whole_partitions, weigh
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Decision, Partition, files_of, leave_counted, leave_partitions
from maintainer.planning.selection.file_selection import (
    deleted_rows_reason,
    pack_batches,
    select_partitions,
)
from maintainer.planning.zorder.zorder_revision import columns_or_none, refuse_equal_values, zorder_columns
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy, ZOrderMode
from maintainer.units import count_of, read_digits

MAX_FILES_MEASURED = 20_000
"""Tables with more files are not measured: reading the statistics of each would take seconds."""

_SCALE_BITS = 6
_MAX_FILES_OF_SCALE, _POINTS = 2_000, 4_096
_TEXT_BYTES = 6
"""A text is placed by so many bytes after what all of them begin with: as many as a float keeps apart."""


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


def plan_zorder(table: TableInput) -> Decision:
    """Decide which partitions are written in Z-order.

    Raises:
        TableError: T410 ``where``, T411 no such column, T412 a partition column, T413 a column without
            statistics, T414 a type that has no order, T420 a column twice.
        NothingToOrder: Files would be rewritten, and no column has two values.
    """
    policy, facts = table.policy, table.facts
    optimize = policy.optimize
    found = zorder_columns(policy, facts)
    columns = tuple(column.quoted for column in found)
    tag = zorder_tag_value(columns)
    selection = select_partitions(table)
    origin = policy.place_of("optimize.zorder")
    left_alone = list(selection.left_alone)

    def is_new(file: DataFile) -> bool:
        return not _is_ordered(file, tag, optimize, facts.zordered_paths)

    def is_single(partition: Partition) -> bool:
        return len(partition.files) == 1 and partition.size_bytes < 2 * optimize.max_file_size_bytes

    bins, in_order, single = sort_whole_partitions(selection.partitions, optimize, is_new, is_single)
    listed, ordered = ", ".join(columns), table.without_purged(files_of(in_order))
    left_alone += leave_counted(ReasonCode.SAME_ZORDER, f"already in Z-order of {listed}", ordered, origin)
    left_alone += leave_partitions(
        ReasonCode.NO_PARTNER,
        lambda files, _: (
            f"{count_of(files, 'file')} alone in a partition: Z-order within one file lets a query skip no file"
        ),
        [each for each in single if table.without_purged(each.files)],
        origin,
    )
    if bins:
        refuse_equal_values(found, facts)
    bins, not_worth_it = weigh(table, bins, is_new, "file not in order", "files not in order")
    left_alone += not_worth_it
    if not bins:
        return Decision(None, tuple(left_alone))
    files = [file for bin_ in bins for file in bin_.files]
    new = sum(map(is_new, files))
    text = f"{count_of(new, 'file')} not in Z-order of {listed}"
    reasons = [Reason(ReasonCode.ZORDER_DUE, text, origin)] if new else []
    step = ZOrderStep(
        batches=pack_batches(bins, batch_size_bytes=optimize.batch_size_bytes),
        columns=columns,
        max_file_size_bytes=optimize.max_file_size_bytes,
        max_threads=optimize.max_threads,
        reasons=(*reasons, *deleted_rows_reason(policy, files)),
    )
    return Decision(step, tuple(left_alone))


def history_wanted(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns for which the table's history is asked which files a Z-order wrote; none where tags say it.

    Empty also where planning will end in a problem, and without full Z-order.
    """
    zorder = policy.optimize.zorder
    if zorder is None or zorder.mode is not ZOrderMode.FULL:
        return ()
    if all(file.tag(PACKED_TAG) is not None for file in facts.files):
        return ()
    return columns_or_none(zorder_columns, policy, facts)


def values_wanted(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns whose ranges say whether there is anything to put in order; none where no file would be.

    Empty also where planning will end in a problem, and for more files than are measured.
    """
    zorder, files = policy.optimize.zorder, facts.files
    if zorder is None or zorder.mode is not ZOrderMode.FULL or not 1 < len(files) <= MAX_FILES_MEASURED:
        return ()
    columns = columns_or_none(zorder_columns, policy, facts)
    tag = zorder_tag_value(columns)
    return () if all(_is_ordered(file, tag, policy.optimize, facts.zordered_paths) for file in files) else columns


def _is_ordered(file: DataFile, tag: str, optimize: OptimizePolicy, zordered_paths: frozenset[str] | None) -> bool:
    """Whether our Z-order wrote the file with these columns and a size of about this one (half to double).

    Or somebody else's with these columns, as the table's history says: their files have no tag, and any size.
    """
    tagged = file.tag(PACKED_TAG)
    if tagged is None and zordered_paths is not None and file.path in zordered_paths:
        return True
    size = read_digits(tagged)
    if file.tag(ZORDER_TAG) != tag or size is None:
        return False
    return optimize.max_file_size_bytes <= 2 * size and size <= 2 * optimize.max_file_size_bytes
