"""Rewrite one bin of a table in this process: its rows, their order, and the ``add`` actions of the new files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace, WrittenBin
from maintainer.delta.rewrite.curve_writer import revision_of
from maintainer.delta.rewrite.local.arrow_rows import ROWS_AT_ONCE, SourceFile, read_rows
from maintainer.delta.rewrite.local.arrow_schema import file_schema
from maintainer.delta.rewrite.local.local_writer import LocalTarget, write_local
from maintainer.delta.rewrite.local.row_order import (
    OrderedColumn,
    along_own_curve,
    along_revision,
    by_columns,
    ordered_column,
)
from maintainer.delta.snapshot.column_statistics import physical_path
from maintainer.delta.storage.file_store import StoredFile
from maintainer.engine.step_meter import StepMeter
from maintainer.model.plan.steps import ZOrderStep
from maintainer.units import format_size

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

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
            columns=tuple((column.physical, column.kind) for column in work.indexed),
            codec=work.codec,
            tight_bounds=work.tight_bounds,
        )
        try:
            stats = write_local(rows, target)
            if stats is not None:
                written.append(place.published(work, part, stats))
        except LaneUnfit as unfit:
            unfit.stored = tuple(file.path for file, _ in written)
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
    elif step.turn is None:
        orders = along_own_curve(ordered(step.columns), work.num_files)
    else:
        revision = revision_of(step.turn, work.metadata, work.where)
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
    combined_rows = rows.combine_chunks()
    first_rows = accumulate((len(numbers) for numbers in files), initial=0)

    def batches(first: int, numbers: np.ndarray) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            yield from combined_rows.take(numbers[start : start + ROWS_AT_ONCE]).combine_chunks().to_batches()
            num_taken = min(start + ROWS_AT_ONCE, len(numbers)) + first
            meter.written(work.number, work.size_bytes * num_taken // max(1, rows.num_rows))

    return (batches(first, numbers) for first, numbers in zip(first_rows, files, strict=False))
