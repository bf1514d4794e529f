"""The examples for Airflow and Dagster, run with stand-ins for their decorators: what they call must exist and fit."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

import maintainer

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


class RecordedProject:
    """Takes the calls of an example; their arguments are checked against the real signatures."""

    calls: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    @staticmethod
    def load(root: str, env: str | None = None) -> RecordedProject:
        RecordedProject.calls = [("load", {"root": root, "env": env})]
        return RecordedProject()

    def apply(self, **kwargs: Any) -> Any:
        import inspect

        inspect.signature(maintainer.Project.apply).bind(self, **kwargs)
        RecordedProject.calls.append(("apply", kwargs))
        table = SimpleNamespace(ref=SimpleNamespace(identifier="sales.orders"), steps=(1, 2))
        outcome = SimpleNamespace(run_id="20261121T220000Z-7f3a", tables=(table,))
        return SimpleNamespace(outcome=outcome, raise_for_status=lambda: RecordedProject.calls.append(("raise", {})))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[RecordedProject]:
    monkeypatch.setattr("maintainer.app.python_api.Project", RecordedProject)
    return RecordedProject


def module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(name)
    for key, value in members.items():
        setattr(made, key, value)
    return made


def test_airflow(monkeypatch: pytest.MonkeyPatch, recorded: type[RecordedProject]) -> None:
    returned: list[Any] = []

    def task(**options: Any) -> Any:
        assert options == {"retries": 0}
        return lambda function: lambda: returned.append(function())

    def dag(**options: Any) -> Any:
        assert options["max_active_runs"] == 1
        return lambda function: function

    monkeypatch.setitem(sys.modules, "airflow", module("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", module("airflow.sdk", dag=dag, task=task))
    runpy.run_path(str(EXAMPLES / "airflow_dag.py"))
    assert returned == [{"sales.orders": 2}]
    assert [name for name, _ in recorded.calls] == ["load", "apply", "raise"]
    assert recorded.calls[1][1] == {"select": ["tag:nightly"], "jobs": 2}


def test_dagster(monkeypatch: pytest.MonkeyPatch, recorded: type[RecordedProject]) -> None:
    metadata: list[Any] = []
    context = SimpleNamespace(add_output_metadata=metadata.append)

    class Schedule:
        def __init__(self, *, job: Any, cron_schedule: str) -> None:
            job()
            assert len(cron_schedule.split()) == 5

    fake = module(
        "dagster",
        op=lambda function: lambda: function(context),
        job=lambda function: function,
        OpExecutionContext=object,
        ScheduleDefinition=Schedule,
    )
    monkeypatch.setitem(sys.modules, "dagster", fake)
    runpy.run_path(str(EXAMPLES / "dagster_job.py"))
    assert metadata == [{"run": "20261121T220000Z-7f3a", "tables": 1}]
    assert [name for name, _ in recorded.calls] == ["load", "apply", "raise"]
