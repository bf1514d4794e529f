"""Join the files of one bin by copying their row groups, and make the ``add`` action of the new file."""

from __future__ import annotations

import contextlib
import json
import os

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.proof.statistics_figures import statistics_columns
from maintainer.delta.rewrite.copy.copied_statistics import CopiedFile, compute_statistics
from maintainer.delta.rewrite.copy.footers import dropped_columns, is_recompressed, read_footer, why_not_copied
from maintainer.delta.rewrite.lane_fit import LaneUnfit, folder_of_sources, new_path, published
from maintainer.delta.rewrite.local.arrow_schema import file_schema
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.failures.engine_failures import as_write_error, message_of
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.transaction.live_files import AddAction
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.steps import Bin


def write_by_copy(job: RewriteJob, number: int, bin_: Bin, sources: list[AddAction]) -> list[WrittenFile]:
    """Write one bin as one file with the row groups of its files.

    Args:
        job: The batch.
        number: The bin's place in the batch.
        bin_: The bin; its files have no soft-deleted rows.
        sources: Its files as they are live.

    Raises:
        LaneUnfit: Its files do not agree, their row groups are too small, or a footer hides rows; nothing is left.
    """
    uris = [job.storage.uri(str(add["path"])) for add in sources]
    schema = file_schema(json.loads(job.metadata["schemaString"]), job.metadata["partitionColumns"])
    paths = [job.path(uri) for uri in uris]
    footers = [read_footer(path) for path in paths]
    reason = why_not_copied(footers, schema)
    if reason is not None:
        raise LaneUnfit(reason)
    statistics, found = compute_statistics(
        [
            CopiedFile(name, path, job.source_statistics.get(name), footer.bounded_floats)
            for name, path, footer in zip((str(add["path"]) for add in sources), paths, footers, strict=True)
        ],
        schema,
        statistics_columns(job.stats_schema, ()),
        job.check_stop,
    )
    stats = statistics.to_json(tight_bounds="deletionVectors" in job.facts.protocol.writer_features)
    path = new_path(job, number, folder_of_sources(job.storage, job.facts, bin_, sources))
    target = job.storage.uri(path)
    target_path = job.path(target)
    job.check_stop()
    try:
        dropped = dropped_columns(footers[0], schema)
        new_codec = job.codec if is_recompressed(footers, job.codec) else None
        with job.size_polled(number, target_path, bin_.size_bytes):
            job.jvm.copy_row_groups(
                job.storage.folder, map(path_uri, paths), path_uri(target_path), without=dropped, codec=new_codec
            )
        with open(target_path, "rb") as stored:
            os.fsync(stored.fileno())
    except BaseException as error:
        with contextlib.suppress(Exception):
            job.storage.delete(target)
        if isinstance(error, Exception) and isinstance(as_write_error(error, job.where, "copying"), CommitNotLanded):
            raise LaneUnfit(f"its row groups cannot be copied: {message_of(error)[:200]}") from error
        raise
    written = published(job, number, path, sources, stats)
    job.source_findings[number] = found
    if new_codec is not None:
        job.recompressed.add(number)
    return [written]
