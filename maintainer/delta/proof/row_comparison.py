"""Read two sets of data files from storage again: fingerprints of both, and figures of each file of the second.

One Spark job is enough for up to ``MAX_COLUMNS`` columns with statistics; each further group of columns takes another.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import accumulate
from types import ModuleType
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm import DeltaJvm, JavaObject, changed_settings
from maintainer.delta.log.schema_names import fresh_prefix, quote
from maintainer.delta.log.statistics_columns import StatisticsColumn, statistics_columns
from maintainer.delta.proof.fingerprint import HashedColumns, combine, hashed_columns, sum_expressions
from maintainer.delta.proof.statistics_figures import (
    MAX_COLUMNS,
    Measured,
    RowFigures,
    bound_expressions,
    bounds_schema,
    figure_aggregates,
    figures_of_file,
    joined,
    no_figures,
    read_figures,
)
from maintainer.delta.storage.log_paths import file_uri
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import DataFile
from maintainer.model.table.table_features import keeps_row_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


FEW_COLUMNS = 16
"""Up to so many, bounds of a single file are literals, which saves a broadcast. Spark parses the statistics anew for
each of the literals: 50 columns take twice as long as with the broadcast."""

MAX_JUDGED_SOURCES = 1_000
"""Files whose statistics are judged by Spark, which takes each one's bounds into its query."""

JUDGED_SHARE = 10
"""One in so many bytes is read again for that, where the files' rows were not read one file by one anyway."""

