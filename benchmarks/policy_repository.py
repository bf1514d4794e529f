"""How long the author's commands take in a repository of 1,000 tables: python benchmarks/policy_repository.py.

Writes a repository as a team has one and runs validate, explain, list and a selection in it, each in a process of
its own, three times; prints the best time and the most memory of any.

The tables are 1,000 because each has a file: what a rule alone reaches has no name until a catalog is asked, so it
cannot be listed without one. 950 files have two lines, which name the table; 50 say more. The rest is shared: 20
rules over names and tags (by layer, by schema, by tier), 8 profiles, 3 environments.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS = ("bronze", "silver", "gold")
SUBJECTS = ("sales", "crm", "billing", "stock", "web", "hr", "risk", "media")
PROFILES = {
    "small-dimension": "optimize: {maxFileSize: 64MiB, when: {minSmallFiles: 50}}\n",
    "big-fact-table": "optimize: {minFileSize: 192MiB, maxFileSize: 1GiB, maxThreads: 16}\n",
    "append-only": "optimize: {skipNewestPartitions: 1, quietFor: 30m, every: 1d}\nautoCompact: true\n",
    "often-merged": "optimize: {maxDeletedRowsRatio: 0.02, every: 6h}\n",
    "keep-a-month": "vacuum: {retention: 30d, every: 7d}\n",
    "keep-a-week": "vacuum: {retention: 7d, every: 1d}\n",
    "tier1": "tags: [tier1, nightly]\nverify: {rowCount: scan, content: fingerprint}\n",
    "weekly": "tags: [weekly]\noptimize: {every: 7d}\n",
}
PROJECT = """\
version: 1
defaults:
  verify: {rowCount: scan, content: fingerprint}
  limits: {timeout: 2h}
timezone: Europe/Berlin
environments:
  prod: {}
  test: {overrides: {limits: {maxBytes: 100GiB}}}
  dev: {overrides: {limits: {maxBytes: 10GiB, maxFiles: 1000}, optimize: {maxThreads: 2}}}
"""
DETAILED = 50
RUN = """
import json, resource, sys
from maintainer.cli.main import run
code = run(sys.argv[1:])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def write_repository(root: Path, *, tables: int = 1_000, seed: int = 0) -> list[str]:
    """Write a repository below ``root`` and return its tables; the same for the same seed."""
    chance = random.Random(seed)
    policies = root / "policies"
    write(root / "maintainer.yml", PROJECT)
    for name, text in PROFILES.items():
        write(policies / "_profiles" / f"{name}.yml", f"version: 1\n{text}")
    for number, (name, match, text) in enumerate(rules()):
        write(
            policies / "_fleet" / f"{name}.yml", f"version: 1\nmatch: {{{match}}}\npriority: {10 * number + 10}\n{text}"
        )
    names = []
    for number in range(tables):
        layer, subject = chance.choice(LAYERS), chance.choice(SUBJECTS)
        table = f"{layer}_{subject}.t{number:05}"
        names.append(table)
        text = f"version: 1\ntable: {table}\n"
        if number % (tables // DETAILED) == 0:
            text += detailed(chance, subject)
        write(policies / layer / subject / f"t{number:05}.yml", text)
    return sorted(names)


def rules() -> list[tuple[str, str, str]]:
    """Name, criteria and settings of each rule, from the lowest priority to the highest."""
    all_rules = [
        ("bronze", 'tables: ["bronze_*"]', "optimize: {maxFileSize: 256MiB}\nvacuum: {retention: 14d, every: 7d}\n"),
        ("silver", 'tables: ["silver_*"]', "optimize: {maxFileSize: 512MiB}\nvacuum: {retention: 7d, every: 1d}\n"),
        ("gold", 'tables: ["gold_*"]', "tags: [gold]\noptimize: {maxFileSize: 1GiB, maxThreads: 8}\n"),
    ]
    for subject in SUBJECTS:
        all_rules.append((f"owner-{subject}", f'tables: ["*_{subject}.*"]', f"owner: team-{subject}\n"))
    for subject in SUBJECTS:
        all_rules.append((f"hot-{subject}", f'tables: ["bronze_{subject}.*"]', "optimize: {quietFor: 30m}\n"))
    all_rules.append(("tier1", "tags: [tier1]", "limits: {timeout: 6h}\n"))
    return all_rules


def detailed(chance: random.Random, subject: str) -> str:
    """What one of the 50 longer files says beyond its table."""
    profiles = f"{chance.choice(['small-dimension', 'big-fact-table'])}, {chance.choice(['tier1', 'weekly'])}"
    columns = ", ".join(chance.sample(["customer_id", "product_id", "store_id", "ordered_at"], 2))
    return (
        f"owner: team-{subject}\n"
        f"description: Written by {chance.choice(['a job', 'a stream', 'two teams'])}.\n"
        f"extends: [{profiles}]\n"
        f"optimize:\n  zorder: {{columns: [{columns}], mode: full}}\n"
        f"  where: \"day >= '2026-0{chance.randint(1, 9)}-01'\"\n"
        "consumers:\n  - {name: reader, maxLag: 2d}\n"
    )


def write(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def measured(root: Path, arguments: list[str], repeat: int) -> tuple[float, int, int]:
    """Run a command some times; return the best seconds of the whole process, the most MiB, the lines of stdout."""
    seconds, most, lines = float("inf"), 0, 0
    for _ in range(repeat):
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", RUN, "--project", str(root), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        seconds = min(seconds, time.perf_counter() - started)
        code, mebibytes = done.stderr.split()[-2:]
        if code != "0":
            raise SystemExit(f"{' '.join(arguments)} ended in {code}:\n{done.stdout[:2000]}{done.stderr[:2000]}")
        most, lines = max(most, int(mebibytes)), len(done.stdout.splitlines())
    return seconds, most, lines


def main() -> None:
    """Write the repository, run the commands, print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tables", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--repeat", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        tables = write_repository(root, tables=given.tables, seed=given.seed)
        some = tables[len(tables) // 2]
        load = f"{os.getloadavg()[0]:.1f}"
        print(
            f"{given.tables:,} tables, seed {given.seed}, {os.cpu_count()} cores, load {load}, best of {given.repeat}"
        )
        print()
        print("| command | seconds | MiB | lines printed |")
        print("|---|---:|---:|---:|")
        for arguments in (
            ["validate", "--strict"],
            ["--env", "dev", "validate", "--strict"],
            ["list"],
            ["list", "-o", "json"],
            ["list", "-s", "tag:tier1,owner:team-sales"],
            ["explain", some],
            ["--env", "dev", "explain", some, "-o", "json"],
        ):
            seconds, most, lines = measured(root, arguments, given.repeat)
            print(f"| `{' '.join(arguments)}` | {seconds:.2f} | {most} | {lines:,} |")


if __name__ == "__main__":
    main()
