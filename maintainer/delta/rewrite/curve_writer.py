"""Lay rows along a revision's curve: ranks, addresses and cuts as Spark columns.

Boundaries and cuts go to Spark as values, never as SQL text. ``planning.curve.cut_curve`` finds the cuts from a count
of rows for each address, so that files keep to the borders of cubes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.schema_names import physical_path, quote, table_schema
from maintainer.delta.snapshot.column_statistics import parse_statistics, range_in
from maintainer.errors import CommitConflict, CommitNotLanded
from maintainer.model.plan.steps import Bin, RewriteStep, ZOrderStep
from maintainer.model.plan.zorder_turn import ZOrderTurn
from maintainer.planning.curve.curve import bit_order, cut_curve
from maintainer.planning.curve.curve_files import files_of_pieces, max_rows_of, tags_of
from maintainer.planning.curve.revision import PROPERTY_PREFIX, Revision, read_revision

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ADDRESS = "__maintainer_address"
PIECE = "__maintainer_piece"

MAX_COUNTED_BITS = 14
"""Rows are counted by so many bits of the address below the cube: at most 16,384 counts come to the driver."""

SMALL_BYTES = 32 * 1024 * 1024
"""Up to so many bytes the rows of a bin are counted by one task."""

_HASHABLE = ("byte", "short", "integer", "long", "float", "double", "date", "timestamp", "string", "decimal", "binary")


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where the curve is cut for the files of one bin.

    ``starts`` are the first cells of the pieces, a cell being an address without its last ``shift`` bits. ``parts``
    are the files of each piece: a cell of the curve with more rows than a file should have is divided by a hash, for
    there is nothing left in it that queries could tell apart by these columns.
    """

    shift: int
    starts: tuple[int, ...]
    parts: tuple[int, ...]


ONE_FILE = Cuts(0, (0,), (1,))


def find_cuts(frame: DataFrame, revision: Revision, planned_turn: ZOrderTurn, bin_: Bin, num_files: int) -> Cuts:
    """Count the rows along the curve and cut it; a Spark job, unless one file is wanted.

    Args:
        frame: The rows of the bin.
        revision: Its columns are in the frame.
        planned_turn: Its cube, where it has one, is where all rows lie.
        bin_: The bin. A small one is counted by one task: a shuffle costs more than it saves.
        num_files: About how many files are wanted.
    """
    from pyspark.sql import functions as F

    if num_files <= 1:
        return ONE_FILE
    shift = max(0, revision.num_bits - len(planned_turn.cube or "") - MAX_COUNTED_BITS)
    cells = with_address(frame, revision).select(F.shiftright(F.col(ADDRESS), shift).alias(ADDRESS))
    if bin_.size_bytes <= SMALL_BYTES:
        cells = cells.coalesce(1)
    counts = sorted((int(row[0]), int(row[1])) for row in cells.groupBy(ADDRESS).count().collect())
    max_rows = max_rows_of(sum(rows for _, rows in counts), num_files)
    starts = cut_curve(counts, num_bits=revision.num_bits - shift, max_rows=max_rows)
    parts = files_of_pieces(counts, starts, max_rows) if _hashable(frame) else (1,) * len(starts)
    return Cuts(shift, tuple(starts), parts)


def along_curve(frame: DataFrame, revision: Revision, cuts: Cuts) -> DataFrame:
    """Return the frame in one partition for each file to write, each sorted along the curve. Reads nothing.

    Args:
        frame: The rows of one bin, with whatever columns are written beside the table's own.
        revision: Its columns are in the frame.
        cuts: From ``find_cuts`` of the same rows.
    """
    from pyspark.sql import functions as F

    placed = with_address(frame, revision)
    order = [F.col(ADDRESS), *(F.col(column.name) for column in revision.columns)]
    parts, starts = cuts.parts, cuts.starts
    if sum(parts) <= 1:
        return placed.coalesce(1).sortWithinPartitions(*order).drop(ADDRESS)
    cell = F.shiftright(F.col(ADDRESS), cuts.shift)
    first = [sum(parts[:place]) for place in range(len(parts))]
    borders = F.array(*(F.lit(start).cast("long") for start in starts[1:]))
    pieces = with_ranks(placed, {PIECE: Boundaries(cell, borders, len(starts) - 1)})
    number = F.get(F.array(*(F.lit(place) for place in first)), F.col(PIECE))
    if max(parts) > 1:
        share = F.get(F.array(*(F.lit(part) for part in parts)), F.col(PIECE))
        number = number + F.pmod(F.xxhash64(*_hashable(frame)), share).cast("int")
    numbered = pieces.withColumn(PIECE, number.cast("int"))
    return numbered.repartitionById(sum(parts), PIECE).sortWithinPartitions(*order).drop(ADDRESS, PIECE)


