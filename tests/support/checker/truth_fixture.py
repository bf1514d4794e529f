"""What integration and fault tests do at their end: each project below their folder must have left the truth behind.

A test that damages what it leaves says so with `@pytest.mark.contradicts(*rules, reason=...)`: those rules are left
out, all others hold.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import maintainer.cli.main as command_line
from tests.support.checker.contradictions import contradictions
from tests.support.checker.truth_records import Contradiction, folders_of_projects

_PASSED = pytest.StashKey[bool]()
MAX_TABLES_ASKED = 3
"""Tables of a project whose `history` is compared; each costs as much as the command."""


@dataclass
class ExitCodes:
    """What the commands of a test ended with, by the run that they made."""

    below: Path
    by_run: dict[str, int] = field(default_factory=dict)

    def runs(self) -> set[str]:
        """Run folders that are there now."""
        return {path.name for path in self.below.glob("**/.maintainer/runs/*")}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test passed: of a failed one nothing more is asked."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(autouse=True)
def truth_is_left_behind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Compare everything that runs left below a test's folder, after the test has passed.

    Where there is no project, the tables are looked at alone.
    """
    codes = ExitCodes(tmp_path)
    real = command_line.cli.main

    def main(*args: Any, **named: Any) -> Any:
        before = codes.runs()
        result = real(*args, **named)
        made = codes.runs() - before
        if len(made) == 1 and isinstance(result, int):
            codes.by_run[made.pop()] = int(result)
        return result

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(command_line.cli, "main", main)
        yield
    if not request.node.stash.get(_PASSED, False):
        return
    left_out = [rule for marker in request.node.iter_markers("contradicts") for rule in _rules(marker)]
    reported = [
        contradiction
        for project in folders_of_projects(tmp_path) or [tmp_path]
        for contradiction in _contradictions_of(project, tmp_path, codes.by_run, left_out)
    ]
    if reported:
        lines = "\n".join(f"  {contradiction}" for contradiction in reported)
        pytest.fail(f"what the runs left behind contradicts itself:\n{lines}", pytrace=False)


def _rules(marker: pytest.Mark) -> tuple[str, ...]:
    if not marker.args or not marker.kwargs.get("reason"):
        raise ValueError("`contradicts` needs the rules that are left out, and a reason")
    return marker.args


def _contradictions_of(
    project: Path, below: Path, exit_codes: dict[str, int], left_out: list[str]
) -> list[Contradiction]:
    """Contradictions of one project, with what `history` says of it."""
    histories = {name: document for name in _asked(project) if (document := _history(project, name)) is not None}
    return contradictions(project, exit_codes=exit_codes, histories=histories, below=below, but_not=left_out)


def _asked(project: Path) -> list[str]:
    """What `history` is asked about: everything, and a few tables of the newest run; nothing without policies."""
    plans = sorted((project / ".maintainer" / "runs").glob("*/plan.json"))
    if not plans or not (project / "maintainer.yml").is_file():
        return []
    tables = json.loads(plans[-1].read_text(encoding="utf-8"))["tables"]
    worked_on = [table["ref"]["identifier"] for table in tables if table["ref"].get("path") and table["steps"]]
    return ["", *worked_on[:MAX_TABLES_ASKED]]


def _history(project: Path, table: str) -> Any | None:
    """The document of `history`, None where the command refuses."""
    out, err = io.StringIO(), io.StringIO()
    arguments = ["--project", str(project), "history", *([table] if table else []), "-o", "json", "--limit", "1000"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command_line.run(arguments)
    return json.loads(out.getvalue()) if code == 0 else None
