"""What processes take of memory and folders of the disk, and how fast it grows."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True)
class MemorySample:
    """One look at the watch and the lake.

    Args:
        seconds: Since the soak began.
        process_id: Of the watch: another life has another one.
        python_bytes: Resident bytes of its Python.
        jvm_bytes: Resident bytes of its JVM, 0 while there is none.
        lake_bytes: Data files of all tables.
        project_bytes: What `maintainer` keeps in its project: runs and ledger.
    """

    seconds: float
    process_id: int
    python_bytes: int
    jvm_bytes: int
    lake_bytes: int
    project_bytes: int


def resident_bytes(process_id: int) -> int:
    """Return the resident bytes of a process, 0 where there is none."""
    try:
        text = Path(f"/proc/{process_id}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) * 1024 if "VmRSS" in fields else 0


def is_running(process_id: int) -> bool:
    """Return whether a process runs; one that only waits for its parent does not."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def jvm_below(process_id: int) -> int | None:
    """Return the id of the Java process that a process has started, itself or through others."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, _, rest = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")
            except OSError:
                continue
            parents[int(folder.name)] = (int(rest.split()[1]), name.partition("(")[2])
    below = {process_id}
    for _ in range(len(parents)):
        more = {child for child, (parent, _) in parents.items() if parent in below} - below
        if not more:
            break
        below |= more
    return next((child for child in sorted(below) if child in parents and parents[child][1] == "java"), None)


def folder_bytes(folder: Path, *, without: str = "") -> int:
    """Return the bytes of all files below a folder; files that go meanwhile do not count."""
    total = 0
    for place, names, files in os.walk(folder):
        names[:] = [name for name in names if name != without]
        for name in files:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total


def slope_a_minute(points: Sequence[tuple[float, float]]) -> float:
    """Return the growth of a figure in a minute: the median slope of all pairs, so a spike moves nothing."""
    slopes = [(b - a) / (later - earlier) for (earlier, a), (later, b) in combinations(points, 2) if later > earlier]
    return 60 * statistics.median(slopes) if slopes else 0.0


def sample(begun: float, process_id: int, lake: Path, project: Path) -> MemorySample:
    """Look once."""
    java = jvm_below(process_id)
    return MemorySample(
        time.monotonic() - begun, process_id, resident_bytes(process_id), resident_bytes(java) if java else 0,
        folder_bytes(lake, without="_delta_log"), folder_bytes(project),
    )  # fmt: skip
