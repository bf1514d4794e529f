"""Rewrite one bin of a table in this process: its rows, their order, its new Parquet files and their ``add`` actions.

Rows are put in an order, and divided among files, in memory. Orders are those of ``planning.curve``: along the curve of
a revision, along a curve over the values of the bin itself, or by sort columns. Nulls come first and NaN last, as in
Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.schema_names import physical_path
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace, WrittenBin
from maintainer.delta.rewrite.curve_writer import revision_of
from maintainer.delta.rewrite.local.arrow_rows import SourceFile, file_schema, read_rows
from maintainer.delta.rewrite.local.batch_size import num_fitting
from maintainer.delta.rewrite.local.parquet_writer import LocalTarget, write_local
from maintainer.delta.storage.file_store import StoredFile
from maintainer.engine.step_meter import StepMeter
from maintainer.model.plan.steps import ZOrderStep
from maintainer.planning.curve.curve import MAX_ADDRESS_BITS, ValueKey, bit_order, cut_curve
from maintainer.planning.curve.curve_files import files_of_pieces, max_rows_of
from maintainer.planning.curve.revision import Revision
from maintainer.units import format_size

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MAX_BITS = 10
"""Bits of a rank where the bin's own values are the measure: 1,024 ranks, as Delta's own Z-order has."""


@dataclass(frozen=True, slots=True)
class OrderedColumn:
    """A column of an order: ``codes`` are places of the rows' values among ``values`` from 1 on, 0 for null."""

    codes: np.ndarray
    values: pa.Array


