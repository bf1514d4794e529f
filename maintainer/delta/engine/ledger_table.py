"""Keep the ledger as a Delta table: appended once a run, readable by every engine that reads Delta.

Appends are blind, so several runs may append at once. Each append carries the run and its steps as an idempotency
token (``txnAppId``, ``txnVersion``), so rows that landed before a crash are not appended again.
"""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from maintainer.delta.engine.ledger_append import append_in_process
from maintainer.delta.jvm import OWN_LOG, ActiveSession, DeltaJvm, UnstartedSession
from maintainer.delta.log.replay.version_replay import last_transaction
from maintainer.delta.snapshot.log_reader import LogReader, SparkReader
from maintainer.delta.storage.failures.engine_failures import as_table_error, as_write_error, describe, is_conflict
from maintainer.delta.storage.table_storage import TableStorage, storage_of_path
from maintainer.delta.verify.version_reader import files_at
from maintainer.errors import (
    CommitConflict,
    CommitNotLanded,
    EnvironmentUnfit,
    FileAbsent,
    FileUnreadable,
    LogUnreadable,
    MaintainerError,
    NotDelta,
    raise_from,
)
from maintainer.journal.ledger.ledger_rebuild import LedgerContents
from maintainer.journal.ledger.ledger_rows import LEDGER_COLUMNS, STARTED_AT, LedgerMark, LedgerRow, damaged_ledger
from maintainer.model.cached_property import cached_property
from maintainer.model.table.table_facts import TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

ATTEMPTS = 4
"""Tries of one append: two runs that make the table at the same moment conflict once."""

MAX_ROWS_READ = 100_000

MAX_KEYS_READ = 2_000_000
"""Steps that a rebuild compares: 2,000 tables every night for two years."""

_ESCAPE = re.compile(r"\\u(d[89a-f][0-9a-f]{2})")

LEDGER_SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in LEDGER_COLUMNS)
"""Columns of the ledger, as Spark's DDL."""


AT_CREATION = {"delta.dataSkippingNumIndexedCols": "0"}
"""Properties that the ledger gets when it is made.

Statistics of 40 columns are some ninety aggregates, which Spark compiles in each run to skip files of a small table.
"""


