"""Read the actions of a checkpoint by pyarrow: what a state is made of, and of an add's statistics the record count.

A manifest and a sidecar are read alike: which of them holds which actions is the writer's choice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from maintainer.delta.log.actions import RECORDS_FIRST, LoggedFile, num_records
from maintainer.delta.storage.table_log import lines_of

_ADD = (
    *("path", "partitionValues", "size", "modificationTime", "dataChange", "tags", "deletionVector", "stats"),
    *("clusteringProvider", "baseRowId", "defaultRowCommitVersion"),
)
_WHOLE = ("metaData", "protocol", "txn", "domainMetadata", "sidecar")
_COLUMNS = [*_WHOLE, *(f"add.{field}" for field in _ADD)]

ROWS_AT_ONCE = 1 << 16

StatisticsWanted = bool | Collection[str]
"""Whose statistics are kept whole: of every file, of none, or of the files at these paths."""


def checkpoint_actions(
    name: str, data: bytes, shared: dict[Any, Any], *, with_statistics: StatisticsWanted = False
) -> Iterator[dict[str, Any]]:
    """Yield the actions of a checkpoint's file, as ``LogState`` takes them, and those that name its sidecars.

    Args:
        name: Its name; ``.json`` for a manifest of that form.
        data: Its content.
        shared: What equal partition values are shared by; see ``LoggedFile``.
        with_statistics: Whose statistics are given whole; of the other adds the record count alone.

    Raises:
        ValueError: It is not what its name says.
    """
    if name.endswith(".json"):
        yield from json_actions(data, shared, with_statistics=with_statistics)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [*_COLUMNS, "add.stats_parsed" if with_statistics else "add.stats_parsed.numRecords"]
    try:
        file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
        # Spark writes time stamps as INT96, which has no zone; those that have none are INT64.
        instants = frozenset(
            leaf.path for leaf in map(file.schema.column, range(len(file.schema))) if leaf.physical_type == "INT96"
        )
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=columns):
            for kind, column in zip(batch.schema.names, batch.columns, strict=True):
                rows = column.drop_null()
                if kind == "add" and len(rows):
                    files = _files(rows, instants, shared, with_statistics=with_statistics)
                    yield from ({"add": logged} for logged in files)
                elif kind in _WHOLE:
                    yield from ({kind: _without_null(body)} for body in rows.to_pylist(maps_as_pydicts="strict"))
    except pa.ArrowException as error:
        raise ValueError(f"{name}: {error}") from error


def json_actions(
    data: bytes, shared: dict[Any, Any], *, with_statistics: StatisticsWanted = False
) -> Iterator[dict[str, Any]]:
    """Yield the actions of a commit, or of a manifest in JSON, as ``LogState`` takes them.

    Raises:
        ValueError: It is no JSON, or no UTF-8.
    """
    for action in map(json.loads, lines_of(data)):
        if "add" in action:
            whole = _is_wanted(action["add"]["path"], with_statistics)
            action["add"] = LoggedFile.of(action["add"], shared, with_statistics=whole)
        yield action


def _is_wanted(path: str, wanted: StatisticsWanted) -> bool:
    return wanted if isinstance(wanted, bool) else path in wanted


def _files(
    rows: Any,  # noqa: ANN401 (an array of pyarrow, which has no types)
    instants: frozenset[str],
    shared: dict[Any, Any],
    *,
    with_statistics: StatisticsWanted,
) -> Iterator[LoggedFile]:
    """The files of adds, column by column: a million of them are ten times as slow row by row."""
    columns = {field.name: rows.field(place) for place, field in enumerate(rows.type)}
    nothing: list[Any] = [None] * len(rows)

    def values(name: str) -> list[Any]:
        column = columns.get(name)
        return nothing if column is None or column.null_count == len(column) else column.to_pylist()

    parsed = columns.get("stats_parsed")
    paths, statistics = values("path"), nothing
    if with_statistics:
        texts, statistics = values("stats"), nothing.copy()
        for place in (place for place, path in enumerate(paths) if _is_wanted(path, with_statistics)):
            figures = None if texts[place] or parsed is None else parsed[place].as_py()
            statistics[place] = texts[place] or (figures and _as_json(figures, "add.stats_parsed", instants))
    vectors = [vector and _without_null(vector) for vector in values("deletionVector")]
    return map(
        LoggedFile,
        paths,
        (size or 0 for size in values("size")),
        (moment or 0 for moment in values("modificationTime")),
        (entries or {} for entries in _maps(columns.get("partitionValues"), shared) or nothing),
        _counts(columns.get("stats"), parsed) or nothing,
        vectors,
        _maps(columns.get("tags"), shared) or nothing,
        *(values(name) for name in ("clusteringProvider", "baseRowId", "defaultRowCommitVersion")),
        statistics,
    )


def _maps(column: Any, shared: dict[Any, Any]) -> list[dict[str, Any] | None] | None:  # noqa: ANN401 (pyarrow)
    """The maps of a column, equal ones as one object; None where all are null."""
    if column is None or column.null_count == len(column):
        return None
    names, values, offsets = column.keys.to_pylist(), column.items.to_pylist(), column.offsets.to_pylist()
    known = column.is_valid().to_pylist()
    maps: list[dict[str, Any] | None] = []
    for start, end, is_known in zip(offsets, offsets[1:], known, strict=False):
        entries = tuple(zip(names[start:end], values[start:end], strict=True))
        if is_known and entries not in shared:
            shared[entries] = dict(entries)
        maps.append(shared[entries] if is_known else None)
    return maps


def _counts(texts: Any, parsed: Any) -> list[int | None] | None:  # noqa: ANN401 (arrays of pyarrow)
    """The record counts of adds, by their statistics as text, or else as columns; None where there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    in_columns = None if parsed is None else pc.struct_field(parsed, "numRecords").to_pylist()
    if texts is None or texts.null_count == len(texts):
        return in_columns
    found = pc.struct_field(pc.extract_regex(texts, RECORDS_FIRST), "count")
    counts: list[int | None] = found.cast(pa.int64()).to_pylist()
    for place in pc.indices_nonzero(pc.is_null(found)).to_pylist():
        text = texts[place].as_py()
        counts[place] = num_records(text) if text else in_columns and in_columns[place]
    return counts


def _as_json(figure: object, column: str, instants: frozenset[str]) -> str:
    """Statistics that a checkpoint holds as columns, as the log's JSON has them."""
    match figure:
        case dict():
            known = ((name, value) for name, value in figure.items() if value is not None)
            parts = (f"{json.dumps(name)}:{_as_json(value, f'{column}.{name}', instants)}" for name, value in known)
            return "{" + ",".join(parts) + "}"
        case datetime():
            moment = figure.replace(tzinfo=None).isoformat(timespec="milliseconds")
            return json.dumps(moment if figure.tzinfo is None and column not in instants else f"{moment}Z")
        case date():
            return json.dumps(figure.isoformat())
        case Decimal():
            return f"{figure:f}"
        case float() if not math.isfinite(figure):
            return json.dumps({math.inf: "Infinity", -math.inf: "-Infinity"}.get(figure, "NaN"))
        case _:
            return json.dumps(figure, ensure_ascii=False)


def _without_null(body: dict[str, Any]) -> dict[str, Any]:
    """A struct as the log's JSON has it: what is null is left out; the values of a map may be null."""
    return {name: value for name, value in body.items() if value is not None}
