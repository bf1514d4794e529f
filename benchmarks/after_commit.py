"""What a small rewrite costs after its commit: the checks by Great Expectations, and the ledger.

Small tables (40 files) are compacted one after the other in one session; each part is timed and its Spark jobs are
counted. The first table warms the session up and is shown apart.

    python benchmarks/after_commit.py --out benchmarks/results/after_commit.md
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.lake import make_rows
from benchmarks.optimize_loop import machine, progress, versions

if TYPE_CHECKING:
    from maintainer.delta.engine.table_engine import DeltaTableEngine
    from maintainer.journal.ledger.ledger_rows import LedgerRow
    from maintainer.model.table.table_facts import TableFacts
    from maintainer.verification.commit_checks_after import GreatExpectationsVerifier

Result = TypeVar("Result")

FILES = 40
ROWS = 80_000


class Laps:
    """Seconds and Spark jobs of each part, one entry a table."""

    def __init__(self, spark: Any) -> None:  # noqa: ANN401 - Spark is imported late
        self._store = spark.sparkContext._jsc.sc().statusStore()
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.jobs: dict[str, list[int]] = defaultdict(list)

    def _num_jobs(self) -> int:
        return int(self._store.jobsList(None).size())

    def time(self, part: str, work: Callable[[], Result]) -> Result:
        """Run a part and note what it took."""
        jobs, started = self._num_jobs(), time.monotonic()
        result = work()
        self.seconds[part].append(time.monotonic() - started)
        self.jobs[part].append(self._num_jobs() - jobs)
        progress(f"{part}: {self.seconds[part][-1]:.2f} s, {self.jobs[part][-1]} jobs")
        return result


def ledger_row(number: int) -> LedgerRow:
    """A row as a run appends it."""
    from maintainer.journal.ledger.ledger_rows import LedgerRow

    return LedgerRow(
        run_id=f"r{number}", table="sales.orders", table_id="id", location="file:/lake/orders", step_id="s",
        kind="compact", status="succeeded", reason="40 small files", version_before=4, version_after=5,
        num_files_removed=40, num_files_added=1, bytes_removed=1 << 22, bytes_added=1 << 22,
        predicted_files_removed=40, predicted_files_added=1, predicted_bytes_removed=1 << 22,
        predicted_bytes_added=1 << 22, started_at_ms=1_700_000_000_000 + number, duration_seconds=1.5,
        proof_level="fingerprint", proof_result="pass", policy_file="policies/orders.yml", policy_digest="sha256:x",
        git_commit="3f2c1a9", environment=None, owner="team", error_code=None, error=None,
    )  # fmt: skip


def measure(engine: DeltaTableEngine, work: Path, tables: int, seed: int) -> Laps:
    """Compact the tables one by one, with the checks and the ledger of a run."""
    from maintainer.delta.engine.ledger_table import LedgerTable
    from maintainer.verification.commit_checks_after import GreatExpectationsVerifier

    laps = Laps(engine.jvm.spark)
    verifier = GreatExpectationsVerifier()
    verifier.preflight(())
    ledger = LedgerTable(engine.jvm.spark, str(work / "ledger"))
    for number in range(tables):
        path = work / f"t{number}"
        make_rows(engine.jvm.spark, ROWS, FILES, seed + number).write.format("delta").save(str(path))
        engine.jvm.forget_log(path.as_uri())
        one_table(laps, engine, verifier, path)
        row = ledger_row(number)
        laps.time("ledger", functools.partial(ledger.append, row.run_id, (row,)))
    return laps


def one_table(laps: Laps, engine: DeltaTableEngine, verifier: GreatExpectationsVerifier, path: Path) -> None:
    """Facts, rewrite and checks of one table."""
    from benchmarks.one_rewrite import plan
    from maintainer.model.plan.plan import Checks
    from maintainer.model.table.commit_records import CommitStamp
    from maintainer.model.table.table_facts import TableRef

    facts = laps.time("facts", lambda: engine.reader.facts(TableRef(str(path))))
    step, batch = plan(facts)
    stamp = CommitStamp("bench", "t/compact", 0, "d")
    receipt = laps.time("rewrite with proof", lambda: engine.writer.rewrite(facts, step, batch, stamp, lambda *_: None))
    verification = laps.time("checks", lambda: verifier.after_rewrite(engine.versions, facts, batch, receipt, Checks()))
    if verification.verdict.value != "pass":
        raise SystemExit(f"{path}: {verification.detail}")
    laps.time("the same by Great Expectations on Spark frames", lambda: on_frames(engine, facts))


def on_frames(engine: DeltaTableEngine, facts: TableFacts) -> None:
    """Rows and columns of both versions as Great Expectations finds them by itself, under its one lock."""
    from maintainer.model.plan.plan import CheckedExpectation
    from maintainer.verification import great_expectations_suite as gx

    rows = engine.versions.row_count(facts, 0, scan=True)
    suite = [
        CheckedExpectation(name, json.dumps(arguments))
        for name, arguments in (
            ("expect_table_row_count_to_equal", {"value": rows}),
            ("expect_table_columns_to_match_ordered_list", {"column_list": list(facts.columns)}),
        )
    ]
    for version in (0, 1):
        # Opened anew, as a check does that knows nothing of the one before.
        frame = engine.jvm.spark.read.format("delta").option("versionAsOf", version).load(facts.location)
        verification = gx.validate_frame(frame, "frames", suite, version=version)
        if any(assertion.outcome != "pass" for assertion in verification.assertions):
            raise SystemExit(f"{facts.location}: {verification.assertions}")


def render(laps: Laps, tables: int, seed: int) -> str:
    """The report as Markdown."""
    lines = [
        "# What a small rewrite costs after its commit",
        "",
        f"{tables} tables of {FILES} files of {ROWS // FILES:,} rows. Seed {seed}.",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.",
        versions() + ".",
        "",
        "| part | first table | median of the others | Spark jobs, first | others |",
        "|---|---|---|---|---|",
    ]
    for part, seconds in laps.seconds.items():
        jobs = laps.jobs[part]
        lines.append(
            f"| {part} | {seconds[0]:.2f} s | {median(seconds[1:]):.2f} s | {jobs[0]} | {median(jobs[1:]):.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Build the tables, measure, print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    work = Path(tempfile.mkdtemp(prefix="maintainer-bench-"))
    try:
        with (
            open_session(SessionOptions(log_path=work / "spark.log")) as lease,
            DeltaEngine(lease).worker("bench") as engine,
        ):
            report = render(measure(engine, work, options.tables, options.seed), options.tables, options.seed)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