SOURCES = -1
"""Number that rows of the files read carry in the place of the number of a written file."""

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files of a table as it was at a snapshot, each as its ``add`` action."""

    snapshot: JavaObject
    adds: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class FilesInLog:
    """What the log says of files whose rows are measured: the URI of each and its statistics, and their columns."""

    files: tuple[tuple[str, str | None], ...]
    columns: tuple[StatisticsColumn, ...]
    has_row_ids: bool = False


def measure(
    jvm: DeltaJvm, log: JavaObject, sources: FileSet | None, written: FileSet, adds: Sequence[Mapping[str, Any]]
) -> Measured:
    """Read both sets of files from storage.

    Args:
        jvm: The calls; its session must not skip missing or corrupt files.
        log: The table's log.
        sources: The files that were read, as live at their snapshot; None to read only what was written.
        written: The files that were written, in the order of ``adds``.
        adds: The same files' ``add`` actions: where they are and what their statistics say.
    """
    storage, metadata = TableStorage(jvm, log), jvm.metadata(written.snapshot)
    logged = FilesInLog(
        tuple((file_uri(storage.root_uri, str(add["path"])), add.get("stats")) for add in adds),
        statistics_columns(json.loads(metadata["schemaString"]), tuple(metadata["partitionColumns"])),
        keeps_row_ids(metadata["configuration"]),
    )
    source, target = (
        jvm.read_files(log, file_set.snapshot, file_set.adds, "Verify")
        if file_set is not None and file_set.adds
        else None
        for file_set in (sources, written)
    )
    return measure_frames(jvm.spark, source, target, logged)


def measure_both(
    jvm: DeltaJvm, log: JavaObject, sources: FileSet, written: FileSet, judged: Sequence[Mapping[str, Any]],
    adds: Sequence[Mapping[str, Any]],
) -> Measured:  # fmt: skip
    """Read both sets of files, and the sources one by one where ``judged`` has statistics of them; see ``measure``."""
    num_said = sum(bool(source.get("stats")) for source in judged)
    if not num_said:
        return measure(jvm, log, sources, written, adds)
    if num_said > MAX_JUDGED_SOURCES:
        return with_part_of_sources(jvm, log, sources, judged, measure(jvm, log, sources, written, adds))
    removed = measure(jvm, log, None, sources, judged)
    added = measure(jvm, log, None, written, adds)
    same_columns = removed.columns == added.columns
    return replace(added, read=removed.written, sources=removed.files if same_columns else ())


def with_part_of_sources(
    jvm: DeltaJvm, log: JavaObject, sources: FileSet, judged: Sequence[Mapping[str, Any]], measured: Measured
) -> Measured:
    """Add the figures of some of the files that were read, to judge their statistics: small ones first.

    Small files are the new ones, and most files for the bytes that are read.
    """
    by_size = sorted((place for place, add in enumerate(judged) if add.get("stats")), key=lambda at: judged[at]["size"])
    room_bytes = sum(int(add["size"]) for add in judged) // JUDGED_SHARE
    ends = list(accumulate(int(judged[place]["size"]) for place in by_size))
    places = by_size[: min(MAX_JUDGED_SOURCES, max(1, bisect_right(ends, room_bytes)))]
    if not places:
        return measured
    part = FileSet(sources.snapshot, tuple(sources.adds[place] for place in places))
    figures = measure(jvm, log, None, part, [judged[place] for place in places])
    if figures.columns != measured.columns:
        return measured
    by_place = dict(zip(places, figures.files, strict=True))
    return replace(measured, sources=tuple(map(by_place.get, range(len(judged)))))


def measure_frames(
    spark: SparkSession, source: DataFrame | None, target: DataFrame | None, logged: FilesInLog
) -> Measured:
    """Read the rows of frames, also over Spark Connect.

    Args:
        spark: The session of the frames.
        source: Rows that only their fingerprint is asked of.
        target: The rows of the files that the log speaks of, with Spark's ``_metadata``.
        logged: These files.
    """
    return _Measurement(spark, source, target, logged).run()


def rows_by_file(jvm: DeltaJvm, log: JavaObject, files: FileSet, named: Sequence[DataFile]) -> list[int]:
    """Rows that a reader finds in each file, deletion vectors applied; one Spark job."""
    storage = TableStorage(jvm, log)
    frame = jvm.read_files(log, files.snapshot, files.adds, "Verify")
    counted = frame.selectExpr("_metadata.file_path AS path").groupBy("path").count().collect()
    rows = {row["path"]: int(row["count"]) for row in counted}
    return [rows.get(file_uri(storage.root_uri, file.path), 0) for file in named]


def rows_that_differ(jvm: DeltaJvm, log: JavaObject, sources: FileSet, written: FileSet) -> int:
    """Rows in one set of files and not in the other, by all their values and not by hashes; one Spark job."""
    read, added = (jvm.read_files(log, file_set.snapshot, file_set.adds, "Verify") for file_set in (sources, written))
    return differing_rows(read, added)


class _Measurement:
    def __init__(
        self, spark: SparkSession, source: DataFrame | None, target: DataFrame | None, logged: FilesInLog
    ) -> None:
        self._spark, self._functions = spark, functions_of(spark)
        self._source, self._target = source, target
        self._files, self._columns = logged.files, logged.columns
        either = source if source is not None else target
        schema = json.loads(either.schema.json()) if either is not None else {"fields": []}
        extra = ("_metadata.row_id", "_metadata.row_commit_version") if logged.has_row_ids else ()
        self._hashed: HashedColumns = hashed_columns(schema, extra)
        self._own = fresh_prefix([field["name"] for field in schema["fields"]])

    def run(self) -> Measured:
        groups = [self._columns[start : start + MAX_COLUMNS] for start in range(0, len(self._columns), MAX_COLUMNS)]
        first, *others = groups or [()]
        hashes = tuple(f"{self._own}h{number}" for number in range(len(self._hashed.hashes)))
        rows = self._job(first, hashes)
        width, numbers = 1 + 3 * len(hashes), range(len(self._files))
        of_each = {number: combine(row[0], row[1:width]) for number, row in rows.items()}
        nothing = combine(0, (0,) * (width - 1))
        read = of_each.pop(SOURCES, nothing)
        parts = [[(first, _figures(first, rows.get(number), width))] for number in numbers]
        for group in others if self._files else ():
            rows = self._job(group, ())
            for number in numbers:
                parts[number].append((group, _figures(group, rows.get(number), 1)))
        files = tuple(joined(part) for part in parts)
        return Measured(read, sum(of_each.values(), nothing), self._columns, files, self._hashed.uncovered)

    def _job(self, group: tuple[StatisticsColumn, ...], hashes: tuple[str, ...]) -> dict[int, Row]:
        """One Spark job: fingerprints (unless ``hashes`` is empty) and figures of a group of columns."""
        F = self._functions
        hashed = [f"{text} AS {name}" for text, name in zip(self._hashed.hashes, hashes, strict=bool(hashes))]
        sums = ["count(1) AS rows", *sum_expressions(hashes)]
        sides = []
        if hashes and self._source is not None:
            source = self._source.selectExpr(*hashed).agg(*map(F.expr, sums))
            sides.append(source.selectExpr(f"{SOURCES} AS file", "*", *no_figures(group)))
        if self._target is not None:
            own = self._own
            rows = self._target.selectExpr("*", *hashed, f"xxhash64(_metadata.file_path) AS {own}path")
            rows = self._with_bounds(rows, f"{own}path", group)
            measured = rows.groupBy(f"{own}file").agg(*map(F.expr, [*sums, *figure_aggregates(group, f"{own}b")]))
            measured = self._with_bounds(measured, f"{own}file", group)
            names = [text.rpartition(" AS ")[2] for text in sums]
            sides.append(measured.selectExpr(f"{own}file AS file", *names, *figures_of_file(group, f"{own}b")))
        if not sides:  # all rows of a batch were soft-deleted, so nothing was written
            return {}
        both = sides[0] if len(sides) == 1 else sides[0].unionAll(sides[1])
        # Adaptive execution would make two jobs of it, and there is nothing to adapt: it ends in a row for each file.
        with changed_settings(self._spark, {"spark.sql.adaptive.enabled": "false"}):
            lines = [tuple(row) for row in both.collect()]
        unknown = [row for row in lines if row[0] is None]
        if unknown:
            raise ValueError(f"{unknown[0][1]} rows are in a file that is not among those written")
        return {row[0]: row[1:] for row in lines}

    def _with_bounds(self, frame: DataFrame, key: str, group: tuple[StatisticsColumn, ...]) -> DataFrame:
        """Put the number of the file and the struct of its bounds beside each row.

        Joined by ``key``, which is either the file's number or the hash of its path: a join by the path itself would
        take as long as reading the row. A single file's bounds are literals, unless there are many.
        """
        F, own = self._functions, self._own
        if len(self._files) == 1 and len(group) <= FEW_COLUMNS:
            frame = frame.withColumn(f"{own}stats", F.lit(self._files[0][1]).cast("string"))
            number = [] if key == f"{own}file" else [f"0 AS {own}file"]
            return self._parsed(frame, f"{own}stats", group, "*", *number)
        columns = [key, *(name for name in (f"{own}file", f"{own}b") if name != key)]
        return frame.join(F.broadcast(self._bounds_of_files(group).select(*columns)), key, "left")

    def _parsed(self, frame: DataFrame, stats: str, group: tuple[StatisticsColumn, ...], *keys: str) -> DataFrame:
        """What is kept of a frame, and the struct of bounds from the text of statistics in a column of it."""
        from pyspark.sql.types import StructType

        bounds = bound_expressions(group, f"{self._own}parsed")
        if not bounds:
            return frame.selectExpr(*keys, f"NULL AS {self._own}b")
        parsed = self._functions.from_json(stats, StructType.fromJson(bounds_schema(group)))
        return frame.withColumn(f"{self._own}parsed", parsed).selectExpr(
            *keys, f"struct({', '.join(bounds)}) AS {self._own}b"
        )

    def _bounds_of_files(self, group: tuple[StatisticsColumn, ...]) -> DataFrame:
        """One row for each written file: the hash of its path as Spark spells it, its number, its bounds.

        Rows of literals: Spark parses the statistics while it plans, and needs no job for them.
        """
        numbered = enumerate(self._files)
        listed = [f"({number}, {_literal(uri)}, {_literal(stats)})" for number, (uri, stats) in numbered]
        files = self._spark.sql(f"SELECT * FROM VALUES {', '.join(listed)} AS f(number, path, stats)")
        files = files.selectExpr(
            "number", *(f"CAST(unbase64({name}) AS STRING) AS {name}" for name in ("path", "stats"))
        )
        key, number = f"xxhash64(path) AS {self._own}path", f"number AS {self._own}file"
        return self._parsed(files, "stats", group, key, number)


def functions_of(spark: SparkSession) -> ModuleType:
    """Spark's functions for this kind of session: those of Spark Connect are others than the classic ones."""
    connect = type(spark).__module__.startswith("pyspark.sql.connect")
    return import_module("pyspark.sql.connect.functions" if connect else "pyspark.sql.functions")


