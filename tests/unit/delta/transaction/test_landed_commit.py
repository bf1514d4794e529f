"""The commit in the log against what was handed over."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.transaction.commit_fate import differences
from maintainer.model.plan.steps import Batch, Bin
from tests.support.tables.builders import make_file

SOURCE = make_file("old.parquet")
BATCH = Batch((Bin((SOURCE,)),))
ADD: dict[str, Any] = {"path": "new.parquet", "size": 7, "stats": '{"numRecords":3,"maxValues":{"d":"NaN"}}'}
REMOVE: dict[str, Any] = {"path": SOURCE.path, "size": SOURCE.size_bytes, "dataChange": False}


def _different(add: dict[str, Any]) -> bool:
    actions: list[dict[str, Any]] = [{"commitInfo": {}}, {"remove": REMOVE}, {"add": add}]
    return bool(differences(actions, [WrittenFile(ADD)], BATCH))


@pytest.mark.parametrize(
    "changes",
    [
        {"path": "other.parquet"},
        {"size": 8},
        {"deletionVector": {"storageType": "i", "pathOrInlineDv": "x", "offset": 1}},
    ],
    ids=str,
)
def test_a_file_that_is_not_the_proven_one_is_named(changes: dict[str, Any]) -> None:
    assert not _different(ADD)
    assert _different({**ADD, **changes})


def test_a_commit_that_took_other_files_is_named() -> None:
    actions = [{"remove": {**REMOVE, "path": "other.parquet"}}, {"add": ADD}]
    assert differences(actions, [WrittenFile(ADD)], BATCH) == (
        "other.parquet is removed and was not planned",
        "old.parquet was planned and is not removed",
    )
