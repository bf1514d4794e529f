"""Draws what a query reads before and after the demo's run: ``python -m tools.before_after_picture``.

The figures are read from the transcript in ``docs/demo.md``, so the picture shows what a real run printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "plots" / "before-after.svg"
_LOOK_UP = re.compile(r"^(WHERE [^:]+): reads (\d+) of (\d+) files, ([\d.]+ \w+);", re.MULTILINE)
SQUARE, GAP, LEFT, ROW = 14, 4, 130, 52
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:12px;fill:#57606a}"
    ".read{fill:#bc4c00}.skipped{fill:none;stroke:#8c959f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.read{fill:#f0883e}.skipped{stroke:#656c76}}"
)


@dataclass(frozen=True, slots=True)
class LookUp:
    """What one query read: files of all files, and bytes as text."""

    condition: str
    num_read: int
    num_files: int
    size: str


def look_ups(transcript: str) -> tuple[LookUp, LookUp]:
    """Return the transcript's first look-up before the run, and the same one after it."""
    rows = [LookUp(where, int(read), int(files), size) for where, read, files, size in _LOOK_UP.findall(transcript)]
    before = rows[0]
    return before, next(row for row in rows[1:] if row.condition == before.condition)


def picture(before: LookUp, after: LookUp) -> str:
    """Return the picture as SVG: a square for each file, filled where the query read it."""
    width = LEFT + max(before.num_files, after.num_files) * (SQUARE + GAP) + 10
    parts = [f'<text x="0" y="18">One look-up in the demo: {before.condition}</text>']
    for number, (name, row) in enumerate((("before", before), ("after", after))):
        top = 38 + number * ROW
        parts.append(f'<text x="0" y="{top + 12}">{name}</text>')
        parts.append(f'<text class="small" x="0" y="{top + 28}">{row.num_read} files, {row.size}</text>')
        for place in range(row.num_files):
            kind = "read" if place < row.num_read else "skipped"
            x = LEFT + place * (SQUARE + GAP)
            parts.append(f'<rect class="{kind}" x="{x}" y="{top}" width="{SQUARE}" height="{SQUARE}" rx="2"/>')
    height = 38 + 2 * ROW
    label = f"Before: {before.num_read} of {before.num_files} files read; after: {after.num_read} of {after.num_files}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{label}"><style>{_STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def main() -> None:
    """Write the picture."""
    transcript = (DOCS / "demo.md").read_text(encoding="utf-8")
    PICTURE.write_text(picture(*look_ups(transcript)), encoding="utf-8")


if __name__ == "__main__":
    main()
