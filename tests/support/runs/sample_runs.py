"""Small outcomes of runs and what they emit, for the renderings: real sizes, invented tables."""

from __future__ import annotations

from maintainer.model.plan.plan import Problem
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import (
    ProgressEvent,
    RunFinished,
    RunStarted,
    StepFinished,
    StepHeartbeat,
    StepStarted,
    TableFinished,
    TableStarted,
    Verified,
)
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof, VacuumReceipt, Verdict
from maintainer.model.table.table_facts import TableRef
from tests.support.runs.sample_plans import GIB, TEN_PM

RUN = "20261121T220000Z-7f3a"


def receipt(
    version: int, removed: int = 0, added: int = 0, size_bytes: int = 0, rows: int | None = None
) -> CommitReceipt:
    digest = None if rows is None else Fingerprint(rows, (rows * 17, rows * 31))
    return CommitReceipt(
        version=version,
        read_version=version - 1,
        num_files_removed=removed,
        num_files_added=added,
        bytes_removed=size_bytes,
        bytes_added=size_bytes,
        proof=None if digest is None else Proof(digest, digest, rows, ("attributes",), 1.5),
        duration_seconds=2.0,
    )


def properties_done() -> StepOutcome:
    return StepOutcome(
        "sales.orders/set_properties",
        StepKind.SET_PROPERTIES,
        StepStatus.SUCCEEDED,
        TEN_PM + 4000,
        0.8,
        (receipt(1842),),
    )


def compact_done() -> StepOutcome:
    return StepOutcome(
        "sales.orders/compact",
        StepKind.COMPACT,
        StepStatus.SUCCEEDED,
        TEN_PM + 6000,
        275.0,
        (receipt(1843, 1000, 120, 30 * GIB, 700_000_000), receipt(1845, 204, 31, 8 * GIB, 112_440_193)),
        assertions=(
            Assertion("expect_table_row_count_to_equal", Verdict.PASS, 1845, "812440193", "812440193"),
            Assertion(
                "expect_column_values_to_not_be_null", Verdict.PASS, 1845, "no nulls", "0 nulls", column="order_id"
            ),
        ),
    )


def vacuum_done() -> StepOutcome:
    return StepOutcome(
        "sales.orders/vacuum",
        StepKind.VACUUM,
        StepStatus.SUCCEEDED,
        TEN_PM + 300_000,
        158.0,
        vacuum=VacuumReceipt(2310, 41 * GIB, (), 1845, 1847),
    )


def good_run() -> RunOutcome:
    return RunOutcome(
        RUN,
        TEN_PM,
        461.0,
        (
            TableOutcome(
                TableRef("sales.orders"),
                TableStatus.DONE,
                (properties_done(), compact_done(), vacuum_done()),
                policy_file="policies/sales/orders.yml",
            ),
            TableOutcome(TableRef("sales.regions"), TableStatus.UP_TO_DATE, policy_file="policies/_fleet/all.yml"),
        ),
    )


