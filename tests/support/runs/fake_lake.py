"""A lake in memory: an ``Engine`` with real versions, real conflicts, and failures to order.

Rows are integers. A table's history is a list of versions, each a mapping from file path to rows; a rewrite goes
through the same stations as the real one (read, write, prove, INTENT, commit), and a test may hang a *hook* on each
station: ``lake.at("commit", hook)``. A hook may raise, change the table as another writer would, or spoil what is
written.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.transaction.property_commit import check_as_planned
from maintainer.engine.protocols import BeforeCommit, DeletionGuard, TableEngine, TablePlaces, VacuumQuestion
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import CommitConflict, CommitNotLanded, NoTable, VerificationFailed
from maintainer.model.plan.steps import Batch, RewriteStep, SetPropertiesStep, VacuumStep
from maintainer.model.run.optimize_metrics import FileSizeMetrics
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof, UndeleteReceipt, VacuumReceipt
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, CommitsWanted, TableCommit
from maintainer.model.table.storage_facts import MarkedFile, MissingFiles, VacuumHistory
from maintainer.model.table.table_facts import (
    ColumnRanges,
    ColumnSample,
    DataFile,
    PartitionValues,
    RemovedFile,
    TableFacts,
    TableRef,
    Update,
)
from tests.support.runs.fake_table import ROW_BYTES, FakeTable, Version
from tests.support.tables.builders import NOW_MS

Hook = Callable[["Station"], object]


@dataclass(slots=True)
class Station:
    """Where a hook is called: the table, and what is under way. ``rows`` is what the rewrite is about to write."""

    lake: FakeLake
    table: FakeTable
    stamp: CommitStamp | None = None
    rows: list[int] | None = None


class FakeLake:
    """Tables, hooks, and workers: an ``Engine``."""

    def __init__(self) -> None:
        self.tables: dict[str, FakeTable] = {}
        self.cancelled: list[str] = []
        self.cleaned: list[tuple[str, str, str, tuple[PartitionValues, ...]]] = []
        self.cancel_events: dict[str, threading.Event] = {}
        self.workers: list[str] = []
        self._hooks: dict[str, list[tuple[str | None, Hook]]] = {}
        self.lock = threading.RLock()
        self.worker_error: Exception | None = None
        self.late_paths: tuple[str, ...] = ()
        self.proves_after = False
        """As Delta's commands, which are proven after their commit: INTENT has no proof."""
        self.looked_for: list[tuple[str, ...]] = []

    def table(self, name: str, *files: tuple[int, ...]) -> FakeTable:
        """Make a table with one file for each tuple of rows."""
        content = {f"f{i}": rows for i, rows in enumerate(files)}
        made = FakeTable(name, f"id-{name}", [Version({}), Version(content)], set(content))
        self.tables[name] = made
        return made

    def at(self, station: str, hook: Hook, *, table: str | None = None, times: int | None = None) -> None:
        """Call ``hook`` at a station: ``facts``, ``write``, ``commit``, ``landed``, ``vacuum``, ``check``."""
        left = [times]

        def counted(where: Station) -> None:
            if left[0] is not None:
                if left[0] <= 0:
                    return
                left[0] -= 1
            hook(where)

        self._hooks.setdefault(station, []).append((table, counted))

    def clear_hooks(self) -> None:
        """Nothing happens at any station any more."""
        self._hooks.clear()

    def reach(self, station: str, where: Station) -> None:
        """Call the hooks of a station."""
        for table, hook in self._hooks.get(station, ()):
            if table in (None, where.table.name):
                hook(where)

    @property
    def places(self) -> TablePlaces:
        return StoragePlaces()

    @property
    def deletes(self) -> bool:
        return True

    @contextmanager
    def worker(self, name: str) -> Iterator[TableEngine]:
        if self.worker_error is not None:
            raise self.worker_error
        self.workers.append(name)
        self.cancel_events[name] = threading.Event()
        yield FakeWorker(self, name)

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)
        self.cancel_events[name].set()


