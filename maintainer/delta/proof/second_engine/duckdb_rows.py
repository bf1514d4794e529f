"""Read two sets of data files with DuckDB: a fingerprint of each side, and figures of each file of the second.

Every row gets two 64-bit hashes over its values, one in the order of the columns and one against it. The fingerprint is
the number of rows and the two exact sums; sums and not XOR, because equal rows cancel under XOR.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, ComparedColumn, figures_of, sql_name
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
    """A file of either side: its local path, its statistics as the log has them, the numbers of soft-deleted rows."""

    path: str
    stats: str | None = None
    deleted_rows: tuple[int, ...] = ()


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
        target, num_written_bytes = Fingerprint(0, (0, 0)), 0
        figures: list[RowFigures] = []
        on_compared(num_written_bytes)
        for file in written:
            other, rows_of_it = _of_each(connection, columns, statistics, [file], is_new=True)
            target += other
            figures.append(_read_figures(*rows_of_it[file.path], statistics, file.stats))
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

    strange = [path for path in paths if _GLOB & set(path)]
    if strange:
        raise CannotCompareError(f"DuckDB would take a path for a pattern: {strange[0]}")
    try:
        connection = _idle.pop()
    except IndexError:
        # Spark says so in tasks, which share a machine.
        threads = os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count() or 1)
        connection = duckdb.connect(config={**_CONFIG, "threads": threads})
    try:
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


def _source(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[ComparedColumn], stored: dict[str, str], *, is_new: bool
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
            column.check_stored_type(stored[column.stored], _spelled(connection, column.duckdb_type))
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
"""Rows of a file, and what `_figure_parts` asked of them."""


def _of_each(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[ComparedColumn],
    statistics: tuple[StatisticsColumn, ...],
    files: Sequence[ComparedFile],
    *,
    is_new: bool = False,
) -> tuple[Fingerprint, dict[str, _RowsOfFile]]:
    """Add up the rows of files, and take the figures of each by its path where columns with ``statistics`` are given.

    The rows are read once. A file with deleted rows comes alone.
    """
    paths, deleted_rows = [file.path for file in files], files[0].deleted_rows
    stored = _stored_columns(connection, paths)
    values = _source(connection, columns, stored, is_new=is_new)
    forward = ", ".join(["'forward'", *values])
    backward = ", ".join(["'backward'", *reversed(values)])
    # The hash of a row is hashed again: else two rows could swap their last values within a sum.
    sums = [f"sum(CAST(hash(hash({listed})) AS HUGEINT))" for listed in (forward, backward)]
    # Files may have other fields in a struct than the table; a new one has those that it is to have.
    types = {} if is_new else {column.stored: column.duckdb_type for column in columns if column.kind == "nested"}
    parts = ["count(*)", *sums, *_figure_parts(statistics, stored, types)]
    rows_of, arguments = _rows_of(paths, deleted_rows)
    if len(files) == 1 or not statistics:
        lines = connection.execute(f"SELECT {', '.join(parts)} FROM {rows_of}", arguments).fetchall()
        lines = [(paths[0], *line) for line in lines]
    else:
        name = f"file of {len(stored)} {max(stored, key=len, default='')}"  # longer than any column's
        rows_of = rows_of.replace("filename=false", f"filename='{name.replace(chr(39), chr(39) * 2)}'")
        query = f"SELECT {sql_name(name)}, {', '.join(parts)} FROM {rows_of} GROUP BY 1"
        lines = connection.execute(query, arguments).fetchall()
    total, of_files = Fingerprint(0, (0, 0)), {}
    for path, rows, first, second, *of_columns in lines:
        total += Fingerprint(int(rows), (int(first or 0), int(second or 0)))
        of_files[path] = rows, of_columns
    nothing = (0, [0 if "count(" in part else None for part in parts[3:]])
    return total, {path: of_files.get(path, nothing) for path in paths}


def _figures_or_none(
    rows: int, values: Sequence[Any], statistics: tuple[StatisticsColumn, ...], stats: str | None
) -> RowFigures | None:
    try:
        return _read_figures(rows, values, statistics, stats)
    except CannotCompareError:
        return None  # a bound in a form that readers may not know


def _rows_of(paths: Sequence[str], deleted_rows: Sequence[int]) -> tuple[str, list[Any]]:
    """SQL of the rows of files without those deleted, with its arguments."""
    if not deleted_rows:
        return _FILES, [list(paths)]
    without = "WHERE file_row_number NOT IN (SELECT unnest(CAST(? AS BIGINT[])))"
    return f"{_WITH_NUMBERS} {without}", [list(paths), list(deleted_rows)]


def _figures(
    connection: duckdb.DuckDBPyConnection, statistics: tuple[StatisticsColumn, ...], file: ComparedFile
) -> RowFigures:
    """Figures of a file; a column that it lacks is null."""
    stored = _stored_columns(connection, [file.path])
    parts = ["count(*)", *_figure_parts(statistics, stored, {})]
    rows_of, arguments = _rows_of([file.path], file.deleted_rows)
    row: Any = connection.execute(f"SELECT {', '.join(parts)} FROM {rows_of}", arguments).fetchone()
    return _read_figures(row[0], row[1:], statistics, file.stats)


def _figure_parts(
    statistics: tuple[StatisticsColumn, ...], stored: Mapping[str, str], types: Mapping[str, str]
) -> Iterator[str]:
    """SQL of what `_read_figures` takes; ``types`` are those that columns are read as, by their names in files."""
    for column in statistics:
        value = _path(column, types) if column.physical[0] in stored else "NULL"
        yield f"count(*) - count({value})"
        if has_bounds(column):
            yield from (f"{side}({_extreme(value, column)})" for side in ("min", "max"))


def _read_figures(
    rows: int, values: Sequence[Any], statistics: tuple[StatisticsColumn, ...], stats: str | None
) -> RowFigures:
    left = iter(values)
    nulls, extremes = [], []
    for column in statistics:
        nulls.append(int(next(left)))
        extremes.append((next(left), next(left)) if has_bounds(column) else (None, None))
    return figures_of(int(rows), tuple(nulls), extremes, statistics, stats)


def _path(column: StatisticsColumn, types: Mapping[str, str]) -> str:
    root = column.physical[0]
    value = f"CAST({sql_name(root)} AS {types[root]})" if root in types else sql_name(root)
    for name in column.physical[1:]:
        value = f"struct_extract({value}, '{name.replace(chr(39), chr(39) * 2)}')"
    return value


def _extreme(value: str, column: StatisticsColumn) -> str:
    """SQL of what the least and the greatest value are taken of: times as microseconds, dates as days."""
    if column.kind == "timestamp":
        return f"epoch_us({value})"
    if column.kind == "timestamp_ntz":
        return f"epoch_us(CAST({value} AS TIMESTAMP))"
    if column.kind == "date":
        return f"CAST({value} AS DATE) - DATE '1970-01-01'"
    return value
