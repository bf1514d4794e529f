"""Takes the picture of a report for the documentation: ``python -m tests.report_picture REPORT.html [PICTURE.png]``.

Needs Chromium (``CHROMIUM`` names another program). The page is opened from the disk, with no network and no script, as
everybody opens it; the picture is refused when it is too large for a README.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "docs" / "report.png"
WIDTH, HEIGHT = 1160, 1000
MAX_BYTES = 200_000
TIMEOUT_SECONDS = 60


def take(page: Path, picture: Path, *, dark: bool = False, height: int = HEIGHT, anchor: str = "") -> None:
    """Open a page in headless Chromium and keep what it shows.

    Raises:
        SystemExit: There is no Chromium, it fails, or the picture is larger than ``MAX_BYTES``.
    """
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no Chromium: install it, or name it with CHROMIUM=/path/to/chromium")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
            f"--window-size={WIDTH},{height}", f"--screenshot={picture}", *(["--force-dark-mode"] if dark else []),
            page.resolve().as_uri() + anchor,
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    size = picture.stat().st_size
    if size > MAX_BYTES:
        raise SystemExit(f"{picture} has {size:,} bytes, {MAX_BYTES:,} are allowed: take a shorter page")
    sys.stdout.write(f"{picture}: {size:,} bytes\n")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    take(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else PICTURE)
