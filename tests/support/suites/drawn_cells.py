"""Which tests `make test` runs, and which of the others `make nightly` draws by a seed.

`make test` is the same for everybody: every test but those with `long`, `nightly` or `sampled`. `every_run` brings a
test of such a module, or a cell of such a matrix, into it: what once failed, and what a promise rests on.

`make nightly` runs what is `nightly`, and of a test that is `sampled(count)` so many cells; in `pytestmark` of a module
it draws that many of the module's tests. What is `long` by itself only `make long` runs.

`MAINTAINER_TEST_SEED` decides what is drawn, and without it nothing is. `make nightly` sets it to the date, so that
each night runs other cells; a run prints it at its beginning and at its end.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence

import pytest

SEED = "MAINTAINER_TEST_SEED"


def seed() -> str:
    """Return what is drawn by; nothing is where this is empty."""
    return os.environ.get(SEED, "").strip()


def draw(cells: Iterable[str], count: int, matrix: str, by: str) -> frozenset[str]:
    """Return ``count`` of the cells, the same ones for the same seed, whatever their order."""
    candidates = sorted(cells)
    return frozenset(random.Random(f"{by}/{matrix}").sample(candidates, min(count, len(candidates))))


def mark_cells(items: Sequence[pytest.Item], by: str) -> dict[str, tuple[int, int]]:
    """Mark what this run leaves out as long; return each matrix that is drawn with its tests in this run and in all."""
    matrices: dict[str, list[pytest.Item]] = {}
    counts: dict[str, int] = {}
    for item in items:
        marks = {marker.name for marker in item.iter_markers()}
        if not by and marks & {"nightly", "sampled"} and "every_run" not in marks:
            item.add_marker("long")
        for node, marker in item.iter_markers_with_node("sampled") if by else ():
            matrix = item.nodeid.partition("[")[0] if node is item else node.nodeid
            matrices.setdefault(matrix, []).append(item)
            (counts[matrix],) = marker.args
            break  # the closest one
    drawn: dict[str, tuple[int, int]] = {}
    for matrix, cells in matrices.items():
        candidates = [
            cell for cell in cells if not {"long", "every_run"} & {marker.name for marker in cell.iter_markers()}
        ]
        chosen = draw((cell.nodeid for cell in candidates), counts[matrix], matrix, by)
        for cell in candidates:
            if cell.nodeid not in chosen:
                cell.add_marker("long")
        drawn[matrix] = (sum(cell.get_closest_marker("long") is None for cell in cells), len(cells))
    return drawn
