"""Two machines and one state: what each recorded is seen by the other, and no run loses what another one wrote."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import ObjectBody
from maintainer.engine.store.store_failures import StoreFailure
from maintainer.errors import Refused
from maintainer.journal.event_log import EVENTS_FILE, is_alive, last_event, read_events
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.folder.documents import documents_in
from maintainer.journal.leases import LEASE_SECONDS, RENEWALS, Leases, current_holders
from maintainer.journal.ledger.ledger_pending import PENDING_FILE
from maintainer.journal.memory.past_runs import recorded_step
from maintainer.journal.memory.table_records import remembered
from maintainer.journal.store import run_pulse, state_mirror
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import CommitEnd
from maintainer.model.table.table_facts import TableRecord
from tests.support.runs.machines import Machine, intend, now_ms
from tests.support.tables.builders import make_facts, make_files
from tests.support.writers import recorded_events
from tests.support.writers.recorded_events import unfinished

FACTS = make_facts(files=make_files(10))


class Switchable:
    """A store that can be away."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage
        self.uri = storage.uri
        self.away = False

    def __getattr__(self, name: str) -> object:
        if self.away and name in (
            "listed",
            "children",
            "below",
            "head",
            "read",
            "write",
            "remove",
            "replace",
            "store_ms",
        ):
            raise StoreFailure("E681", "Connection refused")
        return getattr(self._storage, name)


@pytest.fixture
def storage() -> ObjectStorage:
    return ObjectStorage(MemoryStore(), "memory://state")


def record_at(machine: Machine) -> TableRecord:
    """What a machine remembers of the table."""
    return remembered(machine.mirror.runs_dir).record_of(FACTS.table_id, FACTS.location, StoragePlaces())


@pytest.fixture
def machines(storage: ObjectStorage, tmp_path: Path) -> tuple[Machine, Machine]:
    return Machine(storage, tmp_path / "a"), Machine(storage, tmp_path / "b", 50)


