"""Read two sets of data files with DuckDB: a fingerprint of each side, and figures of each file of the second.

Every row gets two 64-bit hashes over its values, one in the order of the columns and one against it. The fingerprint is
the number of rows and the two exact sums; sums and not XOR, because equal rows cancel under XOR.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.second_engine.column_values import (
    CannotCompareError,
    ComparedColumn,
    OtherTypeError,
    figures_of,
    sql_name,
)
from maintainer.delta.proof.second_engine.figure_queries import figure_parts, nulls_and_extremes, piece_of
from maintainer.delta.proof.second_engine.hidden_rows import GroupFigures, RowGroup, hidden_rows, order_of, together
from maintainer.delta.proof.statistics_figures import Measured, RowFigures, has_bounds
from maintainer.model.run.receipts import Fingerprint

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "1GB"
_GLOB = frozenset("*?[]{}")
_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": MEMORY_LIMIT,
    # It would answer MIN, MAX and counts of nulls from footers, whose bounds leave NaN out: a proof reads rows.
    "disabled_optimizers": "statistics_propagation",
    # A proof reads what is on the disk now, never what was read before.
    "enable_external_file_cache": "false",
}
_idle: list[duckdb.DuckDBPyConnection] = []
"""Each DuckDB that nobody uses now; making one takes as long as reading a small file.

Not in thread-local storage: Python clears that of other threads in a forked child, where DuckDB then waits for threads
that are not there, and the JVM that was to be started ends before it began.
"""


@dataclass(frozen=True, slots=True)
class ComparedFile:
    """A file of either side: its local path, its statistics as the log has them, the numbers of soft-deleted rows.

    ``row_groups`` are what the footer of a new file says, to be judged. ``weight`` is another one for each partition:
    rows that changed places between two do not make up for one another.
    """

    path: str
    stats: str | None = None
    deleted_rows: tuple[int, ...] = ()
    row_groups: tuple[RowGroup, ...] = ()
    weight: int = 1

    def digest(self, rows: int, first: int | None, second: int | None) -> Fingerprint:
        """Return the fingerprint of rows of the file from the sums of their hashes."""
        return Fingerprint(int(rows), (self.weight * int(first or 0), self.weight * int(second or 0)))


def measure_by_duckdb(
    columns: Sequence[ComparedColumn],
    statistics: tuple[StatisticsColumn, ...],
    sources: Sequence[ComparedFile],
    written: Sequence[ComparedFile],
    on_compared: Callable[[int], None] = lambda num_written_bytes: None,
) -> Measured:
    """Read both sides from the disk.

    Args:
        columns: The columns of the table's files, from ``compared_columns``.
        statistics: The columns that may have statistics, from ``statistics_columns``.
        sources: The files that were read; where one has statistics, there are figures of each, too.
        written: The files that were written.
        on_compared: Called when the sources are read, with 0, and then with the bytes of the written files that are.

    Raises:
        CannotCompareError: DuckDB does not read these files, or not exactly; somebody else must.
        OtherTypeError: A new file has a column of another type than the table's.
    """
    with _connected([*(file.path for file in sources), *(file.path for file in written)]) as connection:
        _check_calendar(connection, columns, [file.path for file in (*sources, *written)])
        judged = statistics if any(source.stats for source in sources) else ()
        whole = [source for source in sources if not source.deleted_rows]
        read, rows_read = _of_each(connection, columns, judged, whole) if whole else (Fingerprint(0, (0, 0)), {})
        for source in sources:
            if source.deleted_rows:
                other, rows_of_it = _of_each(connection, columns, judged, [source])
                read, rows_read = read + other, {**rows_read, **rows_of_it}
        target, num_written_bytes, figures = Fingerprint(0, (0, 0)), 0, list[RowFigures]()
        on_compared(num_written_bytes)
        for file in written:
            other, figures_of_it = _of_new_file(connection, columns, statistics, file)
            target += other
            figures.append(figures_of_it)
            num_written_bytes += os.stat(file.path).st_size
            on_compared(num_written_bytes)
    read_files = tuple(_figures_or_none(*rows_read[source.path], judged, source.stats) for source in sources if judged)
    return Measured(read, target, statistics, tuple(figures), (), read_files)


def judged_figures(statistics: tuple[StatisticsColumn, ...], files: Sequence[ComparedFile]) -> list[RowFigures | None]:
    """Read from rows the figures that the statistics of files are judged by; None for files that are not compared.

    Only columns with statistics are read, and no row is hashed.
    """
    figures: list[RowFigures | None] = []
    for file in files:
        try:
            with _connected([file.path]) as connection:
                figures.append(_figures(connection, statistics, file))
        except CannotCompareError:
            figures.append(None)
    return figures


def check_new_types(columns: Sequence[ComparedColumn], path: str) -> None:
    """Require of a new file the types that the table has today.

    Raises:
        CannotCompareError: DuckDB does not read the file.
        OtherTypeError: A column has another type.
    """
    with _connected([path]) as connection:
        stored = _stored_columns(connection, [path])
        for column in columns:
            if column.stored in stored:
                spelled = _spelled(connection, column.duckdb_type)
                _check_new_type(connection, column, stored[column.stored], spelled, [path])


def count_rows(paths: Sequence[str]) -> int:
    """Count the rows of files on the local disk by their footers; every file is opened.

    Raises:
        CannotCompareError: DuckDB does not read one of these files.
    """
    if not paths:
        return 0
    with _connected(paths) as connection:
        row = connection.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [list(paths)]).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def _connected(paths: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Lend a DuckDB, in memory and without extensions, to read these files.

    Raises:
        CannotCompareError: A path would be taken for a pattern, or DuckDB failed.
    """
    import duckdb

    if strange := [path for path in paths if _GLOB & set(path)]:
        raise CannotCompareError(f"DuckDB would take a path for a pattern: {strange[0]}")
    try:
        connection = _idle.pop()
    except IndexError:
        # Spark says so in tasks, which share a machine.
        threads = os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count() or 1)
        connection = duckdb.connect(config={**_CONFIG, "threads": threads})
    try:
        # INT96 has no zone; beside files whose times have one it would be taken for a time of this machine's.
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    except duckdb.Error as error:  # one that failed may answer nothing any more
        raise CannotCompareError(f"DuckDB: {' '.join(str(error).split())[:300]}") from error
    _idle.append(connection)


