"""One batch on its way from a version to a proof: what every lane, the proof and the commit share.

Before anything is written, every file of the batch is matched to a live AddFile. Pipes, folders and devices in the
place of data files are refused, because a pipe would be read without end.

Delta's transaction begins when Spark is first needed, at the latest for the commit: what lanes and the second engine do
in this process does not wait for a JVM.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.staged_file import Marks, WrittenFile
from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.statistics_figures import RowFigures
from maintainer.delta.rewrite.bin_work import CODEC, Workplace
from maintainer.delta.rewrite.commit.batch_transaction import Transaction, check_all_live
from maintainer.delta.rewrite.curve_writer import curve_tags
from maintainer.delta.rewrite.unfinished_files import EXACT_NAMES, folders_of, remove_files_named
from maintainer.delta.storage.failures.engine_failures import as_write_error
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction, LiveFilesReader
from maintainer.delta.transaction.requirements import (
    LOSES_ROWS,
    check_as_planned,
    refuse_irregular_files,
    refuse_unsafe_reads,
)
from maintainer.delta.transaction.small_log_files import is_kernels
from maintainer.engine.step_meter import StepMeter, polled
from maintainer.errors import CommitNotLanded, FileAbsent, FileUnreadable, MaintainerError, raise_from
from maintainer.errors.missing_files import missing_before
from maintainer.model.cached_property import cached_property
from maintainer.model.plan.lanes import LaneChoice, SourceStatistics
from maintainer.model.plan.steps import Batch, RewriteStep
from maintainer.model.run.receipts import Fingerprint
from maintainer.model.table.table_facts import FileKey, TableFacts

if TYPE_CHECKING:
    import numpy as np

    from maintainer.delta.rewrite.commit.carried_deletes import CarriedDeletes
    from maintainer.delta.rewrite.executors.executor_bins import SpreadBins

_LOG = logging.getLogger(__name__)

MAX_LEFT_OVER_NAMED = 3


@dataclass(slots=True)
class RewriteTimings:
    """Seconds of each part, for benchmarks."""

    snapshot: float = 0.0
    write: float = 0.0
    proof: float = 0.0
    commit: float = 0.0


@dataclass
class RewriteJob:
    """One batch on its way from a version to a proof. Used once; its bins are written from several threads.

    ``between_write_and_proof`` is called with the written files before the proof reads them: tests plant faults there.
    """

    jvm: DeltaJvm
    facts: TableFacts
    step: RewriteStep
    batch: Batch
    group: str
    live_files: LiveFilesReader
    between_write_and_proof: Callable[[TableStorage, list[WrittenFile]], None] | None = None
    file_prefix: str = ""
    """What the names of this attempt's files begin with; see ``bin_work``. Empty: Delta names them alone."""
    is_written: bool = False
    is_tried: bool = False
    """Whether a commit was tried: from then on one may name the files."""
    left_over: tuple[str, ...] = ()
    """URIs of files of this attempt that could not be removed."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when the run is to end: work in this process ends soon after it, as Spark's cancelled jobs do."""
    meter: StepMeter = field(default_factory=StepMeter)
    """How far it is, for whoever shows it."""
    polls_tasks: bool = False
    """Whether a thread asks Spark for the tasks of the job's own Spark jobs."""
    timings: RewriteTimings = field(default_factory=RewriteTimings)
    lanes: dict[int, LaneChoice] = field(default_factory=dict)
    """The lane in which each bin was written, by its place in the batch; bins without rows are left out."""
    source_findings: dict[int, SourceStatistics] = field(default_factory=dict)
    """For bins of lane copy: what the log had wrong about the statistics of their files."""
    written: list[WrittenFile] = field(default_factory=list)
    stored: dict[str, StoredFile] = field(default_factory=dict)
    """What the storage said of each written file, by path, when the proof of them began."""
    judged: dict[str, tuple[str | None, tuple[StatisticsColumn, ...], RowFigures]] = field(default_factory=dict)
    """By path of a written file: its statistics as they were judged, their columns, and the figures of its rows."""
    row_orders: dict[int, list[np.ndarray]] = field(default_factory=dict)
    """For bins whose rows were put in an order: the rows of each new file, by their place among all that were read."""
    carried_deletes: CarriedDeletes | None = None
    """What others deleted since the rows were read, where it was carried over."""
    read_version: int = -1
    """The version at which the batch's rows were read."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The ``metaData`` action of that version."""
    transaction: Transaction | None = None
    """What ``begin`` started."""
    checkpoint_is_kernels: bool = False
    """A checkpoint that the commit makes due is written through Kernel, and not by Delta's hook."""
    source_of: Mapping[FileKey, AddAction] = field(default_factory=dict)
    """The batch's files as they are live, in the batch's order."""
    write_failures: list[BaseException] = field(default_factory=list)
    """Of bins that could not be written; the first is raised."""
    has_writer_settings: bool = False
    """Delta's writer names and compresses files of this session as this batch's."""
    is_kept: bool = False
    """What was written stays whatever comes: it was committed, or nobody knows."""
    marks: tuple[Marks, ...] = ()
    observed: dict[int, Fingerprint] = field(default_factory=dict)
    """Rows of each bin as they were read for its writer; bins whose rows could not be observed are left out."""
    beginning: threading.RLock = field(default_factory=threading.RLock)
    """Held while the transaction begins: bins are written from several threads."""
    spread: SpreadBins | None = None
    """What executors write; None where all is written in this process or by Spark."""
    settings: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """Puts back what was set of the session, at the end of the job."""
    writer_settings: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """As ``settings``, once the bins are written."""

    @property
    def late_paths(self) -> tuple[str, ...]:
        """What attempts of executors that do not count may yet write."""
        return () if self.spread is None else tuple(self.spread.other_paths)

    def rows_observed(self, bins: Collection[int]) -> Fingerprint | None:
        """The fingerprint of all rows read of some bins; None unless every one of them was observed."""
        if not bins or any(number not in self.observed for number in bins):
            return None
        return reduce(add, (self.observed[number] for number in bins))

    @property
    def sources(self) -> tuple[AddAction, ...]:
        """The batch's files as they are live."""
        return tuple(self.source_of.values())

    def sources_of(self, bins: Collection[int]) -> tuple[AddAction, ...]:
        """The files of some bins of the batch as they are live."""
        return tuple(self.source_of[file.key] for number in sorted(bins) for file in self.batch.bins[number].files)

    @property
    def where(self) -> str:
        return self.facts.ref.identifier

    @cached_property
    def storage(self) -> TableStorage:
        """Where the table's files and its log are."""
        return self.live_files.storage(self.facts.location)

    @cached_property
    def place(self) -> Workplace:
        """Where bins outside Spark are written in this process. Its files are removed with the job."""
        return Workplace(
            self.storage.files.here(),
            lambda *of_bin: self.jvm.copy_row_groups(self.storage.folder.conf, *of_bin),
            self.meter,
            self.stop,
        )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open the job; at the end of the block remove what was fetched, and after a failure what was written."""
        try:
            self.open()
            with self.discarded_on_failure():
                yield
        finally:
            self.close()

    @contextmanager
    def discarded_on_failure(self) -> Iterator[None]:
        """Remove what was written if the block fails, unless it is kept; the error names what could not be removed."""
        try:
            yield
        except BaseException as error:
            if not self.is_kept:
                self.discard()
            if isinstance(error, MaintainerError):
                error.late_paths = self.late_paths
            if isinstance(error, MaintainerError) and self.left_over:
                error.left_over = self.left_over
                named = ", ".join(self.left_over[:MAX_LEFT_OVER_NAMED])
                error.help = f"{error.help}\nleft behind, and no part of the table ({len(self.left_over)}): {named}"
            raise

    def close(self) -> None:
        """Put back the session's settings, and remove what was fetched."""
        try:
            self.settings.close()
        finally:
            if self.place.here is not None:
                self.place.here.close()

    @cached_property
    def log(self) -> JavaObject:
        """Delta's log of the table."""
        return self.jvm.log_at(self.facts.location)

    @cached_property
    def codec(self) -> str:
        """The codec of new files, in Spark's words: the policy's, else the session's, ``snappy`` unless it was set."""
        asked_for = None if self.step.codec is None else self.step.codec.value
        return (asked_for or self.jvm.session_setting(CODEC) or "snappy").lower()

    @cached_property
    def source_statistics(self) -> dict[str, str]:
        """The statistics of the batch's files by path, for the report."""
        paths = {file.path for file in self.batch.files}
        try:
            return self.live_files.statistics_of(self.facts, self.read_version, paths)
        except Exception as error:
            _LOG.info("%s: the statistics of its files are not judged: %s", self.where, error)
            return {}

    def judged_sources_of(self, bins: Collection[int]) -> list[AddAction]:
        """The files of bins with the statistics in the log; without, where a lane that read their rows judged them."""
        return [
            {**source, "stats": None if number in self.source_findings else self.source_statistics.get(source["path"])}
            for number in sorted(bins)
            for source in self.sources_of([number])
        ]

    @contextmanager
    def tasks_polled(self) -> Iterator[None]:
        """Keep the meter up to date with the tasks of the job's Spark jobs: one thread for all bins."""
        if self.polls_tasks:
            yield
            return
        self.polls_tasks = True
        try:
            with polled(lambda: self.meter.tasks(*self.jvm.tasks_of(self.group))):
                yield
        finally:
            self.polls_tasks = False

    def open(self) -> None:
        """Read the version of the facts, and match every file of the batch to a live AddFile.

        Raises:
            EnvironmentUnfit: E606, the session would lose the rows of unreadable files.
            CommitConflict: C701, the table was replaced, its schema or protocol changed, or a file of the batch is
                no longer live.
            TableError: T422, a pipe, folder or device lies in the place of a file of the batch.
        """
        started = time.monotonic()
        refuse_unsafe_reads(self.jvm.session_setting, self.where, LOSES_ROWS)
        with self.reading():
            files = self.live_files.of_version(self.facts, self.facts.version, [file.key for file in self.batch.files])
            check_as_planned(self.storage, self.facts, files.metadata, files.protocol)
            self.metadata, self.read_version = files.metadata, files.version
            if files.statistics is not None:
                self.source_statistics = dict(files.statistics)
            check_all_live(self, files.adds)
            refuse_irregular_files(self.storage, (file.path for file in self.batch.files), self.where)
            self.source_of = {file.key: files.adds[file.key] for file in self.batch.files}
            num_files = len(files.adds) if files.complete else None
            self.checkpoint_is_kernels = is_kernels(files.metadata, files.protocol, num_files)
            _ = self.place  # one for all threads that write bins
        self.timings.snapshot = time.monotonic() - started

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise what the block raises as an error of ours about reading the table."""
        try:
            yield
        except Exception as error:
            raise_from(as_write_error(error, self.where, "reading the table"), error)

    def failure(self, error: BaseException, doing: str) -> MaintainerError:
        """Map an exception raised before the commit to our error."""
        cause = as_write_error(error, self.where, doing)
        names = {file.path.rpartition("/")[2] for file in self.written}
        if isinstance(cause, FileUnreadable) and cause.file and cause.file.rpartition("/")[2] in names:
            # A file of this attempt is no file of the table, and no backup has it.
            return CommitNotLanded(
                f"{doing} failed: one of them cannot be read; nothing was committed",
                where=self.where,
                found=cause.found,
                help="look for failing disks or memory, then run `maintainer apply` again",
            )
        if not isinstance(cause, FileAbsent):
            return cause
        missing = [file.path for file in self.batch.files if self.storage.status(self.storage.uri(file.path)) is None]
        if not missing:
            return cause
        return missing_before(missing, f"{self.where}@{self.read_version}")

    def deleted_rows(self, add: Mapping[str, Any]) -> list[int]:
        """Read the numbers of a file's soft-deleted rows as Delta does. Raises what Delta Kernel raises."""
        vector = add.get("deletionVector")
        if not vector:
            return []
        return self.jvm.kernel_deleted_rows(self.jvm.folder_at(self.jvm.path(self.facts.location)), vector)

    def curve_tags(self, stats: str | None) -> dict[str, str]:
        """The tags of a file on a Z-order curve, from its own statistics."""
        return curve_tags(self.step, stats, self.metadata, self.where)

    def discard(self) -> None:
        """Remove the files of this attempt, also those of failed tasks, unless the bytes of a commit since name one."""
        if self.is_tried and self._may_be_committed():
            self.left_over = (f"files whose names begin with {self.file_prefix}",)
            return
        self.delete_written(
            file.path for file in (*self.written, *(self.carried_deletes.written if self.carried_deletes else ()))
        )
        self._delete_files(self.carried_deletes.vector_uris if self.carried_deletes else ())
        if self.file_prefix:
            try:
                folders = folders_of(self.storage, self.facts, (file.partition_values for file in self.batch.files))
                self.left_over = remove_files_named(
                    self.storage, folders, self.file_prefix, tasks_may_write=not self.is_written
                )
            except Exception as error:
                self.left_over = (f"files whose names begin with {self.file_prefix}",)
                _LOG.info("files of a failed attempt on %s were not removed: %s", self.where, error)

    def _may_be_committed(self) -> bool:
        """Whether a commit names a file of this attempt, or cannot be read."""
        names = [self.file_prefix] if self.file_prefix else [file.path.rpartition("/")[2] for file in self.written]
        try:
            return any(self.storage.is_named_since(self.read_version, name) for name in names)
        except Exception as error:
            _LOG.info("%s: the files of a failed commit stay, since the log cannot be read: %s", self.where, error)
            return True

    def remove_unneeded(self) -> None:
        """Remove what was written and is no part of the landed commit, because others deleted the rows meanwhile."""
        self.delete_found(self.late_paths)
        if self.carried_deletes is None:
            return
        committed = {file.path for file in self.written}
        self.delete_written(file.path for file in self.carried_deletes.written if file.path not in committed)
        in_use = bool(self.carried_deletes.vectors)
        self._delete_files(self.carried_deletes.vector_uris[:-1] if in_use else self.carried_deletes.vector_uris)

    def delete_written(self, paths: Iterable[str]) -> None:
        """Delete new files that no commit names. Never raises."""
        self._delete_files(uri for uri in map(self.storage.uri, paths) if self.storage.is_below_root(uri))

    def delete_found(self, paths: Collection[str]) -> None:
        """Delete those of some new files that are there, and that no commit names. Never raises."""
        with contextlib.suppress(Exception):
            self._delete_files(self.storage.files.look_many([*map(self.storage.uri, paths)], EXACT_NAMES))

    def _delete_files(self, uris: Iterable[str]) -> None:
        for uri in uris:
            # An orphan is harmless and is found by listing; the failure that led here must not be hidden.
            with contextlib.suppress(Exception):
                self.storage.delete(uri)