def ordered_column(column: pa.ChunkedArray) -> OrderedColumn:
    """Sort the distinct values of a column and number its rows by them."""
    import numpy as np
    import pyarrow.compute as pc

    encoded = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    place = np.zeros(len(order) + 1, dtype=np.int64)
    place[order.to_numpy()] = np.arange(1, len(order) + 1)
    # Null is index -1, the last place, which stays 0.
    codes = place[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return OrderedColumn(codes, encoded.dictionary.take(order))


def along_revision(columns: Sequence[OrderedColumn], revision: Revision, num_files: int) -> list[np.ndarray]:
    """Return the rows of each file along a revision's curve, cut at the borders of cubes.

    Args:
        columns: The revision's, in its order.
        revision: The revision.
        num_files: About how many files are wanted.
    """
    import numpy as np

    ranks = [_ranks(column, boundaries.keys) for column, boundaries in zip(columns, revision.columns, strict=True)]
    addresses = _addresses(ranks, revision.bits)
    order = _sorted(columns, addresses)
    if num_files <= 1:
        return [order]
    cells, rows = np.unique(addresses, return_counts=True)
    counts = list(zip(cells.tolist(), rows.tolist(), strict=True))
    max_rows = max_rows_of(len(order), num_files)
    starts = cut_curve(counts, num_bits=revision.num_bits, max_rows=max_rows)
    pieces = np.split(order, np.searchsorted(addresses[order], starts[1:]))
    parts = files_of_pieces(counts, starts, max_rows)
    files = [file for piece, number in zip(pieces, parts, strict=True) for file in np.array_split(piece, number)]
    return [file for file in files if len(file)]


def along_own_curve(columns: Sequence[OrderedColumn], num_files: int) -> list[np.ndarray]:
    """Return the rows of each of ``num_files`` files along a curve whose ranks hold equally many rows each."""
    bits = [min(MAX_BITS, MAX_ADDRESS_BITS // len(columns))] * len(columns)
    ranks = [_shares(column, bits[0]) for column in columns]
    return _divided(_sorted(columns, _addresses(ranks, bits)), num_files)


def by_columns(columns: Sequence[OrderedColumn], num_rows: int, num_files: int) -> list[np.ndarray]:
    """Return the rows of each of ``num_files`` files, sorted by columns; as they come, where there are none."""
    import numpy as np

    return _divided(_sorted(columns, None) if columns else np.arange(num_rows), num_files)


def _divided(order: np.ndarray, num_files: int) -> list[np.ndarray]:
    import numpy as np

    return [piece for piece in np.array_split(order, num_files) if len(piece)]


def _sorted(columns: Sequence[OrderedColumn], addresses: np.ndarray | None) -> np.ndarray:
    """Row numbers by address, if there is one, and then by the columns."""
    import numpy as np

    keys: list[Any] = [column.codes for column in reversed(columns)]
    return np.lexsort(keys if addresses is None else [*keys, addresses])


def _ranks(column: OrderedColumn, keys: Sequence[ValueKey]) -> np.ndarray:
    """The number of boundaries at or below each row's value; 0 for null."""
    import numpy as np

    values = column.values
    firsts = [_first_at_or_above(values, key) for key in keys]
    of_values = np.searchsorted(np.array(firsts, dtype=np.int64), np.arange(len(values)), side="right")
    return np.take(np.concatenate(([0], of_values)), column.codes)


def _first_at_or_above(values: pa.Array, least: ValueKey) -> int:
    """The place of the first of the sorted values that is not below ``least``. NaN is below nothing."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if _key(values[middle]) < least:
            low = middle + 1
        else:
            high = middle
    return low


def _key(value: pa.Scalar) -> ValueKey:
    """What ``planning.curve.key_of`` makes of a value: days, microseconds, or the value itself."""
    import pyarrow as pa

    return value.value if isinstance(value, pa.TimestampScalar | pa.Date32Scalar) else value.as_py()


def _shares(column: OrderedColumn, bits: int) -> np.ndarray:
    """Ranks from the share of rows below a value, from 0 to 2^bits - 1; equal values have equal ranks."""
    import numpy as np

    below = np.cumsum(np.bincount(column.codes, minlength=len(column.values) + 1))
    below = np.concatenate(([0], below[:-1]))
    return np.take((below << bits) // max(1, len(column.codes)), column.codes)


def _addresses(ranks: Sequence[np.ndarray], bits: Sequence[int]) -> np.ndarray:
    """Interleave ranks bit by bit."""
    import numpy as np

    address = np.zeros(len(ranks[0]), dtype=np.int64)
    for position, (place, bit) in enumerate(reversed(bit_order(bits))):
        address |= ((ranks[place] >> bit) & 1) << position
    return address


ORDERED_BYTES = 512 << 20
"""Rows that are put in an order are all in memory at once, and once more when they are taken in it."""


def write_in_process(work: BinWork, place: Workplace) -> WrittenBin:
    """Write the files of one bin without a Spark job: one, unless the step puts rows in an order.

    Raises:
        LaneUnfit: Only Spark can do it as Spark would.
    """
    arrow_schema = file_schema(*work.schema)
    read = read_rows(
        [SourceFile(place.path(uri), rows) for uri, rows in zip(work.source_uris, work.deleted_rows, strict=True)],
        arrow_schema,
        by_id=work.metadata["configuration"].get("delta.columnMapping.mode", "none").lower() == "id",
        check_stop=partial(place.check_stop, work.where),
        on_read=partial(place.meter.read, work.number),
    )
    new_files, row_order = _files_of(work, place.meter, read, arrow_schema)
    written: list[tuple[WrittenFile, StoredFile]] = []
    for part, rows in enumerate(new_files):
        target = LocalTarget(
            path=place.path(work.table.uri(work.path(part))),
            schema=arrow_schema,
            columns=work.indexed,
            codec=work.codec,
            tight_bounds=work.tight_bounds,
            text_prefix=work.text_prefix,
        )
        try:
            stats = write_local(rows, target)
            if stats is not None:
                written.append(place.published(work, part, stats))
        except LaneUnfit as unfit:
            unfit.stored = (*(file.path for file, _ in written), *unfit.stored)
            raise
    return WrittenBin(tuple(file for file, _ in written), tuple(stored for _, stored in written), row_order)


def _files_of(
    work: BinWork, meter: StepMeter, read: Iterator[pa.RecordBatch], arrow_schema: pa.Schema
) -> tuple[Iterable[Iterable[pa.RecordBatch]], list[np.ndarray] | None]:
    """The rows of each new file: as they are read, unless the step puts them in an order, which is returned, too."""
    step, schema = work.step, work.schema[0]
    if not step.order_columns and work.num_files == 1:
        return [_passed_on(work, meter, read)], None
    if step.on_curve and not isinstance(step, ZOrderStep):
        raise LaneUnfit("only Spark writes along the curve of liquid clustering")
    rows = _in_memory(read, arrow_schema)

    def ordered(columns: Sequence[str]) -> list[OrderedColumn]:
        return [ordered_column(rows.column(place)) for place in _places(columns, schema, arrow_schema)]

    if not isinstance(step, ZOrderStep):
        orders = by_columns(ordered(step.order_columns), rows.num_rows, work.num_files)
    elif step.planned_turn is None:
        orders = along_own_curve(ordered(step.columns), work.num_files)
    else:
        revision = revision_of(step.planned_turn, work.metadata, work.where)
        orders = along_revision(ordered(revision.names()), revision, work.num_files)
    if len(orders) > len(work.paths):
        raise LaneUnfit(f"its order is cut into {len(orders)} files, where {work.num_files} are wanted")
    return _ordered_batches(work, meter, rows, orders), orders


def _passed_on(work: BinWork, meter: StepMeter, read: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows as they are read, each batch counted as written when the next one is asked for."""
    for batch in read:
        yield batch
        meter.written_as_read(work.number)


def _places(columns: Sequence[str], schema: dict[str, Any], arrow_schema: pa.Schema) -> list[int]:
    """Places in the files of the columns of an order."""
    paths = [physical_path(schema, column) for column in columns]
    if any(len(path) > 1 or path[0] not in arrow_schema.names for path in paths):
        raise LaneUnfit("a column of the order is inside another one, or of the partitions")
    return [int(arrow_schema.get_field_index(path[0])) for path in paths]


def _in_memory(read: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    batches, size_bytes = [], 0
    for batch in read:
        batches.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > ORDERED_BYTES:
            raise LaneUnfit(f"its rows take more than {format_size(ORDERED_BYTES)} of memory")
    return pa.Table.from_batches(batches, schema)


def _ordered_batches(
    work: BinWork, meter: StepMeter, rows: pa.Table, files: Sequence[np.ndarray]
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows of each file in its order, batch by batch."""
    combined_rows = rows.combine_chunks()  # ``rows`` themselves are not kept
    num_at_once = num_fitting(combined_rows.nbytes / max(1, combined_rows.num_rows))
    first_rows = accumulate((len(numbers) for numbers in files), initial=0)

    def batches(first: int, numbers: np.ndarray) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(numbers), num_at_once):
            yield from combined_rows.take(numbers[start : start + num_at_once]).combine_chunks().to_batches()
            num_taken = min(start + num_at_once, len(numbers)) + first
            meter.written(work.number, work.size_bytes * num_taken // max(1, combined_rows.num_rows))

    return (batches(first, numbers) for first, numbers in zip(first_rows, files, strict=False))
