"""Tests of which `make test` runs some, drawn by a seed, and `make long` all.

`@pytest.mark.sampled(count)` on a test with many cells: that many of its cells are drawn, the others become `long`.
In `pytestmark` of a module it draws that many of the module's tests. Of the modules with `pytest.mark.takes_turns` one
in five is drawn. What carries `@pytest.mark.every_run` is not drawn, it always runs: what once failed, and what a
promise rests on. What is `long` by itself is never drawn.

The seed is the commit that is checked out, so that each commit runs other cells and the same commit the same ones.
`MAINTAINER_TEST_SEED` names another; the seed of a run is printed at its beginning and at its end.
"""

from __future__ import annotations

import functools
import os
import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

SEED = "MAINTAINER_TEST_SEED"
TURNS = 5
"""One in so many of the modules that take turns is drawn."""


@functools.cache
def seed() -> str:
    """Return what is drawn by: the variable, else the commit, else 0 outside a repository."""
    given = os.environ.get(SEED, "").strip()
    if given:
        return given
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"],
            cwd=Path(__file__).parent, capture_output=True, text=True, timeout=30, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "0"
    return head.stdout.strip()


def draw(cells: Iterable[str], count: int, matrix: str, by: str) -> frozenset[str]:
    """Return ``count`` of the cells, the same ones for the same seed, whatever their order."""
    candidates = sorted(cells)
    return frozenset(random.Random(f"{by}/{matrix}").sample(candidates, min(count, len(candidates))))


def mark_modules(items: Iterable[pytest.Item], by: str) -> dict[str, tuple[int, int]]:
    """Mark the modules as long whose turn it is not; return how many there are, in this run and in all."""
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("takes_turns") is not None:
            modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    if not modules:
        return {}
    chosen = draw(modules, -(-len(modules) // TURNS), "modules", by)
    for module in modules.keys() - chosen:
        for item in modules[module]:
            if item.get_closest_marker("every_run") is None:
                item.add_marker("long")
    return {"files that take turns": (len(chosen), len(modules))}


def mark_cells(items: Sequence[pytest.Item], by: str) -> dict[str, tuple[int, int]]:
    """Mark what is not drawn as long; return each matrix with its tests in this run and in all."""
    drawn = mark_modules(items, by)
    matrices: dict[str, list[pytest.Item]] = {}
    counts: dict[str, int] = {}
    for item in items:
        for node, marker in item.iter_markers_with_node("sampled"):
            matrix = item.nodeid.partition("[")[0] if node is item else node.nodeid
            matrices.setdefault(matrix, []).append(item)
            (counts[matrix],) = marker.args
            break  # the closest one
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
