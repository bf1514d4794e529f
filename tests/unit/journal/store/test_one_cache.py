"""Two processes of one machine have one cache: neither publishes what the other has only fetched, or waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_failures import StoreFailure
from maintainer.journal.event_log import is_alive
from maintainer.journal.ledger.ledger_pending import PENDING_FILE
from maintainer.journal.store import published_run, run_pulse
from tests.support.runs.machines import Machine, intend, now_ms
from tests.support.tables.builders import make_facts, make_files

FACTS = make_facts(files=make_files(10))
SOON = 20.0
"""Seconds: longer than anything here takes that does not wait."""


@pytest.fixture
def storage() -> ObjectStorage:
    return ObjectStorage(MemoryStore(), "memory://state")


@pytest.fixture
def machines(storage: ObjectStorage, tmp_path: Path) -> tuple[Machine, Machine, Machine]:
    """One with a run, a second process on it, and another machine. The store of the first is its own client."""
    first = Machine(ObjectStorage(storage._client, storage.uri), tmp_path / "a")
    return first, Machine(storage, tmp_path / "a", 20), Machine(storage, tmp_path / "b", 50)


def written_by(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that a process will have written to the store."""
    names: list[str] = []
    write = machine.mirror.storage.write

    def listed(name: str, data: bytes) -> str:
        names.append(name)
        return write(name, data)

    monkeypatch.setattr(machine.mirror.storage, "write", listed)
    return names


def content(storage: ObjectStorage, name: str) -> bytes:
    body = storage.read(name)
    assert body is not None
    return body.data


def test_what_was_fetched_of_a_running_run_does_not_replace_what_it_ended_with(
    storage: ObjectStorage, machines: tuple[Machine, Machine, Machine]
) -> None:
    first, second, other = machines
    mine, theirs = first.begin(), other.begin()
    theirs.folder.write_results('{"early": 1}')
    other.mirror.publish()
    second.mirror.fetch(now_ms())
    assert is_alive(second.mirror.runs_dir / theirs.run_id / "events.jsonl")
    theirs.folder.write_results('{"final": 1}')
    theirs.quarantine(FACTS, "why")
    other.end(theirs)
    objects = {stored.name: stored.tag for stored in storage.listed(f"runs/{theirs.run_id}/")}
    first.mirror.publish()
    assert content(storage, f"runs/{theirs.run_id}/results.json") == b'{"final": 1}\n'
    assert {stored.name: stored.tag for stored in storage.listed(f"runs/{theirs.run_id}/")} == objects
    # What is here of a run that was seen alive is not left as it was then.
    second.mirror.fetch(now_ms())
    assert (second.mirror.runs_dir / theirs.run_id / "results.json").read_text() == '{"final": 1}\n'
    first.end(mine)


