"""The command engine: one session for each worker, classic or over Spark Connect.

For checks after a commit a table is read at one version, with public means only; rows are counted in the files.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from maintainer.delta.commands.command_facts import CommandTableReader, read_version, storage_of
from maintainer.delta.commands.command_session import CommandSession, CommandStorage
from maintainer.delta.commands.command_writer import CommandTableWriter, prove_command, unproven
from maintainer.delta.log.actions import PartitionNames, committed_files
from maintainer.delta.log.commit_history import commit_at
from maintainer.delta.log.table_place import SpelledPlaces
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.transaction.requirements import SINGLE_WRITER
from maintainer.delta.verify.version_proof import FilesOfVersion
from maintainer.engine.step_meter import StepMeter
from maintainer.model.run.receipts import Proof
from maintainer.model.table.table_facts import DataFile, TableFacts

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame


class CommandVersionReader(FilesOfVersion):
    """Implements ``VersionReader`` on a command session."""

    def __init__(self, session: CommandSession, reader: CommandTableReader) -> None:
        self._session, self._reader = session, reader

    def proof(self, facts: TableFacts, version: int) -> Proof:
        """Read both sides through Delta; see ``VersionReader.proof``."""
        with table_errors(f"{facts.ref.identifier}@{version}"):
            storage = self._storage(facts)
            before, entry = read_version(storage, version - 1).state, commit_at(storage, version)
            if entry is None:
                raise unproven(facts, version, "its commit is no longer in the log")
            names = PartitionNames.of(before.metadata)
            files_before = {file.key: file for file in (file.data_file(names) for file in before.files.values())}
            files = committed_files(version, storage.actions(entry, with_adds=True), names, files_before)
            then = replace(facts, schema_json=str(before.metadata["schemaString"]))
            return prove_command(self._session, self._reader, then, files)

    def dataframe(self, facts: TableFacts, version: int) -> DataFrame:
        """The table at the version, by ``versionAsOf``.

        Raises:
            TableError: T403, the version cannot be read (cleaned away, or its log is damaged).
        """
        with table_errors(f"{facts.ref.identifier}@{version}"):
            path = self._storage(facts).root_text
            frame = self._session.spark.read.format("delta").option("versionAsOf", version).load(path)
            frame.schema  # noqa: B018 - Spark Connect looks at the table only when it is asked for something
            return frame

    def columns(self, facts: TableFacts, version: int) -> tuple[str, ...]:
        """The columns that Spark's reader of the version gives, in order.

        Raises:
            TableError: T403, the version cannot be read.
        """
        return tuple(self.dataframe(facts, version).columns)

    def row_count(self, facts: TableFacts, version: int, *, scan: bool, beside: int | None = None) -> int:
        """Rows at the version: from all files, or (``scan=False``) as the log says; -1 where the log cannot say."""
        frame = self.dataframe(facts, version) if scan else None
        with table_errors(f"{facts.ref.identifier}@{version}"):
            if frame is not None:
                return int(frame.count())
            counts = [file.live_records for file in self._files(facts, version)]
            return -1 if None in counts else sum(count or 0 for count in counts)

    def _storage(self, facts: TableFacts) -> CommandStorage:
        return storage_of(self._session, facts)

    def _sizes(self, facts: TableFacts, uris: Collection[str]) -> Mapping[str, int]:
        return self._storage(facts).sizes(uris)

    def _files(self, facts: TableFacts, version: int) -> tuple[DataFile, ...]:
        """The live files of a version, as the log says."""
        if version == facts.version:
            return facts.files
        state = read_version(self._storage(facts), version).state
        names = PartitionNames.of(state.metadata)
        return tuple(file.data_file(names) for file in state.files.values())


FaultHook = Callable[[int], None]


class CommandTableEngine:
    """Implements ``TableEngine``: one worker's session."""

    def __init__(self, session: CommandSession, *, between_commit_and_proof: FaultHook | None = None) -> None:
        self.session = session
        self.meter = StepMeter()
        self.reader = CommandTableReader(session)
        self.versions = CommandVersionReader(session, self.reader)
        self.writer = CommandTableWriter(session, self.reader, self.meter, between_commit_and_proof)

    def begin_table(self) -> None:
        """An interrupt reaches only what runs at that moment."""


class CommandEngine:
    """Implements ``Engine`` on whatever opens a session for a worker's name."""

    deletes = False
    places = SpelledPlaces()

    def __init__(
        self,
        open_session: Callable[[str], AbstractContextManager[CommandSession]],
        *,
        between_commit_and_proof: FaultHook | None = None,
        single_writer: bool = False,
    ) -> None:
        self._single_writer = single_writer
        self._open = open_session
        self._between = between_commit_and_proof
        self._lock = threading.Lock()
        self._running: dict[str, CommandSession] = {}

    @contextmanager
    def worker(self, name: str) -> Iterator[CommandTableEngine]:
        """A worker with a session of its own; enter it on the thread that uses it."""
        with self._open(name) as session:
            if self._single_writer:
                session.spark.conf.set(SINGLE_WRITER, "true")
            with self._lock:
                self._running[name] = session
            try:
                yield CommandTableEngine(session, between_commit_and_proof=self._between)
            finally:
                with self._lock:
                    self._running.pop(name, None)

    def cancel(self, name: str) -> None:
        """Cancel what runs in the worker's session; nothing happens if the worker has ended."""
        with self._lock:
            session = self._running.get(name)
        if session is not None:
            with contextlib.suppress(Exception):  # the server may be gone, and then nothing runs
                session.interrupt()
