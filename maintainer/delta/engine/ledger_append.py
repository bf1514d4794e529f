"""Append rows to a ledger without a Spark job: pyarrow writes the file, Delta's transaction commits it.

Only for a ledger that is plain: nothing about it makes Delta do more with new rows than name their file. To any other
the caller appends by Spark.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.replay.version_replay import last_transaction
from maintainer.delta.storage.failures.engine_failures import describe, is_conflict
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.small_log_files import (
    is_kernels,
    take_over_checksum,
    write_derived_checksum,
    write_if_due,
)

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN_PROPERTIES = frozenset({"delta.dataSkippingNumIndexedCols", "delta.logRetentionDuration",
                              "delta.deletedFileRetentionDuration", "delta.checkpointInterval"})  # fmt: skip
"""Properties that change nothing about how rows are appended."""

_SPARK_TYPES = {"string": "string", "bigint": "long", "double": "double", "timestamp": "timestamp"}


def append_in_process(
    jvm: DeltaJvm,
    storage: TableStorage,
    log: JavaObject,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[tuple[Any, ...]],
    transaction: tuple[str, int],
    properties: Mapping[str, str],
) -> bool:
    """Append rows in one commit that carries an idempotency token; make the table if there is none.

    Args:
        jvm: The session's JVM.
        storage: The table's storage.
        log: Its DeltaLog.
        columns: Name and SQL type of each column.
        rows: Values in the order of the columns.
        transaction: The token, and its number: it is appended once.
        properties: What a table that is made here gets.

    Returns:
        Whether it was done, now or before; False, with nothing written, where Spark must do it.

    Raises:
        Exception: What Delta raises. After a conflict nothing is left; else the file stays, for the commit may have
            landed, and the next try finds its token.
    """
    snapshot = jvm.update(log)
    is_new = int(snapshot.version()) < 0
    token, number = transaction
    if not is_new and last_transaction(storage, token, int(snapshot.version())) >= number:
        return True
    txn = jvm.start_transaction(log, snapshot)
    jvm.note_transaction_read(txn, token)
    if is_new:
        jvm.set_metadata(txn, _schema_string(columns), properties)
    metadata, protocol = jvm.metadata(txn), jvm.protocol(txn)
    if not _is_plain(metadata, protocol, columns):
        return False
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    data, now_ms = _file_of(columns, rows), int(time.time() * 1000)
    take_over_checksum(jvm, storage, txn)
    try:
        storage.files.write(storage.uri(name), data)
        add = {
            "path": name, "partitionValues": {}, "size": len(data), "dataChange": True,
            "modificationTime": now_ms, "stats": json.dumps({"numRecords": len(rows)}),
        }  # fmt: skip
        # A ledger grows by a file a run and is compacted by a policy of its own, so its files are few.
        by_kernel = is_kernels(metadata, protocol, 0)
        actions = jvm.append_actions([add], token, number, now_ms)
        if by_kernel:
            jvm.without_checkpoint(txn)
        version = jvm.commit(txn, actions, jvm.append_operation(), None)
    except Exception as error:
        # Only a conflict says that nothing landed. After any other failure the log may name the file: it stays.
        with contextlib.suppress(Exception):
            if is_conflict(describe(error)) and not storage.is_named_since(int(snapshot.version()), name):
                storage.delete(storage.uri(name))
        raise
    write_derived_checksum(jvm, storage, log, version)
    if by_kernel and write_if_due(jvm, storage, log, metadata, version, storage.root_uri):
        with contextlib.suppress(Exception):  # the rows have landed; the next checkpoint cleans up as well
            jvm.clean_up(log)
    return True


def _is_plain(metadata: Mapping[str, Any], protocol: Mapping[str, Any], columns: Sequence[tuple[str, str]]) -> bool:
    """Whether new rows need nothing but a file that has exactly these columns."""
    stored = {field["name"]: field for field in json.loads(metadata["schemaString"])["fields"]}
    return (
        not metadata.get("partitionColumns")
        and PLAIN_PROPERTIES.issuperset(metadata.get("configuration") or {})
        and {"appendOnly", "invariants"}.issuperset(protocol.get("writerFeatures") or ())
        and stored.keys() == {name for name, _ in columns}
        and all(stored[name]["type"] == _SPARK_TYPES[kind] for name, kind in columns)
        and not any(field.get("metadata") or not field["nullable"] for field in stored.values())
    )


def _schema_string(columns: Sequence[tuple[str, str]]) -> str:
    fields = [{"name": name, "type": _SPARK_TYPES[kind], "nullable": True, "metadata": {}} for name, kind in columns]
    return json.dumps({"type": "struct", "fields": fields})


def _file_of(columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = list(zip(*rows, strict=True))
    arrays = [pa.array(column, _arrow_type(kind)) for column, (_, kind) in zip(values, columns, strict=True)]
    table = pa.Table.from_arrays(arrays, names=[name for name, _ in columns])
    with pa.BufferOutputStream() as file:
        pq.write_table(table, file, compression="snappy", store_schema=False)
        return bytes(file.getvalue())


def _arrow_type(kind: str) -> pa.DataType:
    import pyarrow as pa

    types = {"string": pa.string, "bigint": pa.int64, "double": pa.float64}
    return pa.timestamp("us", tz="UTC") if kind == "timestamp" else types[kind]()