def bad_run(interrupted_by: str | None = None) -> RunOutcome:
    verify_failed = StepOutcome(
        "sales.orders/compact",
        StepKind.COMPACT,
        StepStatus.VERIFY_FAILED,
        TEN_PM,
        275.0,
        (receipt(1847, 1204, 151, 38 * GIB, 812_440_193),),
        assertions=(
            Assertion("expect_table_row_count_to_equal", Verdict.FAIL, 1847, "812440193", "812440190"),
            Assertion(
                "expect_column_max_to_be_between", Verdict.ERROR, 1847, error="column `price` is not in the table"
            ),
        ),
        error=Problem(
            "V503",
            "row count changed: v1846 has 812,440,193 rows, v1847 has 812,440,190",
            "policies/sales/orders.yml:38",
            "nothing was vacuumed: v1846 can be restored\nRESTORE TABLE sales.orders TO VERSION AS OF 1846",
        ),
    )
    skipped = StepOutcome(
        "sales.orders/vacuum",
        StepKind.VACUUM,
        StepStatus.SKIPPED,
        TEN_PM,
        0.0,
        note="an earlier step of this table did not succeed",
    )
    yielded = StepOutcome(
        "sales.items/zorder",
        StepKind.ZORDER,
        StepStatus.YIELDED,
        TEN_PM,
        72.0,
        error=Problem(
            "C701", "another writer changed the same files (v79, DELETE), 3 tries", "sales.items@v78", "try later"
        ),
    )
    failed = StepOutcome(
        "crm.notes/vacuum",
        StepKind.VACUUM,
        StepStatus.INCOMPLETE,
        TEN_PM,
        3.0,
        vacuum=VacuumReceipt(1, 2048, ("x.parquet", "y.parquet"), 4, 5),
    )
    return RunOutcome(
        RUN,
        TEN_PM,
        320.0,
        (
            TableOutcome(
                TableRef("crm.gone"),
                TableStatus.FAILED,
                problem=Problem(
                    "T401", "no table `crm.gone` in the catalog", "policies/crm/gone.yml:2", "check the name"
                ),
                policy_file="policies/crm/gone.yml",
            ),
            TableOutcome(
                TableRef("crm.leads"),
                TableStatus.BLOCKED,
                problem=Problem(
                    "A420", "would rewrite 812 GiB, limits.maxBytes is 500 GiB", "policies/crm/leads.yml:21"
                ),
                policy_file="policies/crm/leads.yml",
            ),
            TableOutcome(TableRef("crm.notes"), TableStatus.FAILED, (failed,), policy_file="policies/crm/notes.yml"),
            TableOutcome(
                TableRef("sales.items"), TableStatus.YIELDED, (yielded,), policy_file="policies/_fleet/silver.yml"
            ),
            TableOutcome(
                TableRef("sales.orders"),
                TableStatus.VERIFY_FAILED,
                (properties_done(), verify_failed, skipped),
                policy_file="policies/sales/orders.yml",
            ),
            TableOutcome(TableRef("sales.stores"), TableStatus.NOT_REACHED, policy_file="policies/_fleet/all.yml"),
        ),
        interrupted_by,
    )


def progress_events() -> list[ProgressEvent]:
    """Two tables side by side: one good, one whose check fails after its commit."""
    orders_id, items_id = "sales.orders/compact", "sales.items/zorder"
    bad = bad_run().tables
    beats = [
        StepHeartbeat(TEN_PM + 6000 + s * 1000, "sales.orders", orders_id, "compact", 3, float(s), s // 40, 2)
        for s in range(5, 70, 5)
    ]
    return [
        RunStarted(TEN_PM, RUN, 3, 4, 2, f".maintainer/runs/{RUN}"),
        TableStarted(TEN_PM, "sales.orders", 3),
        StepStarted(TEN_PM + 4000, "sales.orders", "sales.orders/set_properties", "set_properties", 2),
        StepFinished(TEN_PM + 5000, "sales.orders", 2, properties_done()),
        TableStarted(TEN_PM + 5000, "sales.items", 1),
        StepStarted(TEN_PM + 5000, "sales.items", items_id, "zorder", 1),
        StepStarted(TEN_PM + 6000, "sales.orders", orders_id, "compact", 3, 2),
        *beats,
        StepFinished(TEN_PM + 77_000, "sales.items", 1, bad[3].steps[0]),
        TableFinished(TEN_PM + 77_000, bad[3]),
        StepFinished(TEN_PM + 281_000, "sales.orders", 3, compact_done()),
        Verified(
            TEN_PM + 302_000,
            "sales.orders",
            orders_id,
            "pass",
            21.3,
            1844,
            1845,
            812_440_193,
            812_440_193,
            True,
            8577,
            compact_done().assertions,
        ),
        Verified(TEN_PM + 303_000, "sales.orders", orders_id, "fail", 0.5, 1844, 1845, 812_440_193, 812_440_190, False),
        StepFinished(TEN_PM + 303_000, "sales.orders", 4, bad[4].steps[2]),
        TableFinished(TEN_PM + 303_000, bad[4]),
        TableFinished(TEN_PM + 303_000, bad[1]),
        TableFinished(TEN_PM + 303_000, bad[5]),
        RunFinished(TEN_PM + 303_000, bad_run("SIGTERM")),
    ]