def _check_calendar(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[ComparedColumn], paths: Sequence[str]
) -> None:
    """Refuse files of whose dates and time stamps Spark shifts the oldest, by what it wrote into their footers.

    Raises:
        CannotCompareError: There is such a file. DuckDB reads what is stored, which for readers are other days.
    """
    types = " ".join(column.duckdb_type for column in columns)
    has_times = "TIME ZONE" in types
    if not paths or not (has_times or "DATE" in types):
        return
    # Before 3.0 Spark wrote no mark, and before 3.1 none for INT96.
    found = connection.execute(
        "SELECT any_value(file_name) FROM parquet_kv_metadata(?) WHERE decode(key) IN "
        "('org.apache.spark.legacyDateTime', 'org.apache.spark.legacyINT96') "
        "OR decode(key) = 'org.apache.spark.version' AND decode(value) < ?",
        [list(paths), "3.1.0" if has_times else "3.0.0"],
    ).fetchone()
    if found is not None and found[0] is not None:
        raise CannotCompareError(f"{found[0]} has dates of the old calendar")


def _stored_columns(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> dict[str, str]:
    """Names and types of the columns of all files together."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {_FILES}", [list(paths)]).fetchall()
    return {str(name): str(kind) for name, kind, *_ in described}


_FILES = "read_parquet(?, union_by_name=true, hive_partitioning=false, filename=false)"


def _spelled(connection: duckdb.DuckDBPyConnection, duckdb_type: str) -> str:
    """A type as DuckDB itself spells it."""
    row = connection.execute(f"SELECT typeof(CAST(NULL AS {duckdb_type}))").fetchone()
    return str(row[0]) if row else duckdb_type


_ZONE = " WITH TIME ZONE"


def _has_int96(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> bool:
    """Whether files have time stamps for which DuckDB has no time zone, though they are instants."""
    found = connection.execute("SELECT bool_or(type = 'INT96') FROM parquet_schema(?)", [list(paths)]).fetchone()
    return found is not None and bool(found[0])


def _check_new_type(
    connection: duckdb.DuckDBPyConnection, column: ComparedColumn, name: str, spelled: str, paths: Sequence[str]
) -> None:
    """Require of a new file the type that the table has today.

    Raises:
        OtherTypeError: It is another one.
    """
    if name.replace(_ZONE, "") == spelled.replace(_ZONE, "") and (name == spelled or _has_int96(connection, paths)):
        return
    raise OtherTypeError(f"column {column.stored} of a new file is stored as {name}, and the table has {spelled}")


def _source(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[ComparedColumn],
    stored: dict[str, str],
    paths: Sequence[str],
    *,
    is_new: bool,
) -> list[str]:
    """SQL of each column as it is compared; null for one that no file has.

    Raises:
        CannotCompareError: A column is stored as a type that might be read in another way, or spelled differently, or a
            new file lacks it.
    """
    folded = {name.casefold() for name in stored}
    values = []
    for column in columns:
        if column.stored in stored:
            spelled = _spelled(connection, column.duckdb_type)
            if is_new:
                _check_new_type(connection, column, stored[column.stored], spelled, paths)
            column.check_stored_type(stored[column.stored], spelled)
            values.append(column.value)
        elif column.stored.casefold() in folded:
            raise CannotCompareError(f"a file spells the column {column.stored} in another case")
        elif is_new:
            raise CannotCompareError(f"a new file lacks the column {column.stored}")
        else:
            values.append("NULL")
    return values


_WITH_NUMBERS = _FILES.replace("filename=false", "filename=false, file_row_number=true")

_RowsOfFile = tuple[int, Sequence[Any]]
"""Rows of a file, and what `figure_parts` asked of them."""


def _of_each(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[ComparedColumn],
    statistics: tuple[StatisticsColumn, ...],
    files: Sequence[ComparedFile],
) -> tuple[Fingerprint, dict[str, _RowsOfFile]]:
    """Add up the rows of files, and take the figures of each by its path: rows, and those of ``statistics``.

    The rows are read once. A file with deleted rows comes alone.
    """
    paths, deleted_rows = [file.path for file in files], files[0].deleted_rows
    stored = _stored_columns(connection, paths)
    sums = _sums(_source(connection, columns, stored, paths, is_new=False))
    # Files may have other fields in a struct than the table.
    types = {column.stored: column.duckdb_type for column in columns if column.kind == "nested"}
    parts = ["count(*)", *sums, *figure_parts(statistics, stored, types)]
    rows_of, arguments = _rows_of(paths, deleted_rows)
    file_at = {file.path: file for file in files}
    name = f"file of {len(stored)} {max(stored, key=len, default='')}"  # longer than any column's
    rows_of = rows_of.replace("filename=false", f"filename='{name.replace(chr(39), chr(39) * 2)}'")
    query = f"SELECT {sql_name(name)}, {', '.join(parts)} FROM {rows_of} GROUP BY 1"
    total, of_files = Fingerprint(0, (0, 0)), {}
    for path, rows, first, second, *of_columns in connection.execute(query, arguments).fetchall():
        total += file_at[path].digest(rows, first, second)
        of_files[path] = rows, of_columns
    nothing = (0, [0 if "count(" in part else None for part in parts[3:]])
    return total, {path: of_files.get(path, nothing) for path in paths}


def _sums(values: Sequence[str]) -> list[str]:
    """SQL of the two sums of hashes over rows with these values."""
    forward = ", ".join(["'forward'", *values])
    backward = ", ".join(["'backward'", *reversed(values)])
    # The hash of a row is hashed again: else two rows could swap their last values within a sum.
    return [f"sum(CAST(hash(hash({listed})) AS HUGEINT))" for listed in (forward, backward)]


def _of_new_file(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[ComparedColumn],
    statistics: tuple[StatisticsColumn, ...],
    file: ComparedFile,
) -> tuple[Fingerprint, RowFigures]:
    """Add up the rows of a new file, and take its figures, judged by its footer."""
    stored = _stored_columns(connection, [file.path])
    sums = _sums(_source(connection, columns, stored, [file.path], is_new=True))
    lines = _by_row_group(connection, file, ["count(*)", *sums, *_figure_parts(statistics, stored, file)])
    total = sum((file.digest(*line[:3]) for line in lines), Fingerprint(0, (0, 0)))
    return total, _judged_by_footer(statistics, file, [(line[0], line[3:]) for line in lines])


def _by_row_group(connection: duckdb.DuckDBPyConnection, file: ComparedFile, parts: Sequence[str]) -> list[Any]:
    """What is asked of each row group with rows, in their order; of the whole file, where no footer is known."""
    listed = ", ".join(parts)
    if len(file.row_groups) <= 1:
        rows_of, arguments = _rows_of([file.path], file.deleted_rows)
        return connection.execute(f"SELECT {listed} FROM {rows_of}", arguments).fetchall()
    number = piece_of("file_row_number", [0, *accumulate(group.rows for group in file.row_groups[:-1])])
    rows_of, arguments = _rows_of([file.path], file.deleted_rows, numbered=True)
    query = f"SELECT {listed}, {number} FROM {rows_of} GROUP BY {len(parts) + 1}"
    lines = {line[-1]: line[:-1] for line in connection.execute(query, arguments).fetchall()}
    nothing = tuple(0 if "count(" in part else None for part in parts)
    return [lines.get(place, nothing) for place in range(len(file.row_groups))]


def _figures_or_none(
    rows: int, values: Sequence[Any], statistics: tuple[StatisticsColumn, ...], stats: str | None
) -> RowFigures | None:
    try:
        return _read_figures(rows, values, statistics, stats)
    except CannotCompareError:
        return None  # a bound in a form that readers may not know


def _rows_of(paths: Sequence[str], deleted_rows: Sequence[int], *, numbered: bool = False) -> tuple[str, list[Any]]:
    """SQL of the rows of files without those deleted, with its arguments."""
    if not deleted_rows:
        return _WITH_NUMBERS if numbered else _FILES, [list(paths)]
    without = "WHERE file_row_number NOT IN (SELECT unnest(CAST(? AS BIGINT[])))"
    return f"{_WITH_NUMBERS} {without}", [list(paths), list(deleted_rows)]


def _figures(
    connection: duckdb.DuckDBPyConnection, statistics: tuple[StatisticsColumn, ...], file: ComparedFile
) -> RowFigures:
    """Figures of a file; a column that it lacks is null."""
    stored = _stored_columns(connection, [file.path])
    lines = _by_row_group(connection, file, ["count(*)", *_figure_parts(statistics, stored, file)])
    return _judged_by_footer(statistics, file, [(line[0], line[1:]) for line in lines])


def _figure_parts(
    statistics: tuple[StatisticsColumn, ...], stored: Mapping[str, str], file: ComparedFile
) -> Iterator[str]:
    return figure_parts(statistics, stored, {}, _in_footers_alone(statistics, file))


def _read_figures(
    rows: int, values: Sequence[Any], statistics: tuple[StatisticsColumn, ...], stats: str | None
) -> RowFigures:
    nulls, extremes = nulls_and_extremes(values, statistics)
    return figures_of(int(rows), nulls, extremes, statistics, stats)


def _in_footers_alone(statistics: tuple[StatisticsColumn, ...], file: ComparedFile) -> tuple[StatisticsColumn, ...]:
    """The columns that have bounds in the footer of a new file and none in the log."""
    bounded = {path for group in file.row_groups for path, bounds in group.columns.items() if bounds.order is not None}
    return tuple(
        column
        for column in statistics
        if not has_bounds(column) and order_of(column) is not None and ".".join(column.physical) in bounded
    )


def _judged_by_footer(
    statistics: tuple[StatisticsColumn, ...], file: ComparedFile, of_groups: Sequence[_RowsOfFile]
) -> RowFigures:
    """Figures of a file, and what its footer has wrong of its row groups."""
    also = _in_footers_alone(statistics, file)
    figures = [GroupFigures(*nulls_and_extremes(values, statistics, also)) for _, values in of_groups]
    hidden = hidden_rows(file.row_groups, statistics, figures, has_deleted_rows=bool(file.deleted_rows))
    whole, rows = together(figures), sum(int(rows) for rows, _ in of_groups)
    return replace(figures_of(rows, tuple(whole.nulls), whole.extremes, statistics, file.stats), hidden=hidden)
