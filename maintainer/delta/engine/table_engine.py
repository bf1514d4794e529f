"""The transaction engine on Spark: one session for each worker, and its reader, writer and version reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from maintainer.delta.engine.table_reader import DeltaTableReader
from maintainer.delta.jvm import DeltaJvm, JavaObject, UnstartedSession
from maintainer.delta.log.replay.log_replay import PlannedLogs
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.commit.rewrite_commit import commit_rewrite
from maintainer.delta.rewrite.executors.executor_bins import Executors, SpreadBins
from maintainer.delta.rewrite.rewrite_job import RewriteJob, RewriteTimings
from maintainer.delta.rewrite.rewrite_proof import prove_rewrite
from maintainer.delta.rewrite.unfinished_files import (
    EXACT_NAMES,
    files_named,
    folders_of,
    prefix_of_attempt,
    prefix_of_batch,
    remove_files_named,
)
from maintainer.delta.spark.spark_session import SessionLease, worker_session
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.delta.transaction.property_commit import set_properties
from maintainer.delta.transaction.requirements import (
    SINGLE_WRITER,
    check_same_table,
    refuse_empty_commits,
    refuse_unsafe_store,
    was_planned_table,
)
from maintainer.delta.transaction.small_log_files import refuse_other_checksum, write_missing_checksum
from maintainer.delta.vacuum.needed_elsewhere import References
from maintainer.delta.vacuum.second_reader import find_name, second_readers
from maintainer.delta.vacuum.trash import undelete
from maintainer.delta.vacuum.vacuum_candidates import now_ms
from maintainer.delta.vacuum.vacuum_deletion import VacuumTools, vacuum
from maintainer.delta.verify.commit_proof import DeltaCommitProver
from maintainer.engine.protocols import BeforeCommit, DeletionGuard
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import CheckImpossible, TableError
from maintainer.model.plan.steps import Batch, RewriteStep, SetPropertiesStep, VacuumStep
from maintainer.model.run.progress import Phase
from maintainer.model.run.receipts import CommitReceipt, UndeleteReceipt, VacuumReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.storage_facts import MarkedFile
from maintainer.model.table.table_facts import PartitionValues, TableFacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FaultHook = Callable[[TableStorage, list[WrittenFile]], None]


@dataclass(frozen=True, slots=True)
class SharedByWorkers:
    """What all workers of an engine have together.

    ``between_write_and_proof`` plants faults in tests and is None otherwise. ``executors`` write bins outside Spark;
    None where this process writes them all. ``keeps_logs`` as in ``DeltaTableReader``. ``references`` and
    ``planned_logs`` are what was read for plans.
    """

    between_write_and_proof: FaultHook | None = None
    executors: Executors | None = None
    keeps_logs: bool = True
    references: References = field(default_factory=References)
    planned_logs: PlannedLogs = field(default_factory=PlannedLogs)


@dataclass
class DeltaTableWriter:
    """Implements ``TableWriter`` on a Spark session. ``last_timings`` says where the last rewrite's time went."""

    _jvm: DeltaJvm
    _group: str
    _reader: DeltaTableReader
    _live_files: LiveFilesReader
    _shared: SharedByWorkers
    _stop: threading.Event
    _meter: StepMeter
    clock: Callable[[], int] = now_ms
    last_timings: RewriteTimings = field(default_factory=RewriteTimings)

    def rewrite(
        self,
        facts: TableFacts,
        step: RewriteStep,
        batch: Batch,
        stamp: CommitStamp,
        before_commit: BeforeCommit,
    ) -> CommitReceipt:
        """Write, prove, commit; see ``TableWriter.rewrite``."""
        started = time.monotonic()
        self._open_log(facts, counts_files=True)
        if self._jvm.is_started:  # else once it is: nothing waits for it yet
            refuse_unsafe_store(self._jvm, facts)
        prefix = prefix_of_attempt(stamp)
        between, executors = self._shared.between_write_and_proof, self._shared.executors
        job = RewriteJob(
            self._jvm, facts, step, batch, self._group, self._live_files, between, prefix, stop=self._stop,
            meter=self._meter, spread=None if executors is None else SpreadBins(executors),
        )  # fmt: skip
        self.last_timings = job.timings
        with job.opened():
            self._meter.begin(Phase.READING, batch.size_bytes)
            write_bins(job)
            proof = prove_rewrite(job)
            return commit_rewrite(job, proof, stamp, before_commit, started=started)

    def remove_unfinished(
        self, facts: TableFacts, run_id: str, step_id: str, batch: int, partitions: Iterable[PartitionValues]
    ) -> tuple[str, ...]:
        """Remove what an ended run wrote for a batch; see ``TableWriter.remove_unfinished``."""
        self._jvm.start()
        storage = TableStorage(self._jvm, self._jvm.log_at(facts.location))
        prefix = prefix_of_batch(run_id, step_id, batch)
        named = next((file.path for file in facts.files if prefix in file.path), None)
        with table_errors(facts.ref.identifier):
            folders = folders_of(storage, facts, partitions)
            if named is None and files_named(storage, folders, prefix):
                named = find_name(second_readers(self._jvm), storage, storage.commits()[-1].version, prefix)
        _refuse_live(facts, "files of a batch that its run never tried to commit are live", named)
        with table_errors(facts.ref.identifier):
            return remove_files_named(storage, folders, prefix)

    def remove_late(self, facts: TableFacts, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Remove what an attempt wrote that its batch was committed without; see ``TableWriter.remove_late``."""
        with table_errors(facts.ref.identifier):
            storage = self._live_files.storage(facts.location)
            path_of = {storage.uri(path): path for path in paths}
            found = [path_of[uri] for uri in storage.files.look_many(path_of, EXACT_NAMES)]
            live = {file.path for file in facts.files}
            named = next((path for path in found if path in live), None)
            if named is None and found:
                self._jvm.start()
                storage, readers = TableStorage(self._jvm, self._jvm.log_at(facts.location)), second_readers(self._jvm)
                head, names = storage.commits()[-1].version, (path.rpartition("/")[2] for path in found)
                named = next(filter(None, (find_name(readers, storage, head, name) for name in names)), None)
        _refuse_live(facts, "files of an attempt that does not count are live", named)
        with table_errors(facts.ref.identifier):
            left = tuple(path for path in found if not _is_removed(storage, path))
            return tuple(path for path in found if path not in left), left

    def set_properties(
        self, facts: TableFacts, step: SetPropertiesStep, stamp: CommitStamp, before_commit: BeforeCommit
    ) -> CommitReceipt:
        """Set table properties in one commit; see ``TableWriter.set_properties``."""
        self._jvm.start()
        self._open_log(facts)
        refuse_unsafe_store(self._jvm, facts)
        self._jvm.enter_thread(self._group, f"{facts.ref.identifier}: properties")
        return set_properties(self._jvm, facts, step, stamp, before_commit)

    def vacuum(
        self,
        facts: TableFacts,
        step: VacuumStep,
        stamp: CommitStamp,
        before_delete: BeforeCommit,
        guard: DeletionGuard = DeletionGuard(),  # noqa: B008 (frozen)
    ) -> VacuumReceipt:
        """Delete exactly the step's files; see ``TableWriter.vacuum``."""
        self._jvm.start()
        listed = self._open_log(facts, lists_anew=True)
        refuse_unsafe_store(self._jvm, facts)
        self._jvm.enter_thread(self._group, f"{facts.ref.identifier}: vacuum")
        self._meter.begin(Phase.LOOKING)
        tools = VacuumTools(
            self._reader.references, self._reader, second_readers(self._jvm), self.clock, self._reader.forget, listed,
            self._meter, self._reader.planned_logs.take(facts.location),
        )  # fmt: skip
        return vacuum(self._jvm, facts, step, stamp, before_delete, guard, tools)

    def undelete(self, facts: TableFacts, run_id: str, deleted: Sequence[MarkedFile] = ()) -> UndeleteReceipt:
        """Bring back what a run took away; see ``TableWriter.undelete``."""
        self._jvm.start()
        with table_errors(facts.ref.identifier):
            storage = TableStorage(self._jvm, self._jvm.log_at(facts.location))
            return undelete(storage, facts.table_id, run_id, facts.ref.identifier, deleted)

    def _open_log(
        self, facts: TableFacts, *, counts_files: bool = False, lists_anew: bool = False
    ) -> Mapping[str, StoredFile]:
        """Refuse a damaged log, and write a missing checksum; returns what lay in the log's folder.

        Delta then knows the version without a Spark job, and reads no commit.
        """
        self._jvm.activate()
        with table_errors(facts.ref.identifier):
            storage = self._live_files.storage(facts.location)
            log_files = storage.log_files() if lists_anew else storage.listed_with(facts.version)
            refuse_empty_commits(log_files.values(), facts.ref.identifier)
            if counts_files and storage.checksum_uri(facts.version) in log_files:
                self._refuse_other_checksum(storage, facts)
        if self._jvm.writes_checksums:
            write_missing_checksum(self._live_files, facts, log_files)
        return log_files

    def _refuse_other_checksum(self, storage: TableStorage, facts: TableFacts) -> None:
        try:
            refuse_other_checksum(storage, facts)
        except TableError:
            # A table that was dropped and created again has a checksum file of its own: then nothing is damaged.
            if was_planned_table(storage, facts, facts.version) is False:
                check_same_table(self._jvm, storage, facts, self._jvm.update(self._jvm.log_at(facts.location)))
            raise


class DeltaTableEngine:
    """Implements ``TableEngine``: one worker's session."""

    def __init__(
        self, jvm: DeltaJvm, group: str, shared: SharedByWorkers | None = None, stop: threading.Event | None = None
    ) -> None:
        shared = shared or SharedByWorkers()
        self.jvm = jvm
        self.meter = StepMeter()
        self._stop = stop or threading.Event()
        # One for all three: what the writer read of a version is what its checks and the next batch look at.
        live_files = LiveFilesReader(jvm)
        self.reader = DeltaTableReader(
            jvm, live_files, shared.references, shared.planned_logs, keeps_logs=shared.keeps_logs
        )
        self.versions = DeltaCommitProver(jvm, live_files, self.meter)
        self.writer = DeltaTableWriter(jvm, group, self.reader, live_files, shared, self._stop, self.meter)

    def begin_table(self) -> None:
        self._stop.clear()


class DeltaEngine:
    """Implements ``Engine`` on a session lease. ``single_writer``: nobody else writes to these tables during a run.

    See ``SharedByWorkers`` for the others.
    """

    deletes = True
    places = StoragePlaces()

    def __init__(
        self,
        lease: SessionLease,
        *,
        between_write_and_proof: FaultHook | None = None,
        single_writer: bool = False,
        executors: Executors | None = None,
        keeps_logs: bool = True,
    ) -> None:
        self._lease = lease
        self._single_writer = single_writer
        self._shared = SharedByWorkers(between_write_and_proof, executors, keeps_logs)
        self._stops: dict[str, threading.Event] = {}
        self._is_tested = False
        self._testing = threading.Lock()

    @contextmanager
    def worker(self, name: str) -> Iterator[DeltaTableEngine]:
        """A worker with a session, scheduler pool and job group of its own; enter it on the thread that uses it."""
        unstarted = self._lease.unstarted(self._session)
        jvm = self._tested(DeltaJvm(self._session())) if unstarted is None else DeltaJvm(self._tested_later(unstarted))
        jvm.enter_thread(name, f"maintainer worker {name}")
        stop = self._stops[name] = threading.Event()
        try:
            yield DeltaTableEngine(jvm, name, self._shared, stop)
        finally:
            jvm.leave_thread()

    def _tested(self, jvm: DeltaJvm) -> DeltaJvm:
        """Raises E633 where Delta or Spark lacks what is used here; one look is enough for all workers."""
        with self._testing:  # the others wait for the first: 300 calls of py4j
            if not self._is_tested:
                jvm.self_test()
                self._is_tested = True
        return jvm

    def _tested_later(self, unstarted: UnstartedSession) -> UnstartedSession:
        def opened() -> JavaObject:
            java = unstarted.open_jvm()
            self._tested(DeltaJvm(replace(unstarted, open_jvm=lambda: java)))
            return java

        return replace(unstarted, open_jvm=opened)

    def _session(self) -> SparkSession:
        session = worker_session(self._lease)
        if self._single_writer:
            session.conf.set(SINGLE_WRITER, "true")
        return session

    def cancel(self, name: str) -> None:
        """A worker that has ended is not looked for."""
        if name in self._stops:
            self._stops[name].set()
        if self._lease.is_started:
            self._lease.spark.sparkContext.cancelJobGroup(name)


def _refuse_live(facts: TableFacts, what: str, named: str | None) -> None:
    if named is not None:
        raise CheckImpossible(
            f"{what}: none of them is removed", code="V504", where=facts.ref.identifier, found=named,
            help="somebody committed them; look at the table's history",
        )  # fmt: skip


def _is_removed(storage: TableStorage, path: str) -> bool:
    try:
        storage.delete(storage.uri(path))
    except Exception:
        return False
    return True
