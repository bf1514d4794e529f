"""Who asks for the log as it was read with a version gets that list; whoever must look anew, looks anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable

from maintainer.cli.main import run
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.table_log import TableLog
from tests.support.policies.projects import write_project
from tests.support.tables.sick_tables import make_table


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of logs that were listed, in order."""
    asked: list[str] = []
    children = LocalFiles.children

    def noted(self: LocalFiles, uri: str, *, after: str = "") -> Mapping[str, StoredFile]:
        if uri.endswith("/_delta_log"):
            asked.append(uri)
        return children(self, uri, after=after)

    monkeypatch.setattr(LocalFiles, "children", noted)
    return asked


@pytest.mark.usefixtures("capsys")
def test_a_plan_with_a_vacuum_lists_the_log_once(tmp_path: Path, listed: list[str]) -> None:
    make_table(tmp_path / "lake" / "small", 4)
    policy = "table: lake/small\noptimize: {}\nvacuum: {retention: 7d, deleteUntracked: true}\n"
    write_project(tmp_path, {"policies/small.yml": policy})
    assert run(["--project", str(tmp_path), "plan", "--out", str(tmp_path / "plan.json")]) == 0
    assert '"kind": "compact"' in (tmp_path / "plan.json").read_text()
    assert len(listed) == 1


def test_a_version_that_the_list_does_not_show_is_looked_for(tmp_path: Path, listed: list[str]) -> None:
    make_table(tmp_path / "small", 2)
    newest = DeltaTable(str(tmp_path / "small")).version()
    log = TableLog(LocalFiles(), f"file:{tmp_path}/small")
    assert log.listed_with(newest) == log.listed_with(newest)
    assert len(listed) == 1
    DeltaTable(str(tmp_path / "small")).optimize.compact()
    assert log.commit_uri(newest + 1) in log.listed_with(newest + 1)
    assert len(listed) == 2
    assert log.commits()[-1].version == newest + 1
    assert len(listed) == 3