def _hashable(frame: DataFrame) -> list[str]:
    """Return the columns that can be hashed; without any, a cell stays whole."""
    return [quote(field.name) for field in frame.schema.fields if field.dataType.typeName().startswith(_HASHABLE)]


@dataclass(frozen=True, slots=True)
class Boundaries:
    """What a value is compared with: an ascending array and its length."""

    value: Column
    array: Column
    number: int


def with_ranks(frame: DataFrame, boundaries: Mapping[str, Boundaries]) -> DataFrame:
    """Add columns with the number of boundaries at or below a value each, 0 for null.

    By the binary search that Spark has for its own machine learning: a loop in SQL is interpreted for every row, and
    took twelve times as long. It says where it found a value, or, below 0, before which boundary it would belong.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.internal import InternalFunction

    places = {
        name: InternalFunction.array_binary_search(bounds.array, bounds.value) if bounds.number else F.lit(-1)
        for name, bounds in boundaries.items()
    }
    # Columns of their own first: each is used three times.
    return frame.withColumns(places).withColumns({name: _rank(F.col(name)) for name in boundaries})


def _rank(place: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when(place.isNull(), F.lit(0)).when(place >= 0, place + 1).otherwise(-place - 1)


def with_address(frame: DataFrame, revision: Revision) -> DataFrame:
    """Add the Z-address of each row. Ranks are columns of their own first: each is used once for each of its bits."""
    from pyspark.sql import functions as F

    names = [f"{ADDRESS}_rank_{place}" for place in range(len(revision.columns))]
    ranks = {}
    for name, column in zip(names, revision.columns, strict=True):
        texts = F.from_json(F.lit(json.dumps(list(column.boundaries))), "array<string>")
        array = texts.cast(f"array<{column.type_name}>")
        ranks[name] = Boundaries(F.col(column.name), array, len(column.boundaries))
    ranked = with_ranks(frame, ranks)
    address = F.lit(0).cast("long")
    for position, (place, bit) in enumerate(reversed(bit_order(revision.bits))):
        digit = F.shiftright(F.col(names[place]), bit).bitwiseAND(F.lit(1)).cast("long")
        address = address.bitwiseOR(F.shiftleft(digit, position))
    return ranked.withColumn(ADDRESS, address).drop(*names)


def num_files_of(step: RewriteStep, bin_: Bin) -> int:
    """About how many files are wanted of a bin: bins that are no longer live were dropped, so its files say which."""
    if not isinstance(step, ZOrderStep) or step.planned_turn is None:
        return step.num_files_of(bin_)
    return step.planned_turn.num_files[[planned.files[0].key for planned in step.bins].index(bin_.files[0].key)]


def revision_of(planned_turn: ZOrderTurn, metadata: Mapping[str, Any], where: str) -> Revision:
    """Return the turn's revision as the table's property defines it now.

    Raises:
        CommitConflict: C701, it was removed or changed since it was planned.
    """
    name = f"{PROPERTY_PREFIX}{planned_turn.revision.partition(':')[0]}"
    revision = read_revision(name, metadata["configuration"].get(name, ""))
    if revision is None or revision.tag != planned_turn.revision:
        raise CommitConflict(
            f"the table property {name} was removed or changed since it was planned",
            where=where,
            help="plan again; without it files of this revision count as unindexed",
        )
    return revision


def curve_tags(step: RewriteStep, stats_text: str | None, metadata: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the tags of a written file on a Z-order curve, from its own statistics; none off one.

    Raises:
        CommitConflict: C701, the revision was removed or changed.
        CommitNotLanded: C702, the file was written without statistics.
    """
    if not isinstance(step, ZOrderStep) or step.planned_turn is None:
        return {}
    revision, stats = revision_of(step.planned_turn, metadata, where), parse_statistics(stats_text)
    if not str(stats.get("numRecords", "")).isdecimal():
        raise CommitNotLanded(
            "Delta wrote a file without statistics: its place on the Z-order curve would be unknown",
            where=where,
            help="remove spark.databricks.delta.stats.collect=false from the session",
        )
    schema, _ = table_schema(metadata)
    ranges = [range_in(stats, physical_path(schema, column.name)) for column in revision.columns]
    return dict(tags_of(revision, step.planned_turn.strategy, ranges, int(stats["numRecords"])))
