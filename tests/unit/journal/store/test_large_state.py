"""A state of years on a store: a run looks into what may have grown, and misses nothing that holds back a deletion."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.store import object_storage
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import ObjectBody, StoredObject
from maintainer.engine.store.store_failures import StoreFailure
from maintainer.journal.event_log import is_alive
from maintainer.journal.folder.documents import data_of
from maintainer.journal.folder.run_folder import new_run_id
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_pending import PENDING_FILE
from maintainer.journal.memory.other_runs import OtherRuns
from maintainer.journal.store import run_pulse, state_mirror, stored_runs
from maintainer.journal.store.run_pulse import Pulse
from maintainer.model.run.run_events import CommitEnd
from maintainer.model.table.table_facts import TableRecord
from tests.support.runs.machines import Machine, intend, now_ms
from tests.support.tables.builders import make_facts, make_files
from tests.support.writers.recorded_events import unfinished

FACTS = make_facts(files=make_files(10))
DAY_MS = 86_400_000


class Counting(ObjectStorage):
    """A store that remembers what it was asked for."""

    def __init__(self, storage: ObjectStorage) -> None:
        super().__init__(storage._client, storage.uri)
        self.asked: list[tuple[str, str]] = []

    def below(self, prefix: str, after: str | None = None) -> Iterator[StoredObject]:
        self.asked.append(("list", prefix))
        return super().below(prefix, after)

    def children(self, prefix: str) -> tuple[list[StoredObject], list[str]]:
        self.asked.append(("list", prefix))
        return super().children(prefix)

    def read(self, name: str) -> ObjectBody | None:
        self.asked.append(("read", name))
        return super().read(name)

    def head(self, name: str) -> StoredObject | None:
        self.asked.append(("head", name))
        return super().head(name)

    def remove(self, name: str) -> None:
        self.asked.append(("remove", name))
        super().remove(name)


class CountingMachine(Machine):
    """A machine that says what it asked the store for."""

    def __init__(self, storage: ObjectStorage, cache: Path, number: int = 0) -> None:
        self.counting = Counting(storage)
        super().__init__(self.counting, cache, number)

    def asked(self) -> Counter[tuple[str, str]]:
        """What it asked for since it was last looked at."""
        asked, self.counting.asked = self.counting.asked, []
        return Counter(asked)


@pytest.fixture
def storage() -> ObjectStorage:
    return ObjectStorage(MemoryStore(), "memory://state")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is years of runs elsewhere is a dozen here."""
    monkeypatch.setattr(state_mirror, "NEWEST_RUNS", 3)


def record(records: OtherRuns) -> TableRecord:
    """What is known of the table right before files are deleted."""
    read = records.newest(None, max_age_seconds=0.0)
    return read.of_table(FACTS.table_id, FACTS.location, StoragePlaces()).record


def killed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """A run whose process is gone, long enough ago."""
    with monkeypatch.context() as patch:
        patch.setattr(run_pulse, "PULSE_SECONDS", -1)
        journal = machine.begin()
        machine.run._ended.set()
        machine.run._published.set()
    return journal


BESIDE = {("list", "alive/"): 2, ("list", "runs/"): 1, ("head", "state.json"): 1}
"""What each look at other runs asks for."""


def test_a_look_before_files_are_deleted_asks_only_for_what_may_have_grown(
    storage: ObjectStorage, tmp_path: Path
) -> None:
    first, second = Machine(storage, tmp_path / "a"), CountingMachine(storage, tmp_path / "b", 50)
    for _ in range(12):
        journal = first.begin()
        journal.quarantine(FACTS, "why")
        journal.folder.write_results("{}")
        first.end(journal)
    mine, going_on = second.begin(), first.begin()
    second.mirror.refresh(now_ms(), ended_by=mine.run_id)
    second.asked()
    second.mirror.refresh(now_ms(), ended_by=mine.run_id)
    pulse = {("read", f"alive/{going_on.run_id}.json"): 1}
    living = {("list", f"runs/{going_on.run_id}/"): 1}
    assert second.asked() == BESIDE | pulse | living
    going_on.quarantine(FACTS, "another")
    second.mirror.refresh(now_ms(), ended_by=mine.run_id)
    grown = {("read", f"runs/{going_on.run_id}/events.jsonl.00000"): 1}
    assert second.asked() == BESIDE | pulse | living | grown
    first.end(going_on)
    second.end(mine)


