"""What must be as planned for a rewrite to begin and to commit, and what may move: state is not schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.rewrite.commit import rewrite_commit as commit
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction import requirements as same_table
from maintainer.delta.transaction.requirements import check_as_planned
from maintainer.errors import CommitConflict, CommitUnknown, VerificationFailed
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import Protocol, TableFacts
from tests.support.tables.builders import make_facts

Change = Callable[[dict[str, Any], dict[str, Any]], None]


class NoLog:
    """A log that cannot be read: the winner is named where that is possible, and no more."""

    def commits(self, *, after_version: int) -> list[object]:
        raise OSError(after_version)


def _facts() -> TableFacts:
    return make_facts(
        columns={"id": "long", "p": "string"},
        partitioned_by=("p",),
        properties={"delta.columnMapping.mode": "name", "team": "a"},
        protocol=Protocol(3, 7, ("columnMapping",), ("columnMapping", "identityColumns")),
    )


def _check(change: Change, version: int = 9) -> None:
    facts = _facts()
    metadata: dict[str, Any] = {
        "id": facts.table_id,
        "schemaString": facts.schema_json,
        "partitionColumns": list(facts.partition_columns),
        "configuration": dict(facts.properties),
    }
    protocol: dict[str, Any] = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["columnMapping"],
        "writerFeatures": ["identityColumns", "columnMapping"],
    }
    change(metadata, protocol)
    jvm = SimpleNamespace(metadata=lambda snapshot: metadata, protocol=lambda snapshot: protocol)
    snapshot = SimpleNamespace(version=lambda: version)
    check_as_planned(cast(DeltaJvm, jvm), cast(TableStorage, NoLog()), facts, snapshot)


def _schema(metadata: dict[str, Any], edit: Callable[[dict[str, Any]], None]) -> None:
    schema = json.loads(metadata["schemaString"])
    edit(schema["fields"][0])
    metadata["schemaString"] = json.dumps(schema, indent=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda metadata, protocol: None,
        lambda metadata, protocol: metadata["configuration"].update(team="b"),
        lambda metadata, protocol: _schema(metadata, lambda field: None),
        lambda metadata, protocol: _schema(
            metadata, lambda field: field["metadata"].update({"delta.identity.highWaterMark": 7})
        ),
        lambda metadata, protocol: protocol["writerFeatures"].reverse(),
    ],
    ids=["nothing", "a property of somebody's", "the spelling of the schema", "a high-water mark", "order of features"],
)
def test_what_may_change(change: Change) -> None:
    _check(change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda metadata, protocol: metadata.update(id="other"), "dropped and created again"),
        (lambda metadata, protocol: _schema(metadata, lambda field: field.update(type="string")), "schema was changed"),
        (lambda metadata, protocol: _schema(metadata, lambda field: field.update(nullable=False)), "schema was"),
        (lambda metadata, protocol: metadata.update(partitionColumns=[]), "partitioning was changed"),
        (lambda metadata, protocol: protocol["writerFeatures"].append("rowTracking"), "protocol was changed"),
        (lambda metadata, protocol: protocol.update(minReaderVersion=2), "protocol was changed"),
        (
            lambda metadata, protocol: metadata["configuration"].update({"delta.enableRowTracking": "true"}),
            "delta.enableRowTracking was switched",
        ),
        (lambda metadata, protocol: metadata["configuration"].pop("delta.columnMapping.mode"), "mode was switched"),
    ],
)
def test_what_makes_us_yield(change: Change, says: str) -> None:
    with pytest.raises(CommitConflict, match=says) as caught:
        _check(change)
    assert caught.value.code == "C701"


class LandedLog:
    """The log after our commit as version 8, in which the newest version has another table's id.

    ``id_at_ours`` is what the log says of version 8; an exception is a hiccup of storage.
    """

    def __init__(self, facts: TableFacts, id_at_ours: str | Exception) -> None:
        self.facts = facts
        self.id_at_ours = id_at_ours

    def update(self, log: object) -> object:
        return SimpleNamespace(version=lambda: 8)

    def metadata(self, snapshot: object) -> dict[str, str]:
        return {"id": "another"}

    def log_at(self, location: str) -> None: ...

    def folder_of_log(self, log: object) -> None: ...

    def kernel_snapshot(self, folder: object, version: int) -> int:
        return version

    def kernel_state(self, version: int) -> tuple[dict[str, str], None]:
        if isinstance(self.id_at_ours, Exception):
            raise self.id_at_ours
        return {"id": self.id_at_ours}, None


def _landed(monkeypatch: pytest.MonkeyPatch, id_at_ours: str | Exception) -> None:
    monkeypatch.setattr(commit, "find_stamp", lambda storage, stamp, *, after_version: 8)
    monkeypatch.setattr(same_table, "find_conflicting_commit", lambda storage, paths, *, after_version: "somebody")
    monkeypatch.setattr(same_table, "TableStorage", lambda jvm, log: None)
    facts = make_facts()
    ours = facts.table_id if id_at_ours == "ours" else id_at_ours
    job = SimpleNamespace(jvm=LandedLog(facts, ours), facts=facts, log=None, storage=None, where="sales.orders")
    commit._check_where_it_landed(cast(RewriteJob, job), 8, CommitStamp("run", "t/compact", 0, "d"))


def test_a_commit_in_the_table_that_took_the_place_of_ours_is_a_failed_verification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(VerificationFailed) as caught:
        _landed(monkeypatch, "another")
    assert caught.value.code == "V503"


def test_a_table_that_was_replaced_after_our_commit_is_no_concern_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    _landed(monkeypatch, "ours")


def test_a_log_that_cannot_be_read_after_a_replacement_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommitUnknown) as caught:
        _landed(monkeypatch, OSError("503 Slow Down"))
    assert caught.value.code == "C703"
    assert "which of the two tables has our commit as version 8 is not known" in caught.value.what


def test_a_table_that_is_gone() -> None:
    with pytest.raises(CommitConflict, match="was dropped"):
        _check(lambda metadata, protocol: None, version=-1)
