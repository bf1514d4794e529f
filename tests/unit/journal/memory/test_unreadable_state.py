"""A state that is there and cannot be read stops whoever asks: a quarantine that is forgotten lets files be deleted."""

from __future__ import annotations

import json

import pytest

from maintainer.errors import EnvironmentUnfit
from maintainer.journal.event_log import EVENTS_FILE, EventLog, encode
from maintainer.journal.memory.table_records import update_state
from tests.unit.journal.memory.recorded_runs import Runs


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"format_version": "0"}', '{"format_version":"6","tables":{"x":1},"runs":[]}', *range(4)],
)
def test_an_index_that_cannot_be_read_is_never_taken_for_empty(runs: Runs, damage: str | int) -> None:
    """It may be the only one that knows of a quarantine: nobody acts without it, and nobody replaces it."""
    journal = runs.start()
    runs.landed(journal, 2, verified="error")
    runs.end(journal)
    state = runs.runs_dir.parent / "state.json"
    if isinstance(damage, int):
        document = json.loads(state.read_text())
        record = document["tables"]["id-t"]["mem:/t"]
        assert record.pop("unproven") == [2]
        if damage:
            record["unproven"] = (["2"], 2, [True])[damage - 1]
        damage = json.dumps(document)
    state.write_text(damage)
    for ask in (runs.record, lambda: update_state(runs.runs_dir)):
        with pytest.raises(EnvironmentUnfit) as caught:
            ask()
        assert (caught.value.code, caught.value.where) == ("E641", str(state))
        assert caught.value.help
    assert state.read_text() == damage


@pytest.mark.parametrize(
    "line",
    [
        {"type": "quarantine_lifted", "at_ms": 0, "table": "t"},
        {"type": "intent", "at_ms": 0, "table": "t", "table_id": "id-t", "location": "mem:/t", "run": "r"},
    ],
)
def test_a_record_of_another_version_is_never_taken_for_empty(runs: Runs, line: dict[str, object]) -> None:
    journal = runs.start()
    path = journal.folder.path / EVENTS_FILE
    log = EventLog(path)
    log.append(line)
    log.close()
    journal.close()
    with pytest.raises(EnvironmentUnfit) as caught:
        runs.record()
    assert (caught.value.code, caught.value.where) == ("E641", str(path))
    assert "the version that wrote it" in (caught.value.help or "")


def test_a_run_of_another_version_that_closed_its_record_is_not_read_again(runs: Runs) -> None:
    journal = runs.start()
    runs.landed(journal, 2, verified="error")
    runs.end(journal)
    path = journal.folder.path / EVENTS_FILE
    path.write_bytes(encode({"type": "run_started", "at_ms": 0}) + encode({"type": "run_finished", "at_ms": 1}))
    assert runs.record().unproven_versions == (2,)
    runs.end(runs.start())
    assert runs.record().unproven_versions == (2,)
