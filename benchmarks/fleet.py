"""A night over 200 tables, of which most need nothing: ours, a plain loop, the same loop tuned and threaded, delta-rs.

Each arm works on a copy of one lake. ``maintainer`` and ``delta-rs`` do all of it. The two loops do a sample of each
kind of table and the rest is reckoned from it (``SAMPLES``): a loop on default settings takes hours. The seconds of
each kind are written as it ends, so a run that is cut off goes on where it was with the same ``--dir``. CPU seconds
(Python and JVM, on Linux) stand beside the seconds: they say more on a machine that does other work too.

    python benchmarks/fleet.py --dir /tmp/fleet --arm build
    python benchmarks/fleet.py --dir /tmp/fleet --arm maintainer      # and delta-rs, tuned, default
    python benchmarks/fleet.py --dir /tmp/fleet --out benchmarks/results/fleet.md
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.optimize_loop import TUNED, Stopwatch, machine, progress, start_spark, versions

POLICY = "version: 1\ntable: lake/{name}\nvacuum: {{retention: 7d}}\n"
THREADS = 2
ARMS = ("maintainer", "delta-rs", "tuned", "default")
TITLES = {
    "maintainer": "`maintainer apply -j 2`, with proofs",
    "delta-rs": f"delta-rs, compact and vacuum, {THREADS} threads",
    "tuned": f"loop of OPTIMIZE + VACUUM, tuned session, {THREADS} threads",
    "default": "the same loop, default session, one thread",
}
SAMPLES = {
    "tuned": {"healthy": 10, "small": 6, "medium": 2, "large": 2},
    "default": {"healthy": 1, "small": 1, "medium": 1, "large": 1},
}
"""Tables of each kind that a loop does; the rest is reckoned."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Tables of one kind: how many, and files of how many rows each."""

    number: int
    files: int
    rows: int


KINDS = {
    "healthy": Kind(150, 1, 2_000),
    "small": Kind(40, 20, 1_000),
    "medium": Kind(8, 8, 160_000),
    "large": Kind(2, 32, 730_000),
}


def names() -> list[str]:
    """All tables, the kinds mixed as they are in a lake."""
    table_names = [f"{kind}_{number:03d}" for kind, shape in KINDS.items() for number in range(shape.number)]
    random.Random(7).shuffle(table_names)
    return table_names


def build(lake: Path, seed: int, due: str) -> None:
    """Write the tables with delta-rs, a commit a file; ``due`` says how many small tables are due for a checkpoint."""
    import deltalake
    import numpy as np
    import pyarrow as pa

    chance = random.Random(seed)
    for name in names():
        kind = KINDS[name.partition("_")[0]]
        # The rewrite of 20 files is version 20, for which a checkpoint is due; that of 19 is version 19.
        fewer = due == "tenth" and name.startswith("small") and int(name.rpartition("_")[2]) % 10 > 0
        for number in range(kind.files - fewer):
            ids = np.arange(number * kind.rows, (number + 1) * kind.rows)
            digits = chance.randbytes(20 * kind.rows).hex().encode()
            ends = np.arange(0, 40 * kind.rows + 1, 40, dtype=np.int32)
            texts = pa.StringArray.from_buffers(kind.rows, pa.py_buffer(ends), pa.py_buffer(digits))
            rows = pa.table({"id": ids, "k": ids % 1000, "s": texts})
            deltalake.write_deltalake(str(lake / name), rows, mode="append")


def by_maintainer(work: Path, lake: Path) -> None:
    """Two passes of `maintainer apply` in one session; in the second nothing is left to do."""
    from maintainer.cli.main import run
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    (lake.parent / "policies").mkdir()
    (lake.parent / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    for name in names():
        (lake.parent / "policies" / f"{name}.yml").write_text(POLICY.format(name=name), encoding="utf-8")
    with open_session(SessionOptions()) as lease:
        watch = Stopwatch(lease.spark)
        for turn in ("first", "second"):
            code = run(["--project", str(lake.parent), "apply", "--yes", "-j", str(THREADS)])
            if code != 0:
                raise SystemExit(f"maintainer apply ended with exit code {code}")
            _note(work, "maintainer", turn, *watch.lap())


def by_delta_rs(work: Path, lake: Path) -> None:
    """Compact and vacuum each table, in threads; with the sizes that our policy has by default."""
    import deltalake

    def compact_and_vacuum(name: str) -> None:
        table = deltalake.DeltaTable(str(lake / name))
        table.optimize.compact(target_size=256 << 20)
        table.vacuum(retention_hours=168, dry_run=False)

    for turn in ("first", "second"):
        started, cpu = time.monotonic(), time.process_time()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(compact_and_vacuum, names()))
        _note(work, "delta-rs", turn, time.monotonic() - started, time.process_time() - cpu)


