"""One maintainer a table: who holds, who waits, when a lease ends, and that a sleeper commits nothing."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.errors import Refused
from maintainer.journal.event_log import EVENTS_FILE, EventLog
from maintainer.journal.folder import atomic_files
from maintainer.journal.folder.atomic_files import FolderUnwritable, LockHeld, exclusive
from maintainer.journal.folder.documents import LocalDocuments, StoredDocument, documents_in
from maintainer.journal.folder.run_folder import new_run_id
from maintainer.journal.leases import (
    LONGEST_SECONDS,
    RELEASES,
    Lease,
    Leases,
    all_leases,
    break_lease,
    current_holders,
    local_leases,
)

KEY, TABLE = "5c0e@file:/lake/t", "sales.orders"


class Hours:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


def path_of(state: Path, lease: Lease) -> Path:
    return state / "leases" / lease.name


def leases(state: Path, clock: Hours, number: int = 1, *, alive: bool = True) -> Leases:
    runs = state / "runs"
    run_id = new_run_id(1_795_000_000_000 + number * 1000)
    folder = runs / run_id
    folder.mkdir(parents=True)
    log = EventLog(folder / EVENTS_FILE)
    if not alive:
        log.close()
    ALIVE.append(log)
    return Leases(runs, run_id, clock)


ALIVE: list[EventLog] = []


def test_the_second_is_told_who_holds_it_and_gets_it_when_it_is_given_back(tmp_path: Path) -> None:
    clock = Hours()
    first, second = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease = first.acquire(KEY, TABLE)
    with pytest.raises(Refused, match="another run is working on the table") as caught:
        second.acquire(KEY, TABLE)
    assert caught.value.code == "A406"
    assert "its lease ends in 120 s" in (caught.value.found or "")
    first.check(lease, TABLE)
    first.release(lease)
    assert second.acquire(KEY, TABLE).token == lease.token + 1
    assert second.acquire("another@file:/lake/u", "u").token == 1


def test_a_process_that_is_paused_with_the_lock_in_its_hands_costs_the_others_this_table_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_files, "LOCK_SECONDS", 0.05)
    clock = Hours()
    paused, other = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease = paused.acquire(KEY, TABLE)
    clock.now += 121_000
    lock = path_of(tmp_path, lease).with_name(f".{lease.name}.lock")
    with exclusive(lock):
        with pytest.raises(Refused, match="another run is working on the table") as caught:
            other.acquire(KEY, TABLE)
        assert other.acquire("another@file:/lake/u", "u").token == 1
        with pytest.raises(LockHeld) as unbroken:
            break_lease(local_leases(tmp_path / "runs"), lease.name, "20261121T220000Z-ffff")
    unwritable = FolderUnwritable.at(tmp_path / "leases", unbroken.value, code="E651")
    assert f"`fuser {lock}`" in (unwritable.help or "")
    assert caught.value.code == "A406"
    assert caught.value.found == f"another process has held the lock {lock} for 0.05 s, and may be paused"
    assert f"`fuser {lock}`" in (caught.value.help or "")
    assert other.acquire(KEY, TABLE).token == 2


def test_a_lease_ends_when_it_is_not_renewed_and_the_sleeper_is_fenced_off(tmp_path: Path) -> None:
    clock = Hours()
    sleeper, other = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease = sleeper.acquire(KEY, TABLE)
    clock.now += 119_000
    sleeper.renew()
    clock.now += 119_000
    with pytest.raises(Refused):
        other.acquire(KEY, TABLE)
    clock.now += 1_000
    taken = other.acquire(KEY, TABLE)
    with pytest.raises(Refused, match="the lease on the table was lost") as caught:
        sleeper.check(lease, TABLE)
    assert caught.value.code == "A407"
    sleeper.renew()
    sleeper.release(lease)
    other.check(taken, TABLE)


def test_a_dead_run_of_this_machine_holds_nothing(tmp_path: Path) -> None:
    clock = Hours()
    dead, other = leases(tmp_path, clock, 1, alive=False), leases(tmp_path, clock, 2)
    dead.acquire(KEY, TABLE)
    assert other.acquire(KEY, TABLE).token == 2


def test_close_gives_everything_back(tmp_path: Path) -> None:
    clock = Hours()
    first, second = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    first.acquire(KEY, TABLE)
    first.acquire("b", "b")
    first.close()
    assert (second.acquire(KEY, TABLE).token, second.acquire("b", "b").token) == (2, 2)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run_id": 3}', b"\xff\xfe"])
def test_a_damaged_lease_keeps_nobody_out(tmp_path: Path, content: bytes) -> None:
    clock = Hours()
    first, second = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease = first.acquire(KEY, TABLE)
    path_of(tmp_path, lease).write_bytes(content)
    second.acquire(KEY, TABLE)
    with pytest.raises(Refused):
        first.check(lease, TABLE)


@pytest.mark.parametrize("table", [TABLE, "/lake/caf\udce9"])
def test_a_lease_of_a_newer_version_or_an_odd_name_holds(tmp_path: Path, table: str) -> None:
    clock = Hours()
    first, second = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease = first.acquire(KEY, table)
    path_of(tmp_path, lease).write_text(json.dumps({**json.loads(path_of(tmp_path, lease).read_text()), "later": [1]}))
    first.check(lease, table)
    with pytest.raises(Refused, match="another run is working on the table"):
        second.acquire(KEY, table)


def test_of_many_at_once_exactly_one_gets_it(tmp_path: Path) -> None:
    clock = Hours()
    everyone = [leases(tmp_path, clock, number) for number in range(8)]
    start, won = threading.Barrier(8), []

    def ask(leases: Leases) -> None:
        start.wait()
        try:
            won.append(leases.acquire(KEY, TABLE))
        except Refused:
            return

    threads = [threading.Thread(target=ask, args=(leases,)) for leases in everyone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [lease.token for lease in won] == [1]


def test_who_works_on_what_can_be_asked_without_taking_anything(tmp_path: Path) -> None:
    clock = Hours()
    assert current_holders(tmp_path / "runs", clock.now) == {}
    first, second = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    dead = leases(tmp_path, clock, 3, alive=False)
    lease, other = first.acquire(KEY, TABLE), second.acquire("another@file:/lake/u", "u")
    dead.acquire("third@file:/lake/v", "v")
    holders = current_holders(tmp_path / "runs", clock.now)
    assert {table: held.token for table, held in holders.items()} == {TABLE: lease.token, "u": other.token}
    assert holders[TABLE].run_id != holders["u"].run_id
    first.release(lease)
    assert list(current_holders(tmp_path / "runs", clock.now)) == ["u"]
    assert current_holders(tmp_path / "runs", clock.now + 120_000) == {}


@pytest.mark.parametrize("ends_in_seconds", [LONGEST_SECONDS + 1, 74 * 365 * 86_400])
def test_a_lease_that_ends_later_than_any_can_keeps_nobody_out(tmp_path: Path, ends_in_seconds: int) -> None:
    clock = Hours()
    first, second = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease = first.acquire(KEY, TABLE)
    written = json.loads(path_of(tmp_path, lease).read_text())
    written["expires_at_ms"] = clock.now + ends_in_seconds * 1000
    path_of(tmp_path, lease).write_text(json.dumps(written))
    assert current_holders(tmp_path / "runs", clock.now) == {}
    assert second.acquire(KEY, TABLE).token == lease.token + 1
    with pytest.raises(Refused):
        first.check(lease, TABLE)


def test_a_clock_that_is_minutes_ahead_still_holds_its_lease(tmp_path: Path) -> None:
    clock, ahead = Hours(), Hours()
    ahead.now = clock.now + 9 * 60_000
    leases(tmp_path, ahead, 1).acquire(KEY, TABLE)
    with pytest.raises(Refused):
        leases(tmp_path, clock, 2).acquire(KEY, TABLE)


def test_a_broken_lease_is_free_and_its_holder_commits_nothing_more(tmp_path: Path) -> None:
    clock = Hours()
    holder, other = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease = holder.acquire(KEY, TABLE)
    ((name, held),) = all_leases(local_leases(tmp_path / "runs"))
    assert (name, held.table) == (lease.name, TABLE)
    broken = break_lease(local_leases(tmp_path / "runs"), name, "by-hand")
    assert broken == held
    holder.renew()
    assert current_holders(tmp_path / "runs", clock.now) == {}
    with pytest.raises(Refused, match="the lease on the table was lost") as caught:
        holder.check(lease, TABLE)
    assert "run by-hand" in (caught.value.found or "")
    holder.release(lease)
    assert other.acquire(KEY, TABLE).token == lease.token + 2


def test_two_tables_with_one_id_share_the_lease_of_their_run_and_keep_others_out(tmp_path: Path) -> None:
    clock = Hours()
    first, second = leases(tmp_path, clock, 1), leases(tmp_path, clock, 2)
    lease, same = first.acquire("id-a", "lake/a"), first.acquire("id-a", "lake/copy")
    first.release(lease)
    first.check(same, "lake/copy")
    with pytest.raises(Refused, match="another run") as caught:
        second.acquire("id-a", "lake/copy")
    assert "at lake/a, which has the same id" in (caught.value.found or "")
    first.release(same)
    second.release(second.acquire("id-a", "lake/copy"))
    first.close()
    second.close()


def test_a_lease_that_cannot_be_read_may_be_somebodys(tmp_path: Path) -> None:
    clock = Hours()
    first, second = leases(tmp_path, clock), leases(tmp_path, clock, 2)
    lease = first.acquire(KEY, TABLE)
    path_of(tmp_path, lease).unlink()
    path_of(tmp_path, lease).mkdir()  # whoever may read whatever they like cannot read a folder as a file
    with pytest.raises(Refused) as lost:
        first.check(lease, TABLE)
    assert lost.value.code == "A407"
    assert "cannot be read" in lost.value.what
    assert "Is a directory" in (lost.value.found or "")
    with pytest.raises(FolderUnwritable, match="written") as refused:
        second.acquire(KEY, TABLE)
    assert refused.value.found == "Is a directory"


def test_a_lease_is_given_back_though_a_read_fails_and_if_none_succeeds_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Hours()
    mine = leases(tmp_path, clock)
    real = Path.read_bytes
    failures: list[OSError] = []

    def read_bytes(path: Path) -> bytes:
        if failures and path.suffix == ".json":
            raise failures.pop()
        return real(path)

    lease = mine.acquire(KEY, TABLE)
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    failures.append(OSError(5, "Input/output error"))
    assert mine.release(lease) is None
    assert current_holders(tmp_path / "runs", clock()) == {}
    lease = mine.acquire(KEY, TABLE)
    failures.extend(OSError(5, "Input/output error") for _ in range(RELEASES))
    left = mine.release(lease)
    assert left is not None
    assert left.strerror == "Input/output error"
    assert [holder.table for _, holder in all_leases(local_leases(tmp_path / "runs"))] == [TABLE]


def test_the_lease_of_a_table_that_nobody_had_for_a_month_is_deleted_and_no_other(tmp_path: Path) -> None:
    clock = Hours()
    clock.now = time.time_ns() // 1_000_000
    first, last = leases(tmp_path, clock), leases(tmp_path, clock, 2)
    given = {days: first.acquire(f"{days}@file:/lake/t", f"t{days}") for days in (0, 29, 31)}
    first.close()
    for days, lease in given.items():
        os.utime(path_of(tmp_path, lease), (time.time() - days * 86_400,) * 2)
    last.close()
    assert {days: path_of(tmp_path, lease).exists() for days, lease in given.items()} == {0: True, 29: True, 31: False}
    assert not [*(tmp_path / "leases").glob(".31@*")], "and its lock file"


def test_leases_on_a_store_are_deleted_by_its_clock(tmp_path: Path) -> None:
    storage, clock = ObjectStorage(MemoryStore(), "memory://state"), Hours()
    clock.now = time.time_ns() // 1_000_000
    shared = documents_in(storage, "leases")
    held = Leases(tmp_path, "20261121T220000Z-0000", clock, documents=shared)
    held.acquire(KEY, TABLE)
    held.close()
    later = Leases(tmp_path, "20261121T220001Z-0000", clock, documents=shared)
    for days, num_left in ((29, 1), (31, 0)):
        clock.now = time.time_ns() // 1_000_000 + days * 86_400_000
        later.close()
        assert len(shared.names()) == num_left


def test_a_lease_that_was_deleted_and_given_anew_is_not_renewed_by_whoever_had_it(tmp_path: Path) -> None:
    """Its token is the same again."""
    clock = Hours()
    sleeper, next_run = leases(tmp_path, clock), leases(tmp_path, clock, 2)
    old = sleeper.acquire(KEY, TABLE)
    path_of(tmp_path, old).unlink()
    new = next_run.acquire(KEY, TABLE)
    assert new.token == old.token
    sleeper.renew()
    next_run.check(new, TABLE)
    with pytest.raises(Refused, match="was lost"):
        sleeper.check(old, TABLE)


def test_leases_are_read_side_by_side(tmp_path: Path) -> None:
    clock, together = Hours(), threading.Barrier(4)
    given = leases(tmp_path, clock)
    for number in range(4):
        given.acquire(f"{number}@file:/lake/t", f"t{number}")

    class Slow(LocalDocuments):
        def read(self, name: str) -> StoredDocument | None:
            together.wait(20)
            return super().read(name)

    assert [holder.table for _, holder in all_leases(Slow(tmp_path / "leases"))] == ["t0", "t1", "t2", "t3"]
    given.close()
