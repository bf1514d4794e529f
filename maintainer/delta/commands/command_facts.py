"""Read a table's facts with public means only: DESCRIBE DETAIL, and the log's files replayed here.

The result is compared with what Delta says of the same table (id, number of files, bytes). So a log that we do not
understand is an error and never a wrong plan.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import unquote

from maintainer.delta.commands.command_session import CommandSession, CommandStorage, table_name
from maintainer.delta.log.commit_history import read_commits
from maintainer.delta.log.replay.checkpoint_actions import StatisticsWanted
from maintainer.delta.log.replay.version_replay import IncompleteLog, LogState, ReplayedVersion, replay_version
from maintainer.delta.snapshot.column_statistics import ranges_in
from maintainer.delta.snapshot.log_reader import LogQuestions, replayed_facts
from maintainer.delta.storage.failures.engine_failures import (
    describe,
    log_unreadable,
    no_table,
    not_delta,
    table_errors,
)
from maintainer.delta.storage.table_log import look_into
from maintainer.engine.protocols import VacuumQuestion
from maintainer.errors import Refused
from maintainer.model.table.commit_records import CommitsRead, CommitsWanted
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import (
    ColumnRanges,
    ColumnSample,
    DataFile,
    TableFacts,
    TableRef,
)
from maintainer.planning.selection.schema_columns import partition_types

READ_ATTEMPTS = 3
"""Looks at a log that a writer changes between two questions."""


class CommandTableReader(LogQuestions):
    """Implements ``TableReader`` with public means only."""

    def __init__(self, session: CommandSession) -> None:
        self._session = session

    def facts(self, ref: TableRef) -> TableFacts:
        """Read the newest version; see ``TableReader.facts`` for what it raises."""
        self._session.describe(f"{ref.identifier}: facts")
        with table_errors(ref.identifier):
            disagreement = ""
            for _ in range(READ_ATTEMPTS):
                detail = self._detail(ref)
                storage = CommandStorage(self._session, str(detail["location"]))
                log = read_version(storage)
                disagreement = _disagreement(log.state, detail)
                if not disagreement:
                    return replayed_facts(ref, storage.root_uri, log)
        help = "nothing was changed; try again while no other writer is active, or use --engine transaction"
        raise log_unreadable("the table's log and DESCRIBE DETAIL do not agree", ref.identifier, disagreement, help)

    def location_of(self, ref: TableRef) -> str:
        """Where the table's root is; see ``TableReader.location_of``."""
        with table_errors(ref.identifier):
            return str(self._detail(ref)["location"])

    def vacuum_history(
        self, facts: TableFacts, checkpoints: tuple[tuple[str, str], ...], *, removed_before_ms: int | None
    ) -> VacuumHistory:
        """Not asked for: this engine deletes nothing.

        Raises:
            Refused: A440.
        """
        raise deletes_nothing(facts.ref.identifier)

    def vacuum_look(self, facts: TableFacts, question: VacuumQuestion) -> TableFacts:
        """Not asked for: this engine deletes nothing.

        Raises:
            Refused: A440.
        """
        raise deletes_nothing(facts.ref.identifier)

    def files_with_dropped_columns(self, facts: TableFacts, files: Sequence[DataFile]) -> frozenset[tuple[str, str]]:
        """Not asked for: this engine opens no file; planning leaves dropped columns alone, with a reason.

        Raises:
            Refused: A442.
        """
        raise no_command(facts.ref.identifier, "a look into files for dropped columns")

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        """Smallest and largest values of the columns in each live file of the version of the facts."""
        with table_errors(facts.ref.identifier):
            state = read_version(self.storage(facts), facts.version, with_statistics=True).state
            statistics = ((key, file.stats) for key, file in state.files.items())
            return ranges_in(facts.schema_json, columns, statistics)

    def statistics_of(self, facts: TableFacts, version: int, paths: Collection[str]) -> dict[str, str]:
        """The statistics of some files of a version by path, without those that have none."""
        state = read_version(self.storage(facts), version, with_statistics=paths).state
        return {file.path: file.stats for file in state.files.values() if file.stats}

    def column_sample(self, facts: TableFacts, columns: tuple[str, ...], *, max_rows: int) -> ColumnSample:
        """Not asked for: planning leaves incremental Z-order alone, with a reason.

        Raises:
            Refused: A442.
        """
        raise no_command(facts.ref.identifier, "a sample of a table's values")

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        """The table's newest commits; see ``HistoryReader.commits`` for what it raises."""
        facts = self.facts(ref)
        with table_errors(ref.identifier):
            return read_commits(self.storage(facts), facts.location, wanted)

    def storage(self, facts: TableFacts) -> CommandStorage:
        """The storage of a table that facts were read of."""
        return storage_of(self._session, facts)

    _log_of = storage

    def _reading(self, where: str) -> AbstractContextManager[None]:
        return table_errors(where)

    def _detail(self, ref: TableRef) -> dict[str, Any]:
        try:
            (row,) = self._session.rows(f"DESCRIBE DETAIL {table_name(ref)}")
        except Exception as error:
            if ref.is_path and any(failure.condition == "DELTA_MISSING_DELTA_TABLE" for failure in describe(error)):
                look_into(ref.location)
                self._check_folder(ref)
            raise
        fields: dict[str, Any] = row.asDict()
        if fields["format"] != "delta":
            raise not_delta("this is not a Delta table", ref.identifier, f"format {fields['format']}")
        return fields

    def _check_folder(self, ref: TableRef) -> None:
        """Raise T401 if the folder does not exist; Delta's error does not tell."""
        try:
            self._session.files(ref.location).schema  # noqa: B018 - asking for it looks at the path
        except Exception as error:
            if any(failure.condition == "PATH_NOT_FOUND" for failure in describe(error)):
                raise no_table("there is no such table: the folder does not exist", ref.identifier) from error


