"""Rewrite one bin of a table in this process: its rows, their order, and the ``add`` actions of the new files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.statistics_figures import statistics_columns
from maintainer.delta.rewrite.curve_writer import num_files_of, revision_of
from maintainer.delta.rewrite.lane_fit import LaneUnfit, folder_of_sources, new_path, published
from maintainer.delta.rewrite.local.arrow_rows import ROWS_AT_ONCE, SourceFile, read_rows
from maintainer.delta.rewrite.local.arrow_schema import file_schema
from maintainer.delta.rewrite.local.local_writer import LocalTarget, write_local
from maintainer.delta.rewrite.local.row_order import along_own_curve, along_revision, by_columns, ordered_column
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.snapshot.column_statistics import physical_path
from maintainer.delta.transaction.live_files import AddAction
from maintainer.model.plan.steps import Bin, ZOrderStep
from maintainer.units import format_size

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

ORDERED_BYTES = 512 << 20
"""Rows that are put in an order are all in memory at once, and once more when they are taken in it."""

ORDERED_ROWS_KEPT = 32_000_000
"""Rows of a batch whose new places are kept, 8 bytes each, to carry over what others delete meanwhile."""


def write_in_process(job: RewriteJob, number: int, bin_: Bin, sources: list[AddAction]) -> list[WrittenFile]:
    """Write the files of one bin without a Spark job: one, unless the step puts rows in an order.

    Args:
        job: The batch.
        number: The bin's place in the batch.
        bin_: The bin.
        sources: Its files as they are live.

    Raises:
        LaneUnfit: Only Spark can do it as Spark would; nothing is left.
    """
    metadata = job.metadata
    schema = json.loads(metadata["schemaString"])
    arrow_schema = file_schema(schema, metadata["partitionColumns"])
    folder = folder_of_sources(job.storage, job.facts, bin_, sources)
    by_id = metadata["configuration"].get("delta.columnMapping.mode", "none").lower() == "id"
    indexed = statistics_columns(job.stats_schema, ())
    read = read_rows(
        [_source_file(job, add) for add in sources],
        arrow_schema,
        by_id=by_id,
        check_stop=job.check_stop,
        on_read=lambda size_bytes: job.meter.read(number, size_bytes),
    )
    files: list[WrittenFile] = []
    for part, rows in enumerate(_files_of(job, number, bin_, read, schema, arrow_schema)):
        path = new_path(job, number, folder, part)
        target = LocalTarget(
            path=job.path(job.storage.uri(path)),
            schema=arrow_schema,
            columns=tuple((column.physical, column.kind) for column in indexed),
            codec=job.codec,
            tight_bounds="deletionVectors" in job.facts.protocol.writer_features,
        )
        stats = write_local(rows, target)
        if stats is None:
            continue
        try:
            files.append(published(job, number, path, sources, stats))
        except LaneUnfit:
            job.delete_written(written.path for written in files)
            raise
    return files


def _source_file(job: RewriteJob, add: AddAction) -> SourceFile:
    """A source with its soft-deleted rows, as Delta Kernel reads them."""
    try:
        return SourceFile(job.path(job.storage.uri(str(add["path"]))), job.deleted_rows(add))
    except Exception as error:
        raise LaneUnfit("the soft-deleted rows of a file cannot be read here") from error


def _files_of(
    job: RewriteJob,
    number: int,
    bin_: Bin,
    read: Iterator[pa.RecordBatch],
    schema: dict[str, Any],
    arrow_schema: pa.Schema,
) -> Iterable[Iterable[pa.RecordBatch]]:
    """The rows of each new file: as they are read, unless the step puts them in an order."""
    step = job.step
    if not step.order_columns and step.num_files_of(bin_) == 1:
        return [_passed_on(job, number, read)]
    if step.on_curve and not isinstance(step, ZOrderStep):
        raise LaneUnfit("only Spark writes along the curve of liquid clustering")
    rows = _in_memory(read, arrow_schema)
    if isinstance(step, ZOrderStep):
        orders = _zorder(job, step, bin_, rows, schema, arrow_schema)
    else:
        ordered = [ordered_column(rows.column(place)) for place in _places(step.order_columns, schema, arrow_schema)]
        orders = by_columns(ordered, rows.num_rows, step.num_files_of(bin_))
    return _ordered_batches(job, number, bin_, rows, orders)


def _zorder(
    job: RewriteJob, step: ZOrderStep, bin_: Bin, rows: pa.Table, schema: dict[str, Any], arrow_schema: pa.Schema
) -> list[np.ndarray]:
    """The order of a bin's rows: along the curve of their own values, or along the revision of a turn."""
    turn = step.turn
    if turn is None:
        ordered = [ordered_column(rows.column(place)) for place in _places(step.columns, schema, arrow_schema)]
        return along_own_curve(ordered, step.num_files_of(bin_))
    revision = revision_of(turn, job.metadata, job.where)
    ordered = [ordered_column(rows.column(place)) for place in _places(revision.names(), schema, arrow_schema)]
    return along_revision(ordered, revision, num_files_of(step, turn, bin_))


def _passed_on(job: RewriteJob, number: int, read: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows as they are read, each batch counted as written when the next one is asked for."""
    for batch in read:
        yield batch
        job.meter.written_as_read(number)


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
    job: RewriteJob, number: int, bin_: Bin, rows: pa.Table, files: Sequence[np.ndarray]
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows of each file in its order, batch by batch."""
    combined_rows = rows.combine_chunks()
    if rows.num_rows + sum(len(order) for orders in job.row_orders.values() for order in orders) <= ORDERED_ROWS_KEPT:
        job.row_orders[number] = list(files)

    first_rows = accumulate((len(numbers) for numbers in files), initial=0)

    def batches(first: int, numbers: np.ndarray) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            yield from combined_rows.take(numbers[start : start + ROWS_AT_ONCE]).combine_chunks().to_batches()
            num_taken = min(start + ROWS_AT_ONCE, len(numbers)) + first
            job.meter.written(number, bin_.size_bytes * num_taken // max(1, rows.num_rows))

    return (batches(first, numbers) for first, numbers in zip(first_rows, files, strict=False))
