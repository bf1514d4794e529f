"""The three benchmarks of the common path in one session: one rewrite, what comes after a commit, facts.

One session, because on a busy machine its start is what takes the time. Each report is written as soon as it is
there.

    python benchmarks/speed.py --out benchmarks/results
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import after_commit, facts, one_rewrite


def main() -> None:
    """Run the three and write their reports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the reports")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tables", type=int, default=4, help="of the second benchmark")
    parser.add_argument("--fleet", type=int, default=200, help="tables of the third one's fleet")
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    options.out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="maintainer-bench-"))
    conf = (("spark.driver.memory", "2g"),)
    try:
        with (
            open_session(SessionOptions(conf=conf, log_path=work / "spark.log")) as lease,
            DeltaEngine(lease).worker("bench") as engine,
        ):
            small = one_rewrite.Shape("small", 40, one_rewrite.MIB // 10, options.rounds)
            one_rewrite.measure(engine, work, one_rewrite.WARM_UP, options.seed)
            laps = {small: one_rewrite.measure(engine, work, small, options.seed)}
            write(options.out / "one_rewrite.md", one_rewrite.render(laps, options.seed))
            after = after_commit.measure(engine, work, options.tables, options.seed)
            write(options.out / "after_commit.md", after_commit.render(after, options.tables, options.seed))
            lines = facts.measure(engine.jvm, work, 5, options.fleet, options.seed)
            write(options.out / "facts.md", facts.render(lines, options.seed))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write(path: Path, report: str) -> None:
    """Write a report and show it."""
    path.write_text(report, encoding="utf-8")
    print(report, flush=True)


if __name__ == "__main__":
    main()