class FakeWorker:
    """Reader, writer and version reader in one: a ``TableEngine``."""

    def __init__(self, lake: FakeLake, name: str) -> None:
        self.lake = lake
        self.name = name
        self.meter = StepMeter()

    def begin_table(self) -> None:
        self.cancelled.clear()

    @property
    def reader(self) -> FakeWorker:
        return self

    @property
    def writer(self) -> FakeWorker:
        return self

    @property
    def versions(self) -> FakeWorker:
        return self

    @property
    def cancelled(self) -> threading.Event:
        """Set when the engine was told to cancel this worker's jobs."""
        return self.lake.cancel_events[self.name]

    def _table(self, ref: TableRef) -> FakeTable:
        table = self.lake.tables.get(ref.identifier)
        if table is None:
            raise NoTable("no such table", where=ref.identifier)
        return table

    def _planned_table(self, facts: TableFacts) -> FakeTable:
        table = self._table(facts.ref)
        if table.table_id != facts.table_id:
            raise CommitConflict("the table was dropped and created again", where=str(facts.ref))
        return table

    def facts(self, ref: TableRef) -> TableFacts:
        table = self._table(ref)
        self.lake.reach("facts", Station(self.lake, table))
        return table.facts()

    def location_of(self, ref: TableRef) -> str:
        return self._table(ref).location

    def vacuum_history(
        self, facts: TableFacts, checkpoints: tuple[tuple[str, str], ...], *, removed_before_ms: int | None
    ) -> VacuumHistory:
        raise AssertionError("execution never asks how long to keep files: the plan says it")

    def vacuum_look(self, facts: TableFacts, question: VacuumQuestion) -> TableFacts:
        raise AssertionError("execution never asks for candidates of deletion: the plan names them")

    def remove_unfinished(
        self, facts: TableFacts, run_id: str, step_id: str, batch: int, partitions: Iterable[PartitionValues]
    ) -> tuple[str, ...]:
        self.lake.cleaned.append((facts.ref.identifier, run_id, f"{step_id}[{batch}]", tuple(partitions)))
        return ()

    def remove_late(self, facts: TableFacts, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        self.lake.looked_for.append((facts.ref.identifier, *paths))
        return tuple(paths), ()

    def undelete(self, facts: TableFacts, run_id: str, deleted: Sequence[MarkedFile] = ()) -> UndeleteReceipt:
        raise AssertionError("a run never brings files back")

    def zordered_paths(self, facts: TableFacts, columns: tuple[str, ...]) -> frozenset[str]:
        return frozenset()

    def rewritten_paths(self, facts: TableFacts, *, since_ms: int) -> frozenset[str]:
        return frozenset()

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        live = self._table(facts.ref).live
        return ColumnRanges(
            columns,
            {
                (path, ""): tuple((str(min(rows)), str(max(rows)), False) for _ in columns)
                for path, rows in live.items()
                if rows
            },
        )

    def column_sample(self, facts: TableFacts, columns: tuple[str, ...], *, max_rows: int) -> ColumnSample:
        rows = self._table(facts.ref).rows[:max_rows]
        return ColumnSample(columns, tuple(tuple(str(row) for row in rows) for _ in columns))

    def files_with_dropped_columns(self, facts: TableFacts, files: Sequence[DataFile]) -> frozenset[tuple[str, str]]:
        raise AssertionError("execution never opens files for dropped columns: the plan names them")

    def find_commit(self, facts: TableFacts, stamp: CommitStamp, *, after_version: int) -> int | None:
        table = self._table(facts.ref)
        for version in range(max(after_version + 1, table.log_begins), len(table.versions)):
            if table.versions[version].stamp == stamp:
                return version
        return None

    def stamp_of(self, facts: TableFacts, version: int) -> CommitStamp | None:
        return self._table(facts.ref).versions[version].stamp if self.has_commit(facts, version) else None

    def has_commit(self, facts: TableFacts, version: int) -> bool:
        table = self._table(facts.ref)
        return table.log_begins <= version < len(table.versions)

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        table = self._table(ref)
        newest = range(table.version, max(-1, table.version - wanted.limit), -1)
        return CommitsRead(ref.location, tuple(_commit(table, version) for version in newest), 0)

    def updates(
        self, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
    ) -> tuple[Update, ...]:
        versions = self._table(facts.ref).versions
        return tuple(
            Update(version, after.at_ms, "DELETE")
            for version, (before, after) in reversed([*enumerate(pairwise(versions), start=1)])
            if after.stamp is None
            and before.files.keys() - after.files.keys()
            and (version > after_version or after.at_ms >= since_ms)
        )

    def set_properties(
        self, facts: TableFacts, step: SetPropertiesStep, stamp: CommitStamp, before_commit: BeforeCommit
    ) -> CommitReceipt:
        table = self._planned_table(facts)
        where = Station(self.lake, table, stamp)
        check_as_planned(table.properties, step, str(facts.ref))
        before_commit(table.version, None)
        self.lake.reach("commit", where)
        check_as_planned(table.properties, step, str(facts.ref))
        read_version = table.version
        table.properties.update(dict(step.after))
        version = table.commit(set(), {}, stamp)
        return CommitReceipt(version=version, read_version=read_version)

    def rewrite(
        self, facts: TableFacts, step: RewriteStep, batch: Batch, stamp: CommitStamp, before_commit: BeforeCommit
    ) -> CommitReceipt:
        table = self._planned_table(facts)
        read_version = table.version
        added: dict[str, tuple[int, ...]] = {}
        read, written = Counter[int](), Counter[int]()
        where = Station(self.lake, table, stamp)
        paths = {file.path for file in batch.files}
        _check_live(table, paths)
        for bin_ in batch.bins:
            if self.cancelled.is_set():
                raise CommitNotLanded("stopped while new files were written", where=facts.ref.identifier)
            rows = [row for file in bin_.files for row in table.versions[read_version].files[file.path]]
            read.update(rows)
            where.rows = list(rows)
            self.lake.reach("write", where)
            table.written += 1
            added[f"packed-{table.written}"] = tuple(where.rows)
            written.update(where.rows)
        live_records = sum(file.live_records or 0 for file in batch.files)
        proof = Proof(_fingerprint(read), _fingerprint(written), live_records, late_paths=self.lake.late_paths)
        if not proof.holds:
            raise VerificationFailed("what was written is not what was read", where=f"{facts.ref}@{read_version}")
        before_commit(read_version, None if self.lake.proves_after else proof)
        self.lake.reach("commit", where)
        with self.lake.lock:
            _check_live(table, paths)
            version = table.commit(paths, added, stamp)
        self.lake.reach("landed", where)
        return CommitReceipt(
            version=version, read_version=read_version, num_files_removed=len(paths), num_files_added=len(added),
            bytes_removed=batch.size_bytes, bytes_added=sum(len(rows) for rows in added.values()) * ROW_BYTES,
            proof=proof,
            files_removed=FileSizeMetrics.of(file.size_bytes for file in batch.files),
            files_added=FileSizeMetrics.of(len(rows) * ROW_BYTES for rows in added.values()),
        )  # fmt: skip

    def vacuum(
        self,
        facts: TableFacts,
        step: VacuumStep,
        stamp: CommitStamp,
        before_delete: BeforeCommit,
        guard: DeletionGuard = DeletionGuard(),  # noqa: B008 (frozen)
    ) -> VacuumReceipt:
        table = self._planned_table(facts)
        since = facts.version if guard.planned_version is None else min(facts.version, guard.planned_version)
        _check_unneeded(table, since, step)
        before_delete(facts.version, None)
        self.lake.reach("vacuum", Station(self.lake, table, stamp))
        _check_unneeded(table, since, step)
        gone: list[RemovedFile] = []
        stopped = None
        guard.progress(0, ())
        for file in step.files:
            stopped = guard.stop_reason()
            if stopped is not None:
                break
            if file.path in table.storage - table.stuck:
                table.storage.discard(file.path)
                gone.append(file)
                guard.progress(len(gone), ())
                self.lake.reach("deleted", Station(self.lake, table, stamp))
        size = sum(file.size_bytes for file in gone)
        remaining = tuple(file.path for file in step.files if file.path in table.storage & table.stuck)
        return VacuumReceipt(len(gone), size, remaining, facts.version, None, stopped=stopped)

    def dataframe(self, facts: TableFacts, version: int) -> object:
        return self._table(facts.ref).versions[version]

    def columns(self, facts: TableFacts, version: int) -> tuple[str, ...]:
        return facts.columns

    def row_count(self, facts: TableFacts, version: int, *, scan: bool, beside: int | None = None) -> int:
        return sum(len(rows) for rows in self._table(facts.ref).versions[version].files.values())

    def missing_files(self, facts: TableFacts, version: int) -> MissingFiles:
        table = self._table(facts.ref)
        files = table.versions[version].files
        return MissingFiles(len(files), tuple(sorted(path for path in files if path not in table.storage)))

    def files_there(self, facts: TableFacts, paths: Sequence[str]) -> frozenset[str]:
        return frozenset(paths) & self._table(facts.ref).storage

    def proof(self, facts: TableFacts, version: int) -> Proof:
        read, written = (_fingerprint(self._rows(facts, each)) for each in (version - 1, version))
        return Proof(read, written, rows_in_log=None, after_commit=True)

    def rows_differ(self, facts: TableFacts, version_a: int, version_b: int) -> int:
        a, b = self._rows(facts, version_a), self._rows(facts, version_b)
        return (a - b).total() + (b - a).total()

    def _rows(self, facts: TableFacts, version: int) -> Counter[int]:
        return Counter(row for rows in self._table(facts.ref).versions[version].files.values() for row in rows)


def _check_live(table: FakeTable, paths: set[str]) -> None:
    if not paths <= set(table.live):
        raise CommitConflict("a file of the batch is no longer live", where=f"{table.name}@{table.version}")


def _check_unneeded(table: FakeTable, since: int, step: VacuumStep) -> None:
    planned = {file.path for file in step.files}
    if any(planned & set(version.files) for version in table.versions[since + 1 :]):
        raise CommitConflict("a planned file is in use again", where=f"{table.name}@{table.version}")


def _commit(table: FakeTable, version: int) -> TableCommit:
    """A commit with its figures, counted from what it changed."""
    before, after = table.versions[max(0, version - 1)].files, table.versions[version].files
    removed, added = before.keys() - after.keys(), after.keys() - before.keys()
    return TableCommit(
        version, table.versions[version].at_ms or NOW_MS, "WRITE", stamp=table.versions[version].stamp,
        num_files_removed=len(removed), num_files_added=len(added),
        bytes_removed=sum(len(before[path]) * ROW_BYTES for path in removed),
        bytes_added=sum(len(after[path]) * ROW_BYTES for path in added),
        takes_files=bool(removed),
    )  # fmt: skip


def _fingerprint(rows: Counter[int]) -> Fingerprint:
    total = sum(rows.values())
    return Fingerprint(total, (sum(hash((row, 1)) * n for row, n in rows.items()),))
