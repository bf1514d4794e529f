"""Twenty days of a table, looked at every hour: what we wrote ourselves never starts, delays or repeats our work.

What decides is the product: the planner, and what it reads of the log. Table and log are a few dicts here.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.product import (
    BatchedStep,
    ColumnRanges,
    CommitsRead,
    CommitStamp,
    CommitsWanted,
    LocalFiles,
    LogEntry,
    PartitionNames,
    Plan,
    PlanMoment,
    PlanOptions,
    ReasonCode,
    ResolvedPolicy,
    RunListener,
    RunOutcome,
    StopSwitch,
    StoredFile,
    Streak,
    TableFacts,
    TableLog,
    TableOutcome,
    TablePlan,
    TableRecord,
    TableRef,
    TableStatus,
    Update,
    WatchBounds,
    ZOrderMode,
    ZOrderPolicy,
    assemble,
    data_file,
    new_run_id,
    paths_of_rewrites,
    paths_of_zorder,
    plan_beside_writers,
    prefix_of_attempt,
    read_commits,
    read_for_planning,
    read_updates,
    watch,
)
from tests.support.tables.builders import DAY_MS, HOUR_MS, MINUTE_MS, NOW_MS, make_facts, make_optimize, make_policy

REGIONS = ("de", "lt", "us")
DAYS = 20
START_MS = NOW_MS - NOW_MS % DAY_MS


def names_of_ours(stamp: CommitStamp, number: int) -> str:
    """As the default engine names files."""
    return f"{prefix_of_attempt(stamp)}part-{number:05}-6b1a0c7e-0000-0000-0000-{number:012}-c000.snappy.parquet"


def names_of_delta(stamp: CommitStamp, number: int) -> str:
    """As Delta's own OPTIMIZE names files, which `--engine command` runs."""
    return f"part-{number:05}-{uuid.uuid5(uuid.NAMESPACE_OID, stamp.run_id)}-c000.snappy.parquet"


