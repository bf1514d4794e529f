"""A deletion reads of the log only what came since the plan of the same process, and only while nothing was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.delta.log.replay import log_replay
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.errors import CommitConflict
from maintainer.model.plan.steps import VacuumStep
from tests.support.tables.aged_tables import AgedTable, touch, tree
from tests.support.tables.local_vacuum import LocalTable, Vacuuming
from tests.support.tables.vacuum_cases import assert_only, old_table, policies


class Counted(LocalFiles):
    """Notes each commit that is read."""

    def __init__(self) -> None:
        self.read_versions: list[int] = []

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        if "/_delta_log/" in uri:
            self.read_versions.append(int(uri.rpartition("/")[2].removesuffix(".json")))
        return super().read(uri, first_bytes=first_bytes)


def planned(work: Vacuuming, table: AgedTable) -> VacuumStep:
    step = work.step(table)
    assert step is not None
    return step


def versions_read(work: Vacuuming, table: AgedTable, step: VacuumStep, *, planned_version: int) -> set[int]:
    """Delete one file; return the versions that the deletion read from the log."""
    storage = LocalTable(table.path)
    files = storage.files = Counted()
    assert work.delete(table, step, storage=storage, planned_version=planned_version).num_files_deleted == 1
    return set(files.read_versions)


def test_only_what_came_since_the_plan_is_read(tmp_path: Path) -> None:
    table, work = old_table(tmp_path / "t"), Vacuuming(policies())
    head, step = table.head, planned(work, table)
    assert versions_read(work, table, step, planned_version=head) == {head + 1}, "VACUUM START alone"
    another = old_table(tmp_path / "another")
    head, step = another.head, planned(work, another)
    another.append(0, "c.parquet")
    assert versions_read(work, another, step, planned_version=head) == {head + 1, head + 2}


def another_process(work: Vacuuming, table: AgedTable, step: VacuumStep) -> VacuumStep:
    work.reader.planned_logs.take(f"file:{table.path}")
    return step


def an_earlier_horizon(work: Vacuuming, table: AgedTable, step: VacuumStep) -> VacuumStep:
    return replace(step, removed_before_ms=step.removed_before_ms - 1)


def another_plan(work: Vacuuming, table: AgedTable, step: VacuumStep) -> VacuumStep:
    log = work.reader.planned_logs.take(f"file:{table.path}")
    assert log is not None
    assert log.named.popitem()[0] == "a.parquet"
    work.reader.planned_logs.keep(f"file:{table.path}", log)
    return step


def an_old_commit_is_gone(work: Vacuuming, table: AgedTable, step: VacuumStep) -> VacuumStep:
    (table.path / "_delta_log" / f"{0:020}.json").unlink()
    return step


@pytest.mark.parametrize("why", [another_process, an_earlier_horizon, another_plan, an_old_commit_is_gone])
def test_all_is_read_where_the_plan_is_another_one_or_the_log_was_cleaned(
    tmp_path: Path,
    why: Callable[[Vacuuming, AgedTable, VacuumStep], VacuumStep],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, work = old_table(tmp_path / "t"), Vacuuming(policies())
    head, step = table.head, planned(work, table)
    facts = work.reader.facts(table.ref)
    step = why(work, table, step)
    monkeypatch.setattr(work.reader, "facts", lambda ref: facts)
    first = min(int(file.name[:20]) for file in (table.path / "_delta_log").glob("*.json"))
    assert versions_read(work, table, step, planned_version=head) == set(range(first, head + 2))


def test_what_another_version_was_planned_on_is_not_taken_on(tmp_path: Path) -> None:
    table, work = old_table(tmp_path / "t"), Vacuuming(policies())
    step = planned(work, table)
    table.append(0, "c.parquet")
    head = table.head
    assert versions_read(work, table, step, planned_version=head) == set(range(head + 2))


def test_a_commit_that_was_overwritten_since_the_plan_stops_the_deletion(tmp_path: Path) -> None:
    table, work = old_table(tmp_path / "t"), Vacuuming(policies())
    step = planned(work, table)
    commit = table.path / "_delta_log" / f"{1:020}.json"
    commit.write_text(commit.read_text().replace('"commitInfo":{', '"commitInfo":{"by":"another",'))
    touch(commit, table.at(60))
    before = tree(tmp_path)
    with pytest.raises(CommitConflict, match="the log is not the one") as conflict:
        work.delete(table, step)
    assert (conflict.value.code, conflict.value.found) == ("C701", f"{commit.name} was overwritten")
    assert_only(tmp_path, before)
    step = planned(work, table)  # what lies there now is read
    assert work.delete(table, step).num_files_deleted == 1


def test_a_file_that_came_back_since_the_plan_is_not_taken(tmp_path: Path) -> None:
    table, work = old_table(tmp_path / "t"), Vacuuming(policies())
    head, step = table.head, planned(work, table)
    table.commit(0, table.add_action("a.parquet", 60), operation="WRITE")
    before = tree(tmp_path)
    with pytest.raises(CommitConflict, match="in use again"):
        work.delete(table, step, planned_version=head)
    assert_only(tmp_path, before)


def test_logs_of_more_removals_than_are_kept_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_replay, "MAX_REMOVALS_KEPT", 0)
    table, work = old_table(tmp_path / "t"), Vacuuming(policies())
    head, step = table.head, planned(work, table)
    assert versions_read(work, table, step, planned_version=head) == set(range(head + 2))