def test_what_one_machine_recorded_an_empty_one_knows(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    journal = first.begin()
    journal.quarantine(FACTS, "a proof failed")
    first.end(journal)
    journal = second.begin()
    record = record_at(second)
    assert record.quarantined == "a proof failed"
    journal.accept(FACTS, record, reason="looked at", by="somebody")
    second.end(journal)
    first.mirror.fetch(now_ms())
    assert record_at(first).quarantined is None


@pytest.mark.parametrize("name", ["found_tables.json", "ledger.json", "hook_commits.json"])
def test_what_lies_beside_the_run_folders_is_known_on_an_empty_machine(
    machines: tuple[Machine, Machine], name: str
) -> None:
    first, second = machines
    journal = first.begin()
    (first.mirror.cache / name).write_text("of the first")
    first.end(journal)
    other = second.begin()
    assert (second.mirror.cache / name).read_text() == "of the first"
    (second.mirror.cache / name).write_text("of the second")
    second.end(other)
    first.mirror.fetch(now_ms())
    assert (first.mirror.cache / name).read_text() == "of the second"


def test_an_intent_is_on_the_store_when_it_is_written(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    journal = first.begin()
    intend(journal, FACTS)
    second.mirror.fetch(now_ms())
    events = tuple(read_events(second.mirror.runs_dir / journal.run_id / EVENTS_FILE).events)
    assert [event["type"] for event in events] == ["record_opened", "intent"]
    first.end(journal)


def test_a_run_elsewhere_is_alive_and_nothing_of_it_is_settled(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    journal = first.begin()
    intend(journal, FACTS)
    other = second.begin()
    assert is_alive(second.mirror.runs_dir / journal.run_id / EVENTS_FILE)
    assert unfinished(second.mirror.runs_dir, except_run=other.run_id) == ()
    second.end(other)
    state = first.mirror.storage.read("state.json")
    assert state is not None
    assert journal.run_id not in state.data.decode()
    first.end(journal)


def test_a_run_without_a_sign_of_life_is_ended_and_settled_and_commits_nothing_more(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = machines
    monkeypatch.setattr(run_pulse, "PULSE_SECONDS", -1)
    dead = first.begin()
    intend(dead, FACTS)
    monkeypatch.undo()
    journal = second.begin()
    (intent,) = unfinished(second.mirror.runs_dir, except_run=journal.run_id)
    assert intent.stamp.run_id == dead.run_id
    journal.settled(intent, CommitEnd.NOT_LANDED, None)
    second.end(journal)
    # The run that slept wakes up.
    monkeypatch.setattr(first.run._pulse, "_renewed", -1000.0)
    with pytest.raises(FolderUnwritable, match="another run ended this one") as ended:
        intend(dead, FACTS, batch=1)
    assert (ended.value.code, journal.run_id in (ended.value.found or "")) == ("E685", True)
    # Its own machine learns what the other one found out, though the record is not its own writing.
    dead.close()
    first.mirror.own_run = None
    first.mirror.fetch(now_ms())
    path = first.mirror.runs_dir / dead.run_id / EVENTS_FILE
    end = last_event(path)
    assert end is not None
    assert (end["type"], end["by"]) == ("settled", journal.run_id)
    assert [intent.stamp.batch for intent in unfinished(first.mirror.runs_dir)] == [1]


def test_a_machine_that_slept_looks_whether_its_run_was_ended_though_its_own_clock_stood_still(
    storage: ObjectStorage,
) -> None:
    began, slept = now_ms(), [0]
    pulse = run_pulse.RunPulse(storage, "slept", lambda: began + slept[0])
    pulse.begin()
    pulse.renew_if_late()
    slept[0] = 3_600_000
    assert run_pulse.living_runs(storage, began + slept[0], ended_by="other") == {"slept": False}
    with pytest.raises(run_pulse.EndedByAnother):
        pulse.renew_if_late()


def test_a_commit_that_lands_after_another_machine_did_not_find_it_is_told(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine slept right before its commit, longer than its lease: it had been asked for everything before."""
    first, second = machines
    monkeypatch.setattr(run_pulse, "PULSE_SECONDS", -1)
    slept = first.begin()
    stamp = intend(slept, FACTS)
    monkeypatch.undo()
    journal = second.begin()
    (intent,) = unfinished(second.mirror.runs_dir, except_run=journal.run_id)
    journal.settled(intent, CommitEnd.NOT_LANDED, None)
    second.end(journal)
    recorded_events.result(slept, stamp, FACTS, "compact", CommitEnd.LANDED, receipt=CommitReceipt(4, 3))
    first.end(slept)
    for machine in machines:
        machine.mirror.fetch(now_ms(), everything=True)
        step = recorded_step(machine.mirror.runs_dir, stamp)
        assert step is not None
        assert [commit.version for commit in step.commits(step.landed)] == [4]
        assert record_at(machine).unproven_versions == (4,)


def test_a_late_commit_is_told(machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread was given up, in a watch that goes on; another machine sees no lock, and looked before."""
    first, second = machines
    stamp = intend(watch := first.begin(), FACTS)
    watch.given_up.add(stamp.step_id)
    first.end(watch)
    monkeypatch.setattr(state_mirror, "PULSE_SECONDS", -1)
    journal = second.begin()
    (intent,) = unfinished(second.mirror.runs_dir, except_run=journal.run_id)
    journal.settled(intent, CommitEnd.NOT_LANDED, None)
    second.end(journal)
    recorded_events.result(watch, stamp, FACTS, "compact", CommitEnd.LANDED, receipt=CommitReceipt(4, 3))
    for machine in (second, first):
        machine.end(machine.begin())
        assert record_at(machine).unproven_versions == (4,)


def test_whoever_takes_the_lease_of_a_dead_run_finds_that_it_is_dead(storage: ObjectStorage, tmp_path: Path) -> None:
    """Else the table is worked on before it is settled what the dead run tried. A lease is renewed by a thread that may
    have done so a whole interval before the last sign of life."""
    died = now_ms()
    run_pulse.RunPulse(storage, "dead", lambda: died).begin()
    renewed, shared = died - LEASE_SECONDS * 1000 // RENEWALS, documents_in(storage, "leases")
    Leases(tmp_path, "dead", lambda: renewed, documents=shared).acquire(FACTS.table_id, "t")
    holder = current_holders(tmp_path, died, shared)["t"]
    assert run_pulse.living_runs(storage, holder.expires_at_ms, ended_by=None) == {"dead": False}


def test_what_a_run_publishes_after_it_was_thought_to_be_over_is_known_everywhere(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away for it; another machine counted it as over, and its state says so to all that come later."""
    switch = Switchable(storage)
    first, second = Machine(switch, tmp_path / "a"), Machine(storage, tmp_path / "b", 50)  # type: ignore[arg-type]
    monkeypatch.setattr(run_pulse, "PULSE_SECONDS", -1)
    away = first.begin()
    switch.away = True
    away.quarantine(FACTS, "found while the store was away")
    second.end(second.begin())
    assert record_at(second).quarantined is None
    for number in range(state_mirror.NEWEST_RUNS):  # it is none of the newest any more
        (second.mirror.runs_dir / f"20991231T2359{number // 10:02}Z-{number:04}").mkdir()
        storage.write(f"runs/20991231T2359{number // 10:02}Z-{number:04}/notes.txt", b"a run")
    switch.away = False
    away.finished()
    away.close()
    monkeypatch.undo()
    first.run._mirror.publish()
    second.mirror.fetch(now_ms())
    assert record_at(second).quarantined == "found while the store was away"
    third = Machine(storage, tmp_path / "c", 90)
    third.mirror.fetch(now_ms())
    assert record_at(third).quarantined == "found while the store was away"


def test_two_runs_that_end_at_once_lose_nothing(storage: ObjectStorage, tmp_path: Path) -> None:
    machines = [Machine(storage, tmp_path / str(number), number * 10) for number in range(4)]
    journals = [machine.begin() for machine in machines]
    for number, journal in enumerate(journals):
        facts = make_facts(files=make_files(1), name=f"s.t{number}", table_id=f"id-{number}")
        journal.quarantine(facts, f"why {number}")
    failures: list[BaseException] = []

    def end(number: int) -> None:
        try:
            machines[number].end(journals[number])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=end, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    late = Machine(storage, tmp_path / "late")
    late.mirror.fetch(now_ms())
    known = remembered(late.mirror.runs_dir).tables
    places = [record for records in known.values() for record in records.values()]
    reasons = {quarantine.reason for record in places for quarantine in record.quarantines.values()}
    assert reasons == {f"why {number}" for number in range(4)}


def test_a_lease_is_seen_on_another_machine_and_a_lock_there_means_nothing(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    journal, other = first.begin(), second.begin()
    mine, theirs = journal.leases(now_ms), other.leases(now_ms)
    lease = mine.acquire("id", "s.t")
    with pytest.raises(Refused, match="another run is working on the table"):
        theirs.acquire("id", "s.t")
    assert list(current_holders(second.mirror.runs_dir, now_ms(), second.run.shared("leases"))) == ["s.t"]
    mine.release(lease)
    taken = theirs.acquire("id", "s.t")
    assert taken.token == lease.token + 1
    with pytest.raises(Refused, match="was lost"):
        mine.check(lease, "s.t")
    for leases in (mine, theirs):
        leases.close()
    first.end(journal)
    second.end(other)


def test_a_store_that_goes_away_loses_nothing(storage: ObjectStorage, tmp_path: Path) -> None:
    switch = Switchable(storage)
    first = Machine(switch, tmp_path / "a")  # type: ignore[arg-type]
    journal = first.begin()
    stamp = intend(journal, FACTS)
    switch.away = True
    recorded_events.result(journal, stamp, FACTS, "compact", CommitEnd.NOT_LANDED)
    journal.quarantine(FACTS, "seen while the store was away")
    with pytest.raises(FolderUnwritable) as refused:
        intend(journal, FACTS, batch=1)
    assert (refused.value.code, refused.value.what) == (
        "E681",
        "the store of the state cannot be reached, so nothing more is committed",
    )
    journal.finished()
    journal.close()
    with pytest.raises(StoreFailure):
        journal.update_state()
    problem = first.run.end()
    assert problem is not None
    assert (problem.code, problem.where) == ("E686", str(first.mirror.runs_dir / journal.run_id))
    switch.away = False
    after = Machine(switch, tmp_path / "a", 10)  # type: ignore[arg-type]
    after.end(after.begin())
    elsewhere = Machine(storage, tmp_path / "b")
    elsewhere.mirror.fetch(now_ms(), everything=True)
    events = tuple(read_events(elsewhere.mirror.runs_dir / journal.run_id / EVENTS_FILE).events)
    assert [event["type"] for event in events][-4:] == ["result", "quarantined", "intent", "run_finished"]
    assert record_at(elsewhere).quarantined == "seen while the store was away"


def test_a_record_is_cut_into_parts_of_which_only_the_last_is_written_again(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_mirror, "PART_BYTES", 300)
    first, second = machines
    journal = first.begin()
    written: list[str] = []
    write = first.mirror.storage.write

    def counted(name: str, data: bytes) -> str:
        written.append(name)
        return write(name, data)

    monkeypatch.setattr(first.mirror.storage, "write", counted)
    for number in range(20):
        journal.quarantine(FACTS, f"reason {number}")
        if number == 10:
            second.mirror.fetch(now_ms())
    parts = [int(name.rpartition(".")[2]) for name in written if "events.jsonl" in name]
    assert parts == sorted(parts)
    assert max(parts) > 5
    assert len(parts) <= 20 * 3, "what is whole is not written again"
    second.mirror.fetch(now_ms())
    own, fetched = (machine.mirror.runs_dir / journal.run_id / EVENTS_FILE for machine in machines)
    assert fetched.read_bytes() == own.read_bytes()
    first.end(journal)


def test_an_empty_machine_fetches_only_what_a_run_must_know(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    for _ in range(2):
        journal = first.begin()
        journal.folder.write_plan("{}")
        journal.folder.write_results("{}")
        (journal.folder.path / "spark.log").write_text("much")
        first.end(journal)
    folder = second.mirror.runs_dir / journal.run_id
    second.mirror.fetch(now_ms())
    assert sorted(path.name for path in folder.iterdir()) == [EVENTS_FILE]
    second.mirror.fetch(now_ms(), everything=True)
    assert sorted(path.name for path in folder.iterdir()) == [EVENTS_FILE, "plan.json", "results.json"]
    assert (folder / "plan.json").read_text() == "{}\n"


def test_rows_that_another_machine_appended_wait_no_longer(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    journal = first.begin()
    waiting = journal.folder.path / PENDING_FILE
    waiting.write_text("row\n")
    first.end(journal)
    other = second.begin()
    there = second.mirror.runs_dir / journal.run_id / PENDING_FILE
    assert there.read_text() == "row\n"
    there.unlink()  # appended to the ledger
    second.end(other)
    assert waiting.exists()
    first.mirror.own_run = None
    first.mirror.fetch(now_ms())
    assert not waiting.exists()


def test_an_index_that_is_lost_costs_requests_and_nothing_else(storage: ObjectStorage, tmp_path: Path) -> None:
    first = Machine(storage, tmp_path / "a")
    journal = first.begin()
    journal.quarantine(FACTS, "why")
    first.end(journal)
    before = {stored.name: storage.read(stored.name) for stored in storage.listed("runs/")}
    (tmp_path / "a" / "store_index.json").write_text("damaged")
    again = Machine(storage, tmp_path / "a", 5)
    again.end(again.begin())
    for name, document in before.items():
        now = storage.read(name)
        assert isinstance(now, ObjectBody)
        assert document is not None
        assert now.data == document.data
