"""How often writers of a hot table lose to our rewrites, and ours to them, for several `optimize.quietAfterUpdates`.

A writer with a session of its own repeats an append, a MERGE and a DELETE in turn, as fast as they go or with pauses
drawn from an exponential distribution. Beside it one `apply` follows another, two seconds apart. A policy of two lines
compacts whatever there is. Each arm has a table of its own and ends after so many seconds; a statement that fails is
not tried again.

    python benchmarks/hot_table.py --out benchmarks/results/hot_table.md
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.optimize_loop import machine, progress, versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from maintainer.delta.spark.spark_session import SessionLease

ARMS = ("0s", "10s", "60s", "10m")
STATEMENTS = (
    "INSERT INTO {t} VALUES ({n}, 'appended')",
    "MERGE INTO {t} t USING (SELECT {n}L - 900 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged'",
    "DELETE FROM {t} WHERE id = {n} - 900",
)
PAUSE_BETWEEN_RUNS_SECONDS = 2.0
SETTINGS = """version: 1
defaults:
  verify: {{rowCount: off, content: off, files: false}}
  optimize: {{quietAfterUpdates: {quiet}}}
"""


@dataclass
class Writer:
    """Somebody who repeats his statements for a while and counts what failed, by the statement's first word."""

    spark: SparkSession
    path: Path
    seconds: float
    mean_pause_seconds: float
    seed: int
    tried: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def work(self) -> None:
        """Repeat the statements until the time is over."""
        draw, session, number = random.Random(self.seed), self.spark.newSession(), 0
        session.conf.set("spark.sql.shuffle.partitions", "2")
        ends = time.monotonic() + self.seconds
        while time.monotonic() < ends:
            text = STATEMENTS[number % len(STATEMENTS)]
            name = text.split(" ", 1)[0]
            self.tried[name] += 1
            try:
                session.sql(text.format(t=f"delta.`{self.path}`", n=1000 + number))
            except Exception as error:
                self.failed[name] += 1
                progress(f"{name} {number}: {str(error)[:120]}")
            number += 1
            if self.mean_pause_seconds:
                time.sleep(draw.expovariate(1 / self.mean_pause_seconds))


@dataclass
class Arm:
    """What came of one arm. ``ends`` counts our runs by how the table ended, with the code of what held it back."""

    quiet: str
    writer: Writer
    ends: Counter[str]
    num_commits: int


def run_arm(lease: SessionLease, work: Path, quiet: str, options: argparse.Namespace) -> Arm:
    """Let the writer work, and run beside it."""
    from maintainer.app.planning.make_plan import PlanRequest, make_plan
    from maintainer.app.project_folders import Project
    from maintainer.app.running.apply_plan import apply_plan, open_journal
    from maintainer.app.selection.run_spec import RunSpec
    from maintainer.delta.engine.table_engine import DeltaEngine

    path, root = work / f"t-{quiet}", work / f"project-{quiet}"
    frame = lease.spark.range(100, 200).selectExpr("id", "'old' v").repartition(10)
    frame.write.format("delta").mode("append").save(str(path))
    (root / "policies").mkdir(parents=True)
    (root / "maintainer.yml").write_text(SETTINGS.format(quiet=quiet), encoding="utf-8")
    (root / "policies" / "t.yml").write_text(f"version: 1\ntable: {path}\n", encoding="utf-8")
    project, engine, ends = Project.load(root), DeltaEngine(lease), Counter[str]()
    writer = Writer(lease.spark, path, options.seconds, options.pause, options.seed)
    thread = threading.Thread(target=writer.work, daemon=True)
    thread.start()
    while thread.is_alive():
        plan = make_plan(project, engine, PlanRequest(project.policies, int(time.time() * 1000), jobs=1))
        with open_journal(project) as journal:
            (table,) = apply_plan(project, engine, plan, journal, None, RunSpec()).tables
        problem = table.problem or next((step.error for step in table.steps if step.error is not None), None)
        ends[table.status.value + (f" {problem.code}" if problem is not None else "")] += 1
        progress(f"{quiet}: {table.status.value} {problem.what if problem is not None else ''}")
        time.sleep(PAUSE_BETWEEN_RUNS_SECONDS)
    thread.join()
    return Arm(quiet, writer, ends, num_commits(path))


def num_commits(path: Path) -> int:
    """Commits of ours, from the log's text."""
    first = [log.read_text(encoding="utf-8").splitlines()[0] for log in sorted((path / "_delta_log").glob("*.json"))]
    infos = [json.loads(line).get("commitInfo", {}) for line in first]
    return sum("maintainer" in str(info.get("userMetadata")) for info in infos)


def render(arms: list[Arm], options: argparse.Namespace) -> str:
    """The report as Markdown."""
    pace = f"pauses of {options.pause:g} s on average" if options.pause else "no pause"
    lines = [
        "# Writers of a hot table beside our runs",
        "",
        f"Append, MERGE and DELETE in turn with {pace} between them, a run of ours every "
        f"{PAUSE_BETWEEN_RUNS_SECONDS:g} s, {options.seconds:g} s for each arm. Seed {options.seed}.",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.",
        versions() + ".",
        "",
        "| quietAfterUpdates | statements | failed | of them MERGE, DELETE | share | our runs | our commits | "
        "lost by us (C701) | held back (C718) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        tried, failed = arm.writer.tried.total(), arm.writer.failed.total()
        lost = sum(count for end, count in arm.ends.items() if end.endswith("C701"))
        held = sum(count for end, count in arm.ends.items() if end.endswith("C718"))
        lines.append(
            f"| {arm.quiet} | {tried} | {failed} | {arm.writer.failed['MERGE']}, {arm.writer.failed['DELETE']} | "
            f"{failed / max(1, tried):.1%} | {arm.ends.total()} | {arm.num_commits} | {lost} | {held} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure each arm, print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--seconds", type=float, default=75, help="of each arm")
    parser.add_argument("--pause", type=float, default=0.0, help="mean seconds between two statements")
    parser.add_argument("--arms", default=",".join(ARMS), help="quietAfterUpdates, with commas between them")
    parser.add_argument("--seed", type=int, default=20261122)
    options = parser.parse_args()
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    work = Path(tempfile.mkdtemp(prefix="maintainer-bench-"))
    try:
        with open_session(SessionOptions(log_path=work / "spark.log")) as lease:
            arms = [run_arm(lease, work, quiet, options) for quiet in options.arms.split(",")]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report = render(arms, options)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
