"""Small plans for the renderings: real sizes, invented tables."""

from __future__ import annotations

from maintainer.model.plan.plan import CheckedExpectation, Checks, LeftAlone, Observed, Plan, Problem, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, Bin, CompactStep, SetPropertiesStep, VacuumStep, ZOrderStep
from maintainer.model.table.table_facts import DataFile, Protocol, RemovedFile, TableRef

MIB = 1024 * 1024
GIB = 1024 * MIB
TEN_PM = 1_795_298_400_000  # 2026-11-21 22:00:00 UTC
LEADS_LINE = "policies/crm/leads.yml:21"


def observed(version: int, num_files: int, size_bytes: int, table_id: str = "5c0e") -> Observed:
    return Observed("file:/lake/t", table_id, version, (), (), Protocol(1, 2), num_files, size_bytes)


def data_bin(day: str | None, sizes_mib: list[int], name: str = "p") -> Bin:
    values = (("order_day", day),) if day else ()
    return Bin(tuple(DataFile(f"{name}-{i}.parquet", mib * MIB, TEN_PM, values) for i, mib in enumerate(sizes_mib)))


def orders() -> TablePlan:
    return TablePlan(
        ref=TableRef("sales.orders"),
        policy_file="policies/sales/orders.yml",
        policy_digest="sha256:a",
        observed=observed(1841, 9630, 1_319_413_953_331),
        steps=(
            SetPropertiesStep(
                before=(("delta.autoOptimize.autoCompact", "false"), ("delta.logRetentionDuration", None)),
                after=(("delta.autoOptimize.autoCompact", "true"), ("delta.logRetentionDuration", "interval 30 days")),
                reasons=(
                    Reason(
                        ReasonCode.PROPERTY_DRIFT,
                        "delta.autoOptimize.autoCompact is false, the policy says true",
                        "policies/sales/orders.yml:23",
                    ),
                ),
            ),
            CompactStep(
                batches=(
                    Batch((data_bin("2026-11-19", [12, 30, 50]), data_bin("2026-11-20", [60, 61]))),
                    Batch((data_bin("2026-11-18", [5, 5, 5, 5]),)),
                ),
                max_file_size_bytes=256 * MIB,
                max_threads=8,
                reasons=(Reason(ReasonCode.SMALL_FILES, "9 files under 64 MiB", "policies/sales/orders.yml:9"),),
            ),
            VacuumStep(
                files=(
                    RemovedFile("old-1.parquet", 3 * GIB, TEN_PM - 9 * 86_400_000),
                    RemovedFile("dv/old-2.bin", 4096, TEN_PM - 9 * 86_400_000, "deletion_vector"),
                ),
                removed_before_ms=TEN_PM - 7 * 86_400_000,
                retention_seconds=7 * 86_400,
                decided_by="vacuum.retention",
                reasons=(
                    Reason(
                        ReasonCode.REMOVED_FILES_EXPIRED,
                        "2 files removed more than 7d ago",
                        "policies/sales/orders.yml:25",
                    ),
                ),
            ),
        ),
        left_alone=(
            LeftAlone(
                Reason(ReasonCode.AT_TARGET, "8,426 files of 64 MiB or more", "policies/sales/orders.yml:9"),
                8426,
                1_209_462_790_553,
            ),
            LeftAlone(
                Reason(
                    ReasonCode.HOT_PARTITION,
                    "40 files in order_day=2026-11-21 written less than 30m ago (quietFor)",
                    "policies/sales/orders.yml:13",
                ),
                40,
                80 * MIB,
                (("order_day", "2026-11-21"),),
            ),
            LeftAlone(
                Reason(
                    ReasonCode.HOT_PARTITION,
                    "2 files in order_day=null written less than 30m ago (quietFor)",
                    "policies/sales/orders.yml:13",
                ),
                2,
                1 * MIB,
                (("order_day", None),),
            ),
        ),
        checks=Checks(
            expectations=(CheckedExpectation("expect_column_values_to_not_be_null", '{"column":"order_id"}'),)
        ),
        owner="team-sales",
    )


def items() -> TablePlan:
    return TablePlan(
        ref=TableRef("sales.items"),
        policy_file="policies/_fleet/silver.yml",
        policy_digest="sha256:b",
        observed=observed(77, 812, 88 * GIB, "77aa"),
        steps=(
            ZOrderStep(
                batches=(Batch((data_bin(None, [100] * 30),)),),
                columns=("customer_id", "product_id"),
                max_file_size_bytes=256 * MIB,
                max_threads=4,
                reasons=(
                    Reason(
                        ReasonCode.ZORDER_DUE,
                        "30 files not in Z-order of customer_id, product_id",
                        "policies/_fleet/silver.yml:11",
                    ),
                ),
            ),
        ),
    )


def leads() -> TablePlan:
    return TablePlan(
        ref=TableRef("crm.leads"),
        policy_file="policies/crm/leads.yml",
        policy_digest="sha256:c",
        observed=observed(3, 4000, 812 * GIB, "3bfe"),
        blocked=(Reason(ReasonCode.OVER_LIMIT, "would rewrite 812 GiB, limits.maxBytes is 500 GiB", LEADS_LINE),),
    )


def gone() -> TablePlan:
    return TablePlan(
        ref=TableRef("crm.gone"),
        policy_file="policies/crm/gone.yml",
        policy_digest="sha256:d",
        problem=Problem(
            "T401", "no table `crm.gone` in the catalog", "policies/crm/gone.yml:2", "check the name, or drop the file"
        ),
    )


def quiet(name: str, *codes: tuple[ReasonCode, str]) -> TablePlan:
    return TablePlan(
        ref=TableRef(name),
        policy_file="policies/_fleet/all.yml",
        policy_digest="sha256:e",
        observed=observed(12, 4, 900 * MIB, f"id of {name}"),
        left_alone=tuple(LeftAlone(Reason(code, text, "policies/_fleet/all.yml:4")) for code, text in codes),
    )


def plan(*tables: TablePlan) -> Plan:
    return Plan(
        created_at_ms=TEN_PM,
        expires_at_ms=TEN_PM + 86_400_000,
        tables=tables,
        environment="prod",
        selection=("tag:nightly",),
        git_commit="3f2c1a9",
        maintainer_version="0.1.0",
    )


def full_plan() -> Plan:
    return plan(
        gone(),
        leads(),
        quiet("old.events", (ReasonCode.SUSPENDED, 'suspended until 2026-12-01: "migration"')),
        items(),
        orders(),
        quiet(
            "sales.regions",
            (ReasonCode.AT_TARGET, "4 files of 192 MiB or more"),
            (ReasonCode.NOT_DUE, "a run with a vacuum began 3d ago, at most every 7d"),
        ),
        quiet("sales.stores", (ReasonCode.NO_PARTNER, "1 small file, and none to join it with")),
    )
