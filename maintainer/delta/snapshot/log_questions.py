"""What a table's commits answer, asked in the same way by the readers of both engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from maintainer.delta.log.commit_history import find_stamp, read_stamp
from maintainer.delta.log.table_updates import read_updates
from maintainer.delta.log.write_history import paths_of_rewrites, paths_of_zorder
from maintainer.delta.storage.table_log import TableLog
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts, Update


class LogQuestions(ABC):
    """The part of ``TableReader`` that needs a table's log and nothing else."""

    @abstractmethod
    def _log_of(self, facts: TableFacts) -> TableLog:
        """The log of a table that facts were read of."""

    @abstractmethod
    def _reading(self, where: str) -> AbstractContextManager[None]:
        """Raise exceptions of the block as errors of our own."""

    def find_commit(self, facts: TableFacts, stamp: CommitStamp, *, after_version: int) -> int | None:
        """See ``TableReader.find_commit``."""
        with self._reading(facts.ref.identifier):
            return find_stamp(self._log_of(facts), stamp, after_version=after_version)

    def stamp_of(self, facts: TableFacts, version: int) -> CommitStamp | None:
        """See ``TableReader.stamp_of``."""
        with self._reading(facts.ref.identifier):
            return read_stamp(self._log_of(facts), version)

    def updates(
        self, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
    ) -> tuple[Update, ...]:
        """See ``TableReader.updates``."""
        with self._reading(facts.ref.identifier):
            log = self._log_of(facts)
            return read_updates(log, facts, since_ms=since_ms, after_version=after_version, until_version=until_version)

    def zordered_paths(self, facts: TableFacts, columns: tuple[str, ...]) -> frozenset[str]:
        """See ``TableReader.zordered_paths``."""
        with self._reading(facts.ref.identifier):
            return paths_of_zorder(self._log_of(facts), facts, columns)

    def rewritten_paths(self, facts: TableFacts, *, since_ms: int) -> frozenset[str]:
        """See ``TableReader.rewritten_paths``."""
        with self._reading(facts.ref.identifier):
            return paths_of_rewrites(self._log_of(facts), facts, since_ms)
