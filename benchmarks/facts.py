"""How long a table's facts take: from the log without a Spark job, by Spark's own reader, and when nothing changed.

The logs are written by hand, with statistics of ten columns a file; no data file exists, nobody reads one. *Cold*
means that nobody has looked at the table before; the JVM is warm. Memory is what the process and its JVM hold at
most more than before (peak of the resident set).

    python benchmarks/facts.py --out benchmarks/results/facts.md
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.optimize_loop import machine, progress, versions

if TYPE_CHECKING:
    from maintainer.delta.jvm import DeltaJvm
    from maintainer.delta.storage.table_storage import TableStorage

COLUMNS = 10
SIZES = {"10 files": (2, 5), "1,000 files": (10, 100), "20,000 files": (40, 500), "100,000 files": (20, 5000)}
"""Commits, and files a commit."""


def write_log(table: Path, commits: int, files: int, chance: random.Random) -> None:
    """A log of appends as Delta writes it, without data files."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": f"c{i}", "type": "long", "nullable": True, "metadata": {}} for i in range(COLUMNS)]
    metadata = {
        "id": str(uuid.UUID(int=chance.getrandbits(128))),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1700000000000,
    }
    for version in range(commits):
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 1700000000000 + version, "operation": "WRITE"}}]
        if version == 0:
            actions += [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
        actions += [{"add": _add(version * files + number, chance)} for number in range(files)]
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        (log / f"{version:020d}.json").write_text(text, encoding="utf-8")


def _add(number: int, chance: random.Random) -> dict[str, Any]:
    low = {f"c{i}": chance.randrange(1 << 30) for i in range(COLUMNS)}
    stats = {
        "numRecords": 1000,
        "minValues": low,
        "maxValues": {name: value + 1000 for name, value in low.items()},
        "nullCount": dict.fromkeys(low, 0),
    }
    name = uuid.UUID(int=chance.getrandbits(128))
    return {
        "path": f"part-{number:05d}-{name}-c000.snappy.parquet",
        "partitionValues": {},
        "size": 1_000_000 + number,
        "modificationTime": 1700000000000 + number,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def timed(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def peak_bytes(pid: int | str) -> int:
    """The peak of a process's resident set, 0 where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    try:
        lines = status.read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def resident_bytes(pid: int | str) -> int:
    """The resident set of a process now, 0 where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmRSS"))


def plan_of(work: Path, tables: int) -> str:
    """Plan the whole fleet by the command, in the session that is there."""
    from maintainer.cli.main import run

    (work / "policies").mkdir()
    (work / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    for number in range(tables):
        text = f"version: 1\ntable: fleet/t{number:04d}\n"
        (work / "policies" / f"t{number:04d}.yml").write_text(text, encoding="utf-8")
    seconds = timed(lambda: run(["--project", str(work), "-q", "plan", "--out", str(work / "plan.json")]))
    return f"`maintainer plan` over {tables:,} tables, two at once: {seconds:.1f} s."


def measure(jvm: DeltaJvm, work: Path, rounds: int, tables: int, seed: int) -> list[str]:
    """Lines of the report's table, and what stands below it."""
    from maintainer.delta.snapshot.log_reader import LogReader
    from maintainer.delta.storage.table_storage import TableStorage
    from maintainer.model.table.table_facts import TableRef

    chance = random.Random(seed)
    for name, (commits, files) in SIZES.items():
        write_log(work / name, commits, files, chance)
    write_log(work / "warm-up", 5, 50, chance)
    for number in range(tables):
        write_log(work / "fleet" / f"t{number:04d}", 2, 20, chance)
    warm_up = TableStorage(jvm, f"file:{work / 'warm-up'}")
    first = timed(lambda: LogReader().facts(TableRef("first"), warm_up))
    for _ in range(10):
        LogReader().facts(TableRef("warm-up"), warm_up)
    lines = [
        "| table | Spark's reader | Kernel alone, cold | from the log, cold | unchanged |",
        "|---|---|---|---|---|",
    ]
    for name in SIZES:
        storage = TableStorage(jvm, f"file:{work / name}")
        lines.append(_line(jvm, name, storage, 1 if name == "100,000 files" else rounds))
        progress(lines[-1])
    reader = LogReader()
    refs = [TableRef(str(work / "fleet" / f"t{number:04d}")) for number in range(tables)]
    few = refs[:100]
    cold = timed(lambda: [reader.facts(ref, TableStorage(jvm, f"file:{ref.location}")) for ref in few])
    after_few = (resident_bytes("self"), resident_bytes(process_id(jvm)))
    cold += timed(lambda: [reader.facts(ref, TableStorage(jvm, f"file:{ref.location}")) for ref in refs[100:]])
    after_all = (resident_bytes("self"), resident_bytes(process_id(jvm)))
    again = timed(lambda: [reader.facts(ref, TableStorage(jvm, f"file:{ref.location}")) for ref in refs])
    lines += [
        "",
        f"The first table that Kernel reads in this JVM: {first:.1f} s.",
        f"{tables:,} tables of 40 files: {cold:.1f} s cold, {again:.1f} s when nothing changed.",
        f"Resident memory after {len(few):,} tables: Python {after_few[0] / 2**20:.0f} MiB, its JVM "
        f"{after_few[1] / 2**20:.0f} MiB; after {tables:,}: {after_all[0] / 2**20:.0f} and "
        f"{after_all[1] / 2**20:.0f} MiB.",
        plan_of(work, tables),
        f"Peak memory of the process: Python {peak_bytes('self') / 2**20:.0f} MiB, its JVM "
        f"{peak_bytes(process_id(jvm)) / 2**20:.0f} MiB.",
    ]
    return lines


def process_id(jvm: DeltaJvm) -> int:
    """The JVM's process id, to measure what it uses."""
    handle: Any = jvm.spark._jvm
    return int(handle.java.lang.ProcessHandle.current().pid())


def _line(jvm: DeltaJvm, name: str, storage: TableStorage, rounds: int) -> str:
    """One table: by Spark (not the largest), by Kernel cold, and when nothing changed."""
    from maintainer.delta.log.replay.version_replay import replay_version
    from maintainer.delta.snapshot import log_reader
    from maintainer.delta.snapshot.log_reader import LogReader, SparkReader
    from maintainer.model.table.table_facts import TableRef

    ref = TableRef(name)
    cold = median(timed(lambda: LogReader().facts(ref, storage)) for _ in range(rounds))
    whole = replay_version
    patched: Any = log_reader
    patched.replay_version = lambda *arguments: None
    alone = median(timed(lambda: LogReader().facts(ref, storage)) for _ in range(min(rounds, 5)))
    patched.replay_version = whole
    known = LogReader()
    known.facts(ref, storage)
    warm = median(timed(lambda: known.facts(ref, storage)) for _ in range(20))
    spark = []
    for _ in range(min(rounds, 3) if rounds > 1 else 0):
        jvm.forget_log(storage.location)
        spark.append(timed(lambda: SparkReader(jvm).facts(ref, storage)))
    shown = f"{median(spark) * 1000:.0f} ms" if spark else "-"
    return f"| {name} | {shown} | {alone * 1000:.0f} ms | {cold * 1000:.0f} ms | {warm * 1000:.1f} ms |"


def render(lines: list[str], seed: int) -> str:
    """The report as Markdown."""
    head = [
        "# Facts of a table: from the log's own files, and by Spark's reader",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Seed {seed}. Medians.",
        versions() + ".",
        "",
    ]
    return "\n".join([*head, *lines]) + "\n"


def main() -> None:
    """Write the logs, read them, print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    work = Path(tempfile.mkdtemp(prefix="maintainer-bench-"))
    conf = (("spark.driver.memory", "1g"),)
    try:
        with (
            open_session(SessionOptions(conf=conf, log_path=work / "spark.log")) as lease,
            DeltaEngine(lease).worker("bench") as engine,
        ):
            report = render(measure(engine.jvm, work, options.rounds, options.tables, options.seed), options.seed)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