def test_what_a_run_ended_with_is_fetched_though_the_first_try_fails(
    machines: tuple[Machine, Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second, other = machines
    theirs = other.begin()
    theirs.folder.write_results('{"early": 1}')
    other.mirror.publish()
    second.mirror.fetch(now_ms())
    theirs.folder.write_results('{"final": 1}')
    other.end(theirs)
    read = second.mirror.storage.read

    def away(name: str) -> object:
        if name.endswith("results.json"):
            raise StoreFailure("E681", "Connection refused")
        return read(name)

    with monkeypatch.context() as patch:
        patch.setattr(second.mirror.storage, "read", away)
        with pytest.raises(StoreFailure):
            second.mirror.fetch(now_ms())
    second.mirror.fetch(now_ms())
    assert (second.mirror.runs_dir / theirs.run_id / "results.json").read_text() == '{"final": 1}\n'


def test_what_another_process_fetched_is_not_published(
    machines: tuple[Machine, Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, other = machines
    for _ in range(3):
        journal = other.begin()
        journal.folder.write_plan("{}")
        journal.folder.write_results("{}")
        (journal.folder.path / PENDING_FILE).write_text("row\n")
        (other.mirror.cache / "ledger.json").write_text(f'"{journal.run_id}"')
        other.end(journal)
    mine = first.begin()
    first.mirror.publish()
    second.mirror.fetch(now_ms(), everything=True)
    assert (second.mirror.runs_dir / journal.run_id / "plan.json").exists()
    written = written_by(first, monkeypatch)
    first.mirror.publish()
    assert written == []
    first.end(mine)


def test_rows_that_this_machine_made_for_the_run_of_another_one_are_published(
    storage: ObjectStorage, machines: tuple[Machine, Machine, Machine]
) -> None:
    first, _, other = machines
    theirs = other.begin()
    other.end(theirs)
    mine = first.begin()
    (first.mirror.runs_dir / theirs.run_id / PENDING_FILE).write_text("row\n")
    first.end(mine)
    assert content(storage, f"waiting_rows/{theirs.run_id}.jsonl") == b"row\n"


def test_what_waits_here_is_not_replaced_by_what_is_older_when_the_index_is_lost(
    storage: ObjectStorage, machines: tuple[Machine, Machine, Machine]
) -> None:
    first, second, _ = machines
    journal = first.begin()
    journal.folder.write_results('{"early": 1}')
    first.end(journal)
    journal.folder.write_results('{"final": 1}')
    (first.mirror.cache / "store_index.json").unlink()
    second.mirror.fetch(now_ms(), everything=True)
    second.end(second.begin())
    assert (first.mirror.runs_dir / journal.run_id / "results.json").read_text() == '{"final": 1}\n'
    assert content(storage, f"runs/{journal.run_id}/results.json") == b'{"final": 1}\n'


def test_what_is_only_a_copy_here_is_not_published_when_the_index_is_lost(
    storage: ObjectStorage, machines: tuple[Machine, Machine, Machine]
) -> None:
    first, second, other = machines
    theirs = other.begin()
    theirs.folder.write_results('{"early": 1}')
    other.mirror.publish()
    second.mirror.fetch(now_ms())
    theirs.quarantine(FACTS, "why")
    theirs.folder.write_results('{"final": 1}')
    other.end(theirs)
    (second.mirror.cache / "store_index.json").unlink()
    first.mirror.publish()
    assert content(storage, f"runs/{theirs.run_id}/results.json") == b'{"final": 1}\n'
    assert b"quarantined" in content(storage, f"runs/{theirs.run_id}/events.jsonl.00000")


def test_rows_that_another_machine_made_anew_for_a_run_of_this_one_are_fetched(
    machines: tuple[Machine, Machine, Machine],
) -> None:
    first, _, other = machines
    mine = first.begin()
    (mine.folder.path / PENDING_FILE).write_text("row\n")
    first.end(mine)
    theirs = other.begin()
    (other.mirror.runs_dir / mine.run_id / PENDING_FILE).write_text("row anew\n")
    other.end(theirs)
    first.mirror.own_run = None
    first.mirror.fetch(now_ms())
    assert (mine.folder.path / PENDING_FILE).read_text() == "row anew\n"


def held(monkeypatch: pytest.MonkeyPatch, machine: Machine, method: str, part: str) -> tuple[threading.Event, ...]:
    """Let requests of a process for some names wait: the events that one has begun, and that it may go on."""
    begun, go_on = threading.Event(), threading.Event()
    ask: Callable[..., object] = getattr(machine.mirror.storage, method)

    def slow(name: str, *rest: object) -> object:
        if part in name:
            begun.set()
            go_on.wait(SOON)
        return ask(name, *rest)

    monkeypatch.setattr(machine.mirror.storage, method, slow)
    return begun, go_on


def test_no_commit_waits_for_what_is_published_beside_it(
    machines: tuple[Machine, Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = machines
    journal = first.begin()
    begun, go_on = held(monkeypatch, first, "write", "assertions/")
    journal.folder.write_assertions("large", {})
    publisher = threading.Thread(target=first.mirror.publish)
    publisher.start()
    assert begun.wait(SOON)
    intending = threading.Thread(target=lambda: intend(journal, FACTS))
    intending.start()
    intending.join(SOON / 2)
    waited = intending.is_alive()
    go_on.set()
    publisher.join()
    intending.join()
    assert not waited
    first.end(journal)


def test_a_look_at_other_runs_does_not_wait_for_what_is_published(
    machines: tuple[Machine, Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = machines
    journal = first.begin()
    begun, go_on = held(monkeypatch, first, "write", "assertions/")
    journal.folder.write_assertions("large", {})
    publisher = threading.Thread(target=first.mirror.publish)
    publisher.start()
    assert begun.wait(SOON)
    looking = threading.Thread(target=first.run.refresh)
    looking.start()
    looking.join(SOON / 2)
    waited = looking.is_alive()
    go_on.set()
    publisher.join()
    looking.join()
    assert not waited
    first.end(journal)


def test_the_sum_of_all_runs_is_that_of_the_store_whatever_another_process_keeps(
    storage: ObjectStorage, machines: tuple[Machine, Machine, Machine]
) -> None:
    first, second, other = machines
    theirs = other.begin()
    other.end(theirs)
    mine = first.begin()
    second.mirror.fetch(now_ms())
    old = storage.read("state.json")
    assert old is not None
    last = other.begin()
    other.end(last)
    first.run.refresh()
    second.mirror.keep_state(old.data, old.tag)  # read before, and slow to be written
    second.mirror._index.save()
    first.run.refresh()
    newest = content(storage, "state.json")
    assert (first.mirror.cache / "state.json").read_bytes() == newest != old.data
    # And what another process fetched is understood here.
    later = other.begin()
    other.end(later)
    second.mirror.fetch(now_ms())
    first.run.refresh()
    assert later.run_id in first.mirror._fetch_state().run_ids
    first.end(mine)


@pytest.mark.parametrize("while_it", ["begins", "publishes", "ends"])
def test_signs_of_life_go_on_whatever_is_copied(
    machines: tuple[Machine, Machine, Machine], monkeypatch: pytest.MonkeyPatch, while_it: str
) -> None:
    first, *_ = machines
    monkeypatch.setattr(published_run, "SIGN_SECONDS", 0.01)
    renewed = threading.Semaphore(0)
    renew = run_pulse.RunPulse.renew

    def counted(pulse: run_pulse.RunPulse) -> None:
        renew(pulse)
        renewed.release()

    monkeypatch.setattr(run_pulse.RunPulse, "renew", counted)
    journals = []
    if while_it == "begins":
        begun, go_on = held(monkeypatch, first, "children", "runs/")
        work: Callable[[], object] = lambda: journals.append(first.begin())  # noqa: E731
    else:
        journals.append(first.begin())
        begun, go_on = held(monkeypatch, first, "write", "assertions/")
        journals[0].folder.write_assertions("large", {})
        work = {"publishes": lambda: None, "ends": lambda: first.run.end()}[while_it]
    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(SOON)
    for _ in range(3):
        assert renewed.acquire(timeout=SOON / 2), "no sign of life"
    go_on.set()
    thread.join()
    journals[0].close()
    first.run.end()
