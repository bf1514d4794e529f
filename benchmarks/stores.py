"""Tables on S3: `maintainer` beside delta-rs on the same server, with no delay and with a delay for each request.

The server is versitygw on loopback (`make stores` builds it); a relay before it counts requests, and delivers what is
sent later. Scenes (``--scene``, more than once; all without it):

* ``tables``: small tables, `apply --yes` with all proofs beside compact and vacuum, and what a further table takes;
* ``night``: the tables of `fleet.py`, in the same way;
* ``looks``: `plan` over tables that need nothing, over many short logs, and a second look in one process;
* ``requests``: what one small table and one more cost in requests, and a vacuum of five files in many partitions;
* ``files``: `plan` of one table of very many files, which has no data;
* ``memory``: `plan` and `apply` over a rule's tables, few and very many, of which the same number has something to do.

Seconds, CPU and memory are those of a whole process with its JVM. Alone on the machine, all of it takes an hour.

    python benchmarks/stores.py --out benchmarks/results/stores.md --json benchmarks/results/stores.json
    python benchmarks/stores.py --scene looks --delay-ms 20 --many 500
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import fleet, small_tables
from benchmarks.optimize_loop import machine, progress, versions
from benchmarks.store_arms import StoreBench, run_own, store_bench, tables_at_once
from benchmarks.store_report import (
    OURS,
    Row,
    render_applied,
    render_files,
    render_looks,
    render_memory,
    render_requests,
    row,
)  # fmt: skip

POLICY = "vacuum: {retention: 7d}"
VACUUM_ALONE = f"optimize: {{when: {{minSmallFiles: 1000000}}}}\n{POLICY}"
FEW_THREADS = 2
LOOK_THREADS = 32
COMMITS_OF_MANY = 10
FILES_COUNTED, ROWS_COUNTED, MORE_TABLES = 22, 400, 4
EXPIRED_FILES = 5
LARGE_COMMITS = 300
DUE_TABLES, FILES_DUE = 40, 19
MOMENT_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the scenes are."""

    tables: int
    files: int
    rows: int
    many: int
    partitions: int
    large: tuple[int, ...]
    fleet: tuple[int, ...]
    night: float
    seed: int


def scene_tables(bench: StoreBench, sizes: Sizes) -> list[Row]:
    """Small tables, and twice as many of them."""
    lakes = {number: bench.work / "lakes" / f"{number}" for number in (sizes.tables, 2 * sizes.tables)}
    for number, lake in lakes.items():
        small_tables.build(lake, number, sizes.files, sizes.seed, sizes.rows)
    return [
        one for delay_ms in bench.delays for lake in lakes.values() for one in applied(bench, "tables", lake, delay_ms)
    ]


def scene_night(bench: StoreBench, sizes: Sizes) -> list[Row]:
    """The night of `fleet.py`, or a part of its tables."""
    for kind, shape in fleet.KINDS.items():
        fleet.KINDS[kind] = replace(shape, number=max(1, round(shape.number * sizes.night)))
    lake = bench.work / "lakes" / "night"
    fleet.build(lake, sizes.seed, "tenth")
    return [one for delay_ms in bench.delays for one in applied(bench, "night", lake, delay_ms)]


def applied(bench: StoreBench, scene: str, lake: Path, delay_ms: float) -> list[Row]:
    """Let delta-rs with few threads, `maintainer`, and delta-rs with as many threads each do a copy of the tables."""
    rows: list[Row] = []
    at_once = FEW_THREADS
    for arm in ("delta-rs", OURS, "delta-rs, as many at once"):
        prefix = f"{scene}-{lake.name}-{delay_ms:g}ms-{len(rows)}"
        names = bench.upload(lake, prefix)
        before = bench.num_files(prefix, names)
        if arm == OURS:
            project = bench.project(prefix, names, POLICY, delay_ms)
            done = bench.maintainer(project, delay_ms, "apply", "--yes")
            at_once = tables_at_once(project)
        else:
            threads = FEW_THREADS if not rows else at_once
            done = bench.delta_rs("compact, vacuum", prefix, names, delay_ms, threads)
        figures = {"at_once": FEW_THREADS if not rows else at_once, "files_before": before}
        figures["files_after"] = bench.num_files(prefix, names)
        rows.append(row(scene, delay_ms, arm, "compact, vacuum", len(names), done, **figures))
        bench.remove(prefix)
    return rows


