"""The ready queries of the pages on ledger, costs and alerts, a ledger to ask, and what each must answer.

Whichever engine runs them answers the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from maintainer.journal.ledger.ledger_rows import LedgerRow

DOCS = Path(__file__).parents[3] / "docs"
PAGES = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in ("ledger.md", "costs.md", "alerts.md"))
MONDAY_MS = int(datetime(2026, 11, 16, 22, tzinfo=UTC).timestamp() * 1000)
DAY_MS = 86_400_000

ROW = LedgerRow(
    run_id="20261116T220000Z-aaaa", table="sales.orders", table_id="id", location="file:/lake/orders",
    step_id="sales.orders/compact", kind="compact", status="succeeded", reason="12 small files", version_before=4,
    version_after=5, num_files_removed=12, num_files_added=2, bytes_removed=400, bytes_added=380,
    predicted_files_removed=12, predicted_files_added=1, predicted_bytes_removed=400, predicted_bytes_added=400,
    started_at_ms=MONDAY_MS, duration_seconds=2.0, proof_level="fingerprint", proof_result="pass",
    policy_file="policies/orders.yml", policy_digest="sha256:x", git_commit="3f2c1a9", environment=None, owner="team",
    error_code=None, error=None,
)  # fmt: skip

LEDGER_ROWS = (
    ROW,
    replace(
        ROW, table="lake/orders", step_id="lake/orders/zorder", kind="zorder", bytes_removed=600, bytes_added=600,
        started_at_ms=MONDAY_MS + DAY_MS, strategy="unindexed", files_read_before=4.5, files_read_after=1.5,
        overlap_depth_before=3.0, overlap_depth_after=1.0,
    ),
    replace(
        ROW, table="crm.leads", step_id="crm.leads/compact", status="failed", version_after=None, bytes_removed=0,
        bytes_added=0, error_code="C702", proof_result="none", owner=None,
    ),
    replace(
        ROW, run_id="20261109T220000Z-aaaa", started_at_ms=MONDAY_MS - 7 * DAY_MS, bytes_removed=50, bytes_added=50,
        predicted_files_removed=None, predicted_files_added=None, predicted_bytes_removed=None,
        predicted_bytes_added=None, proof_result="none", source="history", status="unknown",
    ),
    replace(
        ROW, run_id="20261110T220000Z-aaaa", started_at_ms=MONDAY_MS - 6 * DAY_MS, status="yielded",
        version_before=None, version_after=None, num_files_removed=0, num_files_added=0, bytes_removed=0,
        bytes_added=0, error_code="C718", proof_result="none",
    ),
    *(
        replace(
            ROW, run_id="20261118T220000Z-aaaa", table=table, step_id=f"{table}/undelete", kind="undelete",
            version_before=None, version_after=None, num_files_removed=0, num_files_added=7, bytes_removed=0,
            bytes_added=70, predicted_files_removed=0, predicted_files_added=0, predicted_bytes_removed=0,
            predicted_bytes_added=0, started_at_ms=MONDAY_MS + 2 * DAY_MS, duration_seconds=0.0, proof_level="none",
            proof_result="none", owner="restorers",
        )
        for table in ("lake/orders", "crm.leads")
    ),
    replace(
        ROW, run_id="20261109T220000Z-aaaa", table="lake/old", step_id="lake/old/compact",
        started_at_ms=MONDAY_MS - 7 * DAY_MS, num_files_removed=0, num_files_added=0, bytes_removed=0, bytes_added=0,
        predicted_files_removed=None, predicted_files_added=None, predicted_bytes_removed=None,
        predicted_bytes_added=None, proof_result="none", source="history", status="unknown",
    ),
    replace(
        ROW, table="lake/logs", step_id="lake/logs/vacuum", kind="vacuum", version_after=6, num_files_removed=3,
        num_files_added=0, bytes_removed=30, bytes_added=0, predicted_files_removed=3, predicted_files_added=0,
        predicted_bytes_removed=30, predicted_bytes_added=0, proof_level="none", duration_seconds=0.0,
    ),
)  # fmt: skip
"""A step that went well, a turn of an incremental Z-order, a failure, a row rebuilt from a history, a rewrite that was
held back, restores from the trash, a vacuum."""

HISTORY: tuple[tuple[int, int, str, dict[str, str], bool | None, str | None], ...] = (
    (4, 3, "MERGE", {}, False, None),
    (5, 4, "OPTIMIZE", {"numAddedBytes": "9"}, False, '{"maintainer":{}}'),
    (6, 4, "MERGE", {}, False, None),
    (7, 4, "WRITE", {"numOutputBytes": "40"}, True, None),
    (8, 7, "SET", {}, None, None),
)
"""Of lake/orders: version, readVersion, operation, operationMetrics, isBlindAppend, userMetadata."""

EXPECTED: Mapping[str, list[tuple[object, ...]]] = {
    "What was done to one table": [
        ("2026-11-16 22:00", "compact", "succeeded", 12, 2, 400, "pass", ROW.run_id),
        ("2026-11-10 22:00", "compact", "yielded", 0, 0, 0, "none", "20261110T220000Z-aaaa"),
        ("2026-11-09 22:00", "compact", "unknown", 12, 2, 50, "none", "20261109T220000Z-aaaa"),
    ],
    "Optimizations of a table": [
        ("2026-11-16 22:00", "compact", 5, 12, 2, 0.0),
        ("2026-11-09 22:00", "compact", 5, 12, 2, 0.0),
    ],
    "Bytes rewritten, by owner and week": [
        ("team", "2026-11-16 00:00", 1000),
        (None, "2026-11-16 00:00", 0),
        ("team", "2026-11-09 00:00", 50),
    ],
    "Predicted against actual": [
        ("compact", 1, 12, 12, 1, 2, 0.95),
        ("vacuum", 1, 3, 3, 0, 0, None),
        ("zorder", 1, 12, 12, 1, 2, 1.5),
    ],
    "Write amplification": [(600, 40, 15.0)],
    "Tables never reached": [("crm.leads", "2026-11-16 22:00", "failed")],
    "Tables whose last step": [("crm.leads", "failed", "C702", "2026-11-16 22:00")],
    "Conflicts: rewrites that lost": [("sales.orders", 0, 1, "2026-11-10 22:00")],
    "Writers that our commits overtook": [(6, "MERGE", 4, "zorder", 5)],
    "Verification debt": [
        ("lake/old", "compact", 5, "2026-11-09 22:00", "none", "history"),
        ("sales.orders", "compact", 5, "2026-11-09 22:00", "none", "history"),
    ],
    "How the layout of an incremental": [("2026-11-17 22:00", "unindexed", 4.5, 1.5, 3.0, 1.0)],
    "Each run, the newest first": [
        ("20261118T220000Z-aaaa", 2, 0.0, 0, 0, 0),
        (ROW.run_id, 4, 6.0, 1000, 980, 30),
        ("20261110T220000Z-aaaa", 1, 2.0, 0, 0, 0),
        ("20261109T220000Z-aaaa", 2, 4.0, 50, 50, 0),
    ],
    "Files that queries no longer open": [
        ("sales.orders", 20, 430, 4.0),
        ("lake/orders", 10, 600, 2.0),
        ("lake/old", 0, 0, 2.0),
    ],
    "Steps that did not succeed": [
        ("crm.leads", "failed", "C702", 1, 2.0),
        ("sales.orders", "yielded", "C718", 1, 2.0),
    ],
    "Tables in trouble": [("crm.leads", 1, "2026-11-16 22:00", "C702")],
}
"""By the beginning of the sentence above the query."""


def query(about: str) -> str:
    """The ready query whose introduction begins so; the table of the last one is the ledger's here."""
    match = re.search(re.escape(about) + r".*?```sql\n(.*?)```", PAGES, re.DOTALL)
    assert match is not None, about
    return match[1].replace("sales.orders", "lake/orders") if about.startswith("How the layout") else match[1]


def answers(rows: Iterable[Mapping[str, object]]) -> list[tuple[object, ...]]:
    """Rows as plain values: times to the minute in UTC, decimals as floats."""
    return [tuple(map(_plain, row.values())) for row in rows]


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
    return float(value) if isinstance(value, Decimal) else value
