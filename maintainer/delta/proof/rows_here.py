"""Read both sides of a bin from files of this machine, with a library that none of their writers uses.

What goes in and comes out are values and files: no session, no job. Any process with the files can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maintainer.delta.log.actions import to_physical
from maintainer.delta.log.schema_names import indexed_schema, table_schema
from maintainer.delta.proof.chunk_proof import compare_chunks
from maintainer.delta.proof.second_engine.column_values import compared_columns, deleted_rows
from maintainer.delta.proof.second_engine.duckdb_rows import ComparedFile, judged_figures, measure_by_duckdb
from maintainer.delta.proof.statistics_figures import Measured, statistics_columns
from maintainer.delta.storage.file_store import FilesHere
from maintainer.delta.storage.table_log import TableLog
from maintainer.model.run.outcome import Fingerprint

Adds = Sequence[Mapping[str, Any]]
"""The fields of ``add`` actions."""


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
        TransferError: The file of a deletion vector cannot be brought here.
    """
    schema, partition_columns = table_schema(metadata)
    return measure_by_duckdb(
        compared_columns(schema, partition_columns),
        statistics_columns(schema, partition_columns),
        [file_here(table, here, add) for add in sources],
        [file_here(table, here, add) for add in written],
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
