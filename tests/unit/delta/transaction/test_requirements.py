"""What must be as planned for a rewrite to begin and to commit, and what may move: state is not schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.rewrite.commit import rewrite_commit as commit
from maintainer.delta.rewrite.commit.batch_transaction import check_head
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction import requirements as same_table
from maintainer.delta.transaction.requirements import check_as_planned
from maintainer.errors import CommitConflict, CommitUnknown, VerificationFailed
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import Protocol, TableFacts
from tests.support.tables.builders import make_facts
from tests.support.tables.local_vacuum import LocalTable

Change = Callable[[dict[str, Any], dict[str, Any]], None]


class NoLog:
    """A log that cannot be read: the winner is named where that is possible, and no more."""

    def log_files(self) -> object:
        raise OSError("503 Slow Down")

    def commits(self, *, after_version: int) -> list[object]:
        raise OSError(after_version)


def _facts() -> TableFacts:
    return make_facts(
        columns={"id": "long", "p": "string"},
        partitioned_by=("p",),
        properties={"delta.columnMapping.mode": "name", "team": "a"},
        protocol=Protocol(3, 7, ("columnMapping",), ("columnMapping", "identityColumns")),
    )


def _check(change: Change) -> None:
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
    check_as_planned(cast(TableStorage, NoLog()), facts, metadata, protocol)


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
    """Delta's view of the log after our commit, in which the newest version has another table's id."""

    def update(self, log: object) -> object:
        return SimpleNamespace(version=lambda: 8)

    def metadata(self, snapshot: object) -> dict[str, str]:
        return {"id": "another"}


def _landed(monkeypatch: pytest.MonkeyPatch, root: Path, id_at_ours: str | None) -> None:
    """Check our commit as version 8 of a log on this disk that has an id there, or that is gone."""
    monkeypatch.setattr(commit, "find_stamp", lambda storage, stamp, *, after_version: 8)
    monkeypatch.setattr(same_table, "find_conflicting_commit", lambda storage, paths, *, after_version: "somebody")
    facts, storage = make_facts(), LocalTable(root)
    for version in range(9 if id_at_ours else 0):
        table_id = facts.table_id if id_at_ours == "ours" else id_at_ours
        actions = [{"metaData": {"id": table_id}}, {"protocol": {"minReaderVersion": 1}}]
        commit_file = root / "_delta_log" / f"{version:020d}.json"
        commit_file.parent.mkdir(exist_ok=True)
        commit_file.write_text("".join(json.dumps(action) + "\n" for action in actions))
    job = SimpleNamespace(jvm=LandedLog(), facts=facts, log=None, storage=storage, where="sales.orders")
    commit._check_where_it_landed(cast(RewriteJob, job), 8, CommitStamp("run", "t/compact", 0, "d"))


def test_a_commit_in_the_table_that_took_the_place_of_ours_is_a_failed_verification(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(VerificationFailed) as caught:
        _landed(monkeypatch, tmp_path, "another")
    assert caught.value.code == "V503"


def test_a_table_that_was_replaced_after_our_commit_is_no_concern_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _landed(monkeypatch, tmp_path, "ours")


def test_a_log_that_cannot_be_read_after_a_replacement_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(CommitUnknown) as caught:
        _landed(monkeypatch, tmp_path, None)
    assert caught.value.code == "C703"
    assert "which of the two tables has our commit as version 8 is not known" in caught.value.what


def test_a_table_that_is_gone() -> None:
    job = SimpleNamespace(
        jvm=SimpleNamespace(update=lambda log: SimpleNamespace(version=lambda: -1)), log=None, facts=_facts()
    )
    with pytest.raises(CommitConflict, match="was dropped"):
        check_head(cast(Any, job))
