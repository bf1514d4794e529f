"""Read the actions of a checkpoint by pyarrow: what a state is made of, and of an add's statistics the record count.

A manifest and a sidecar are read alike: which of them holds which actions is the writer's choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from maintainer.delta.log.actions import num_records

_ADD = (
    *("path", "partitionValues", "size", "modificationTime", "dataChange", "tags", "deletionVector", "stats"),
    *("stats_parsed.numRecords", "clusteringProvider", "baseRowId", "defaultRowCommitVersion"),
)
_WHOLE = ("metaData", "protocol", "txn", "domainMetadata", "sidecar")
_COLUMNS = [*_WHOLE, *(f"add.{field}" for field in _ADD)]

ROWS_AT_ONCE = 1 << 16


def checkpoint_actions(name: str, data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the actions of a checkpoint's file: adds, metadata, protocol, transactions, domains, sidecars.

    Args:
        name: Its name; ``.json`` for a manifest of that form.
        data: Its content.

    Raises:
        ValueError: It is not what its name says.
    """
    if name.endswith(".json"):
        for line in data.decode("utf-8").split("\n"):
            if line:
                yield slim(json.loads(line))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(ROWS_AT_ONCE, columns=_COLUMNS):
            for kind, column in zip(batch.schema.names, batch.columns, strict=True):
                rows = column.drop_null()
                if kind == "add" and len(rows):
                    yield from ({"add": body} for body in _adds(rows))
                elif kind in _WHOLE:
                    yield from ({kind: _without_null(body)} for body in rows.to_pylist(maps_as_pydicts="strict"))
    except pa.ArrowException as error:
        raise ValueError(f"{name}: {error}") from error


def slim(action: dict[str, Any]) -> dict[str, Any]:
    """The action with no more of an add's statistics than facts need: they are most of a log."""
    add = action.get("add")
    if add is not None and add.get("stats"):
        add["stats"] = _count_alone(num_records(add["stats"]))
    return action


def _count_alone(records: int | None) -> str | None:
    return None if records is None else f'{{"numRecords":{records}}}'


def _adds(rows: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 (an array of pyarrow, which has no types)
    """The bodies of adds, column by column: a million of them are ten times as slow row by row."""
    columns = {field.name: rows.field(place) for place, field in enumerate(rows.type)}
    parsed = columns.pop("stats_parsed", None)
    counts = [None] * len(rows)
    if parsed is not None:
        counts = [body and body.get("numRecords") for body in parsed.to_pylist()]
    lists = {
        name: column.to_pylist(maps_as_pydicts="strict")
        for name, column in columns.items()
        if column.null_count < len(column)
    }
    if "stats" in lists or parsed is not None:
        texts = lists.get("stats") or [None] * len(rows)
        lists["stats"] = [
            _count_alone(num_records(text) if text else count) for text, count in zip(texts, counts, strict=True)
        ]
    if "deletionVector" in lists:
        lists["deletionVector"] = [vector and _without_null(vector) for vector in lists["deletionVector"]]
    names = tuple(lists)
    for values in zip(*lists.values(), strict=True):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _without_null(body: dict[str, Any]) -> dict[str, Any]:
    """A struct as the log's JSON has it: what is null is left out; the values of a map may be null."""
    return {name: value for name, value in body.items() if value is not None}
