"""The folder of one run, ``.maintainer/runs/<run id>/``: private to the user, complete after every step.

It holds ``plan.json``, ``results.json`` (rewritten after every step), ``events.jsonl``, ``assertions/*.json``, and
``traceback.txt`` only after a bug of ours. Others add ``spark.log``, ``junit.xml`` and ``report.html``.

A run id is the UTC second of the start and four digits of base 36, ``20261121T220003Z-7f3a``: the millisecond and a
random number. Ids sort by time as text and are safe as folder names; two runs that start in one millisecond differ in
1,678 of 1,679 cases, and the folder of the second is refused in the other one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import secrets
import shutil
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from maintainer.errors.foreign_text import document_without_secrets, without_secrets
from maintainer.journal.folder.atomic_files import (
    PRIVATE_FOLDER,
    recording,
    remove_abandoned,
    sync_folder,
    write_atomically,
)
from maintainer.units import count_of

_log = logging.getLogger(__name__)

ASSERTIONS, LEASES = "assertions", "leases"
"""The folder of a run's assertions in its own, and that of all leases in the state folder."""

RESULTS_FILE, PLAN_FILE = "results.json", "plan.json"

_SECOND = "%Y%m%dT%H%M%SZ"
_PATTERN = re.compile(r"\d{8}T\d{6}Z-[0-9a-z]{4}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NUMBERS_OF_A_MILLISECOND = 36**4 // 1000


def new_run_id(now_ms: int) -> str:
    """Make a run id for a run that starts at ``now_ms`` (milliseconds since 1970 UTC)."""
    start = datetime.fromtimestamp(now_ms // 1000, tz=UTC)
    number = now_ms % 1000 * _NUMBERS_OF_A_MILLISECOND + secrets.randbelow(_NUMBERS_OF_A_MILLISECOND)
    digits = (_DIGITS[number // 36**place % 36] for place in (3, 2, 1, 0))
    return f"{start:{_SECOND}}-{''.join(digits)}"


def is_run_id(text: str) -> bool:
    """Return whether the text has the form of a run id; anything else in the runs folder is not ours."""
    return _PATTERN.fullmatch(text) is not None


CLOCK_TOLERANCE_MS = 5 * 60_000
"""Clocks of two machines may differ by so much; a time that is further ahead of ours is none."""


def latest_time_ms() -> int:
    """Return the latest time that something can have been done at, milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000 + CLOCK_TOLERANCE_MS


MIN_FREE_BYTES = 16 * 1024 * 1024
"""A run does not start with less than this free: its own record must never be what fills the disk."""

MAX_FOLDERS_TIDIED = 20
"""A run looks for what killed processes left in so many of the newest run folders."""

MAX_TRACEBACK_BYTES = 1024 * 1024


class RunFolder:
    """Paths and writes of one run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run_id(self) -> str:
        return self.path.name

    @staticmethod
    def create(runs_dir: Path, run_id: str) -> RunFolder:
        """Make the folder and its parents, and show by writing that it can be used.

        Raises:
            FolderUnwritable: E650, before anything was touched: no permission, read-only, disk full.
        """
        if not is_run_id(run_id):
            raise ValueError(f"not a run id: {run_id}")
        path = runs_dir / run_id
        with recording(path, code="E650"):
            runs_dir.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            runs_dir.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            path.mkdir(mode=PRIVATE_FOLDER)
            (path / ASSERTIONS).mkdir(mode=PRIVATE_FOLDER)
            free = shutil.disk_usage(path).free
            if free < MIN_FREE_BYTES:
                raise OSError(0, f"only {free // 1024} KiB are free, {MIN_FREE_BYTES // 1024} KiB are needed")
            probe = path / ".probe"
            write_atomically(probe, b"\0" * 65536)
            probe.unlink()
            # Events are synced into the folder; without its own name on the disk a power cut takes them all.
            sync_folder(runs_dir)
            sync_folder(runs_dir.parent)
        return RunFolder(path)

    def write_plan(self, document: str | Iterator[bytes]) -> None:
        """Keep the plan as it was applied; a large one comes in pieces.

        Raises:
            FolderUnwritable: E650, nothing ran yet.
        """
        self._write(PLAN_FILE, document, code="E650")

    def write_results(self, document: Mapping[str, Any] | str | Iterator[bytes]) -> None:
        """Replace ``results.json``; that of many tables comes in pieces.

        Raises:
            FolderUnwritable: E651; the results of the step before still stand.
        """
        self._write(RESULTS_FILE, document)

    def write_document(self, name: str, document: Mapping[str, Any]) -> None:
        """Keep another document of the run, such as ``verification.json``.

        Raises:
            FolderUnwritable: E651.
        """
        self._write(name, document)

    def write_assertions(self, name: str, document: Mapping[str, Any]) -> Path:
        """Keep the result of one validation under ``assertions/``.

        Raises:
            FolderUnwritable: E651.
        """
        return self._write(f"{ASSERTIONS}/{file_name(name)}.json", document_without_secrets(document))

    def write_traceback(self, text: str) -> Path:
        """Keep the traceback of a bug of ours; it never goes to a terminal.

        Raises:
            FolderUnwritable: E651.
        """
        path = self.path / "traceback.txt"
        with recording(path):
            old = path.read_bytes() if path.exists() else b""
            write_atomically(
                path, (old + without_secrets(text).encode("utf-8", "replace") + b"\n")[-MAX_TRACEBACK_BYTES:]
            )
        return path

    def _write(self, name: str, document: Mapping[str, Any] | str | Iterator[bytes], *, code: str = "E651") -> Path:
        if not isinstance(document, Iterator):
            text = document if isinstance(document, str) else json.dumps(document, indent=1, ensure_ascii=False)
            document = iter([text.rstrip("\n").encode("utf-8", "surrogatepass") + b"\n"])
        path = self.path / name
        with recording(path, code=code):
            write_atomically(path, document)
        return path


def file_name(text: str) -> str:
    """Return a readable file name for any text; two different texts never share one.

    >>> file_name("sales.orders-compact-0")
    'sales.orders-compact-0'
    """
    safe = re.sub(r"[^A-Za-z0-9._=@-]+", "_", text)
    if safe == text and 0 < len(text) <= 120 and not text.startswith("."):
        return text
    return f"{safe[-100:].lstrip('.')}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def run_folders(runs_dir: Path) -> list[RunFolder]:
    """List all runs under the folder, oldest first; links and names that are not run ids are left out.

    A run that began later than now was begun by a clock that was ahead. Nobody knows when it was, so it comes first:
    what it says of a table gives way to what any other run says.

    Raises:
        OSError: The folder exists and cannot be listed.
    """
    if not runs_dir.is_dir():
        return []
    paths = (path for path in runs_dir.iterdir() if is_run_id(path.name) and path.is_dir() and not path.is_symlink())
    folders = [RunFolder(path) for path in sorted(paths, key=lambda path: path.name)]
    latest = f"{datetime.fromtimestamp(latest_time_ms() // 1000, tz=UTC):{_SECOND}}"
    number = bisect_right(folders, latest, key=lambda folder: folder.run_id[: len(latest)])
    ahead = folders[number:]
    if ahead:
        _tell_of_clock(ahead[0].run_id, len(ahead))
    return ahead + folders[:number]


@cache
def _tell_of_clock(run_id: str, num_runs: int) -> None:
    """Say once that a clock was ahead."""
    what = f"{count_of(num_runs, 'run')} with a time in the future, such as {run_id}"
    _log.warning("%s: begun by a clock that was ahead, so counted as older than all others", what)


def tidy_state(runs_dir: Path, now_ms: int) -> None:
    """Delete what processes that were killed while they wrote left in the state folder; never raises.

    Args:
        runs_dir: The folder of all runs; its parent is the state folder.
        now_ms: Milliseconds since 1970 UTC.
    """
    newest: list[RunFolder] = []
    with contextlib.suppress(OSError):
        newest = run_folders(runs_dir)[-MAX_FOLDERS_TIDIED:]
    written_to = [place for folder in newest for place in (folder.path, folder.path / ASSERTIONS)]
    for place in (runs_dir.parent, runs_dir.parent / LEASES, *written_to):
        remove_abandoned(place, now_ms)
