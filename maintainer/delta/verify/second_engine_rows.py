"""Compare the rows of a landed commit with DuckDB, where this process can read the files: no Spark session is needed.

Only "the same" is an answer here. Whatever differs, or cannot be read exactly, is looked at by Spark, which decides.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maintainer.delta.log.schema_names import table_schema
from maintainer.delta.proof.rows_here import rows_here
from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.statistics_figures import FileFigures, Measured, statistics_columns
from maintainer.delta.storage.file_store import FilesHere, TransferError
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction
from maintainer.model.plan.lanes import MAX_DELETED_ROWS
from maintainer.model.run.receipts import Fingerprint
from maintainer.model.table.table_features import keeps_row_ids

_LOG = logging.getLogger(__name__)

MAX_FETCHED_BYTES = 1 << 30
"""Of a larger commit on a store Spark compares the rows, where its executors read."""


def same_rows(
    storage: TableStorage, metadata: Mapping[str, Any], sources: Sequence[AddAction], adds: Sequence[AddAction]
) -> Measured | None:
    """Read both sides of a commit that claims to change no data.

    Args:
        storage: The table's.
        metadata: The ``metaData`` action of the commit's version; its schema is that of the version before.
        sources: Files whose rows the commit took away; their statistics are judged where they are there.
        adds: The files that it added, with their statistics.

    Returns:
        The figures, if the rows are the same in each partition; None where Spark must look.
    """
    if any(add.get("deletionVector") for add in adds):
        return None
    if storage.files.asks_by_request and sum(int(add["size"]) for add in (*sources, *adds)) > MAX_FETCHED_BYTES:
        return None
    deleted = (int((source.get("deletionVector") or {}).get("cardinality") or 0) for source in sources)
    if sum(deleted) > MAX_DELETED_ROWS:
        return None
    configuration = metadata["configuration"]
    if keeps_row_ids(configuration):
        return None
    if configuration.get("delta.columnMapping.mode", "none").lower() == "id":
        return None
    here = storage.files.here()
    if here is None:
        return None
    try:
        return _measured(storage, here, metadata, sources, adds)
    except (CannotCompareError, TransferError) as error:
        _LOG.info("%s: rows compared by Spark: %s", storage.root_uri, error)
        return None
    finally:
        here.close()


def _measured(
    storage: TableStorage,
    here: FilesHere,
    metadata: Mapping[str, Any],
    sources: Sequence[AddAction],
    adds: Sequence[AddAction],
) -> Measured | None:
    total = Fingerprint(0, (0, 0))
    written: dict[str, FileFigures] = {}
    judged: dict[str, FileFigures | None] = {}
    before, after = _by_partition(sources), _by_partition(adds)
    for partition in {**before, **after}:
        new = after.get(partition, ())
        here.fetch({storage.uri(str(add["path"])): int(add["size"]) for add in (*before.get(partition, ()), *new)})
        part = rows_here(storage, here, metadata, before.get(partition, ()), new)
        if part.read != part.written:
            return None
        total += part.read
        written.update(zip((str(add["path"]) for add in new), part.files, strict=True))
        if part.sources:
            judged.update(zip((str(source["path"]) for source in before[partition]), part.sources, strict=True))
    return Measured(
        total,
        total,
        statistics_columns(*table_schema(metadata)),
        tuple(written[str(add["path"])] for add in adds),
        (),
        tuple(judged.get(str(source["path"])) for source in sources),
    )


def _by_partition(adds: Iterable[AddAction]) -> dict[str, list[AddAction]]:
    """Group files by their partition values, letter by letter: those of another spelling are compared by Spark."""
    groups: dict[str, list[AddAction]] = defaultdict(list)
    for add in adds:
        groups[json.dumps(add.get("partitionValues") or {}, sort_keys=True)].append(add)
    return groups
