"""Deletions from local tables without Spark.

The parts that look, decide and delete are the real ones; only Delta's own transaction, which writes VACUUM START and
END, is replaced by a writer of the same two commit files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from maintainer.app.planning.read_table import read_for_planning
from maintainer.delta.log.replay.log_replay import PlannedLogs
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.snapshot.log_reader import LogQuestions
from maintainer.delta.storage.file_store import FileStore, java_quote, local_path
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.table_log import TableLog
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.vacuum.needed_elsewhere import References
from maintainer.delta.vacuum.second_reader import SecondReader
from maintainer.delta.vacuum.vacuum_candidates import history, with_deletable_files
from maintainer.delta.vacuum.vacuum_commits import VacuumCommits
from maintainer.delta.vacuum.vacuum_deletion import Deletion, VacuumTools
from maintainer.engine.protocols import DeletionGuard, TablePlaces, VacuumQuestion
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import MaintainerError, NoTable, NotDelta
from maintainer.journal.memory.table_records import Remembered
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.receipts import VacuumReceipt
from maintainer.model.table.commit_records import CommitsRead, CommitsWanted
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import (
    ColumnRanges,
    ColumnSample,
    DataFile,
    DeletionVector,
    Protocol,
    TableFacts,
    TableRecord,
    TableRef,
)
from maintainer.planning.plan_input import PlanMoment, PlanOptions
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.tables.aged_tables import DAY_MS, TODAY, AgedTable, now_ms


class LocalTable(TableStorage):
    """A table's storage on a local disk, without a JVM. Deletion vectors of kind ``u`` are named by their text."""

    def __init__(self, path: Path) -> None:
        TableLog.__init__(self, LocalFiles(), "file:" + java_quote(str(path)))

    def vector_uri(self, kind: str, path: str) -> str:
        return self.uri(path) if kind == "p" else f"{self._root_uri}/deletion_vector_{path}.bin"


class LocalReader(LogQuestions):
    """A reader of tables on a local disk: facts by replaying the log in the plainest way."""

    def __init__(self) -> None:
        self.references = References()
        self.planned_logs = PlannedLogs()
        self.beside: Sequence[TableRef] | MaintainerError = ()

    def files_with_dropped_columns(self, facts: TableFacts, files: Sequence[DataFile]) -> frozenset[tuple[str, str]]:
        raise AssertionError("no policy here asks for a purge")

    def facts(self, ref: TableRef) -> TableFacts:
        """The newest version."""
        root = Path(ref.location)
        commits = sorted((root / "_delta_log").glob("*.json")) if root.is_dir() else []
        if not commits:
            raise (NotDelta if root.is_dir() else NoTable)("no table", where=ref.identifier)
        live: dict[str, dict[str, Any]] = {}
        metadata: dict[str, Any] = {}
        protocol: dict[str, Any] = {}
        for commit in commits:
            for line in commit.read_text().splitlines():
                action = json.loads(line)
                metadata = action.get("metaData", metadata)
                protocol = action.get("protocol", protocol)
                if "remove" in action:
                    live.pop(action["remove"]["path"], None)
                if "add" in action:
                    live[action["add"]["path"]] = action["add"]
        return TableFacts(
            ref=ref,
            location="file:" + java_quote(str(root)),
            table_id=metadata["id"],
            version=int(commits[-1].name[:20]),
            committed_at_ms=0,
            schema_json=metadata["schemaString"],
            columns=("id",),
            partition_columns=tuple(metadata["partitionColumns"]),
            properties=tuple(sorted(metadata["configuration"].items())),
            protocol=Protocol(
                protocol["minReaderVersion"],
                protocol["minWriterVersion"],
                (),
                tuple(protocol.get("writerFeatures", ())),
            ),
            files=tuple(_data_file(add) for add in live.values()),
        )

    def _reading(self, where: str) -> AbstractContextManager[None]:
        return nullcontext()

    def _log_of(self, facts: TableFacts) -> TableLog:
        return self.storage(facts)

    def storage(self, facts: TableFacts) -> LocalTable:
        """The table's storage."""
        return LocalTable(Path(facts.ref.location))

    def location_of(self, ref: TableRef) -> str:
        return self.place_of(ref)[1]

    def vacuum_history(
        self, facts: TableFacts, checkpoints: tuple[tuple[str, str], ...], *, removed_before_ms: int | None
    ) -> VacuumHistory:
        return history(
            self.storage(facts), facts, checkpoints, _place, removed_before_ms=removed_before_ms, now_ms=now_ms()
        )[1]

    def vacuum_look(self, facts: TableFacts, question: VacuumQuestion) -> TableFacts:
        keep = partial(self.planned_logs.keep, facts.location)
        return with_deletable_files(self.storage(facts), facts, question, self.references, self, None, keep)

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        raise AssertionError("not asked for")

    def column_sample(self, facts: TableFacts, columns: tuple[str, ...], *, max_rows: int) -> ColumnSample:
        raise AssertionError("not asked for")

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        raise AssertionError("not asked for here")

    def neighbours_in_catalog(self, tables: Iterable[TableRef]) -> Iterable[TableRef]:
        if isinstance(self.beside, MaintainerError):
            raise self.beside
        return self.beside

    def place_of(self, ref: TableRef) -> tuple[FileStore, str]:
        if not Path(ref.location).is_dir():
            raise NoTable("no table", where=ref.identifier)
        return _place(ref.location)


