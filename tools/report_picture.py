"""Takes the pictures of reports for the documentation: ``python -m tools.report_picture PROJECT [FOLDER]``.

PROJECT is a folder with runs, such as that of ``maintainer demo``. FOLDER is where the pictures go, ``docs`` if left
out: ``report.png`` (the run that rewrote most), ``fleet.png`` (all runs), ``fleet-dark.png`` and ``report-narrow.png``.

Needs Chromium (``CHROMIUM`` names another program). Pages are opened from the disk, with no network, as everybody opens
them; a picture is refused when it is too large for a README.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from maintainer.app.lookback.report_pages import fleet_page, fleet_runs, run_page
from maintainer.app.project_folders import Project
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.report.run.outcome_text import WorkDone

DOCS = Path(__file__).parents[1] / "docs"
BAR = 100
"""Headless Chromium leaves so many lines of its window empty at the bottom; they are cut off."""

MAX_BYTES = 200_000
TIMEOUT_SECONDS = 60
DARK = "--blink-settings=preferredColorScheme=0"


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: which page, how wide and high its window is in pixels, and how it is scaled."""

    name: str
    of_fleet: bool
    width: int
    height: int
    scale: float = 0.75
    options: tuple[str, ...] = ()


PICTURES = (
    Picture("report.png", of_fleet=False, width=1180, height=1330),
    Picture("fleet.png", of_fleet=True, width=1180, height=1500),
    Picture("fleet-dark.png", of_fleet=True, width=1180, height=760, scale=0.6, options=(DARK,)),
    Picture("report-narrow.png", of_fleet=False, width=500, height=1150, scale=0.6),
)


def pages_of(root: Path) -> dict[bool, str]:
    """Draw the page of all runs of a project (True) and that of the run that rewrote most (False)."""
    project = Project.load(root)
    runs = [run for run in past_runs(project.runs_dir) if isinstance(run, PastRun)]
    if not runs:
        raise SystemExit(f"{root} has no run: make some with `maintainer demo`")
    largest = max(runs, key=lambda run: WorkDone.of_run(run.outcome).bytes_removed)
    page = run_page(project, largest.folder.name, UTC)[1].replace(str(root.resolve()), "/srv/lake")
    fleet = fleet_runs(project, since_ms=0)
    return {False: page, True: fleet_page(fleet, UTC, {})}


def take(page: str, picture: Picture, path: Path) -> None:
    """Open a page in headless Chromium and keep what it shows.

    Raises:
        SystemExit: There is no Chromium, it fails, or the picture is larger than ``MAX_BYTES``.
    """
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no Chromium: install it, or name it with CHROMIUM=/path/to/chromium")
    with tempfile.TemporaryDirectory() as profile:
        opened = Path(profile) / "report.html"
        opened.write_text(page, encoding="utf-8")
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
            f"--window-size={picture.width},{picture.height + BAR}", f"--force-device-scale-factor={picture.scale}",
            f"--screenshot={path}", *picture.options, opened.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    cut_to(path, round(picture.height * picture.scale))
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise SystemExit(f"{path} has {size:,} bytes, {MAX_BYTES:,} are allowed: take a shorter page")
    sys.stdout.write(f"{path}: {size:,} bytes\n")


def cut_to(picture: Path, lines: int) -> None:
    """Keep the first lines of a PNG, packed as tightly as zlib can."""
    data, at, head, packed = picture.read_bytes(), 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        head, packed = (body if kind == b"IHDR" else head), packed + (body if kind == b"IDAT" else b"")
        at += 12 + length
    width, high, depth, color = struct.unpack(">IIBB", head[:10])
    line = 1 + width * {2: 3, 6: 4}[color] * depth // 8  # a filter byte, then red, green, blue and, with 6, alpha
    height = min(lines, high)
    pixels = zlib.compress(zlib.decompress(packed)[: line * height], 9)
    new_head = struct.pack(">II", width, height) + head[8:]
    chunks = ((b"IHDR", new_head), (b"IDAT", pixels), (b"IEND", b""))
    picture.write_bytes(data[:8] + b"".join(map(_chunk, chunks)))


def _chunk(of: tuple[bytes, bytes]) -> bytes:
    kind, body = of
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    pages = pages_of(Path(sys.argv[1]))
    for wanted in PICTURES:
        take(pages[wanted.of_fleet], wanted, (Path(sys.argv[2]) if len(sys.argv) == 3 else DOCS) / wanted.name)
