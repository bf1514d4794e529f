"""What the lanes outside Spark share: how a bin is sent on to the next lane, and the folder of its new file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.rewrite.unfinished_files import folders_of
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction
from maintainer.model.plan.lanes import Codec
from maintainer.model.plan.steps import Bin
from maintainer.model.table.table_facts import TableFacts


class LaneUnfit(Exception):
    """A bin does not fit its lane, for the reason in its text. Nothing that the lane wrote is left."""


CODEC = "spark.sql.parquet.compression.codec"


def codec_of(jvm: DeltaJvm) -> str:
    """Return the codec that Spark would write in this session, in its own words: ``snappy`` unless somebody set it."""
    return str(jvm.spark.conf.get(CODEC, "snappy") or "snappy").lower()


@contextmanager
def writing_codec(jvm: DeltaJvm, codec: Codec | None) -> Iterator[None]:
    """Have all lanes write with a codec within the block; the session's own is put back."""
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
