"""What planning thousands of tables costs in Python alone: replay of the logs, facts, plan, and the plan as JSON.

No engine is started: the logs are commits without a checkpoint, on this disk. What an engine adds to it, about ten
calls to the JVM for each table, is in `facts.py`.

    python benchmarks/plan_memory.py
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.facts import peak_bytes, resident_bytes, write_log
from benchmarks.optimize_loop import machine
from maintainer.delta.log.replay.version_replay import replay_version
from maintainer.delta.snapshot.log_reader import replayed_facts
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.table.table_facts import TableRecord, TableRef
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import assemble, plan_table
from tests.support.tables.builders import MIB, NOW_MS, make_optimize, make_policy

TABLES = 2000


class Folder:
    """As much of a table's storage as the replay asks for."""

    def __init__(self, root: Path) -> None:
        self.root_uri = f"file:{root}"
        self.files = LocalFiles()

    def children(self, uri: str) -> dict[str, StoredFile]:
        """See ``TableStorage``."""
        return self.files.children(uri)


def plan_of(root: Path) -> TablePlan:
    """Replay a log and plan its table."""
    replayed = replay_version(cast(Any, Folder(root)))
    if replayed is None:
        raise SystemExit(f"{root} cannot be replayed")
    facts = replayed_facts(TableRef(root.name), str(root), replayed)
    policy = make_policy(name=root.name, optimize=make_optimize(min_size=64 * MIB, max_size=256 * MIB))
    return plan_table(TableInput(policy, facts, TableRecord(), NOW_MS, date(2026, 11, 21)))


def main() -> None:
    """Write the logs, plan them, print what it took."""
    work = Path(tempfile.mkdtemp(prefix="maintainer-bench-"))
    chance = random.Random(1)
    try:
        for number in range(TABLES):
            write_log(work / f"t{number:04d}", 2, 20, chance)
        write_log(work / "big", 20, 5000, chance)
        started, plans = time.monotonic(), []
        for number in range(TABLES):
            plans.append(plan_of(work / f"t{number:04d}"))
            if number + 1 in (100, 1000, TABLES):
                print(f"{number + 1:,} tables of 40 files: {time.monotonic() - started:.1f} s, "
                      f"{resident_bytes('self') / MIB:.0f} MiB resident")  # fmt: skip
        started = time.monotonic()
        text = to_json(assemble(plans, created_at_ms=NOW_MS))
        print(f"the plan as JSON: {time.monotonic() - started:.1f} s, {len(text) / MIB:.0f} MiB")
        started = time.monotonic()
        plan_of(work / "big")
        print(f"a table of 100,000 files: {time.monotonic() - started:.1f} s, peak {peak_bytes('self') / MIB:.0f} MiB")
        print(machine())
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
