"""The proof of a commit that an earlier run left unproven, where it moved no rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.verify import commit_proof
from maintainer.errors import CheckImpossible
from tests.support.tables.builders import make_facts


def _prover(monkeypatch: pytest.MonkeyPatch, *actions: dict[str, Any]) -> commit_proof.DeltaCommitProver:
    storage = SimpleNamespace(actions=lambda entry, with_adds: iter(actions))
    monkeypatch.setattr(commit_proof, "TableStorage", lambda *_: storage)
    monkeypatch.setattr(commit_proof, "commit_at", lambda _, version: SimpleNamespace(version=version))
    jvm = SimpleNamespace(activate=lambda: None, set_settings=lambda _: None)
    return commit_proof.DeltaCommitProver(cast(Any, jvm))


def test_a_commit_without_a_file_moved_no_rows_and_no_file_is_read_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    prover = _prover(monkeypatch, {"commitInfo": {"operation": "UNSET TBLPROPERTIES"}}, {"metaData": {}})
    proof = prover.proof(make_facts(version=3), 3)
    assert (proof.read.rows, proof.written.rows, proof.holds) == (0, 0, True)


@pytest.mark.parametrize("action", ["add", "remove"])
def test_a_commit_that_changed_data_is_not_proven(monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    prover = _prover(monkeypatch, {"commitInfo": {"operation": "WRITE"}}, {action: {"path": "f", "dataChange": True}})
    with pytest.raises(CheckImpossible):
        prover.proof(make_facts(version=3), 3)