@dataclass
class Days(TableLog):
    """A table by day and region, its log, and our memory of it. Implements what planning reads of a table."""

    policy: ResolvedPolicy
    name_of: Callable[[CommitStamp, int], str] = names_of_ours
    most_batches: int = 99
    log: list[tuple[int, list[dict[str, Any]]]] = field(default_factory=list)
    adds: dict[str, dict[str, Any]] = field(default_factory=dict)
    record: TableRecord = field(default_factory=TableRecord)
    now_ms: int = START_MS
    rewritten: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    cleaned_to: int = 0

    # the log

    def __post_init__(self) -> None:
        super().__init__(LocalFiles(), "file:/lake")

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        first = max(after_version + 1, self.cleaned_to)
        return [LogEntry(v, StoredFile(str(v), -1, self.log[v][0], False, False)) for v in range(first, len(self.log))]

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        return next((a["commitInfo"] for a in self.log[entry.version][1] if "commitInfo" in a), {})

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        yield from (a for a in self.log[entry.version][1] if with_adds or "add" not in a)

    # the reader of a table

    def facts(self, ref: TableRef) -> TableFacts:
        names = PartitionNames.of({"schemaString": self.empty.schema_json, "partitionColumns": ["day", "region"]})
        files = tuple(data_file(add, names) for add in self.adds.values())
        return replace(self.empty, version=len(self.log) - 1, files=files)

    @property
    def empty(self) -> TableFacts:
        columns = {"id": "long", "day": "date", "region": "string"}
        return make_facts(columns=columns, partitioned_by=("day", "region"))

    def read(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        return read_commits(self, "file:/lake", wanted)

    def updates(
        self, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
    ) -> tuple[Update, ...]:
        return read_updates(self, facts, since_ms=since_ms, after_version=after_version)

    def rewritten_paths(self, facts: TableFacts, *, since_ms: int) -> frozenset[str]:
        return paths_of_rewrites(self, facts, since_ms)

    def zordered_paths(self, facts: TableFacts, columns: tuple[str, ...]) -> frozenset[str]:
        return paths_of_zorder(self, facts, columns)

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        return ColumnRanges(columns, {})

    # what we remember

    def record_of(self, *_: object) -> TableRecord:
        return self.record

    def streak_of(self, *_: object) -> Streak:
        return Streak()

    # time, writers, and a run

    @property
    def day(self) -> float:
        return (self.now_ms - START_MS) / DAY_MS

    def commit(self, info: dict[str, Any], adds: list[dict[str, Any]], removes: list[str] = []) -> None:  # noqa: B006
        actions = [{"commitInfo": {"timestamp": self.now_ms, **info}}]
        for path in removes:
            old = self.adds.pop(path)
            body = {"path": path, "partitionValues": old["partitionValues"], "dataChange": adds[0]["dataChange"]}
            actions.append({"remove": body})
        for add in adds:
            self.adds[add["path"]] = add
            actions.append({"add": add})
        self.log.append((self.now_ms, actions))

    def append(self, day: str, region: str, num_files: int = 3) -> None:
        number = len(self.log)
        adds = [
            self.file(f"part-{n:05}-{number:08x}-data-c000.snappy.parquet", day, region, 10, data_change=True)
            for n in range(num_files)
        ]
        self.commit({"operation": "WRITE", "isBlindAppend": True, "operationParameters": {"mode": "Append"}}, adds)

    def file(
        self, name: str, day: str, region: str, size: int, *, data_change: bool, tags: dict[str, str] | None = None
    ) -> dict[str, Any]:
        return {
            "path": f"day={day}/region={region}/{name}", "partitionValues": {"day": day, "region": region},
            "size": size, "modificationTime": self.now_ms, "dataChange": data_change,
            "stats": '{"numRecords":1}', "tags": tags or {},
        }  # fmt: skip

    def plan(self) -> TablePlan:
        today = datetime.fromtimestamp(self.now_ms / 1000, tz=UTC).date()
        reader: Any = _Reader(self)
        records: Any = self
        places: Any = None
        table = read_for_planning(
            reader, self.policy, records, places, when=PlanMoment(self.now_ms, today), options=PlanOptions()
        )
        return plan_beside_writers(reader, table)[1]

    def apply(self) -> None:
        """Carry out a plan; a budget may cut it after some batches."""
        (*_,) = steps = [step for step in self.plan().steps if isinstance(step, BatchedStep)]
        for step in steps:
            run_id = new_run_id(self.now_ms)
            for number, batch in enumerate(step.batches[: self.most_batches]):
                stamp = CommitStamp(run_id, f"t/{step.kind}", number, "d")
                adds = [
                    self.file(
                        self.name_of(stamp, place), str(dict(bin_.partition_values)["day"]),
                        str(dict(bin_.partition_values)["region"]), bin_.size_bytes, data_change=False,
                        tags=dict(step.file_tags) if self.name_of is names_of_ours else {},
                    )
                    for place, bin_ in enumerate(batch.bins)
                ]  # fmt: skip
                info = {
                    "operation": "OPTIMIZE", "userMetadata": stamp.to_json(),
                    "operationMetrics": {"numRemovedFiles": str(len(batch.files)), "numAddedFiles": str(len(adds))},
                }  # fmt: skip
                self.commit(info, adds, [file.path for file in batch.files])
                regions = frozenset(str(dict(bin_.partition_values)["region"]) for bin_ in batch.bins)
                self.rewritten.append((self.day, regions))
            self.record = replace(self.record, last_optimize_at_ms=self.now_ms)

    def live(self, until_day: float, each_ms: int = HOUR_MS, also: Callable[[Days], None] = lambda days: None) -> None:
        """Let time pass, and apply at each look what is due."""
        while self.day < until_day:
            also(self)
            self.apply()
            self.now_ms += each_ms


class _Reader:
    """The table as a ``TableReader``, whose ``commits`` is not that of a log."""

    def __init__(self, days: Days) -> None:
        self._days = days

    def __getattr__(self, name: str) -> Any:
        return getattr(self._days, "read" if name == "commits" else name)


QUIET_SECONDS = 6 * 3600


def policy_of(**optimize: Any) -> ResolvedPolicy:
    """Quiet for six hours, else as asked."""
    return make_policy(optimize=make_optimize(**{"quiet_for_seconds": QUIET_SECONDS, **optimize}))


NAMES = pytest.mark.parametrize("name_of", [names_of_ours, names_of_delta])


@NAMES
def test_a_table_that_nobody_writes_to_is_rewritten_once_in_twenty_days(name_of: Callable[..., str]) -> None:
    days = Days(policy_of(every_seconds=86_400, skip_newest_partitions=1), name_of)
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        for region in REGIONS:
            days.append(day, region)
    days.live(DAYS)
    # Six partitions that are not the newest, all in one commit once they were quiet.
    assert days.rewritten == [(QUIET_SECONDS / 86_400, frozenset(REGIONS))]
    assert len(days.adds) == 6 * 1 + 3 * 3


@NAMES
def test_what_a_budget_cut_is_taken_up_at_the_very_next_look(name_of: Callable[..., str]) -> None:
    """One batch a look, all of one partition: what the look before wrote there delays nothing."""
    days = Days(policy_of(batch_size=1, max_size=20, min_size=15), name_of, most_batches=1)
    days.append("2026-11-01", "de", 8)
    days.live(1.0, each_ms=10 * MINUTE_MS)
    looks = [round(at * DAY_MS / MINUTE_MS) for at, _ in days.rewritten]
    assert looks == [360, 370, 380, 390]
    assert len(days.adds) == 4


@NAMES
def test_each_night_that_a_budget_cuts_goes_on_at_the_next_look_of_the_same_night(name_of: Callable[..., str]) -> None:
    """Twenty nights of `quietFor: 30m`: data of midnight, looks from two o'clock on, and one batch of four at each."""
    policy = policy_of(batch_size=1, max_size=20, min_size=15, quiet_for_seconds=1800)
    days, said = Days(policy, name_of, most_batches=1), Counter[ReasonCode]()
    for night in range(DAYS):
        days.now_ms = START_MS + night * DAY_MS
        days.append("2026-11-01", "de", 8)
        days.now_ms += 2 * HOUR_MS
        for _ in range(6):
            said.update(entry.reason.code for entry in days.plan().left_alone)
            days.apply()
            days.now_ms += 10 * MINUTE_MS
    minutes = [round(at * DAY_MS / MINUTE_MS) for at, _ in days.rewritten]
    assert minutes == [night * 1440 + 120 + look * 10 for night in range(DAYS) for look in range(4)]
    assert said[ReasonCode.HOT_PARTITION] == 0
    assert len(days.adds) == 4 * DAYS


@NAMES
def test_the_rewrite_of_one_partition_delays_no_data_written_beside_it(name_of: Callable[..., str]) -> None:
    """Data counts from when it was written, though a rewrite of ours in the same partition is newer."""
    days = Days(policy_of(), name_of)

    def writer(days: Days) -> None:
        if days.day in (0.0, 5.0, 5.125):  # the last time three hours later: it delays the ones before
            days.append("2026-11-01", "de")

    days.live(DAYS, also=writer)
    assert [at for at, _ in days.rewritten] == [0.25, 5.375]


def test_a_rewrite_by_others_is_no_data_either() -> None:
    days = Days(policy_of())
    days.append("2026-11-01", "de", 2)
    days.now_ms += QUIET_SECONDS * 1000 - HOUR_MS
    theirs = [days.file("part-00000-aa-c000.snappy.parquet", "2026-11-01", "de", 10, data_change=False)]
    days.commit({"operation": "OPTIMIZE"}, theirs, [next(iter(days.adds))])
    days.live(DAYS)
    assert [round(at * 24) for at, _ in days.rewritten] == [6]


@NAMES
def test_a_log_that_was_cleaned_forgets_the_command_engines_files_and_waits_once(name_of: Callable[..., str]) -> None:
    days = Days(policy_of(batch_size=1, max_size=20, min_size=15), name_of, most_batches=1)
    days.append("2026-11-01", "de", 8)
    days.live(0.26, each_ms=10 * MINUTE_MS)
    assert len(days.rewritten) == 2
    days.cleaned_to = len(days.log)
    days.live(1.0, each_ms=10 * MINUTE_MS)
    waited = days.rewritten[2][0] - days.rewritten[1][0]
    # Names say what is ours; what only the log could tell counts as written when it was.
    assert round(waited * DAY_MS) == (10 * MINUTE_MS if name_of is names_of_ours else QUIET_SECONDS * 1000)
    assert days.rewritten[-1][0] < 1.0


@NAMES
def test_our_rewrites_are_no_updates_and_no_rhythm_of_others(name_of: Callable[..., str]) -> None:
    """Half a day of rewrites, one after the other: the table is never hot by us; it rests only as it should."""
    days = Days(policy_of(batch_size=1, max_size=20, min_size=15, quiet_for_seconds=0), name_of, most_batches=1)
    days.policy = replace(days.policy, optimize=replace(days.policy.optimize, quiet_after_updates_seconds=600))
    days.append("2026-11-01", "de", 40)
    days.live(1.0, each_ms=2 * MINUTE_MS)
    facts = days.facts(days.policy.table)
    assert days.updates(facts, since_ms=0, after_version=-1) == ()
    # Others only append, so nothing rests: one batch at each look.
    assert [round(at * DAY_MS / MINUTE_MS) for at, _ in days.rewritten] == list(range(0, 40, 2))


def test_every_counts_from_our_own_commit() -> None:
    days = Days(policy_of(every_seconds=2 * 86_400))
    days.live(DAYS, also=lambda days: days.append("2026-11-01", "de") if days.day % 1 == 0 else None)
    assert [round(at - days.rewritten[0][0], 1) for at, _ in days.rewritten][:4] == [0.0, 2.0, 4.0, 6.0]
    assert timedelta(days=days.rewritten[0][0]) == timedelta(hours=6)


class NoRoundFails(RunListener):
    """Fails the test with what a round failed with."""

    def round_failed(self, error: Exception) -> None:
        pytest.fail(repr(error))


@pytest.mark.parametrize(
    ("optimize", "name_of"),
    [
        ({}, names_of_ours),
        ({}, names_of_delta),
        # A file for each bin is large enough to be ordered again, but for the tag that we wrote.
        ({"max_size": 20, "min_size": 15, "zorder": ZOrderPolicy(("id",), ZOrderMode.FULL)}, names_of_ours),
    ],
)
def test_a_watch_is_woken_by_the_data_of_others_and_never_by_our_own_commits(
    optimize: dict[str, Any], name_of: Callable[..., str]
) -> None:
    """For twenty days a look each hour: a run after each writer once its data is quiet, and none after our commits."""
    days, switch = Days(policy_of(**optimize), name_of), StopSwitch()
    started: list[int] = []

    def wait(seconds: float) -> bool:
        days.now_ms += int(seconds * 1000)
        if days.day in (5.0, 12.0):
            days.append("2026-11-01", "de", 4)
        return False

    def apply(plan: Plan) -> RunOutcome:
        started.append(round(days.day * 24))
        days.apply()
        return RunOutcome("run", days.now_ms, 0.0, (TableOutcome(plan.tables[0].ref, TableStatus.DONE),))

    switch.wait = wait  # type: ignore[method-assign] # no test sleeps
    days.append("2026-11-01", "de", 4)
    end = watch(
        lambda: (days.policy,),
        lambda due: assemble([days.plan() for _ in due], created_at_ms=days.now_ms),
        apply,
        WatchBounds(interval_seconds=3600, max_rounds=24 * DAYS),
        switch,
        lambda: days.now_ms / 1000,
        NoRoundFails(),
    )
    quiet_hours = QUIET_SECONDS // 3600
    assert started == [day * 24 + quiet_hours for day in (0, 5, 12)]
    assert (end.rounds, end.runs, len(days.rewritten)) == (24 * DAYS, 3, 3)