def deletes_nothing(where: str) -> Refused:
    """Return the refusal of every deletion.

    VACUUM cannot follow a plan: it decides by the age of files, follows symlinks, takes whatever lies in the
    table's folder, and says only how many files it deleted. Given a list (``USING INVENTORY``) it still tries the
    folders of the files, swallows every error, and overwrites what VACUUM LITE goes by.
    """
    return Refused(
        "the command engine deletes nothing: VACUUM cannot follow a plan",
        code="A440",
        where=where,
        help="apply with --engine transaction beside the storage",
    )


def refuse_shifted_times(session: CommandSession, facts: TableFacts) -> None:
    """Refuse a table with partitions by a time where the session's commands would shift them.

    Raises:
        Refused: A442.
    """
    if "timestamp" not in partition_types(facts).values():
        return
    if (why := session.what_shifts_times()) is not None:
        what = "partitions by a time: Delta 4.0 shifts them where Java's time zone is not UTC"
        raise no_command(facts.ref.identifier, what, found=why)


def no_command(where: str, what: str, *, found: str | None = None) -> Refused:
    """Return the refusal of work that no command of Delta does."""
    return Refused(
        f"the command engine has no command for {what}",
        code="A442",
        where=where,
        found=found,
        help="plan and apply with --engine transaction beside the storage",
    )


def storage_of(session: CommandSession, facts: TableFacts) -> CommandStorage:
    """The storage of a table that facts were read of."""
    return CommandStorage(session, unquote(facts.location))


def read_version(
    storage: CommandStorage, version: int | None = None, *, with_statistics: StatisticsWanted = False
) -> ReplayedVersion:
    """The table at a version (the newest); see ``replay_version``.

    Raises:
        TableError: T403, the log's files do not make it up.
    """
    try:
        return replay_version(storage, version, with_statistics=with_statistics)
    except IncompleteLog as error:
        raise log_unreadable("the table's log cannot be read", storage.root_uri, str(error)) from error


def _disagreement(state: LogState, detail: dict[str, Any]) -> str:
    """Return how the replayed state differs from DESCRIBE DETAIL; empty if it does not."""
    replayed = {
        "id": state.metadata["id"],
        "numFiles": len(state.files),
        "sizeInBytes": sum(file.size_bytes for file in state.files.values()),
        "partitionColumns": list(state.metadata["partitionColumns"]),
    }
    unlike = [
        f"{key}: {value} by the log, {detail[key]} by Delta" for key, value in replayed.items() if detail[key] != value
    ]
    return "; ".join(unlike)
