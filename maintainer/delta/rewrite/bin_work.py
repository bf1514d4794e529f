"""A bin as the lanes outside Spark take it, where they write it, and how it is sent on to the next lane.

What a lane takes and returns are values and a file store: nothing of a session, and nothing that cannot be sent to
another process. What belongs to the process that writes is its ``Workplace``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.schema_names import indexed_schema, table_schema
from maintainer.delta.log.staged_file import Marks, WrittenFile
from maintainer.delta.log.statistics_columns import StatisticsColumn, statistics_columns
from maintainer.delta.rewrite.curve_writer import curve_tags
from maintainer.delta.rewrite.unfinished_files import is_folder_of
from maintainer.delta.storage.file_store import FilesHere, FileStore, StoredFile, TransferError
from maintainer.delta.storage.table_log import TableLog
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction
from maintainer.engine.step_meter import StepMeter, polled
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.lanes import SourceStatistics
from maintainer.model.plan.steps import Bin, RewriteStep
from maintainer.model.table.table_facts import TableFacts
from maintainer.model.table.table_features import text_prefix_length

if TYPE_CHECKING:
    import numpy as np

MORE_FILES = 4
"""A bin is written as at most so many times the files that are wanted of it."""

CODEC = "spark.sql.parquet.compression.codec"


class LaneUnfit(Exception):
    """A bin does not fit its lane, for the reason in its text. What the lane wrote is not left, but for ``stored``."""

    stored: tuple[str, ...] = ()
    """Paths of new files that are in their place, or may be; whoever asked for the bin removes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinWork:
    """One bin of a batch.

    Attributes:
        number: Its place in the batch.
        size_bytes: Of its files.
        step: What is done; its batches are left out.
        num_files: How many files are wanted.
        sources: Its files as they are live, with the statistics that the log has of them.
        deleted_rows: Of each, the numbers of its soft-deleted rows.
        metadata: The ``metaData`` action by which it is read and written.
        files: The store that has the table.
        root_uri: Where the table lies on it.
        where: The table's identifier.
        path_stem: What the paths of its new files begin with; nobody else's do.
        codec: Of the new files, in Spark's words.
        tight_bounds: Whether statistics say that bounds are tight.
        marks: Of its new files.
    """

    number: int
    size_bytes: int
    step: RewriteStep
    num_files: int
    sources: tuple[AddAction, ...]
    deleted_rows: tuple[Sequence[int], ...]
    metadata: Mapping[str, Any]
    files: FileStore
    root_uri: str
    where: str
    path_stem: str
    codec: str
    tight_bounds: bool
    marks: Marks

    @property
    def table(self) -> TableLog:
        """Says where paths of the log lie."""
        return TableLog(self.files, self.root_uri)

    @property
    def schema(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The table's logical schema, and its partition columns."""
        return table_schema(self.metadata)

    @property
    def indexed(self) -> tuple[StatisticsColumn, ...]:
        """The columns that statistics are collected for."""
        return statistics_columns(indexed_schema(self.metadata), ())

    @property
    def text_prefix(self) -> int:
        """Characters of a text that a bound keeps."""
        return text_prefix_length(self.metadata["configuration"])

    @property
    def source_uris(self) -> list[str]:
        """Where its files are."""
        return [self.table.uri(str(add["path"])) for add in self.sources]

    def path(self, part: int = 0) -> str:
        """Return the path of a new file, as the log spells it."""
        return f"{self.path_stem}-c{part:03d}.{self.codec}.parquet"

    @property
    def paths(self) -> list[str]:
        """The paths of all new files that there may be: an order may be cut into more than are wanted."""
        return [self.path(part) for part in range(1 if self.num_files == 1 else MORE_FILES * self.num_files)]

    def of_attempt(self, number: int) -> BinWork:
        """Return the same work under names of its own, for one of the attempts that another process makes."""
        return replace(self, path_stem=f"{self.path_stem}-a{number}")


@dataclass(frozen=True, slots=True)
class WrittenBin:
    """The new files of a bin, in their place.

    Attributes:
        files: None where the bin has no rows.
        stored: What the storage says of each.
        row_order: The rows of each file by their place among all that were read, where they were put in an order.
        source_findings: What the log had wrong about its files, where the lane read their statistics.
    """

    files: tuple[WrittenFile, ...]
    stored: tuple[StoredFile, ...]
    row_order: list[np.ndarray] | None = None
    source_findings: SourceStatistics | None = None


@dataclass(frozen=True, slots=True)
class Workplace:
    """What the process that writes a bin brings.

    Attributes:
        here: The way to open the table's files in this process; None where only Spark can.
        copy_row_groups: See ``ParquetCalls``, without the folder.
        meter: Is told how far the work is.
        stop: Set when the run is to end: work in this process ends soon after it, as Spark's cancelled jobs do.
    """

    here: FilesHere | None
    copy_row_groups: Callable[..., None]
    meter: StepMeter = field(default_factory=StepMeter)
    stop: threading.Event = field(default_factory=threading.Event)

    def path(self, uri: str) -> str:
        """Return where a file lies on this machine, or is to be written.

        Raises:
            LaneUnfit: Only Spark can open the table's files.
        """
        return self._files_here().path(uri)

    def _files_here(self) -> FilesHere:
        if self.here is None:
            raise LaneUnfit("its files are read through Hadoop alone")
        return self.here

    def fetch(self, table: TableLog, adds: Iterable[AddAction]) -> None:
        """Bring files here; nothing is done for those of a disk.

        Raises:
            LaneUnfit: That is not possible. Spark then reads them, or says what is wrong.
        """
        try:
            self._files_here().fetch({table.uri(str(add["path"])): int(add["size"]) for add in adds})
        except TransferError as error:
            raise LaneUnfit(f"its files cannot be fetched: {error}") from error

    def publish(self, uri: str) -> StoredFile:
        """Put a new file in its place, and return what its storage says of it.

        Raises:
            LaneUnfit: The store does not take it from this process.
            CommitNotLanded: C702, the store does not hold what was written.
        """
        try:
            return self._files_here().publish(uri)
        except TransferError as error:
            raise LaneUnfit(f"its new file cannot be stored: {error}") from error

    def published(self, work: BinWork, part: int, stats: str) -> tuple[WrittenFile, StoredFile]:
        """Put a new file of a bin in its place, and make its ``add`` action; raises as ``publish``."""
        try:
            stored, marks = self.publish(work.table.uri(work.path(part))), work.marks
        except LaneUnfit as unfit:
            unfit.stored = (work.path(part),)  # the store may have taken it before it refused something
            raise
        add: dict[str, Any] = {
            "path": work.path(part),
            "partitionValues": work.sources[0].get("partitionValues") or {},
            "size": stored.size_bytes,
            "modificationTime": stored.modification_time_ms,
            "dataChange": False,
            "stats": stats,
        }
        tags = curve_tags(work.step, stats, work.metadata, work.where)
        return WrittenFile(add, (*marks.tags, *tags.items()), work.number, marks.clustering_provider), stored

    def size_polled(self, work: BinWork, path: str) -> AbstractContextManager[None]:
        """Keep the meter up to date with the size of a bin's new file, which grows within one call to Java."""
        return polled(lambda: self.meter.written(work.number, min(os.stat(path).st_size, work.size_bytes)))

    def check_stop(self, where: str) -> None:
        """Raise C702 if the run is to end."""
        if self.stop.is_set():
            what = "stopped while new files were written"
            raise CommitNotLanded(what, where=where, help="run `maintainer apply` again")


def folder_of_sources(storage: TableStorage, facts: TableFacts, bin_: Bin, sources: Sequence[AddAction]) -> str:
    """Return the folder for a bin's new file as the log spells it, with a slash at its end; empty for the root.

    It is the folder of one of the bin's files, if Delta would put files of this partition there. So leftovers of a
    run that died are found where they are looked for.

    Raises:
        LaneUnfit: No file of the bin lies in such a folder.
    """
    if not facts.partition_columns:
        return ""
    for folder in dict.fromkeys(str(add["path"]).rpartition("/")[0] for add in sources):
        uri = storage.uri(folder)
        if folder and storage.is_below_root(uri) and is_folder_of(storage, facts, uri, bin_.partition_values):
            return f"{folder}/"
    raise LaneUnfit("its files are not in a folder where Delta puts files of their partition")