def scene_looks(bench: StoreBench, sizes: Sizes) -> list[Row]:
    """`plan` over compacted tables and over many short logs; where there is nothing to do, once more in the process."""
    from deltalake import DeltaTable

    healthy, many = bench.work / "lakes" / "healthy", bench.work / "lakes" / "many"
    small_tables.build(healthy, sizes.tables, sizes.files, sizes.seed, sizes.rows)
    for table in healthy.iterdir():
        DeltaTable(str(table)).optimize.compact()
    chance = random.Random(sizes.seed)
    for number in range(sizes.many):
        write_short_log(many / f"table_{number:05d}", chance)
    rows: list[Row] = []
    for what, lake in (("healthy tables", healthy), ("short logs", many)):
        prefix = f"looks-{lake.name}"
        names = bench.upload(lake, prefix)
        for delay_ms in bench.delays:
            project = bench.project(prefix, names, POLICY, delay_ms)
            done = bench.maintainer(project, delay_ms, "plan")
            rows.append(row("looks", delay_ms, OURS, what, len(names), done))
            if lake == healthy:
                done = bench.look_twice(project, delay_ms)
                rows.append(row("looks", delay_ms, OURS, "looked at twice", len(names), done))
            done = bench.delta_rs("look", prefix, names, delay_ms, LOOK_THREADS)
            rows.append(row("looks", delay_ms, "delta-rs", what, len(names), done))
        bench.remove(prefix)
    return rows


def scene_requests(bench: StoreBench, sizes: Sizes) -> list[Row]:
    """What is asked of the store: for one table, for one of more tables, for a vacuum. The delay changes nothing."""
    from benchmarks.vacuum import make_table

    delay_ms, rows = bench.delays[0], []
    lakes = {number: bench.work / "lakes" / f"counted-{number}" for number in (1, 1 + MORE_TABLES)}
    for number, lake in lakes.items():
        small_tables.build(lake, number, FILES_COUNTED, sizes.seed, ROWS_COUNTED)
        names = bench.upload(lake, lake.name)
        project = bench.project(lake.name, names, POLICY, delay_ms)
        for what, arguments in (("plan", ("plan",)), ("apply", ("apply", "--yes"))):
            done = bench.maintainer(project, delay_ms, *arguments)
            rows.append(row("requests", delay_ms, OURS, what, number, done, commit_reads=done.most_reads_of_a_commit))
        again = bench.upload(lake, f"{lake.name}-delta-rs")
        done = bench.delta_rs("compact, vacuum", f"{lake.name}-delta-rs", again, delay_ms, FEW_THREADS)
        rows.append(
            row("requests", delay_ms, "delta-rs", "apply", number, done, commit_reads=done.most_reads_of_a_commit)
        )
    vacuumed = bench.work / "lakes" / "vacuumed"
    make_table(vacuumed / "table", sizes.partitions, EXPIRED_FILES, sizes.partitions)
    for arm in (OURS, "delta-rs"):
        prefix = f"vacuumed-{arm}"
        names = bench.upload(vacuumed, prefix)
        if arm == OURS:
            done = bench.maintainer(bench.project(prefix, names, VACUUM_ALONE, delay_ms), delay_ms, "apply", "--yes")
        else:
            done = bench.delta_rs("vacuum", prefix, names, delay_ms, FEW_THREADS)
        gone = EXPIRED_FILES - len(list((bench.folder / prefix).rglob("old-*.parquet")))
        reads = done.most_reads_of_a_commit
        rows.append(row("requests", delay_ms, arm, "vacuum", 1, done, commit_reads=reads, deleted=gone))
        bench.remove(prefix)
    return rows


