"""Read both sides of a bin from files of this machine, with a library that none of their writers uses.

What goes in and comes out are values and files: no session, no job. Any process with the files can do it.

A file that was made by copying row groups is proven byte for byte, without decoding a value. Each row group of the new
file must be a row group of a source: all its column chunks with the same bytes, in the same columns of the same types,
with the same number of rows; and each row group of the sources must be there exactly once. Bounds in its footer must be
those of the source, or not be there: parquet-hadoop leaves long ones out. That shares no code with what copied them:
footers are read by pyarrow, and the bytes by Python.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from maintainer.delta.log.actions import PartitionNames, to_physical
from maintainer.delta.log.schema_names import indexed_schema, table_schema
from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.footers import Bounds, field_ids, row_groups, stored_bounds, stored_type
from maintainer.delta.proof.second_engine.column_values import (
    CannotCompareError,
    OtherTypeError,
    compared_columns,
    deleted_rows,
)
from maintainer.delta.proof.second_engine.duckdb_rows import (
    ComparedFile,
    check_new_types,
    judged_figures,
    measure_by_duckdb,
)
from maintainer.delta.proof.statistics_figures import Measured
from maintainer.delta.storage.file_store import FilesHere, TransferError
from maintainer.delta.storage.table_log import TableLog
from maintainer.model.plan.lanes import MAX_DELETED_ROWS
from maintainer.model.run.receipts import Fingerprint
from maintainer.model.table.table_features import keeps_row_ids

if TYPE_CHECKING:
    import pyarrow.parquet as pq


BYTES_AT_ONCE = 256 << 10
DIGEST_BYTES = 16


def compare_chunks(
    sources: Sequence[str], written: Sequence[str], columns: Collection[str]
) -> tuple[Fingerprint, Fingerprint, list[str]]:
    """Read the row groups of both sides.

    Args:
        sources: Local paths of the files that were copied.
        written: Local paths of the files that they were copied to.
        columns: Names in files of the table's columns. Others in the sources were dropped and do not count; in the new
            files they must not be.

    Returns:
        A fingerprint of each side (rows, and sums over the digests of row groups), and what is wrong, as sentences.

    Raises:
        OSError, pyarrow.ArrowException: A file is missing or damaged.
    """
    before = [group for path in sources for group in _row_groups(path, columns)]
    after = [group for path in written for group in _row_groups(path, None)]
    problems = []
    sides = [Counter((group.rows, group.digest) for group in side) for side in (before, after)]
    missing, extra = sides[0] - sides[1], sides[1] - sides[0]
    if missing:
        problems.append(f"{missing.total()} row groups of the sources are not in the new files")
    if extra:
        problems.append(f"{extra.total()} row groups of the new files are none of the sources'")
    if invented := _invented_bounds(before, after):
        problems.append(f"{invented} bounds in footers of the new files are none of the sources'")
    return _fingerprint(before), _fingerprint(after), problems


@dataclass(frozen=True, slots=True)
class _StoredGroup:
    """A row group. The digest covers what every column chunk is, and its bytes; the bounds are beside it."""

    rows: int
    digest: bytes
    bounds: tuple[Bounds, ...]


def _invented_bounds(before: Sequence[_StoredGroup], after: Sequence[_StoredGroup]) -> int:
    """Count the bounds that no source says of the same bytes."""
    known: dict[bytes, list[tuple[Bounds, ...]]] = defaultdict(list)
    for group in before:
        known[group.digest].append(group.bounds)
    return sum(
        bound is not None and all(bound != bounds[column][side] for bounds in known[group.digest])
        for group in after
        if group.digest in known
        for column, of_column in enumerate(group.bounds)
        for side, bound in enumerate(of_column)
    )


def _fingerprint(groups: Sequence[_StoredGroup]) -> Fingerprint:
    half = DIGEST_BYTES // 2
    sums = (sum(int.from_bytes(group.digest[part : part + half], "big") for group in groups) for part in (0, half))
    return Fingerprint(sum(group.rows for group in groups), tuple(sums))


def _row_groups(path: str, columns: Collection[str] | None) -> list[_StoredGroup]:
    """The row groups of a file; with ``columns`` only the chunks of these count."""
    import pyarrow.parquet as pq

    groups = []
    with open(path, "rb") as stored:
        metadata = pq.read_metadata(stored)
        types = [stored_type(metadata.schema.column(place)) for place in range(len(metadata.schema))]
        nodes = field_ids(metadata)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            digest = hashlib.sha256()
            chunks = [(group.column(place), types[place]) for place in range(group.num_columns)]
            if columns is not None:
                chunks = [chunk for chunk in chunks if _root(chunk[0].path_in_schema, columns) in columns]
            roots = dict.fromkeys(_root(column.path_in_schema, nodes) for column, _ in chunks)
            digest.update(repr((group.num_rows, len(chunks), [nodes.get(root) for root in roots])).encode())
            for column, stored_as in chunks:
                digest.update(repr((_described(column), stored_as)).encode())
                _read_into(digest.update, stored, column)
            bounds = tuple(stored_bounds(column) for column, _ in chunks)
            groups.append(_StoredGroup(int(group.num_rows), digest.digest()[:DIGEST_BYTES], bounds))
        if sum(group.rows for group in groups) != metadata.num_rows:
            raise ValueError(f"{path}: its footer counts {metadata.num_rows} rows, its row groups hold others")
    return groups


def _root(path: str, columns: Collection[str]) -> str:
    """The top-level column of a chunk; a name may have dots of its own."""
    parts = path.split(".")
    roots = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((root for root in roots if root in columns), parts[0])


def _described(column: pq.ColumnChunkMetaData) -> tuple[Any, ...]:
    """What a footer says of a column chunk, without its place in the file and without bounds."""
    return (
        column.path_in_schema,
        column.compression,
        sorted(column.encodings),
        column.num_values,
        column.total_compressed_size,
        column.total_uncompressed_size,
        column.has_dictionary_page,
    )


def _read_into(take: Callable[[bytes], None], stored: BinaryIO, column: pq.ColumnChunkMetaData) -> None:
    start = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset is not None:
        start = min(start, column.dictionary_page_offset)
    stored.seek(start)
    left = column.total_compressed_size
    while left > 0:
        piece = stored.read(min(left, BYTES_AT_ONCE))
        if not piece:
            raise ValueError("a column chunk ends before the size that its footer says")
        take(piece)
        left -= len(piece)


Adds = Sequence[Mapping[str, Any]]
"""The fields of ``add`` actions."""


def is_compared_here(configuration: Mapping[str, str], num_deleted_rows: int) -> bool:
    """Return whether rows of a table with these properties are compared by DuckDB, as far as that is known before."""
    is_by_id = configuration.get("delta.columnMapping.mode", "none").lower() == "id"
    return not keeps_row_ids(configuration) and not is_by_id and num_deleted_rows <= MAX_DELETED_ROWS


def rows_here(
    table: TableLog,
    here: FilesHere,
    metadata: Mapping[str, Any],
    sources: Adds,
    written: Adds,
    on_compared: Callable[[int], None] = lambda num_written_bytes: None,
) -> Measured:
    """Measure the rows of both sides with DuckDB; see ``measure_by_duckdb``.

    Args:
        table: Says where a path of the log lies.
        here: Has the data files already.
        metadata: The ``metaData`` action by which the files are read.
        sources: The files that were read; those with statistics are judged.
        written: The files that were written, with their statistics.
        on_compared: See there.

    Raises:
        CannotCompareError: DuckDB does not read these files, or not exactly; somebody else must.
        OtherTypeError: A new file has a column of another type than the table's.
        TransferError: The file of a deletion vector cannot be brought here.
    """
    schema, partition_columns = table_schema(metadata)
    names = PartitionNames.of(metadata)

    def of_partition(add: Mapping[str, Any]) -> ComparedFile:
        text = repr(names.texts_of(add.get("partitionValues"))).encode()
        return replace(file_here(table, here, add), weight=int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))

    return measure_by_duckdb(
        compared_columns(schema, partition_columns),
        statistics_columns(schema, partition_columns),
        [of_partition(add) for add in sources],
        [_with_footer(of_partition(add)) for add in written],
        on_compared,
    )


def chunks_here(
    table: TableLog, here: FilesHere, metadata: Mapping[str, Any], sources: Adds, written: Adds
) -> tuple[Fingerprint, Fingerprint, list[str]]:
    """Compare the column chunks of a copy with those of its sources; see ``compare_chunks``."""
    schema, partition_columns = table_schema(metadata)
    partitioned = {name.lower() for name in partition_columns}
    names = [field["name"] for field in schema["fields"] if field["name"].lower() not in partitioned]
    columns = {to_physical(schema, name) for name in names}
    before, after = ([here.path(table.uri(str(add["path"]))) for add in side] for side in (sources, written))
    return compare_chunks(before, after, columns)


def figures_here(table: TableLog, here: FilesHere, metadata: Mapping[str, Any], written: Adds) -> Measured | None:
    """Read the columns with statistics of written files, by another library than the one that computed them.

    No row is hashed. None where DuckDB does not compare them.
    """
    schema, partition_columns = table_schema(metadata)
    collected = {column.physical for column in statistics_columns(indexed_schema(metadata), ())}
    columns = statistics_columns(schema, partition_columns)
    columns = tuple(column for column in columns if column.physical in collected)
    figures = judged_figures(columns, [file_here(table, here, add) for add in written])
    known = tuple(of_file for of_file in figures if of_file is not None)
    nothing = Fingerprint(0, (0, 0))
    return Measured(nothing, nothing, columns, known, ()) if len(known) == len(written) else None


def footers_here(table: TableLog, here: FilesHere, metadata: Mapping[str, Any], written: Adds) -> list[tuple[str, ...]]:
    """Return what the footers of new files have wrong, where others compare their rows; as far as DuckDB reads them.

    Raises:
        OtherTypeError: A new file has a column of another type than the table's.
    """
    schema, partition_columns = table_schema(metadata)
    found: list[tuple[str, ...]] = []
    for add in written:
        try:
            file = _with_footer(file_here(table, here, {**add, "stats": None}))
            check_new_types(compared_columns(schema, partition_columns), file.path)
            (figures,) = judged_figures(statistics_columns(schema, partition_columns), [file])
        except OtherTypeError:
            raise
        except (CannotCompareError, TransferError):
            figures = None
        found.append(figures.hidden if figures else ())
    return found


def _with_footer(file: ComparedFile) -> ComparedFile:
    import pyarrow as pa

    try:
        return replace(file, row_groups=row_groups(file.path))
    except (pa.ArrowException, OSError) as error:
        raise CannotCompareError(f"a footer cannot be read: {' '.join(str(error).split())[:200]}") from error


def file_here(table: TableLog, here: FilesHere, add: Mapping[str, Any]) -> ComparedFile:
    """Return a file that is here for the second engine, with its statistics and its soft-deleted rows.

    Raises:
        CannotCompareError: Its deletion vector cannot be read.
        TransferError: Its deletion vector cannot be brought here.
    """
    path = here.path(table.uri(str(add["path"])))
    return ComparedFile(path, add.get("stats"), _deleted_rows(table, here, add))


def _deleted_rows(table: TableLog, here: FilesHere, add: Mapping[str, Any]) -> tuple[int, ...]:
    vector = add.get("deletionVector")
    if not vector:
        return ()
    uri = table.deletion_vector_uri({"add": dict(add)})
    if uri is not None:
        here.fetch({uri: None})
    return tuple(deleted_rows(vector, None if uri is None else here.path(uri)))
