"""A copy of a table has the log of its original: the steps in it are rows of the original alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.app.lookback.ledger_access import own_rows
from maintainer.delta.log.commit_history import read_commits
from maintainer.delta.storage.table_log import log_on_disk
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, CommitsWanted, TableCommit
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.policies.projects import loaded

RUN = "20261120T220000Z-aaaa"
HOOK = "maintainer-auto-compact-0123abcd"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    compacted(tmp_path, "orders", "lake/orders/compact", RUN)
    return tmp_path


def compacted(root: Path, name: str, step_id: str, run_id: str) -> None:
    """A table with a commit of a run's."""
    path = root / "lake" / name
    deltalake.write_deltalake(path, pa.table({"a": [1]}), mode="append")
    stamp = {"userMetadata": CommitStamp(run_id, step_id, 0, "sha256:x").to_json()}
    deltalake.write_deltalake(
        path, pa.table({"a": [2]}), mode="append", commit_properties=deltalake.CommitProperties(custom_metadata=stamp)
    )


def policy_of(root: Path, name: str) -> ResolvedPolicy:
    return loaded(root, {"policies/t.yml": f"table: {name}\n"}).resolve_table(name)


def at(root: Path, name: str, place: str | None = None) -> tuple[ResolvedPolicy, CommitsRead]:
    """A table of the project, and what the log at its place tells."""
    path = root / (place or name)
    log = log_on_disk(str(path))
    assert log is not None
    return policy_of(root, name), read_commits(log, str(path), CommitsWanted())


def told(root: Path, *histories: tuple[ResolvedPolicy, CommitsRead]) -> list[tuple[str, str]]:
    return [(row.table, row.step_id) for row in own_rows(histories, root)]


def test_the_original_has_the_row_and_the_copy_none(root: Path) -> None:
    shutil.copytree(root / "lake" / "orders", root / "lake" / "copy")
    copy, orders = at(root, "lake/copy"), at(root, "lake/orders")
    assert told(root, copy, orders) == [("lake/orders", "lake/orders/compact")]
    assert told(root, copy) == []


def test_another_path_to_the_same_place_is_no_copy(root: Path) -> None:
    (root / "lake" / "link").symlink_to(root / "lake" / "orders")
    assert told(root, at(root, "lake/link")) == [("lake/link", "lake/orders/compact")]


def test_a_table_that_was_moved_keeps_its_rows(root: Path) -> None:
    (root / "lake" / "orders").rename(root / "lake" / "moved")
    assert told(root, at(root, "lake/moved")) == [("lake/moved", "lake/orders/compact")]
    compacted(root, "orders", "x/compact", "not a run")  # another table where it was
    assert told(root, at(root, "lake/moved")) == [("lake/moved", "lake/orders/compact")]
    (row,) = own_rows([at(root, "lake/moved")], root)
    assert row.table_id == str(deltalake.DeltaTable(root / "lake" / "moved").metadata().id)


def test_of_two_tables_of_a_catalog_the_one_that_the_step_names_has_it(root: Path) -> None:
    compacted(root, "sold", "sales.sold/compact", RUN)
    shutil.copytree(root / "lake" / "sold", root / "lake" / "copy")
    copy, sold = at(root, "sales.copy", "lake/copy"), at(root, "sales.sold", "lake/sold")
    assert told(root, copy, sold)[0] == ("sales.sold", "sales.sold/compact")


def test_a_writer_on_a_store_may_spell_the_place_otherwise(root: Path) -> None:
    policy = policy_of(root, "s3://lake/orders")
    stamps = {name: CommitStamp(name, f"s3://alias/orders/{kind}", 0, "") for name, kind in
              ((HOOK, "auto_compact"), (RUN, "compact"))}  # fmt: skip
    commits = tuple(TableCommit(5 + number, 9, "OPTIMIZE", None, stamp) for number, stamp in enumerate(stamps.values()))
    read = CommitsRead("s3://lake/orders", commits, 0, "id")
    assert told(root, (policy, read)) == [("s3://lake/orders", "s3://alias/orders/auto_compact")]


@pytest.mark.parametrize("step_id", ["\0/x", "\ud800/x/y", "file:///%00/compact", "", "/"])
def test_a_stamp_that_names_no_place_stops_nothing(root: Path, step_id: str) -> None:
    policy, _ = at(root, "lake/orders")
    commits = (TableCommit(5, 9, "OPTIMIZE", None, CommitStamp(RUN, step_id, 0, "")),)
    assert len(told(root, (policy, CommitsRead(str(root / "lake" / "orders"), commits, 0, "id")))) <= 1
