"""A state that is there and cannot be read stops whoever asks: a quarantine that is forgotten lets files be deleted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from maintainer.errors import EnvironmentUnfit
from maintainer.journal.event_log import EVENTS_FILE, EventLog, encode
from maintainer.journal.memory.table_records import remembered, update_state
from tests.support.tables.builders import NOW_MS
from tests.unit.journal.memory.recorded_runs import FACTS, Runs


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


def quarantined(runs: Runs, *, is_over: bool) -> tuple[Path, bytes]:
    """A run that put the table into quarantine: its record, and what is in it."""
    journal = runs.start()
    journal.quarantine(FACTS, "rows are gone")
    if is_over:
        journal.finished()
    journal.close()
    path = journal.folder.path / EVENTS_FILE
    return path, path.read_bytes()


def test_a_damaged_line_stops_deletions_until_its_record_is_back(runs: Runs) -> None:
    path, good = quarantined(runs, is_over=True)
    path.write_bytes(good.replace(b"are gone", b"are g0ne"))
    for _ in range(2):
        assert runs.record().quarantined is None  # what is left of it counts; rewrites go on
        with pytest.raises(EnvironmentUnfit) as caught:
            remembered(runs.runs_dir).check_whole()
        assert (caught.value.code, caught.value.where, caught.value.found) == ("E641", str(path), "1 damaged line")
        assert "move the run's folder away" in (caught.value.help or "")
        update_state(runs.runs_dir)
    path.write_bytes(good)
    remembered(runs.runs_dir).check_whole()
    assert runs.record().quarantined == "rows are gone"
    update_state(runs.runs_dir)
    shutil.rmtree(path.parent)
    assert runs.record().quarantined == "rows are gone"


def test_a_damaged_record_that_is_moved_away_stops_nothing(runs: Runs) -> None:
    path, good = quarantined(runs, is_over=True)
    path.write_bytes(good.replace(b"are gone", b"are g0ne"))
    update_state(runs.runs_dir)
    shutil.rmtree(path.parent)
    remembered(runs.runs_dir).check_whole()


def test_what_a_dead_run_added_is_not_taken_in_while_it_is_damaged(runs: Runs) -> None:
    """It was taken in before it grew: the rest of it counts, and is kept once it is whole."""
    path, first = quarantined(runs, is_over=False)
    update_state(runs.runs_dir)
    log = EventLog(path)
    place = {"table": "t", "table_id": "id-t", "location": "mem:/t"}
    for number in (2, 3):
        more = {"quarantine_id": f"q{number}", "reason": f"wrong {number}", "version": None}
        log.append({"type": "quarantined", "at_ms": NOW_MS + number, **place, **more})
    log.close()
    good = path.read_bytes()
    path.write_bytes(good.replace(b"wrong 2", b"wr0ng 2"))
    assert path.read_bytes().startswith(first)
    for _ in range(2):
        assert runs.record().quarantined == "wrong 3"
        with pytest.raises(EnvironmentUnfit):
            remembered(runs.runs_dir).check_whole()
        update_state(runs.runs_dir)
    path.write_bytes(good)
    remembered(runs.runs_dir).check_whole()
    update_state(runs.runs_dir)
    shutil.rmtree(path.parent)
    assert [len(place.quarantines) for place in remembered(runs.runs_dir).tables["id-t"].values()] == [3]