def by_loop(work: Path, lake: Path, arm: str) -> None:
    """OPTIMIZE and VACUUM of a sample of each kind, kind by kind; what was done before is not done again."""
    spark, seconds = start_spark(TUNED if arm == "tuned" else {})
    progress(f"session {seconds:.1f} s")
    done = {note["table"] for note in _notes(work, arm)}
    spark.sql(f"OPTIMIZE delta.`{lake / 'healthy_074'}`").collect()  # warm, as it is for nearly all of a night

    def seconds_of(name: str) -> float:
        started = time.monotonic()
        for statement in ("OPTIMIZE", "VACUUM"):
            spark.sql(f"{statement} delta.`{lake / name}`").collect()
        progress(f"{arm} {name} {time.monotonic() - started:.1f} s")
        return time.monotonic() - started

    watch = Stopwatch(spark)
    for kind, number in SAMPLES[arm].items():
        if kind in done:
            continue
        with ThreadPoolExecutor(THREADS if arm == "tuned" else 1) as pool:
            each = list(pool.map(seconds_of, [f"{kind}_{at:03d}" for at in range(number)]))
        _note(work, arm, kind, mean(each), watch.lap()[1] / number)


def _note(work: Path, arm: str, table: str, seconds: float, cpu_seconds: float) -> None:
    with (work / f"{arm}.jsonl").open("a", encoding="utf-8") as file:
        note = {"table": table, "seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3)}
        file.write(json.dumps(note) + "\n")


def _notes(work: Path, arm: str) -> list[dict[str, str | float]]:
    path = work / f"{arm}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@dataclass(frozen=True, slots=True)
class Night:
    """What one arm takes for the fleet, for its healthy tables, and when nothing is left; ``cpu`` is CPU seconds."""

    seconds: float
    cpu: float
    healthy_seconds: float
    idle: str
    how: str


def night_of(work: Path, arm: str) -> Night | None:
    """An arm as it was measured, or reckoned from its sample; None where it was not run to its end."""
    notes = {str(note["table"]): (float(note["seconds"]), float(note["cpu_seconds"])) for note in _notes(work, arm)}
    if arm not in SAMPLES:
        if "second" not in notes:
            return None
        share = KINDS["healthy"].number / len(names())
        return Night(*notes["first"], notes["second"][0] * share, f"{notes['second'][0]:.1f} s", "all of it")
    if set(notes) != set(KINDS):
        return None
    threads = THREADS if arm == "tuned" else 1
    seconds = {kind: shape.number * notes[kind][0] / threads for kind, shape in KINDS.items()}
    cpu = sum(shape.number * notes[kind][1] for kind, shape in KINDS.items())
    how = ", ".join(f"{SAMPLES[arm][kind]} {kind} of {notes[kind][0]:.1f} s" for kind in KINDS)
    return Night(sum(seconds.values()), cpu, seconds["healthy"], "-", how)


def render(work: Path, seed: int) -> str:
    """The report as Markdown."""
    sizes = "; ".join(
        f"{shape.number} {kind} ({shape.files} files of {shape.rows:,} rows)" for kind, shape in KINDS.items()
    )
    lines = [
        f"# A night over {len(names())} tables",
        "",
        f"{sizes}. Seed {seed}.",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.",
        versions() + ".",
        "",
        "| | the night | against ours | its CPU | against ours | on healthy tables | when nothing is left | measured |",
        "|" + "---|" * 8,
    ]
    ours = night_of(work, "maintainer")
    for arm in ARMS:
        night = night_of(work, arm)
        if night is None:
            continue
        times = f"{night.seconds / ours.seconds:.1f}x" if ours else "-"
        cpu_times = f"{night.cpu / ours.cpu:.1f}x" if ours else "-"
        share = f"{night.healthy_seconds:.1f} s ({night.healthy_seconds / night.seconds:.0%})"
        lines.append(
            f"| {TITLES[arm]} | {night.seconds:.0f} s | {times} | {night.cpu:.0f} s | {cpu_times} "
            f"| {share} | {night.idle} | {night.how} |"
        )
    return "\n".join(lines) + "\n"


def run_arm(arm: str, work: Path, seed: int, due: str) -> None:
    """Build the lake, or run one arm on its copy; a loop goes on with the copy that it has."""
    if arm == "build":
        shutil.rmtree(work / "building", ignore_errors=True)
        build(work / "building", seed, due)
        (work / "building").rename(work / "base")
        return
    lake = work / arm / "lake"
    if not lake.exists() or arm not in SAMPLES:
        shutil.rmtree(work / arm, ignore_errors=True)
        (work / f"{arm}.jsonl").unlink(missing_ok=True)
        shutil.copytree(work / "base", lake, copy_function=shutil.copy2)
    arms: dict[str, Callable[[], None]] = {
        "maintainer": lambda: by_maintainer(work, lake),
        "delta-rs": lambda: by_delta_rs(work, lake),
    }
    arms.get(arm, lambda: by_loop(work, lake, arm))()


def main() -> None:
    """Run one arm, or print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dir", type=Path, required=True, help="work here and keep it")
    parser.add_argument("--arm", choices=("build", *ARMS), help="what to run; without it the report is printed")
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the 200 tables that the arms take")
    parser.add_argument("--due", choices=("each", "tenth"), default="each",
                        help="small tables whose rewrite is due for a checkpoint, with `--arm build`")  # fmt: skip
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    for kind, shape in KINDS.items():
        KINDS[kind] = replace(shape, number=max(1, round(shape.number * options.scale)))
    work = options.dir.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if options.arm:
        run_arm(options.arm, work, options.seed, options.due)
        return
    report = render(work, options.seed)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