class LedgerTable:
    """Implements ``LedgerStore`` on a Spark session.

    Args:
        spark: A session with our settings (``worker_session``), or what starts one when rows are read by Spark.
        location: Path or URI of the table; it is made on the first append.
    """

    def __init__(self, spark: SparkSession | UnstartedSession, location: str) -> None:
        self._session = spark
        self.location = location

    @cached_property
    def _jvm(self) -> DeltaJvm:
        return DeltaJvm(self._session)

    def mark(self) -> LedgerMark | None:
        """Return the ledger's version after checking that all its files exist; see ``LedgerSink.mark``."""
        try:
            jvm = self._jvm
            jvm.activate()
            storage = storage_of_path(jvm, self.location)
            if not storage.commits():
                return None
            ref = TableRef(self.location, self.location)
            facts = LogReader().facts(ref, storage) or SparkReader(jvm).facts(ref, storage)
            uris = {storage.uri(file.path) for file in facts.files}
            missing = sorted(uris - files_at(storage, uris).keys())
        except Exception as error:  # every kind of engine error, sorted out below
            raise_from(self._damaged(error), error)
        if missing:
            raise damaged_ledger(
                self.location, f"{len(missing)} of its {len(uris)} files are missing, such as {missing[0]}"
            )
        return LedgerMark(self.location, facts.table_id, facts.version)

    def _damaged(self, error: Exception) -> MaintainerError:
        table_error = as_table_error(error, self.location)
        if isinstance(table_error, (NotDelta, LogUnreadable)):
            return damaged_ledger(self.location, table_error.found or table_error.what)
        return self._error(error)

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        """Append rows of a run, once: the token is the run and the steps.

        Raises:
            MaintainerError: They could not be appended, after a few tries.
        """
        if not rows:
            return
        self._append(rows, f"maintainer-ledger-{run_id}-{_digest(rows)}", 1)

    def rows(
        self, *, table: str | None = None, table_id: str | None = None, limit: int = MAX_ROWS_READ
    ) -> tuple[LedgerRow, ...]:
        """Rows of the ledger, newest step first; none when there is no ledger yet.

        Args:
            table: Only rows of a table that was called so, and those with ``table_id``; None gives the rows of all.
            table_id: The id of that table, if it is known.
            limit: At most so many.

        Raises:
            MaintainerError: The ledger is there and cannot be read.
        """
        from pyspark.sql import functions

        def newest(frame: DataFrame) -> list[Row]:
            if table is not None:
                named = functions.col("table") == functions.lit(_written(table))
                frame = frame.where(named | (functions.col("table_id") == functions.lit(table_id)))
            in_order = frame.orderBy(functions.col("started_at").desc(), functions.col("step_id").desc())
            return in_order.limit(max(0, min(limit, MAX_ROWS_READ))).collect()

        return tuple(_row_of(row.asDict()) for row in self._ask(newest))

    def steps_of(self, run_id: str) -> frozenset[str]:
        """Ids of the steps of a run that have rows; see ``LedgerSink.steps_of``."""
        from pyspark.sql import functions

        def steps(frame: DataFrame) -> list[Row]:
            of_run = frame.where(functions.col("run_id") == functions.lit(run_id))
            return of_run.select("step_id").distinct().limit(MAX_ROWS_READ).collect()

        return frozenset(_read(row[0]) for row in self._ask(steps))

    def contents(self) -> LedgerContents:
        """Which rows there are, by run and step, and at which version; see ``LedgerStore.contents``."""
        versions: list[int] = []

        def keys_of(_: DataFrame) -> list[Row]:
            versions.append(self._version())
            frame = self._jvm.spark.read.format("delta").option("versionAsOf", versions[0]).load(self.location)
            return frame.select("run_id", "step_id").distinct().limit(MAX_KEYS_READ + 1).collect()

        keys = self._ask(keys_of)
        if len(keys) > MAX_KEYS_READ:
            raise EnvironmentUnfit(
                "the ledger is too large to be compared row by row",
                code="E652",
                where=self.location,
                found=f"more than {MAX_KEYS_READ:,} rows",
                allowed=f"{MAX_KEYS_READ:,}",
                help="it is not lost: nothing needs to be rebuilt",
            )
        return LedgerContents(versions[0] if versions else -1, frozenset((str(run), _read(step)) for run, step in keys))

    def append_missing(self, rows: Sequence[LedgerRow], *, after_version: int) -> None:
        """Append rows that were missing at a version; see ``LedgerStore.append_missing``.

        The version is the number in the idempotency token: of two rebuilds from the same version, only one appends.
        """
        # Where another rebuild was first, the caller compares again.
        self._append(
            rows, "maintainer-ledger-rebuild", after_version + 1, lambda: self.contents().version > after_version
        )

    def _append(
        self, rows: Sequence[LedgerRow], token: str, number: int, is_beaten: Callable[[], bool] | None = None
    ) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._write(rows, token, number)
            except Exception as error:  # every kind of engine error, sorted out below
                if not (isinstance(error, CommitConflict) or is_conflict(describe(error))):
                    raise_from(self._error(error), error)
                if is_beaten is not None and (attempt == ATTEMPTS or is_beaten()):
                    return None
                if attempt == ATTEMPTS:
                    raise_from(self._error(error), error)
                time.sleep(0.2 * attempt * (0.5 + random.random()))

    def _ask(self, question: Callable[[DataFrame], list[Row]]) -> list[Row]:
        """Ask the ledger; no rows where there is none yet.

        Raises:
            MaintainerError: It is there and cannot be read.
        """
        from delta.tables import DeltaTable

        try:
            if not DeltaTable.isDeltaTable(self._jvm.spark, self.location):
                return []
            return question(self._jvm.spark.read.format("delta").load(self.location))
        except Exception as error:  # every kind of engine error, sorted out below
            raise_from(self._error(error), error)

    def _version(self) -> int:
        from delta.tables import DeltaTable

        (newest,) = DeltaTable.forPath(self._jvm.spark, self.location).history(1).select("version").collect()
        return int(newest[0])

    def _write(self, rows: Sequence[LedgerRow], token: str, number: int) -> None:
        """Append once, exclusively, and check that the commit is in the log.

        Raises:
            CommitConflict: C701, another writer's commit was put in its place; Delta's view of the log is dropped, so
                that the next try does not take the rows for appended.
        """
        jvm = self._jvm
        jvm.activate()
        root = jvm.hadoop_path(self.location)
        log = jvm.log_of_root(root)
        jvm.make_commits_exclusive(log)
        storage = TableStorage(jvm, log)
        before = max((entry.version for entry in storage.commits()), default=-1)
        values = [_values(row) for row in rows]
        if not append_in_process(jvm, storage, log, LEDGER_COLUMNS, values, (token, number), AT_CREATION):
            active = ActiveSession.now(jvm.spark)
            try:
                frame = jvm.spark.createDataFrame(values, LEDGER_SCHEMA).coalesce(1)
            finally:
                active.put_back()
            writer = frame.write.format("delta").mode("append").option("mergeSchema", "true").options(**AT_CREATION)
            writer.options(**OWN_LOG).option("txnAppId", token).option("txnVersion", str(number)).save(self.location)
        for entry in storage.commits(after_version=before):
            if any(action.get("txn", {}).get("appId") == token for action in storage.actions(entry, with_adds=True)):
                return
        # Delta skipped it because an earlier try had landed, or it landed and was overwritten: the log tells.
        jvm.forget_log(storage.root_uri)
        if last_transaction(storage, token) < number:
            raise CommitConflict(
                "another writer replaced our commit with its own",
                where=self.location,
                help="find out who writes to the ledger; `maintainer ledger rebuild` adds what is missing",
            )

    def _error(self, error: Exception) -> MaintainerError:
        write_error = as_write_error(error, self.location, "using the ledger")
        # Files of the ledger are made again, and not brought back from a backup as those of the user's tables.
        if not isinstance(write_error, (CommitNotLanded, FileAbsent, FileUnreadable)):
            return write_error
        return EnvironmentUnfit(
            "the ledger cannot be used",
            code="E652",
            where=self.location,
            found=write_error.found,
            help="check `state:` in maintainer.yml; if the ledger is lost, move its folder away and run "
            "`maintainer ledger rebuild`",
        )


