"""Commits of the writers' hook come into the ledger with the next apply: each once, also when a run dies before."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.lookback.hook_commits import LOOKED_FILE, append_hook_commits
from maintainer.app.project_folders import Project
from maintainer.errors import TableError
from maintainer.journal.ledger.ledger_rebuild import key_of
from maintainer.model.table.commit_records import CommitStamp
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import FakeLake, FakeTable, compact, plan_all, plan_of
from tests.unit.journal.ledger.test_ledger_rebuild import Store


class Looks:
    """A table with a policy, a ledger, and hooks in writers."""

    def __init__(self, root: Path) -> None:
        write_project(root, {"maintainer.yml": "version: 1\n", "policies/t.yml": "version: 1\ntable: s.t\n"})
        self.project = Project.load(root)
        self.lake = FakeLake()
        self.table: FakeTable = self.lake.table("s.t", (1, 2), (3,))
        self.ledger = Store()
        self.looked = self.project.runs_dir.parent / LOOKED_FILE
        self.looked.parent.mkdir(parents=True)
        self._hooks = 0

    def hook(self, batches: int = 1) -> None:
        """A writer appends, and its hook compacts."""
        self._hooks += 1
        for batch in range(batches):
            self.table.append(7)
            self.table.versions[-1].stamp = CommitStamp(
                f"maintainer-auto-compact-{self._hooks}", "s.t/auto_compact", batch, ""
            )

    def look(self) -> list[tuple[str, int | None]]:
        """One apply: run and version of each row that came."""
        before = len(self.ledger.held)
        plan = plan_all(plan_of(self.table, compact(self.table)))
        problem = append_hook_commits(self.project, self.lake, plan, self.ledger)
        assert problem is None, problem
        return [(row.run_id[-1], row.version_after) for row in self.ledger.held[before:]]


@pytest.fixture
def looks(tmp_path: Path) -> Looks:
    return Looks(tmp_path)


def test_each_commit_comes_once(looks: Looks) -> None:
    assert looks.look() == []
    looks.table.append(5)
    looks.hook(batches=2)
    assert looks.look() == [("1", 3), ("1", 4)]
    assert looks.look() == []
    looks.hook()
    looks.table.append(6)
    assert looks.look() == [("2", 5)]
    row = looks.ledger.held[-1]
    assert (row.table, row.kind, row.step_id) == ("s.t", "auto_compact", "s.t/auto_compact")
    assert (row.table_id, row.location) == (looks.table.table_id, looks.table.location)


@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_a_run_that_dies_before_it_remembers_its_look_makes_no_row_twice(looks: Looks, damage: str) -> None:
    looks.hook()
    assert looks.look() == [("1", 2)]
    if damage == "gone":
        looks.looked.unlink()
    else:
        looks.looked.write_text("[")
    looks.hook()
    assert looks.look() == [("2", 3)]
    assert len({key_of(row) for row in looks.ledger.held}) == len(looks.ledger.held) == 2


def test_a_log_that_cannot_be_read_is_looked_at_again(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    looks.hook()
    plan = plan_all(plan_of(looks.table, compact(looks.table)))

    def unreadable(*args: object, **more: object) -> None:
        raise TableError("its log cannot be read", code="T403", where="s.t")

    with monkeypatch.context() as patch:
        patch.setattr("tests.support.runs.fake_lake._commit", unreadable)
        problem = append_hook_commits(looks.project, looks.lake, plan, looks.ledger)
    assert problem is not None
    assert (problem.code, problem.where) == ("E652", "s.t")
    assert looks.look() == [("1", 2)]