def scene_files(bench: StoreBench, sizes: Sizes) -> list[Row]:
    """`plan` of one table of very many files, and delta-rs's look at them."""
    from deltalake import DeltaTable

    rows: list[Row] = []
    for number in sizes.large:
        lake = bench.work / "lakes" / f"large-{number}"
        write_large_log(lake / "table", number, random.Random(sizes.seed))
        DeltaTable(str(lake / "table")).create_checkpoint()
        names = bench.upload(lake, lake.name)
        for delay_ms in bench.delays:
            project = bench.project(lake.name, names, "optimize: {}", delay_ms)
            saved = project / "plan.json"
            done = bench.maintainer(project, delay_ms, "plan", "--out", str(saved))
            rows.append(row("files", delay_ms, OURS, f"{number:,} files", 1, done, plan_bytes=saved.stat().st_size))
            done = bench.delta_rs("look", lake.name, names, delay_ms, 1)
            rows.append(row("files", delay_ms, "delta-rs", f"{number:,} files", 1, done))
        bench.remove(lake.name)
    return rows


def scene_memory(bench: StoreBench, sizes: Sizes) -> list[Row]:
    """`plan` and `apply` over the tables of a rule, of which most need nothing and have a log alone."""
    rows: list[Row] = []
    for number in sizes.fleet:
        lake, chance = bench.work / "lakes" / f"fleet-{number}", random.Random(sizes.seed)
        small_tables.build(lake, min(number, DUE_TABLES), FILES_DUE, sizes.seed, sizes.rows)
        for healthy in range(number - DUE_TABLES):
            write_short_log(lake / f"healthy_{healthy:05d}", chance)
        bench.upload(lake, lake.name)
        for delay_ms in bench.delays:
            project = bench.ruled_project(lake.name, "optimize: {}", delay_ms)
            for what, arguments in (("plan", ("plan",)), ("plan and apply", ("apply", "--yes"))):
                done = bench.maintainer(project, delay_ms, *arguments)
                of_java = done.programs.get("java", 0)
                figures = {"java_bytes": of_java, "python_bytes": max(set(done.programs.values()) - {of_java})}
                rows.append(row("memory", delay_ms, OURS, what, number, done, **figures))
        bench.remove(lake.name)
    return rows


def write_short_log(table: Path, chance: random.Random) -> None:
    """Write ten commits of a table that needs nothing: appends of one file, and a rewrite of them into one."""
    names = [f"part-{number:05d}-{uuid.UUID(int=chance.getrandbits(128))}.parquet" for number in range(COMMITS_OF_MANY)]
    _write_commit(table, 0, [*_first_actions(chance), _add(names[0], 0, 1000)])
    for version, name in enumerate(names[1:-1], start=1):
        _write_commit(table, version, [_add(name, version, 1000)])
    removes = [
        json.dumps({"remove": {"path": name, "deletionTimestamp": MOMENT_MS, "dataChange": False}})
        for name in names[:-1]
    ]
    rows = 1000 * (COMMITS_OF_MANY - 1)
    _write_commit(table, COMMITS_OF_MANY - 1, [*removes, _add(names[-1], 9, rows, data_change=False)])


