"""What ``why`` lists under *Decided by*: the settings behind each kind of reason, no more and no fewer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, time
from typing import Any

import pytest

from maintainer.model.plan.lanes import Lane
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.commit_records import OwnRewrites
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import DataFile, RemovedFile, TableRecord, Update
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import (
    AutoCompactPolicy,
    Consumer,
    PurgePolicy,
    ResolvedPolicy,
    RewritePolicy,
    Suspension,
    Window,
    WorthPolicy,
    ZOrderMode,
    ZOrderPolicy,
    policy_values,
)
from maintainer.report.plan.why_text import DecidingSetting, deciding_settings
from tests.support.tables.builders import (
    DAY_MS,
    DAY_SECONDS,
    HOUR_MS,
    MINUTE_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
    make_vacuum,
)

TODAY = date(2026, 11, 21)
LINES = {
    key: number
    for number, key in enumerate(
        (
            *("optimize.minFileSize", "optimize.maxFileSize", "optimize.maxDeletedRowsRatio", "optimize.batchSize"),
            *("optimize.where", "optimize.skipNewestPartitions", "optimize.quietFor", "optimize.quietAfterUpdates"),
            *("optimize.every", "optimize.when.minSmallFiles", "optimize.when.minSmallBytes", "optimize.zorder"),
            *("optimize.rewrite", "optimize.purge.deletedRowsRatio", "optimize.cluster.minCubeSize", "vacuum"),
            *("vacuum.retention", "vacuum.every", "consumers", "limits.maxBytes", "limits.maxFiles", "window"),
            *("limits.maxDeletes", "suspend", "autoCompact", "properties.delta.checkpointInterval"),
        ),
        start=3,
    )
}
SMALL = make_files(10, 20)
LARGE = make_files(80, 90)
OLD = (RemovedFile("old", 5, NOW_MS - 40 * DAY_MS, removed_in_version=1),)
YOUNG = (RemovedFile("young", 5, NOW_MS - DAY_MS, removed_in_version=1),)
DAYS = [make_file(f"{day}-{n}", size=5, partition={"d": day}) for day in ("21", "22") for n in range(2)]
PURGED = make_file("d", size=90, records=100, deleted=20)

AS_USUAL, COMMANDS = PlanOptions(), PlanOptions(deletes=False)


@dataclass(frozen=True)
class Case:
    """A table, and the settings that must be named; ``vacuum`` stands for nothing more than that there is none."""

    name: str
    keys: tuple[str, ...]
    files: Iterable[DataFile] = SMALL
    optimize: Any = None
    policy: Any = None
    facts: Any = None
    record: TableRecord = NEVER_TOUCHED
    partitioned_by: tuple[str, ...] = ()
    options: PlanOptions = AS_USUAL

    def plan(self) -> tuple[ResolvedPolicy, Any]:
        policy = make_policy(optimize=make_optimize(**(self.optimize or {})), lines=LINES, **(self.policy or {}))
        facts = make_facts(files=self.files, partitioned_by=self.partitioned_by, removed_files=())
        facts = replace(facts, **(self.facts or {}))
        return policy, plan_table(TableInput(policy, facts, self.record, NOW_MS, TODAY, self.options))


def by_day(case: str, keys: tuple[str, ...], **optimize: Any) -> Case:
    return Case(case, keys, DAYS, optimize, partitioned_by=("d",))


COMPACT = ("optimize.localMaxSize", "optimize.maxFileSize", "optimize.minFileSize", "vacuum")
VACUUM = {"vacuum": make_vacuum()}
AT_TARGET = ("optimize.minFileSize",)
CASES = [
    Case("small_files", COMPACT),
    Case("several commits", ("optimize.batchSize", *COMPACT), DAYS, {"batch_size": 10}, partitioned_by=("d",)),
    Case(
        "no lane but Spark's", ("optimize.lanes", *COMPACT[1:]), optimize={"lanes": (Lane.SPARK,)}
    ),
    Case("too large for the driver", COMPACT, optimize={"local_max_size_bytes": 1}),
    Case("limits not reached", COMPACT, policy={"max_bytes": 1000, "max_files": 1000}),
    Case("an interval that is over", COMPACT, optimize={"every_seconds": 60}),
    Case("deleted_rows", ("optimize.localMaxSize", "optimize.maxDeletedRowsRatio", "optimize.maxFileSize", "vacuum"),
         [PURGED]),
    Case("purge", ("optimize.localMaxSize", "optimize.maxFileSize", "optimize.minFileSize",
                   "optimize.purge.deletedRowsRatio", "vacuum"),
         [make_file("d", size=90, records=100, deleted=2), make_file("l", size=91)],
         {"purge": PurgePolicy(0.01, dropped_columns=False)}),
    Case("at_target", (*AT_TARGET, "vacuum"), LARGE),
    Case("no_partner", ("optimize.maxFileSize", "optimize.minFileSize", "vacuum"), make_files(10)),
    Case("rewrite_due", ("optimize.localMaxSize", "optimize.rewrite.files", "vacuum"), LARGE,
         {"rewrite": RewritePolicy(1)}),
    Case("rewrite that has its files", ("optimize.rewrite.files", "vacuum"), LARGE, {"rewrite": RewritePolicy(2)}),
    Case("rewrite by size of maxFileSize",
         ("optimize.localMaxSize", "optimize.maxFileSize", "optimize.rewrite.sortBy", "vacuum"), LARGE,
         {"rewrite": RewritePolicy(sort_by=("id",)), "local_max_size_bytes": 10_000}),
    Case("zorder_due", ("optimize.localMaxSize", "optimize.maxFileSize", "optimize.zorder.columns",
                        "optimize.zorder.mode", "vacuum"),
         LARGE, {"zorder": ZOrderPolicy(("id",), ZOrderMode.FULL)}),
    Case("clustering_due", ("optimize.cluster.minCubeSize", "optimize.cluster.targetCubeSize", "vacuum"), SMALL,
         facts={"clustering_columns": ("id",)}),
    Case("hot", ("optimize.quietAfterUpdates", "vacuum"), optimize={"quiet_after_updates_seconds": 600},
         facts={"updates": (Update(41, NOW_MS - MINUTE_MS, "MERGE"),)}),
    Case("resting", ("optimize.quietAfterUpdates", "vacuum"), optimize={"quiet_after_updates_seconds": 600},
         facts={"own_rewrites": OwnRewrites(1, NOW_MS - MINUTE_MS, False)}),
    Case("lost_to_writer", ("vacuum",), [make_file(name, size=5, modified_at_ms=NOW_MS) for name in "ab"],
         record=TableRecord(lost_in_a_row=1, last_lost_at_ms=NOW_MS - HOUR_MS)),
    Case("hot_partition", ("optimize.quietFor", "vacuum"),
         [make_file(name, size=5, modified_at_ms=NOW_MS) for name in "ab"], {"quiet_for_seconds": 600}),
    by_day("newest_partition", (*COMPACT[:3], "optimize.skipNewestPartitions", "vacuum"), skip_newest_partitions=1),
    Case("not_due", ("optimize.every", "vacuum"), optimize={"every_seconds": DAY_SECONDS},
         record=TableRecord(last_optimize_at_ms=NOW_MS - HOUR_MS)),
    Case("not_worth_it for their number", ("optimize.when.minSmallFiles", "vacuum"),
         optimize={"when": WorthPolicy(20, 1)}),
    Case("not_worth_it for their bytes", ("optimize.when.minSmallBytes", "vacuum"),
         optimize={"when": WorthPolicy(2, 1000)}),
    Case("removed_files_expired", (*AT_TARGET, "vacuum.mode", "vacuum.retention"), LARGE, policy=VACUUM,
         facts={"removed_files": OLD}),
    Case("into the trash", (*AT_TARGET, "vacuum.mode", "vacuum.retention", "vacuum.trash"), LARGE,
         policy={"vacuum": make_vacuum(trash_seconds=DAY_SECONDS)}, facts={"removed_files": OLD}),
    Case("nothing_expired", (*AT_TARGET, "vacuum.retention"), LARGE, policy=VACUUM, facts={"removed_files": YOUNG}),
    Case("a consumer keeps it longer", ("consumers.late", *AT_TARGET), LARGE,
         policy={**VACUUM, "consumers": (Consumer("early", DAY_SECONDS), Consumer("late", 60 * DAY_SECONDS))},
         facts={"removed_files": OLD}),
    Case("a consumer decides what goes", ("consumers.late", *AT_TARGET, "vacuum.mode"), LARGE,
         policy={**VACUUM, "consumers": (Consumer("early", DAY_SECONDS), Consumer("late", 20 * DAY_SECONDS))},
         facts={"removed_files": OLD}),
    Case("a table property keeps it longer", AT_TARGET, LARGE, policy=VACUUM,
         facts={"removed_files": OLD, "properties": (("delta.deletedFileRetentionDuration", "interval 60 days"),)}),
    Case("the log's writes keep it longer", AT_TARGET, LARGE, policy=VACUUM,
         facts={"removed_files": OLD, "history": VacuumHistory(30 * DAY_MS, 41)}),
    Case("vacuum not by commands", (*AT_TARGET, "vacuum.retention"), LARGE, policy=VACUUM, options=COMMANDS,
         facts={"removed_files": OLD}),
    Case("rewrite not by commands", ("optimize.rewrite.files", "vacuum"), LARGE, {"rewrite": RewritePolicy(1)},
         options=COMMANDS),
    Case("vacuum not due", (*AT_TARGET, "vacuum.every"), LARGE,
         policy={"vacuum": make_vacuum(every_seconds=DAY_SECONDS)}, facts={"removed_files": OLD},
         record=TableRecord(last_vacuum_at_ms=NOW_MS - HOUR_MS)),
    Case("large_delete", ("limits.maxDeletes", *AT_TARGET, "vacuum.allowLargeDelete"), LARGE,
         policy={"vacuum": make_vacuum(allow_large_delete=False), "max_deletes": 0}, facts={"removed_files": OLD}),
    Case("over_limit", ("limits.maxFiles",), policy={"max_bytes": 1000, "max_files": 1}),
    Case("suspended", ("suspend.reason",), policy={"suspend": Suspension(None, "migration")}),
    Case("outside_window", ("window",), policy={"windows": (Window((1,), time(1), time(2), "UTC"),)}),
    Case("quarantined", (), record=TableRecord(quarantined="v7 lost a row")),
    Case("property_drift", (*AT_TARGET, "autoCompact", "properties.delta.checkpointInterval", "vacuum"), LARGE,
         policy={"properties": (("delta.checkpointInterval", "20"), ("delta.appendOnly", "false")),
                 "auto_compact": AutoCompactPolicy(True)},
         facts={"properties": (("delta.appendOnly", "false"),)}),
    Case("retention_too_short_on_table", (*AT_TARGET, "vacuum.retention"), LARGE,
         policy={"vacuum": make_vacuum(retention_seconds=30 * DAY_SECONDS)}, facts={"removed_files": YOUNG}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_settings_that_decided_are_named_and_no_others(case: Case) -> None:
    policy, table = case.plan()
    rows = deciding_settings(table, policy)
    assert [row.key for row in rows] == sorted(case.keys)
    assert [row.place for row in rows] == [place_of(row.key) for row in rows]
    # Every line that a reason names is that of a setting listed.
    reasons = [
        *table.blocked,
        *(left.reason for left in table.left_alone),
        *(r for s in table.steps for r in s.reasons),
    ]
    named = {policy.place_of(key) for row in rows for key in parents_of(row.key)}
    assert {reason.origin for reason in reasons if reason.origin} <= named


def parents_of(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def place_of(key: str) -> str:
    """The line where a key was written: for a member of a list that of the list, for a default none."""
    line = LINES.get("consumers" if key.startswith("consumers.") else key)
    return "built-in" if line is None else f"orders.yml:{line}"


def test_a_value_that_nobody_wrote_is_the_default_and_one_that_is_not_there_is_said_so() -> None:
    policy = make_policy()
    table = plan_table(TableInput(policy, make_facts(files=LARGE), NEVER_TOUCHED, NOW_MS, TODAY))
    assert deciding_settings(table, policy) == (
        DecidingSetting("optimize.minFileSize", "75 B", "built-in"),
        DecidingSetting("vacuum", "not set", "built-in"),
    )


def test_a_bound_that_follows_from_another_setting_names_that_as_well() -> None:
    policy = make_policy(lines={"optimize.maxFileSize": 4})
    table = plan_table(TableInput(policy, make_facts(files=LARGE), NEVER_TOUCHED, NOW_MS, TODAY))
    assert [(row.key, row.place) for row in deciding_settings(table, policy)][:2] == [
        ("optimize.maxFileSize", "orders.yml:4"), ("optimize.minFileSize", "built-in")
    ]  # fmt: skip


@pytest.mark.parametrize("code", ReasonCode)
def test_every_reason_has_its_settings_and_none_names_a_key_that_is_no_setting(code: ReasonCode) -> None:
    zorder, vacuum = ZOrderPolicy(("id",), ZOrderMode.FULL, honour_table_properties=True), make_vacuum()
    optimize = make_optimize(zorder=zorder, rewrite=RewritePolicy(1), purge=PurgePolicy(), when=WorthPolicy(1, 1))
    policy = make_policy(optimize=optimize, vacuum=vacuum, suspend=Suspension(None, "x"), max_bytes=1, max_files=1)
    table = plan_table(TableInput(make_policy(), make_facts(files=LARGE), NEVER_TOUCHED, NOW_MS, TODAY))
    reason = Reason(code, "x", "built-in")
    known = {key for value, _ in policy_values(policy) for key in parents_of(value)} | {*LINES, *NEVER_WRITTEN}
    left = replace(table, left_alone=(LeftAlone(reason),))
    for decided in (left, replace(left, left_alone=(), blocked=(reason,))):
        assert {row.key for row in deciding_settings(decided, policy)} <= known


NEVER_WRITTEN = {
    *("optimize.zorder.fromTimestamp", "optimize.zorder.tableProperties", "vacuum.allowLargeDelete"),
    "vacuum.deleteUntracked",
}
"""Keys that a policy may have and this one does not."""
