"""Read a table's facts at its newest version, without a change to it.

The log is read here, without a JVM where the table lies on this disk or on a store that obstore serves. Spark's own
Delta reads or refuses what is unusual, which starts a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from maintainer.delta.engine.catalog_names import delta_entry, neighbours_in_catalog, tables_in_catalog
from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.commit_history import read_commits
from maintainer.delta.log.replay.log_replay import LogReplay, PlannedLogs
from maintainer.delta.snapshot.column_statistics import find_dropped_columns, ranges_in, read_sample
from maintainer.delta.snapshot.find_tables import tables_below
from maintainer.delta.snapshot.log_reader import LogQuestions, LogReader, SparkReader
from maintainer.delta.storage.failures.engine_failures import not_permitted, table_errors
from maintainer.delta.storage.file_store import FileStore, one_spelling
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.storage.table_storage import TableStorage, direct_files, files_of, storage_of_path
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.delta.vacuum.needed_elsewhere import References
from maintainer.delta.vacuum.vacuum_candidates import history, now_ms, with_deletable_files
from maintainer.engine.protocols import VacuumQuestion
from maintainer.model.table.commit_records import CommitsRead, CommitsWanted
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, DataFile, TableFacts, TableRef


class DeltaTableReader(LogQuestions):
    """Implements ``TableReader`` on a Spark session.

    ``keeps_logs``: what was read of a store's log stays when the next table's turn comes, for whoever reads it next.
    """

    def __init__(
        self,
        jvm: DeltaJvm,
        live_files: LiveFilesReader,
        references: References,
        planned_logs: PlannedLogs,
        *,
        keeps_logs: bool = True,
    ) -> None:
        self._jvm = jvm
        self._live_files = live_files
        self.references = references
        self.planned_logs = planned_logs
        self._keeps_logs = keeps_logs
        self._replayed: tuple[str, LogReplay] | None = None
        self._last_read: tuple[TableRef, TableStorage] | None = None
        self._log_reader = LogReader()
        self._spark = SparkReader(jvm)

    def facts(self, ref: TableRef) -> TableFacts:
        """Read the newest version; see ``TableReader.facts`` for what it raises."""
        with self._reading(ref.identifier):
            storage = self._opened(ref)
            if not self._keeps_logs and self._last_read is not None and self._last_read[0] != ref:
                self._last_read[1].files.forget(self._last_read[1].root_uri)
            facts = self._log_reader.facts(ref, storage) or self._spark.facts(ref, storage)
            self._live_files.keep_open(facts.location, storage)
            self._last_read = (ref, storage)
            return facts

    def forget(self, location: str) -> None:
        """Drop what is kept of a table's log, here and in Delta."""
        self._log_reader.forget(location)
        self._live_files.forget()
        self._replayed = None
        self.planned_logs.take(location)
        self._jvm.forget_log(location)

    def vacuum_history(
        self, facts: TableFacts, checkpoints: tuple[tuple[str, str], ...], *, removed_before_ms: int | None
    ) -> VacuumHistory:
        """What the log says about how long files must be kept; see ``TableReader.vacuum_history``."""
        with self._reading(facts.ref.identifier):
            storage = self._log_of(facts)
            log, kept_history = history(
                storage, facts, checkpoints, self._files_of, removed_before_ms=removed_before_ms, now_ms=now_ms()
            )
            self._replayed = None if log is None else (facts.location, log)
            return kept_history

    def vacuum_look(self, facts: TableFacts, question: VacuumQuestion) -> TableFacts:
        """Return the facts with the files that may be deleted and still exist; see ``TableReader.vacuum_look``."""
        with self._reading(facts.ref.identifier):
            storage = self._log_of(facts)
            log = self._replayed[1] if self._replayed and self._replayed[0] == facts.location else None
            self._replayed = None
            keep = partial(self.planned_logs.keep, facts.location)
            return with_deletable_files(storage, facts, question, self.references, self, log, keep)

    def location_of(self, ref: TableRef) -> str:
        """Where the table's root is; see ``TableReader.location_of``."""
        with self._reading(ref.identifier):
            return self.place_of(ref)[1]

    def place_of(self, ref: TableRef) -> tuple[FileStore, str]:
        """Takes no snapshot, because it is called for every table of the project."""
        if ref.is_path:
            return self._files_of(ref.location)
        uri = delta_entry(self._jvm, ref.identifier).location
        return direct_files(self._jvm, uri) or self._files_at(self._jvm.path(uri))

    def neighbours_in_catalog(self, tables: Iterable[TableRef]) -> Iterator[TableRef]:
        return neighbours_in_catalog(self._jvm, tables)

    def _files_of(self, text: str, *, holds_tables: bool = False) -> tuple[FileStore, str]:
        """The store of a path as people write it, and its URI; see ``direct_files``."""
        direct = direct_files(self._jvm, path_uri(text), holds_tables=holds_tables)
        return direct or self._files_at(self._jvm.hadoop_path(text))

    def _files_at(self, path: JavaObject) -> tuple[FileStore, str]:
        conf = self._jvm.hadoop_conf()
        qualified = path.getFileSystem(conf).makeQualified(path)
        return files_of(self._jvm, path, conf), one_spelling(str(qualified.toUri().toString())).rstrip("/")

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        """Smallest and largest values of the columns in each live file of the version of the facts."""
        with self._reading(facts.ref.identifier):
            return ranges_in(facts.schema_json, columns, self._live_files.statistics(facts, facts.version))

    def column_sample(self, facts: TableFacts, columns: tuple[str, ...], *, max_rows: int) -> ColumnSample:
        """Values of the columns in about so many rows, drawn from files spread over the table."""
        with self._reading(facts.ref.identifier):
            log = self._jvm.log_at(facts.location)
            return read_sample(self._jvm, log, self._jvm.update(log), facts, self._live_files, columns, max_rows)

    def files_with_dropped_columns(self, facts: TableFacts, files: Sequence[DataFile]) -> frozenset[tuple[str, str]]:
        """Return the keys of files that hold dropped columns; see ``find_dropped_columns``."""
        with self._reading(facts.ref.identifier):
            return find_dropped_columns(self._jvm, facts, files, self._live_files.statistics(facts, facts.version))

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        """The table's newest commits; see ``HistoryReader.commits`` for what it raises."""
        with self._reading(ref.identifier):
            last_ref, storage = self._last_read or (None, None)
            if storage is None or last_ref != ref or wanted.until_version is None:
                storage = self._opened(ref)
            return read_commits(storage, storage.location, wanted)

    def in_catalog(
        self,
        wanted: Callable[[str], bool] = lambda database: True,
        meant: Callable[[str], bool] = lambda catalog: True,
    ) -> Iterator[tuple[str, str]]:
        """Delta tables of the session's catalogs; see ``TableFinder.in_catalog``."""
        return tables_in_catalog(self._jvm, wanted, meant)

    def below(self, root: str) -> Iterator[str]:
        """Delta tables in folders; see ``TableFinder.below``."""
        with table_errors(root):
            yield from tables_below(*self._files_of(root, holds_tables=True))

    @contextmanager
    def _reading(self, where: str) -> Iterator[None]:
        """Make our session the active one, and raise exceptions of the block as errors of our own."""
        self._jvm.activate()
        with table_errors(where):
            yield

    def _log_of(self, facts: TableFacts) -> TableStorage:
        """The table's storage; the last one is kept, because planning asks several times for the same table's."""
        return self._live_files.storage(facts.location)

    def _opened(self, ref: TableRef) -> TableStorage:
        """The storage of a table by its name or path."""
        if ref.is_path:
            return storage_of_path(self._jvm, ref.location)
        entry = delta_entry(self._jvm, ref.identifier)
        if entry.managed_as:
            raise not_permitted(ref.identifier, f"table type {entry.managed_as}")
        return TableStorage(self._jvm, entry.location)
