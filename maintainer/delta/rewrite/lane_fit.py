"""What the lanes outside Spark share: how a bin is sent on to the next lane, and the place of its new file."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.rewrite.unfinished_files import folders_of
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction
from maintainer.model.plan.lanes import Codec
from maintainer.model.plan.steps import Bin
from maintainer.model.table.table_facts import TableFacts

if TYPE_CHECKING:
    from maintainer.delta.rewrite.rewrite_job import RewriteJob


class LaneUnfit(Exception):
    """A bin does not fit its lane, for the reason in its text. Nothing that the lane wrote is left."""


CODEC = "spark.sql.parquet.compression.codec"


@contextmanager
def writing_codec(jvm: DeltaJvm, codec: Codec | None) -> Iterator[None]:
    """Have Spark write with a codec within the block; the session's own is put back."""
    if codec is None:
        yield
        return
    before = jvm.spark.conf.get(CODEC, None)
    jvm.spark.conf.set(CODEC, codec.value)
    try:
        yield
    finally:
        with suppress(Exception):  # the JVM may be gone, and the setting with it
            if before is None:
                jvm.spark.conf.unset(CODEC)
            else:
                jvm.spark.conf.set(CODEC, before)


def new_path(job: RewriteJob, number: int, folder: str, part: int = 0) -> str:
    """Name a new file of a bin, as the log spells it."""
    name = f"part-{number:05d}-{uuid.uuid4()}-c{part:03d}.{job.codec}.parquet"
    return f"{folder}{job.file_prefix}{name}"


def published(job: RewriteJob, number: int, path: str, sources: Sequence[AddAction], stats: str) -> WrittenFile:
    """Put a new file of a bin in its place, and make its ``add`` action.

    Raises:
        LaneUnfit: The store does not take it from this process.
        CommitNotLanded: C702, the store does not hold what was written.
    """
    stored, marks = job.publish(path), job.marks[number]
    add: dict[str, Any] = {
        "path": path,
        "partitionValues": sources[0].get("partitionValues") or {},
        "size": stored.size_bytes,
        "modificationTime": stored.modification_time_ms,
        "dataChange": False,
        "stats": stats,
    }
    return WrittenFile(add, (*marks.tags, *job.curve_tags(stats).items()), number, marks.clustering_provider)


def folder_of_sources(storage: TableStorage, facts: TableFacts, bin_: Bin, sources: Sequence[AddAction]) -> str:
    """Return the folder for a bin's new file as the log spells it, with a slash at its end; empty for the root.

    It is the folder of one of the bin's files, if Delta would put files of this partition there. So leftovers of a
    run that died are found where they are looked for.

    Raises:
        LaneUnfit: No file of the bin lies in such a folder.
    """
    if not facts.partition_columns:
        return ""
    usual = set(folders_of(storage, facts, [bin_.partition_values]))
    for add in sources:
        folder, _, _ = str(add["path"]).rpartition("/")
        if folder and storage.uri(folder) in usual and storage.is_below_root(storage.uri(folder)):
            return f"{folder}/"
    raise LaneUnfit("its files are not in a folder where Delta puts files of their partition")
