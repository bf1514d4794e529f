"""Choose one turn of incremental Z-order: the first strategy in order that yields files. Pure.

A turn follows from the settings and the files alone. The loop ends: ``unindexed`` leaves fewer unindexed files, no
other strategy makes any, and those that others append meanwhile wait for the next plan; ``pieces`` leaves fewer
unsettled files; ``leveled`` makes fewer files or deeper cubes, and depth is bounded.

The layout after a turn is forecast: its files replaced by even parts of the cube they lie in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy, ZOrderSettings, ZOrderTurn
from maintainer.model.table.table_facts import DataFile, PartitionValues
from maintainer.planning.curve.curve import box_of
from maintainer.planning.curve.curve_files import Box, CurveFile, Ranges, boxes_of, curve_files, figures_of_boxes
from maintainer.planning.curve.revision import Revision
from maintainer.planning.selection.file_selection import has_many_deleted_rows
from maintainer.planning.zorder.turn_strategies import Group, Piece, leveled_groups, select_leveled, select_piece
from maintainer.units import grouped

SPREAD = 16
"""New rows are written as up to so many files as ``maxFileSize`` would hold once: narrow ones, so that few of them lie
in a query's way, and so that a piece of the curve can be rewritten without rows from elsewhere."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files that a turn may take, sorted by what they are."""

    unindexed: tuple[DataFile, ...]
    too_old: tuple[DataFile, ...]
    alone: tuple[DataFile, ...]
    other_revision: tuple[DataFile, ...]
    on_curve: tuple[CurveFile, ...]
    bytes_of: dict[PartitionValues, int]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a turn takes: the turn itself, its batch, and the groups (a bin each) or the piece behind it."""

    planned_turn: ZOrderTurn
    batch: Batch
    groups: tuple[Group, ...] = ()
    piece: Piece | None = None

    @property
    def cubes(self) -> tuple[str, ...]:
        """The cube that each bin's rows lie in; empty for the whole curve."""
        if self.groups:
            return tuple(group.cube for group in self.groups)
        return (self.planned_turn.cube or "",) * len(self.batch.bins)


def sort_candidates(
    files: Iterable[DataFile], settings: ZOrderSettings, target: Revision, optimized: Revision, ranges: Ranges
) -> Candidates:
    """Sort live files into those that are not indexed and those on the curve.

    Args:
        files: Live files of the table.
        settings: Of the loop; files outside of its partitions are passed over.
        target: The revision that unindexed files are written in.
        optimized: The revision whose files leveled compaction and pieces work on: the same, or one that was named.
        ranges: Smallest and largest values, in the order of the columns of ``optimized``.
    """
    scope = None if settings.partitions is None else frozenset(settings.partitions)
    inside = [file for file in files if (scope is None or file.partition_values in scope) and not file.lost_columns]
    by_partition = grouped(inside, lambda file: file.partition_texts)
    bytes_of = {texts: sum(file.size_bytes for file in group) for texts, group in by_partition.items()}
    dense = [file for file in inside if not has_many_deleted_rows(file, settings.max_deleted_rows_ratio)]
    on_curve = curve_files(dense, optimized, ranges)
    indexed = {curve_file.file.key for curve_file in on_curve}
    other: tuple[DataFile, ...] = ()
    if target.tag != optimized.tag:
        other = tuple(curve_file.file for curve_file in curve_files(dense, target, {}))
        indexed |= {file.key for file in other}
    unindexed: list[DataFile] = []
    too_old: list[DataFile] = []
    alone: list[DataFile] = []
    kept_keys = {file.key for file in dense}
    for file in inside:
        if file.key in indexed:
            continue
        lone = len(by_partition[file.partition_texts]) == 1 and file.size_bytes < 2 * settings.max_file_size_bytes
        if file.modification_time_ms < settings.from_timestamp_ms:
            too_old.append(file)
        elif lone and file.key in kept_keys:
            alone.append(file)
        else:
            unindexed.append(file)
    return Candidates(
        tuple(sorted(unindexed, key=_age)), tuple(too_old), tuple(alone), other, tuple(on_curve), bytes_of
    )


