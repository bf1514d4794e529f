"""A session whose JVM has ended: named before the work, in the middle of it, and while planning.

The engine and the ledger that the Python API works with: as maintainer.yml says, like the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from maintainer import Project
from maintainer.app import engine_access
from maintainer.app.engine_access import EngineOptions, OpenedEngine, open_engine
from maintainer.app.lookback.ledger_access import open_ledger
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.errors import EnvironmentUnfit, ExitCode, NotSupportedYet, TableError
from maintainer.model.plan.plan import Problem
from tests.support.policies.projects import write_project


class DeadSession:
    """What a SparkSession answers once its JVM has ended."""

    _jsparkSession = None

    @property
    def sparkContext(self) -> object:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    "options", [EngineOptions(spread=True, engine="command"), EngineOptions(spread=True, remote="sc://127.0.0.1:1")]
)
def test_the_command_engine_writes_no_bins_that_executors_could(options: EngineOptions) -> None:
    with pytest.raises(NotSupportedYet, match="by the transaction engine alone"), open_engine(options):
        pass


def test_a_session_that_is_dead_already() -> None:
    with (
        pytest.raises(EnvironmentUnfit, match="the Spark JVM has gone") as caught,
        open_engine(EngineOptions(spark=DeadSession())),
    ):
        pass
    assert (caught.value.code, caught.value.exit_code) == ("E612", ExitCode.USAGE)
    assert "start this Python process again" in str(caught.value.help)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(104, "Connection reset by peer"), EnvironmentUnfit),
        (BrokenPipeError(32, "Broken pipe"), BrokenPipeError),
        (TableError("no such table", code="T401"), TableError),
        (ValueError("a bug"), ValueError),
    ],
)
def test_what_is_raised_within(error: Exception, expected: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(options: EngineOptions) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(session_setting={}.get)

    monkeypatch.setattr(engine_access, "_open", opened)
    with pytest.raises(expected) as caught, open_engine():
        raise error
    assert (caught.value is error) == (expected is not EnvironmentUnfit)


class Opened(Exception):
    """Ends a call of the API where it would start its engine."""


@pytest.mark.parametrize("call", [Project.plan, Project.apply])
def test_the_engine_of_maintainer_yml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: object) -> None:
    given: list[EngineOptions] = []

    @contextmanager
    def opening(options: EngineOptions) -> Iterator[OpenedEngine]:
        given.append(options)
        raise Opened
        yield

    for module in ("operations", "selection.chosen_tables"):
        monkeypatch.setattr(f"maintainer.app.{module}.open_engine", opening)
    text = "version: 1\nengine: command\nsingleWriter: true\n"
    write_project(tmp_path, {"maintainer.yml": text, "policies/t.yml": "table: s.t\n"})
    session = object()
    with pytest.raises(Opened):
        call(Project.load(tmp_path), session)  # type: ignore[operator] # one of the two methods
    assert [(options.engine, options.single_writer, options.spark) for options in given] == [("command", True, session)]


def test_no_ledger_over_spark_connect_is_a_problem_that_is_handed_on(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": "table: s.t\n"})
    problems: list[Problem] = []
    nowhere = cast(OpenedEngine, type("Connect", (), {"ledger_at": staticmethod(lambda location: None)}))
    assert open_ledger(LoadedProject.load(tmp_path), nowhere, problems.append) is None
    assert [problem.code for problem in problems] == ["E654"]
