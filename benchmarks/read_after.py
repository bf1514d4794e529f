"""Reading afterwards: tables compacted in each lane beside one that OPTIMIZE compacted, read by Spark and by DuckDB.

One table is built, copied and compacted by OPTIMIZE and in the lanes ``copy``, ``local`` and ``spark``. Then each copy
is scanned as a whole and asked 100 selective queries, by both engines. The tables take turns in each round, so
whatever else the machine does meets all of them.

    python benchmarks/read_after.py --out benchmarks/results/read_after.md
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import one_rewrite
from benchmarks.optimize_loop import machine, progress, versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARMS = ("OPTIMIZE", "copy", "local", "spark")
QUERIES = 100


def live_files(path: Path) -> list[str]:
    """The live files of a table, as delta-rs lists them."""
    import deltalake

    return [str(path / uri.rpartition("/")[2]) for uri in deltalake.DeltaTable(str(path)).file_uris()]


def scan_by_spark(spark: SparkSession, path: Path) -> object:
    """Read every value of every row."""
    return spark.read.format("delta").load(str(path)).selectExpr("bit_xor(xxhash64(*))").collect()


def query_by_spark(spark: SparkSession, path: Path, id_: int) -> object:
    """Look for a single id."""
    return spark.read.format("delta").load(str(path)).where(f"id = {id_}").selectExpr("max(s)").collect()


def scan_by_duckdb(path: Path) -> object:
    """Read every value of every row."""
    import duckdb

    with duckdb.connect() as connection:
        return connection.execute("SELECT sum(hash(COLUMNS(*))) FROM read_parquet(?)", [live_files(path)]).fetchall()


def query_by_duckdb(path: Path, id_: int) -> object:
    """Look for a single id."""
    import duckdb

    with duckdb.connect() as connection:
        query = "SELECT max(s) FROM read_parquet(?) WHERE id = ?"
        return connection.execute(query, [live_files(path), id_]).fetchall()


def measure(spark: SparkSession, paths: dict[str, Path], ids: list[int], rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds of each question to each table. The tables take turns; the first tenth warms up."""
    questions: dict[str, tuple[int, Callable[[Path, int], object]]] = {
        "full scan, Spark": (rounds, lambda path, _: scan_by_spark(spark, path)),
        f"median of {QUERIES} queries, Spark": (QUERIES, lambda path, number: query_by_spark(spark, path, ids[number])),
        "full scan, DuckDB": (rounds, lambda path, _: scan_by_duckdb(path)),
        f"median of {QUERIES} queries, DuckDB": (QUERIES, lambda path, number: query_by_duckdb(path, ids[number])),
    }
    medians: dict[str, dict[str, float]] = {}
    for name, (repeats, ask) in questions.items():
        seconds: dict[str, list[float]] = {arm: [] for arm in paths}
        for number in range(repeats):
            order = list(paths)
            random.Random(number).shuffle(order)
            answers = set()
            for arm in order:
                started = time.monotonic()
                answers.add(str(ask(paths[arm], number)))
                if number >= -(-repeats // 10):
                    seconds[arm].append(time.monotonic() - started)
            if len(answers) > 1:
                raise SystemExit(f"{name}: the tables answer differently")
        medians[name] = {arm: median(of_arm) for arm, of_arm in seconds.items()}
        progress(f"{name}: {medians[name]}")
    return medians


def render(medians: dict[str, dict[str, float]], sizes: dict[str, str], shape: str, rounds: int, seed: int) -> str:
    """The report as Markdown."""
    lines = [
        "# Reading what each lane wrote",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Seed {seed}.",
        versions() + ".",
        "",
        f"{shape}; medians; of scans those of {rounds} rounds. The tables take turns.",
        "",
        f"| | {' | '.join(f'{arm} ({sizes[arm]})' for arm in ARMS)} |",
        "|" + "---|" * (len(ARMS) + 1),
    ]
    for name, of_arms in medians.items():
        base = of_arms[ARMS[0]]
        cells = [f"{base:.3f} s", *(f"{of_arms[arm]:.3f} s ({of_arms[arm] / base:.2f})" for arm in ARMS[1:])]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Build, rewrite and read, and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--files", type=int, default=16, help="of 16 MiB each")
    parser.add_argument("--rounds", type=int, default=20, help="of full scans")
    parser.add_argument("--seed", type=int, default=20261123)
    options = parser.parse_args()
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    shape = one_rewrite.Shape("read", options.files, 16 * one_rewrite.MIB, options.rounds)
    work = Path(tempfile.mkdtemp(prefix="maintainer-bench-"))
    try:
        with open_session(SessionOptions(log_path=work / "spark.log")) as lease:
            spark = lease.spark
            one_rewrite.build(spark, work / "base", shape, options.seed)
            paths = {arm: work / arm for arm in ARMS}
            with DeltaEngine(lease).worker("bench") as engine:
                for arm, path in paths.items():
                    shutil.copytree(work / "base", path)
                    one_rewrite.optimize(engine, path, "compact") if arm == "OPTIMIZE" else one_rewrite.ours(
                        engine, path, "compact", arm
                    )
            sizes = {arm: f"{len(live_files(path))} files" for arm, path in paths.items()}
            num_rows = options.files * (shape.file_bytes // one_rewrite.ROW_BYTES)
            ids = random.Random(options.seed).sample(range(num_rows), QUERIES)
            medians = measure(spark, paths, ids, options.rounds)
            files = f"A table of {options.files} files of 16 MiB, compacted to files of up to 128 MiB"
            report = render(medians, sizes, files, options.rounds, options.seed)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
