"""A night over 200 tables, of which most need nothing: ours, a plain loop, the same loop tuned and threaded, delta-rs.

Each arm works on a copy of one lake. ``maintainer`` and ``delta-rs`` do all of it. The two loops do a sample of each
kind of table and the rest is reckoned from it (``--samples``): a loop on default settings takes hours. Every table's
seconds are written as it ends, so a run that is cut off goes on where it was with the same ``--dir``.

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
from datetime import datetime, timezone
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.optimize_loop import TUNED, machine, progress, start_spark, versions  # noqa: E402

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
    "tuned": {"healthy": 10, "small": 6, "medium": 1, "large": 1},
    "default": {"healthy": 2, "small": 1, "medium": 1, "large": 1},
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
    found = [f"{kind}_{number:03d}" for kind, one in KINDS.items() for number in range(one.number)]
    random.Random(7).shuffle(found)
    return found


def build(lake: Path, seed: int) -> None:
    """Write the tables with delta-rs, a commit a file."""
    import deltalake
    import numpy as np
    import pyarrow as pa

    chance = random.Random(seed)
    for name in names():
        kind = KINDS[name.partition("_")[0]]
        for number in range(kind.files):
            ids = np.arange(number * kind.rows, (number + 1) * kind.rows)
            digits = chance.randbytes(20 * kind.rows).hex().encode()
            ends = np.arange(0, 40 * kind.rows + 1, 40, dtype=np.int32)
            texts = pa.StringArray.from_buffers(kind.rows, pa.py_buffer(ends), pa.py_buffer(digits))
            rows = pa.table({"id": ids, "k": ids % 1000, "s": texts})
            deltalake.write_deltalake(str(lake / name), rows, mode="append")


def by_maintainer(work: Path, lake: Path) -> None:
    """Two passes of `maintainer apply` in one session; in the second nothing is left to do."""
    from maintainer.cli.main import run
    from maintainer.delta.session import SessionOptions, open_session

    (lake.parent / "policies").mkdir()
    (lake.parent / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    for name in names():
        (lake.parent / "policies" / f"{name}.yml").write_text(POLICY.format(name=name), encoding="utf-8")
    with open_session(SessionOptions()):
        for turn in ("first", "second"):
            started = time.monotonic()
            code = run(["--project", str(lake.parent), "apply", "--yes", "-j", str(THREADS)])
            if code != 0:
                raise SystemExit(f"maintainer apply ended with exit code {code}")
            _note(work, "maintainer", turn, time.monotonic() - started)


def by_delta_rs(work: Path, lake: Path) -> None:
    """Compact and vacuum each table, in threads; with the sizes that our policy has by default."""
    import deltalake

    def one(name: str) -> None:
        table = deltalake.DeltaTable(str(lake / name))
        table.optimize.compact(target_size=256 << 20)
        table.vacuum(retention_hours=168, dry_run=False)

    for turn in ("first", "second"):
        started = time.monotonic()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(one, names()))
        _note(work, "delta-rs", turn, time.monotonic() - started)


def by_loop(work: Path, lake: Path, arm: str) -> None:
    """OPTIMIZE and VACUUM of a sample of each kind; what was done before is not done again."""
    spark, seconds = start_spark(TUNED if arm == "tuned" else {})
    progress(f"session {seconds:.1f} s")
    done = {one["table"] for one in _notes(work, arm)}
    sample = [name for name in names() if int(name.partition("_")[2]) < SAMPLES[arm][name.partition("_")[0]]]
    spark.sql(f"OPTIMIZE delta.`{lake / 'healthy_074'}`").collect()  # warm, as it is for nearly all of a night

    def one(name: str) -> None:
        started = time.monotonic()
        for statement in ("OPTIMIZE", "VACUUM"):
            spark.sql(f"{statement} delta.`{lake / name}`").collect()
        _note(work, arm, name, time.monotonic() - started)
        progress(f"{arm} {name} {time.monotonic() - started:.1f} s")

    with ThreadPoolExecutor(THREADS if arm == "tuned" else 1) as pool:
        list(pool.map(one, [name for name in sample if name not in done]))


def _note(work: Path, arm: str, table: str, seconds: float) -> None:
    with (work / f"{arm}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"table": table, "seconds": round(seconds, 3)}) + "\n")


def _notes(work: Path, arm: str) -> list[dict[str, str | float]]:
    path = work / f"{arm}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def reckoned(notes: list[dict[str, str | float]], threads: int) -> tuple[float, float, dict[str, float]]:
    """Seconds of the whole fleet and of its healthy tables, and the mean by kind, from a sample."""
    by_kind: dict[str, list[float]] = {}
    for one in notes:
        by_kind.setdefault(str(one["table"]).partition("_")[0], []).append(float(one["seconds"]))
    means = {kind: mean(seconds) for kind, seconds in by_kind.items()}
    total = sum(KINDS[kind].number * value for kind, value in means.items()) / threads
    return total, KINDS["healthy"].number * means.get("healthy", 0.0) / threads, means


def render(work: Path, seed: int) -> str:
    """The report as Markdown."""
    sizes = "; ".join(f"{one.number} {kind} ({one.files} files of {one.rows:,} rows)" for kind, one in KINDS.items())
    lines = [
        f"# A night over {len(names())} tables",
        "",
        f"{sizes}. Seed {seed}.",
        f"{datetime.now(timezone.utc):%Y-%m-%d}, {machine()}.",
        versions() + ".",
        "",
        "| | the night | against ours | on healthy tables | when nothing is left | measured |",
        "|---|---|---|---|---|---|",
    ]
    ours = {str(one["table"]): float(one["seconds"]) for one in _notes(work, "maintainer")}
    base = ours.get("first", 0.0)
    for arm in ARMS:
        notes = _notes(work, arm)
        if not notes:
            continue
        if arm in SAMPLES:
            total, healthy, means = reckoned(notes, THREADS if arm == "tuned" else 1)
            kinds = ", ".join(f"{kind} {value:.1f} s" for kind, value in means.items())
            idle, how = "-", f"{len(notes)} tables: {kinds}"
        else:
            turns = {str(one["table"]): float(one["seconds"]) for one in notes}
            total, healthy = turns["first"], turns.get("second", 0.0) * KINDS["healthy"].number / len(names())
            idle, how = f"{turns.get('second', 0.0):.1f} s", "all of it"
        share = f"{healthy:.1f} s ({healthy / total:.0%})"
        times = f"{total / base:.1f}x" if base else "-"
        lines.append(f"| {TITLES[arm]} | {total:.0f} s | {times} | {share} | {idle} | {how} |")
    return "\n".join(lines) + "\n"


def run_arm(arm: str, work: Path, seed: int) -> None:
    """Build the lake, or run one arm on its copy; a loop goes on with the copy that it has."""
    if arm == "build":
        shutil.rmtree(work / "building", ignore_errors=True)
        build(work / "building", seed)
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
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    for kind, one in KINDS.items():
        KINDS[kind] = replace(one, number=max(1, round(one.number * options.scale)))
    work = options.dir.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if options.arm:
        run_arm(options.arm, work, options.seed)
        return
    report = render(work, options.seed)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
