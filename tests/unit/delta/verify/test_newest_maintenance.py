"""Which commit `verify` looks at where nobody names one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.verify import commit_proof
from tests.support.tables.builders import make_facts


@pytest.mark.parametrize(
    ("operations", "version"),
    [
        (["WRITE", "OPTIMIZE", "VACUUM START", "VACUUM END"], 1),
        (["OPTIMIZE", "CLUSTER BY", "WRITE"], 0),
        (["WRITE", "VACUUM START", "VACUUM END", "DELETE"], 2),
        (["WRITE", "OPTIMIZE", "REORG", "DELETE"], 2),
        (["WRITE", "DELETE"], 1),
    ],
)
def test_the_newest_that_rewrote_files_is_preferred(
    operations: list[str], version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = SimpleNamespace(
        commits=lambda after_version: [SimpleNamespace(version=number) for number in range(len(operations))],
        infos=lambda entries: [(entry, {"operation": operations[entry.version]}) for entry in entries],
    )
    monkeypatch.setattr(commit_proof, "TableStorage", lambda *_: storage)
    jvm = SimpleNamespace(activate=lambda: None, set_settings=lambda _: None)
    prover = commit_proof.DeltaCommitProver(cast(Any, jvm))
    assert prover.newest_maintenance(make_facts(version=len(operations) - 1)) == version
