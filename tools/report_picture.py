"""Takes the picture of a report for the documentation: ``python -m tools.report_picture REPORT.html [PICTURE.png]``.

Needs Chromium (``CHROMIUM`` names another program). The page is opened from the disk, with no network and no script, as
everybody opens it, with the first table unfolded; the picture is refused when it is too large for a README.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "docs" / "report.png"
WIDTH, HEIGHT, SCALE = 1100, 1500, 0.75
BAR = 100
"""Headless Chromium leaves so many lines of its window empty at the bottom; they are cut off."""

MAX_BYTES = 200_000
TIMEOUT_SECONDS = 60


def take(page: Path, picture: Path, *, height: int = HEIGHT, options: tuple[str, ...] = ()) -> None:
    """Open a page in headless Chromium and keep what it shows.

    Raises:
        SystemExit: There is no Chromium, it fails, or the picture is larger than ``MAX_BYTES``.
    """
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no Chromium: install it, or name it with CHROMIUM=/path/to/chromium")
    with tempfile.TemporaryDirectory() as profile:
        unfolded = Path(profile) / "report.html"
        text = page.read_text(encoding="utf-8")
        unfolded.write_text(text.replace("<details id", "<details open id", 1), encoding="utf-8")
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
            f"--window-size={WIDTH},{height + BAR}", f"--force-device-scale-factor={SCALE}",
            f"--screenshot={picture}", *options, unfolded.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    cut_to(picture, round(height * SCALE))
    size = picture.stat().st_size
    if size > MAX_BYTES:
        raise SystemExit(f"{picture} has {size:,} bytes, {MAX_BYTES:,} are allowed: take a shorter page")
    sys.stdout.write(f"{picture}: {size:,} bytes\n")


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
    kept = min(lines, high)
    pixels = zlib.compress(zlib.decompress(packed)[: line * kept], 9)
    new_head = struct.pack(">II", width, kept) + head[8:]
    chunks = ((b"IHDR", new_head), (b"IDAT", pixels), (b"IEND", b""))
    picture.write_bytes(data[:8] + b"".join(map(_chunk, chunks)))


def _chunk(of: tuple[bytes, bytes]) -> bytes:
    kind, body = of
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    take(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else PICTURE)