def _digest(rows: Sequence[LedgerRow]) -> str:
    """Return a hash of the steps, which tells two appends of one run apart."""
    steps = "\n".join(sorted(row.step_id for row in rows))
    return hashlib.sha256(steps.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _values(row: LedgerRow) -> tuple[Any, ...]:
    """A row in the order of the columns."""
    started = datetime.fromtimestamp(row.started_at_ms / 1000, tz=UTC)
    return tuple(started if name == STARTED_AT else _written(getattr(row, name)) for name, _ in LEDGER_COLUMNS)


def _written(value: Any) -> Any:  # noqa: ANN401 (of any column)
    """A value as a column takes it: bytes of a folder's name that are not UTF-8 become escapes."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _read(value: Any) -> Any:  # noqa: ANN401 (of any column)
    """The value that `_written` was given: rows are told apart by the names of tables in them."""
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), value) if isinstance(value, str) else value


def _row_of(values: dict[str, Any]) -> LedgerRow:
    started = values.pop(STARTED_AT)
    # A naive timestamp is in the zone of this process, as Spark hands it to Python.
    started_at_ms = 0 if started is None else round(started.timestamp() * 1000)
    columns: Any = {name: _read(values.get(name)) for name, _ in LEDGER_COLUMNS if name != STARTED_AT}
    return LedgerRow(started_at_ms=started_at_ms, **columns)
