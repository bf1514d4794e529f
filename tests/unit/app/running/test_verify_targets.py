"""Which commit a name means to `verify`, and what is said of one of which no row was compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.verify_commits import VerifyTarget, verification_json
from maintainer.cli.act.verify_and_undelete import _target
from maintainer.model.run.commit_verdict import TableVerification, VerifyRun
from maintainer.model.table.table_facts import TableRef
from maintainer.report.run.verify_text import render_verify, verify_line
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS
from tests.unit.app.running.test_verify import PROVEN, Answers, Bench, _commit


def test_a_table_that_is_called_like_a_version_of_another_is_itself(tmp_path: Path) -> None:
    files = {"policies/t.yml": "table: lake/orders@5\n", "policies/u.yml": "table: lake/orders\n"}
    write_project(tmp_path, files)
    project = Project.load(tmp_path)
    for text, name, version in (
        ("lake/orders@5", "orders@5", None),
        ("lake/orders@5@2", "orders@5", 2),
        ("lake/orders@6", "orders", 6),
    ):
        target = _target(project, text)
        assert (target.ref.location, target.version) == (str(tmp_path / "lake" / name), version)


def test_a_commit_of_which_no_row_was_compared_is_not_called_proven() -> None:
    commit = replace(_commit(3, ("files", PROVEN, None)), operation="DELETE", kind="data_change")
    run = VerifyRun("r", NOW_MS, 0.0, (TableVerification(TableRef("a.t"), commit),))
    end = render_verify(run).splitlines()[-1]
    assert end.startswith("1 table: 1 files only, no rows compared,")
    assert "proven" not in end
    assert verify_line(run.tables[0]) == "files only, no rows compared  a.t@3"


@pytest.mark.parametrize(
    ("version", "note"),
    [(None, "no rewrite among the newest commits"), (3, None)],
)
def test_what_was_checked_instead_is_recorded(tmp_path: Path, version: int | None, note: str | None) -> None:
    commit = replace(_commit(3, ("files", PROVEN, None)), operation="DELETE", kind="data_change")
    target = VerifyTarget(TableRef("a.t"), version)
    run = Bench(tmp_path).verify_targets(Answers({"a.t": commit}), [target])
    document = json.loads(verification_json(run))
    (table,) = document["tables"]
    assert (table["result"], table["note"]) == ("files_only", note)
    assert (document["counts"]["proven"], document["counts"]["files_only"]) == (0, 1)