def choose_turn(
    settings: ZOrderSettings, candidates: Candidates, target: Revision, optimized: Revision
) -> Chosen | None:
    """Try the strategies in order; return what the first one that yields files takes, None when none does."""
    room = min(settings.batch_bytes, _budget(settings))
    iteration = min(settings.bytes_per_iteration, _budget(settings))
    for strategy in settings.strategies:
        chosen: Chosen | None = None
        match strategy:
            case Strategy.UNINDEXED:
                chosen = _unindexed(candidates, settings, target, room)
            case Strategy.LEVELED:
                chosen = _leveled(candidates, settings, optimized, iteration)
            case Strategy.PIECES:
                chosen = _piece(candidates, settings, optimized, iteration)
            case _:
                assert_never(strategy)
        if chosen is not None and len(chosen.batch.files) <= _most_files(settings):
            return chosen
    return None


def num_files_of(size_bytes: int, partition_bytes: int, max_file_size_bytes: int) -> int:
    """Return the files that a partition of so many bytes gives: the number, or as many as come nearest to the size.

    At least as many as ``maxFileSize`` asks for; narrower while there are few, up to ``SPREAD`` a full file, but never
    narrower than the files of the whole partition would be.
    """
    as_the_partition = -(-partition_bytes // max_file_size_bytes)
    narrow = min(SPREAD * size_bytes // max_file_size_bytes, as_the_partition)
    return max(1, size_bytes // max_file_size_bytes, narrow)


def _budget(settings: ZOrderSettings) -> int:
    return (1 << 62) if settings.budget_bytes is None else settings.budget_bytes


def _most_files(settings: ZOrderSettings) -> float:
    return math.inf if settings.budget_files is None else settings.budget_files


def _age(file: DataFile) -> tuple[int, str, str]:
    return (file.modification_time_ms, *file.key)


def _unindexed(candidates: Candidates, settings: ZOrderSettings, target: Revision, room: int) -> Chosen | None:
    taken: list[DataFile] = []
    room_left = room
    for file in candidates.unindexed:
        # One file larger than all of a batch is still taken, alone: it cannot be cut. A budget is never exceeded.
        if file.size_bytes > room_left and (taken or file.size_bytes > _budget(settings)):
            break
        if len(taken) >= _most_files(settings):
            break
        taken.append(file)
        room_left -= file.size_bytes
    if not taken:
        return None
    groups = grouped(taken, lambda file: file.partition_texts)
    bins = tuple(Bin(tuple(group)) for group in groups.values())
    largest = settings.max_file_size_bytes
    num_files = tuple(
        num_files_of(bin_.size_bytes, candidates.bytes_of[bin_.partition_texts], largest) for bin_ in bins
    )
    elements = sum(file.live_records or 0 for file in taken)
    turn = ZOrderTurn(Strategy.UNINDEXED, target.tag, elements, num_files)
    return Chosen(turn, Batch(bins))


def _leveled(candidates: Candidates, settings: ZOrderSettings, optimized: Revision, room: int) -> Chosen | None:
    def num_files(group: Group) -> int:
        return num_files_of(group.size_bytes, candidates.bytes_of[group.partition], settings.max_file_size_bytes)

    groups = select_leveled(
        leveled_groups(candidates.on_curve),
        bytes_per_iteration=room,
        num_files=num_files,
        num_bits=optimized.num_bits,
        company_bytes=settings.max_file_size_bytes,
    )
    if not groups:
        return None
    first, elements = groups[0], sum(group.elements for group in groups)
    sizes = tuple(num_files(group) for group in groups)
    turn = ZOrderTurn(Strategy.LEVELED, optimized.tag, elements, sizes, first.level, first.cube)
    bins = tuple(Bin(tuple(file.file for file in group.files)) for group in groups)
    return Chosen(turn, Batch(bins), groups=groups)


def _piece(candidates: Candidates, settings: ZOrderSettings, optimized: Revision, room: int) -> Chosen | None:
    piece = select_piece(
        candidates.on_curve,
        optimized,
        max_file_size_bytes=settings.max_file_size_bytes,
        bytes_per_iteration=room,
    )
    if piece is None:
        return None
    num_files = max(1, round(piece.size_bytes / settings.max_file_size_bytes))
    turn = ZOrderTurn(Strategy.PIECES, optimized.tag, piece.elements, (num_files,), cube=piece.cube)
    return Chosen(turn, Batch((Bin(tuple(file.file for file in piece.files)),)), piece=piece)


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
        for bin_, num_files, cube in zip(chosen.batch.bins, chosen.planned_turn.num_files, chosen.cubes, strict=True)
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