def plain_reading(storage: TableStorage, version: int, removed_since_ms: int) -> Iterator[dict[str, Any]]:
    """A second reading of a table on a local disk, by nothing but JSON: see ``SecondReader``."""
    live: dict[tuple[str, str], dict[str, Any]] = {}
    removed: list[dict[str, Any]] = []
    for commit in sorted(Path(local_path(f"{storage.root_uri}/_delta_log")).glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines() if line.strip()]
        if int(commit.name[:20]) > version:
            break
        for body in [action["remove"] for action in actions if "remove" in action]:
            live.pop((body["path"], json.dumps(body.get("deletionVector"), sort_keys=True)), None)
            removed.append(body)
        for body in [action["add"] for action in actions if "add" in action]:
            live[body["path"], json.dumps(body.get("deletionVector"), sort_keys=True)] = body
        yield from ({"metaData": action["metaData"]} for action in actions if "metaData" in action)
    yield from ({"add": body} for body in live.values())
    yield from ({"remove": body} for body in removed if body.get("deletionTimestamp", 0) >= removed_since_ms)


def _place(text: str) -> tuple[FileStore, str]:
    return LocalFiles(), "file:" + java_quote(text)


def _data_file(add: dict[str, Any]) -> DataFile:
    vector = add.get("deletionVector")
    deletion_vector = None
    if vector:
        offset = "" if vector.get("offset") is None else f"@{vector['offset']}"
        deletion_vector = DeletionVector(f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}", 1, 1)
    return DataFile(add["path"], int(add["size"]), int(add["modificationTime"]), (), 1, deletion_vector)


class PlainCommits(VacuumCommits):
    """Writes VACUUM START and END as commit files, with whatever a test wants to happen right after START."""

    def __init__(self, table: Path, after_start: Callable[[], None] = lambda: None) -> None:
        self._log = table / "_delta_log"
        self._after_start = after_start

    def start(self, step: VacuumStep, table_retention_ms: int, *, after_version: int) -> int:
        version = self._committed("VACUUM START")
        self._after_start()
        return version

    def end(self, *, completed: bool, num_deleted: int, after_version: int) -> int:
        status = "COMPLETED" if completed else "FAILED"
        return self._committed("VACUUM END", operationParameters={"status": status}, numDeletedFiles=num_deleted)

    def _committed(self, operation: str, **info: Any) -> int:
        version = max(int(file.name[:20]) for file in self._log.glob("*.json")) + 1
        line = json.dumps({"commitInfo": {"timestamp": now_ms(), "operation": operation, **info}})
        (self._log / f"{version:020}.json").write_text(line + "\n")
        return version


@dataclass
class Vacuuming:
    """Plans and deletes, as a run does, or as one run that plans and a later one that deletes.

    ``tables`` are all tables of the project.
    """

    policy: Callable[[TableRef], ResolvedPolicy]
    tables: tuple[TableRef, ...] = ()
    record: TableRecord = TableRecord()  # noqa: RUF009 (frozen)
    reader: LocalReader = field(default_factory=LocalReader)
    run_id: str = "run-1"
    meter: StepMeter = field(default_factory=StepMeter)
    is_one_run: bool = True

    def plan(self, table: AgedTable | TableRef) -> TablePlan:
        """The plan of one table."""
        ref = table.ref if isinstance(table, AgedTable) else table
        policy = self.policy(ref)
        moment = now_ms()
        table_input = read_for_planning(
            self.reader, policy, AlwaysRemembered(record=self.record), StoragePlaces(), when=PlanMoment(moment, TODAY),
            options=PlanOptions(), tables=self.tables,
        )  # fmt: skip
        return plan_table(table_input)

    def step(self, table: AgedTable) -> VacuumStep | None:
        """The vacuum step of the plan; None where there is none."""
        return next((step for step in self.plan(table).steps if isinstance(step, VacuumStep)), None)

    def delete(
        self,
        table: AgedTable,
        step: VacuumStep,
        *,
        planned_version: int | None = None,
        after_start: Callable[[], None] = lambda: None,
        stop_reason: Callable[[], str | None] = lambda: None,
        clock: Callable[[], int] = now_ms,
        storage: LocalTable | None = None,
    ) -> VacuumReceipt:
        """Carry out a step, with fresh facts and the version that was planned on."""
        facts = self.reader.facts(table.ref)
        deletion = Deletion(
            storage or LocalTable(table.path),
            PlainCommits(table.path, after_start),
            facts,
            step,
            DeletionGuard(self.tables, stop_reason, planned_version=planned_version),
            VacuumTools(
                self.reader.references,
                self.reader,
                (SecondReader("plain JSON", plain_reading),),
                clock,
                meter=self.meter,
                planned_log=self.reader.planned_logs.take(facts.location) if self.is_one_run else None,
            ),
            7 * DAY_MS,
            table.head,  # Delta's snapshot, taken after the facts
        )
        return deletion.run(self.run_id, lambda version, proof: None)


@dataclass(frozen=True)
class AlwaysRemembered(Remembered):
    """The same record for every table."""

    record: TableRecord = TableRecord()  # noqa: RUF009 (frozen)

    def record_of(self, table_id: str, location: str, places: TablePlaces) -> TableRecord:
        return self.record