def _literal(text: str | None) -> str:
    """SQL for a text in Base64, which no setting of the parser reads in another way."""
    return "CAST(NULL AS STRING)" if text is None else f"'{base64.b64encode(text.encode()).decode()}'"


def _figures(group: tuple[StatisticsColumn, ...], row: Row | None, start: int) -> RowFigures:
    if row is None:
        return RowFigures(0, (0,) * len(group), 0, 0)
    return read_figures(group, row[0], row[start:])


def differing_rows(a: DataFrame, b: DataFrame) -> int:
    """Rows that one frame has more of than the other, as multisets: grouped by their values, not by hashes."""
    keys = [text for field in json.loads(a.schema.json())["fields"] for text in comparable(field)]
    counted = a.selectExpr(*keys, "1L AS __n").unionAll(b.selectExpr(*keys, "-1L AS __n"))
    names = [name for name in counted.columns if name != "__n"]
    sums = counted.groupBy(*map(quote, names)).agg({"__n": "sum"}).toDF(*names, "__n")
    row = sums.selectExpr("coalesce(sum(abs(__n)), 0L) AS differing").collect()[0]
    return int(row["differing"])


def comparable(field: dict[str, Any]) -> list[str]:
    """SQL expressions to group by so that two values fall together only if they are the same.

    Grouping takes -0.0 for 0.0 and refuses maps and variants, so zeros get their text beside them and columns
    with a map or variant anywhere are compared by their JSON.
    """
    name, kind = quote(field["name"]), field["type"]
    alias = quote("c:" + field["name"])
    if kind in ("float", "double"):
        return [f"{name} AS {alias}", f"if({name} = 0, cast({name} AS STRING), '') AS {quote('z:' + field['name'])}"]
    if kind in ("variant",) or any(f'"type": "{nested}"' in json.dumps(kind) for nested in ("map", "variant")):
        return [f"to_json(struct({name}), map('ignoreNullFields', 'false')) AS {alias}"]
    return [f"{name} AS {alias}"]
