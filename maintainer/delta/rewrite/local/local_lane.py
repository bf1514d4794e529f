"""Rewrite one bin of a table in this process: where its files are, and the ``add`` action of the new one."""

from __future__ import annotations

import json
import uuid
from typing import Any

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.statistics_figures import statistics_columns
from maintainer.delta.rewrite.lane_fit import LaneUnfit, codec_of, folder_of_sources
from maintainer.delta.rewrite.local.arrow_schema import file_schema
from maintainer.delta.rewrite.local.local_writer import LocalTarget, write_local
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.file_store import local_path
from maintainer.delta.storage.log_paths import one_value_of
from maintainer.delta.transaction.live_files import AddAction
from maintainer.model.plan.steps import Bin


def write_in_process(job: RewriteJob, number: int, bin_: Bin, sources: list[AddAction]) -> list[WrittenFile]:
    """Write one bin as one file, without a Spark job.

    Args:
        job: The batch.
        number: The bin's place in the batch.
        bin_: The bin; its files have no soft-deleted rows.
        sources: Its files as they are live.

    Raises:
        LaneUnfit: Only Spark can do it as Spark would; nothing is left.
    """
    values = one_value_of([add.get("partitionValues") or {} for add in sources])
    if values is None:
        raise LaneUnfit("its files spell the values of their partition in several ways")
    metadata = job.metadata
    mapping = metadata["configuration"].get("delta.columnMapping.mode", "none").lower()
    folder = folder_of_sources(job.storage, job.facts, bin_, sources)
    codec = codec_of(job.jvm)
    name = f"{job.file_prefix}part-{number:05d}-{uuid.uuid4()}-c000.{codec}.parquet"
    path = f"{folder}{name}"
    schema = json.loads(metadata["schemaString"])
    indexed = statistics_columns(job.stats_schema, ())
    target = LocalTarget(
        path=local_path(job.storage.uri(path)),
        schema=file_schema(schema, metadata["partitionColumns"]),
        columns=tuple((column.physical, column.kind) for column in indexed),
        codec=codec,
        by_id=mapping == "id",
        tight_bounds="deletionVectors" in job.facts.protocol.writer_features,
        check_stop=job.check_stop,
    )
    file = write_local([local_path(job.storage.uri(str(add["path"]))) for add in sources], target)
    if file is None:
        return []
    add: dict[str, Any] = {
        "path": path,
        "partitionValues": values,
        "size": file.size_bytes,
        "modificationTime": file.modification_time_ms,
        "dataChange": False,
        "stats": file.stats,
    }
    marks = job.marks[number]
    return [WrittenFile(add, marks.tags, number, marks.clustering_provider)]
