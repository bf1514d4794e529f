"""Builds the demo's folder: checks that it may be used, then makes the tables and the policies."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from examples.demo import flights, lineitem
from maintainer.errors import EnvironmentUnfit, ProjectError

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import SparkSession as Session

Say = Callable[[str], None]
Builder = Callable[["Session", Path, Path], str]

MARKER = ".maintainer-demo"
"""A file that says: this folder was made by the demo and may be made again."""

PROJECT = Path(__file__).parent / "demo_project"
"""Project file and policies: short, commented, and each with one idea of the policy format."""

FORMAT = 1
NEEDED_BYTES = 500 * 2**20

LAKE = "lake"
SCRATCH = ".building"
PLAN_FILE = "plan.json"
_OURS = (LAKE, SCRATCH, PLAN_FILE, "demo-error.txt", "policies", "maintainer.yml", ".maintainer")

TABLES = ("flights", "planes", "airports", "airlines", "weather", "lineitem", "orders")
SMALL_TABLES = ("planes", "airports", "airlines")
"""Few enough rows to be compared row by row. Not weather: Delta reads no version older than its retention."""


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """The demo's folder: a project with a lake in it."""

    root: Path

    @property
    def lake(self) -> Path:
        """The folder that holds one folder per table."""
        return self.root / LAKE

    @property
    def plan(self) -> Path:
        """Where the tour saves its plan."""
        return self.root / PLAN_FILE

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return self.lake / name


def claim_folder(root: Path, *, keep: bool) -> DemoFolder:
    """Check that a folder may hold the demo, and make it or clear it.

    Only what an earlier demo made is ever removed, each by its name.

    Args:
        root: The folder; made when there is none.
        keep: Use the lake that an earlier demo built there, and remove nothing.

    Raises:
        ProjectError: E662 when the folder holds something else, or (``keep``) no finished demo.
        EnvironmentUnfit: E663 when it cannot be written, or the disk is full.
    """
    root = root.resolve()
    ours = is_demo(root)
    if keep:
        if not (ours and all((root / LAKE / name).is_dir() for name in TABLES)):
            raise ProjectError(
                "there is no demo here to continue", code="E662", where=str(root), help="run it once without --keep"
            )
        return DemoFolder(root)
    if root.exists() and not ours and (not root.is_dir() or any(root.iterdir())):
        raise ProjectError(
            "the demo only uses a folder that is empty or its own",
            code="E662",
            where=str(root),
            help="name another one: maintainer demo --dir FOLDER",
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        _require_room(root)
        for name in _OURS:
            _remove(root / name)
        (root / MARKER).write_text(json.dumps({"demo": FORMAT}) + "\n", encoding="utf-8")
        (root / LAKE).mkdir()
        (root / SCRATCH).mkdir()
    except OSError as error:
        raise EnvironmentUnfit(
            "the demo's folder cannot be written",
            code="E663",
            where=str(error.filename or root),
            found=error.strerror or str(error),
            help="name another one: maintainer demo --dir FOLDER",
        ) from error
    return DemoFolder(root)


def is_demo(root: Path) -> bool:
    """Return whether the folder was made by the demo."""
    try:
        return bool(json.loads((root / MARKER).read_text(encoding="utf-8")) == {"demo": FORMAT})
    except (OSError, ValueError):
        return False


def check_sources(scale: float) -> None:
    """Fail at once, and not after Spark's start, when a source of data is missing.

    Raises:
        EnvironmentUnfit: E660, naming what to install.
        ProjectError: The scale is out of range.
    """
    lineitem.check_scale(scale)
    flights.data_folder()
    lineitem.generator()


def build(spark: Session, folder: DemoFolder, scale: float, say: Say) -> None:
    """Build all tables and write the policies, saying a line for each.

    Takes less than a minute on two cores at the default scale. Everything is deterministic but file names,
    times, and the order of the lines: the flights and the TPC-H tables are built side by side, because a small
    commit keeps one core busy and not two.
    """
    scratch = folder.root / SCRATCH
    stop = threading.Event()

    def build_in_turn(builders: Sequence[Builder]) -> None:
        for builder in builders:
            if stop.is_set():
                return
            started = time.monotonic()
            line = builder(spark, folder.lake, scratch)
            say(f"{line}  ({time.monotonic() - started:.1f} s)")

    say(f"generating TPC-H lineitem and orders at scale {scale:g} ...")
    lineitem.generate(scratch, scale)
    with ThreadPoolExecutor(max_workers=2) as pool:
        halves = [pool.submit(build_in_turn, builders) for builders in (flights.BUILDERS, lineitem.BUILDERS)]
        try:
            for half in as_completed(halves):
                half.result()
        finally:
            # One half failed, or Ctrl-C: the other one ends with the table that it is at.
            stop.set()
    shutil.copytree(PROJECT, folder.root, dirs_exist_ok=True)
    policies = len(list(PROJECT.rglob("policies/**/*.yml")))
    say(f"{policies} policy files and maintainer.yml")
    shutil.rmtree(scratch)


def _require_room(root: Path) -> None:
    free_bytes = shutil.disk_usage(root).free
    if free_bytes < NEEDED_BYTES:
        raise EnvironmentUnfit(
            "too little room on the disk for the demo",
            code="E663",
            where=str(root),
            found=f"{free_bytes // 2**20} MiB free",
            allowed=f"{NEEDED_BYTES // 2**20} MiB",
            help="free space, or name another folder: maintainer demo --dir FOLDER",
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