def test_what_a_run_recorded_that_came_and_went_between_two_looks_is_seen(
    storage: ObjectStorage, tmp_path: Path
) -> None:
    first, second = Machine(storage, tmp_path / "a"), Machine(storage, tmp_path / "b", 50)
    mine = second.begin()
    records = mine.other_runs()
    assert record(records).quarantined is None
    other = first.begin()
    other.quarantine(FACTS, "a proof failed")
    assert record(records).quarantined == "a proof failed"
    other.accept(FACTS, record(records), reason="looked at", by="somebody")
    first.end(other)
    assert record(records).quarantined is None
    last = first.begin()
    last.quarantine(FACTS, "another proof failed")
    intend(last, FACTS)
    first.run.end()
    last.close()
    assert record(records).quarantined == "another proof failed"
    assert record(records).unproven_versions == (4,)
    over = first.begin()
    over.quarantine(FACTS, "a third one")
    first.end(over)
    assert record(records).quarantined == "a third one"
    second.end(mine)


def test_a_killed_run_is_looked_into_for_a_month(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Machine(storage, tmp_path / "a"), CountingMachine(storage, tmp_path / "b", 50)
    dead = killed(first, monkeypatch)
    dead.close()
    second.end(second.begin())
    assert dead.run_id in json.loads(storage.read("state.json").data)["unfinished"]  # type: ignore[union-attr]
    for _ in range(4):
        second.end(second.begin())
    for days, is_listed in ((29, 1), (31, 0)):
        mine = second.begin()
        second.asked()
        second.mirror.refresh(now_ms() + days * DAY_MS, ended_by=mine.run_id)
        assert second.asked()["list", f"runs/{dead.run_id}/"] == is_listed
        second.end(mine)
    # What it publishes still later the next run on its machine takes into the state.
    late = Journal(dead.folder, type(dead._log)(dead.folder.path / "events.jsonl"), now_ms)
    late.quarantine(FACTS, "found while the store was away")
    late.close()
    monkeypatch.setattr(stored_runs, "GROWING_DAYS", -1)
    first.end(first.begin())
    mine = second.begin()
    assert record(mine.other_runs()).quarantined == "found while the store was away"
    second.end(mine)


def test_a_killed_run_that_left_something_open_is_looked_into_until_that_is_settled(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_runs, "GROWING_DAYS", -1)
    first, second = Machine(storage, tmp_path / "a"), Machine(storage, tmp_path / "b", 50)
    dead = killed(first, monkeypatch)
    dead.close()
    second.end(second.begin())
    late = Journal(dead.folder, type(dead._log)(dead.folder.path / "events.jsonl"), now_ms)
    intend(late, FACTS)
    late.close()
    for _ in range(4):
        first.end(first.begin())  # publishes it, and takes it in
    third = Machine(storage, tmp_path / "c", 90)
    mine = third.begin()
    (intent,) = unfinished(third.mirror.runs_dir, except_run=mine.run_id)
    assert intent.stamp.run_id == dead.run_id
    mine.settled(intent, CommitEnd.NOT_LANDED, None)
    third.end(mine)


def test_pulses_of_runs_that_are_over_are_read_once_and_deleted(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Machine(storage, tmp_path / "a"), CountingMachine(storage, tmp_path / "b", 50)
    dead = killed(first, monkeypatch)
    intend(dead, FACTS)
    dead.close()
    never = [f"20250101T0000{number:02}Z-0000" for number in range(5)]  # that published nothing
    for run_id in never:
        storage.write(f"alive/{run_id}.json", data_of(Pulse(run_id, "pod", 0)))
    names = {f"alive/{run_id}.json" for run_id in (*never, dead.run_id)}
    second.mirror.fetch(now_ms())
    assert {stored.name for stored in storage.listed("alive/")} == names, "who only looks deletes nothing"
    second.asked()
    mine = second.begin()
    asked = second.asked()
    assert {name: asked["read", name] for name in names} == dict.fromkeys(names, 1)
    left = {f"alive/{dead.run_id}.json", f"alive/{mine.run_id}.json"}
    assert {stored.name for stored in storage.listed("alive/")} == left, "what it left open is not settled"
    second.mirror.refresh(now_ms(), ended_by=mine.run_id)
    asked = second.asked()
    assert {name: asked["read", name] for name in names} == dict.fromkeys(names, 0)
    (intent,) = unfinished(second.mirror.runs_dir, except_run=mine.run_id)
    mine.settled(intent, CommitEnd.NOT_LANDED, None)
    second.end(mine)
    mine = second.begin()
    assert {stored.name for stored in storage.listed("alive/")} == {f"alive/{mine.run_id}.json"}
    assert not is_alive(second.mirror.runs_dir / dead.run_id / "events.jsonl")
    second.mirror.fetch(now_ms() - DAY_MS)  # by a clock that is behind
    assert not is_alive(second.mirror.runs_dir / dead.run_id / "events.jsonl")
    second.end(mine)


def test_rows_that_wait_for_long_are_known_on_an_empty_machine(storage: ObjectStorage, tmp_path: Path) -> None:
    first, second = Machine(storage, tmp_path / "a"), Machine(storage, tmp_path / "b", 50)
    journal = first.begin()
    (journal.folder.path / PENDING_FILE).write_text("row\n")
    first.end(journal)
    for _ in range(6):
        first.end(first.begin())
    storage.write("waiting_rows/elsewhere.jsonl", b"not ours")
    second.mirror.fetch(now_ms())
    assert (second.mirror.runs_dir / journal.run_id / PENDING_FILE).read_text() == "row\n"
    assert not list(tmp_path.rglob("*elsewhere*"))


@pytest.mark.parametrize("listed_alone", [0, 100])
def test_all_records_are_read_where_the_sum_of_them_is_lost(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed_alone: int
) -> None:
    monkeypatch.setattr(stored_runs, "MAX_LISTED_ALONE", listed_alone)
    first, second = Machine(storage, tmp_path / "a"), CountingMachine(storage, tmp_path / "b", 50)
    journals = []
    for _ in range(8):
        journals.append(first.begin())
        journals[-1].folder.write_assertions("much", {})
        first.end(journals[-1])
    storage.remove("state.json")
    second.mirror.fetch(now_ms())
    for journal in journals:
        assert (second.mirror.runs_dir / journal.run_id / "events.jsonl").read_bytes()
    alone = sum(
        prefix.count("/") > 1 for _, prefix in second.asked() if prefix.startswith("runs/") and prefix[-1] == "/"
    )
    assert alone == (5 if listed_alone else 0)


def test_no_number_of_assertions_or_runs_keeps_a_run_from_working(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_storage, "MAX_OBJECTS", 10)
    first, second = Machine(storage, tmp_path / "a"), CountingMachine(storage, tmp_path / "b", 50)
    for _ in range(12):
        journal = first.begin()
        for number in range(12):
            journal.folder.write_assertions(f"t{number}", {})
        first.end(journal)
    assert len([*storage.below("")]) > 150
    second.mirror.fetch(now_ms(), everything=True)
    assert not [name for _, name in second.asked() if "assertions" in name]
    assert next(storage.below(f"assertions/{journal.run_id}/")).name.endswith("/t0.json")


def test_a_limit_that_is_met_is_said_as_what_it_is(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_storage, "MAX_OBJECTS", 10)
    for number in range(11):
        storage.write(f"leases/{number}.json", b"{}")
    with pytest.raises(StoreFailure) as refused:
        storage.listed("leases/")
    unfit = refused.value.unfit(storage.uri)
    assert (unfit.code, unfit.what) == ("E695", "a folder of the state on the store has too many objects")
    assert unfit.found == "leases/ has more than 10"
    assert "delete" in (unfit.help or "")


def test_ids_sort_by_time() -> None:
    assert new_run_id(now_ms() - 31 * DAY_MS) < new_run_id(now_ms() - 30 * DAY_MS)
