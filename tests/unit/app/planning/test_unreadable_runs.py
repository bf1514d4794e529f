"""Records of past runs that cannot be read end a plan with the cause: what they hold back is not known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.app.planning.make_plan import PlanRequest, make_plan
from maintainer.app.project_folders import Project
from maintainer.errors import EnvironmentUnfit
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS


def test_a_record_that_cannot_be_read_is_named_and_is_no_bug(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": "table: lake/t\n"})
    # A folder in its place: nobody can read it as a file, whatever they may do.
    (tmp_path / ".maintainer" / "runs" / "20261121T220000Z-0000" / "events.jsonl").mkdir(parents=True)
    project = Project.load(tmp_path)
    engine: Any = SimpleNamespace(deletes=True)  # nothing is asked of it before
    with pytest.raises(EnvironmentUnfit) as caught:
        make_plan(project, engine, PlanRequest(project.policies, NOW_MS))
    assert (caught.value.code, caught.value.found) == ("E641", "Is a directory")
