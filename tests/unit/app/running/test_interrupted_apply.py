"""A second Ctrl-C while a run comes to its end takes nothing from what it says."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from maintainer.app import operations
from maintainer.app.engine_access import OpenedEngine
from maintainer.app.project_folders import Project
from maintainer.app.running import apply_plan
from maintainer.app.running.run_listener import RunListener, RunResult
from maintainer.app.selection.chosen_tables import ChosenTables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Plan
from maintainer.model.run.progress import ProgressSink
from maintainer.model.run.receipts import Verdict
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of


def interrupt(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def nothing(*_: object) -> Any:
    return None


class Impatient(RunListener):
    """Interrupts while observers are waited for, and while the result is shown."""

    def __init__(self) -> None:
        self.results: list[RunResult] = []

    @contextmanager
    def progress(self, plan: Plan) -> Iterator[ProgressSink | None]:
        yield None
        interrupt()

    def finished(self, result: RunResult) -> None:
        interrupt()
        self.results.append(result)


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.PASS, ExitCode.INTERRUPTED), (Verdict.FAIL, ExitCode.VERIFICATION_FAILED)]
)
def test_a_second_interrupt_takes_neither_the_result_nor_the_code(
    verdict: Verdict, code: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, verifier, listener = FakeLake(), PlainVerifier(), Impatient()
    verifier.order = [verdict]
    tables = [lake.table(f"s.{name}", (1, 2), (3,)) for name in "ab"]
    project = Project.load(write_project(tmp_path, {f"policies/{name}.yml": f"table: s.{name}\n" for name in "ab"}))
    killed = list[bool]()

    @contextmanager
    def opened(options: object) -> Iterator[OpenedEngine]:
        yield OpenedEngine(lake, nothing, nothing, nothing, nothing, kill=lambda: killed.append(True))

    monkeypatch.setattr(operations, "open_engine", opened)
    monkeypatch.setattr(operations, "searched", lambda project, *_: project)
    monkeypatch.setattr(operations, "import_great_expectations", nothing)
    monkeypatch.setattr(operations, "chosen_before_session", lambda *_, **__: (project, ChosenTables(project.policies)))
    monkeypatch.setattr(
        operations, "make_plan", lambda *_: plan_all(*(plan_of(table, compact(table)) for table in tables))
    )
    monkeypatch.setattr(apply_plan, "GreatExpectationsVerifier", lambda: verifier)
    lake.at("write", interrupt, table="s.a")
    result = operations.apply(project, RunSpec(jobs=1), listener=listener)
    assert result is not None
    assert [result] == listener.results
    assert (result.outcome.interrupted_by, result.exit_code) == ("SIGINT", code)
    assert (result.run_folder / "report.html").is_file()
    assert killed == [True]
