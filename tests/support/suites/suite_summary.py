"""What is said at the end of a run: how many tests ran in each suite, what was drawn, what others have beyond.

With workers (pytest-xdist) only they collect; the first to end tells the controller, which prints.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.support.suites.drawn_cells import SEED, mark_cells, seed

Collected = dict[str, Any]
_COLLECTED = pytest.StashKey[Collected]()
_OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
_KEY = "suites"
WIDTH = 120


def suite_of(nodeid: str) -> str:
    """Return the folder below `tests` that a test is in."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else parts[0]


def counted(nodeids: Iterable[str]) -> str:
    """Return the number of tests, and of each suite, as text."""
    suites = Counter(map(suite_of, nodeids))
    return f"{suites.total():,}: " + ", ".join(f"{name} {count:,}" for name, count in sorted(suites.items()))


def _name(matrix: str) -> str:
    return matrix.rpartition("/")[2].rpartition("::")[2].removesuffix(".py").removeprefix("test_")


def summary_lines(ran: Sequence[str], collected: Mapping[str, Any], by: str) -> list[str]:
    """Return the lines that end a run."""
    lines = [f"tests that ran   {counted(ran)}"] if ran else []
    drawn = collected.get("drawn", {})
    if drawn:
        cells = ", ".join(f"{_name(matrix)} {some} of {every}" for matrix, (some, every) in drawn.items())
        text = f"drawn            {cells}; the same again with {SEED}={by}"
        lines += textwrap.wrap(text, WIDTH, subsequent_indent=" " * 17)
    if collected.get("long"):
        lines.append(f"other runs have  {counted(collected['long'])}")
    return lines


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what this run leaves out before anything is left out by its marks."""
    config.stash[_COLLECTED] = {"drawn": mark_cells(items, seed()), "long": []}


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Remember what this run leaves to `make nightly` and `make long`."""
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.config.stash.setdefault(_COLLECTED, {"drawn": {}, "long": []})["long"].append(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what a worker collected."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_KEY] = session.config.stash.get(_COLLECTED, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker collected; a worker that crashed has nothing."""
    collected = getattr(node, "workeroutput", {}).get(_KEY)
    if collected:
        node.config.stash[_COLLECTED] = collected


def pytest_report_header() -> str:
    """Name the seed at the beginning, for a run that does not reach its end."""
    return f"cells of matrices are drawn by {SEED}={seed()}" if seed() else "nothing is drawn: the same for everybody"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the lines."""
    ran = {report.nodeid for name in _OUTCOMES for report in terminalreporter.stats.get(name, ())}
    collected: Collected = config.stash.get(_COLLECTED, {})
    lines = summary_lines(sorted(ran), collected, seed())
    if lines:
        terminalreporter.section("what ran")
        for line in lines:
            terminalreporter.write_line(line)