def write_large_log(table: Path, files: int, chance: random.Random) -> None:
    """Write a log of adds alone, without data files."""
    a_commit = -(-files // LARGE_COMMITS)
    for version in range(min(LARGE_COMMITS, files)):
        numbers = range(version * a_commit, min(files, (version + 1) * a_commit))
        adds = [_add(f"part-{n:07d}-{chance.getrandbits(64):016x}.parquet", n, 1000) for n in numbers]
        _write_commit(table, version, [*(_first_actions(chance) if version == 0 else ()), *adds])


def _write_commit(table: Path, version: int, actions: Sequence[str]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    said = f'{{"commitInfo":{{"timestamp":{MOMENT_MS + version * 60_000},"operation":"WRITE"}}}}'
    (log / f"{version:020}.json").write_text("\n".join((said, *actions)) + "\n", encoding="utf-8")


def _first_actions(chance: random.Random) -> list[str]:
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {
        "id": str(uuid.UUID(int=chance.getrandbits(128))), "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema), "partitionColumns": [], "configuration": {}, "createdTime": MOMENT_MS,
    }  # fmt: skip
    return ['{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}', json.dumps({"metaData": metadata})]


def _add(name: str, number: int, rows: int, *, data_change: bool = True) -> str:
    low = number * 1000
    stats = {"numRecords": rows, "minValues": {"id": low}, "maxValues": {"id": low + rows}, "nullCount": {"id": 0}}
    add = {
        "path": name, "partitionValues": {}, "size": 1_000_000 + number, "modificationTime": MOMENT_MS + number,
        "dataChange": data_change, "stats": json.dumps(stats),
    }  # fmt: skip
    return json.dumps({"add": add})


SCENES: dict[str, tuple[Callable[[StoreBench, Sizes], list[Row]], Callable[[Sequence[Row]], list[str]]]] = {
    "tables": (scene_tables, render_applied),
    "night": (scene_night, render_applied),
    "looks": (scene_looks, render_looks),
    "requests": (scene_requests, render_requests),
    "files": (scene_files, render_files),
    "memory": (scene_memory, render_memory),
}


def title(scene: str, sizes: Sizes) -> str:
    """Say what a scene is made of."""
    match scene:
        case "tables":
            return f"Tables of {sizes.files} files of {sizes.rows:,} rows"
        case "night":
            return "A night: " + ", ".join(f"{shape.number} {kind} tables" for kind, shape in fleet.KINDS.items())
        case "looks":
            return f"`plan` over tables that need nothing; short logs have {COMMITS_OF_MANY} commits"
        case "requests":
            return (
                f"Requests: tables of {FILES_COUNTED} files of {ROWS_COUNTED} rows, and {EXPIRED_FILES} expired files "
                f"in {sizes.partitions:,} partitions"
            )
        case "memory":
            return f"Memory: {DUE_TABLES} tables have something to do, all others nothing"
        case _:
            return f"One table of very many files, in {LARGE_COMMITS} commits and a checkpoint"


def main() -> None:
    """Run the scenes and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scene", action="append", choices=tuple(SCENES), help="may be given more than once")
    parser.add_argument(
        "--delay-ms", type=float, action="append", help="may be given more than once; 0 and 20 without it"
    )
    parser.add_argument("--tables", type=int, default=20, help="small tables; twice as many are done, too")
    parser.add_argument("--files", type=int, default=39, help="files of a small table")
    parser.add_argument("--rows", type=int, default=5_000, help="rows of a file")
    parser.add_argument("--many", type=int, default=2_000, help="tables with a short log")
    parser.add_argument("--partitions", type=int, default=3_000)
    parser.add_argument(
        "--large", type=int, action="append", help="files of the one table; 300,000 and 1,000,000 without it"
    )
    parser.add_argument("--fleet", type=int, action="append", help="tables of a rule; 100 and 5,000 without it")
    parser.add_argument("--night", type=float, default=1.0, help="part of the 200 tables of a night")
    parser.add_argument("--jobs", type=int, help="-j of `maintainer`; its own default without it")
    parser.add_argument("--dir", type=Path, help="make the folder to work in here")
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        run_own(json.loads(options.arm))
        return
    sizes = Sizes(
        options.tables, options.files, options.rows, options.many, options.partitions,
        tuple(options.large or (300_000, 1_000_000)), tuple(options.fleet or (100, 5_000)), options.night, options.seed,
    )  # fmt: skip
    scenes = [scene for scene in SCENES if scene in (options.scene or SCENES)]
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="maintainer-bench-", dir=options.dir) as folder,
        store_bench(Path(folder), options.delay_ms or (0.0, 20.0), options.jobs) as bench,
    ):
        bench.warm_up()
        for scene in scenes:
            progress(scene)
            rows += SCENES[scene][0](bench, sizes)
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    report = ["# Tables on S3", "", f"{date}, {machine()}. Seed {options.seed}.", versions() + ".", ""]
    for scene in scenes:
        own = [one for one in rows if one.scene == scene]
        report += [f"## {title(scene, sizes)}", "", *SCENES[scene][1](own), ""]
    text = "\n".join(report)
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    if options.json:
        figures = {
            "date": date, "machine": machine(), "versions": versions(), "jobs": options.jobs, "sizes": asdict(sizes),
            "rows": [asdict(one) for one in rows],
        }  # fmt: skip
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
