"""events.jsonl: what survives a torn, damaged or locked file."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from maintainer.journal.event_log import (
    EVENTS_FILE,
    LAST_BYTES,
    REOPENED,
    EventLog,
    add_event,
    decode,
    encode,
    is_alive,
    last_event,
    read_events,
)
from maintainer.journal.folder.atomic_files import FolderUnwritable, try_lock
from maintainer.model.run.run_events import Note


def write(path: Path, *names: str) -> None:
    log = EventLog(path)
    for name in names:
        log.append({"type": name, "table": "größe\ud800"}, durable=True)
    log.close()


def test_events_come_back_as_they_were(tmp_path: Path) -> None:
    write(tmp_path / "e", "one", "two")
    read = read_events(tmp_path / "e")
    assert [event["type"] for event in read.events] == ["one", "two"]
    assert next(read.events)["table"] == "größe\ud800"
    assert read.damaged == 0
    assert (os.stat(tmp_path / "e").st_mode & 0o777) == 0o600


def test_a_file_cut_at_any_byte_loses_at_most_its_last_event(tmp_path: Path) -> None:
    path = tmp_path / "e"
    write(path, "one", "two", "three")
    data = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        read = read_events(path)
        # An event without its newline is whole all the same.
        whole = sum(end - 1 <= cut for end in ends)
        assert len(read.lines) == whole, cut
        assert read.damaged == 0


def test_the_last_event_of_a_torn_file_is_the_one_before(tmp_path: Path) -> None:
    """What another run added in a file of its own stays torn: nobody writes that file again."""
    own, added = tmp_path / EVENTS_FILE, tmp_path / "events.20261121T220003Z-7f3a.jsonl"
    assert last_event(own) is None
    write(own, "one", "two")
    for path, earlier in ((own, "one"), (added, "two")):
        path.write_bytes(own.read_bytes()) if path is added else None
        data = path.read_bytes()
        for cut in range(len(data)):
            path.write_bytes(data[:cut])
            end = last_event(own)
            ends = [i for i, byte in enumerate(data) if byte == 10]
            whole = [("one", "two")[number] for number, at in enumerate(ends) if at <= cut]
            expected = whole[-1] if whole else (None if path is own else earlier)
            assert (end and end["type"]) == expected, (path.name, cut)
        path.write_bytes(data)


def test_the_last_event_is_unknown_where_the_end_is_damaged_or_too_long(tmp_path: Path) -> None:
    path = tmp_path / EVENTS_FILE
    write(path, "one", "two")
    data = path.read_bytes()
    path.write_bytes(data[:-20] + b"x" + data[-19:])
    assert last_event(path) is None
    path.write_bytes(data[: data.index(b"\n") + 1] + b"x" * LAST_BYTES)
    assert last_event(path) is None


@pytest.mark.parametrize("position", [2, 20, 40])
def test_a_changed_byte_is_noticed_and_counted(tmp_path: Path, position: int) -> None:
    path = tmp_path / "e"
    write(path, "one", "two")
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))
    read = read_events(path)
    assert [event["type"] for event in read.events] == ["two"]
    assert (read.damaged, read.is_whole) == (1, False)


def test_appending_to_a_torn_file_starts_a_new_line_and_the_tear_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "e"
    write(path, "one")
    path.write_bytes(path.read_bytes() + encode({"type": "torn"})[:10])
    write(path, "two")
    read = read_events(path)
    assert [event["type"] for event in read.events] == ["one", REOPENED, "two"]
    assert read.is_whole


@pytest.mark.parametrize("damaged", [0, 1])
def test_two_that_append_to_a_torn_file_at_once_make_no_damage_and_hide_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: int
) -> None:
    """Two workers settle one killed run: both look at its torn end before either of them writes."""
    path = tmp_path / "e"
    write(path, "one", "two")
    path.write_bytes(path.read_bytes()[damaged:] + encode({"type": "torn"})[:10])
    look, looked = os.pread, threading.Barrier(2)

    def pread(handle: int, size: int, offset: int) -> bytes:
        end = look(handle, size, offset)
        looked.wait(30)
        return end

    monkeypatch.setattr(os, "pread", pread)
    threads = [threading.Thread(target=write, args=(path, name)) for name in ("three", "four")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    read = read_events(path)
    assert read.damaged == damaged, path.read_bytes()
    named = [event["type"] for event in read.events if event["type"] != REOPENED]
    assert sorted(named[-2:]) == ["four", "three"]
    assert named[:-2] == ["one", "two"][damaged:]


@pytest.mark.parametrize("line", [b"", b"[1]", b"{}", b"nonsense", b'{"type":"x","crc":"00000000"}', b"[" * 100_000])
def test_a_line_that_is_no_event_is_none(line: bytes) -> None:
    assert decode(line) is None


def test_a_living_run_holds_its_file(tmp_path: Path) -> None:
    path = tmp_path / "e"
    log = EventLog(path)
    assert is_alive(path)
    log.close()
    assert not is_alive(path)
    assert not is_alive(tmp_path / "none")


def test_after_a_failed_write_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e"
    log = EventLog(path)
    log.append({"type": "one"})
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(FolderUnwritable, match="no longer") as first:
            log.append({"type": "two"}, durable=True)
    assert (first.value.code, first.value.found) == ("E651", "No space left on device")
    with pytest.raises(FolderUnwritable):
        log.append({"type": "three"})
    assert [event["type"] for event in read_events(path).events] == ["one", "two"]


def test_a_line_that_nobody_would_read_back_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "e"
    log = EventLog(path)
    with pytest.raises(FolderUnwritable) as caught:
        log.append({"type": "one", "table": "x" * (4 * 1024 * 1024)})
    assert caught.value.code == "E651"
    with pytest.raises(FolderUnwritable):
        log.append({"type": "two"})
    assert not read_events(path).lines


def test_each_refusal_after_a_failed_write_says_why_the_first_one_failed() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no disk that is always full")
    log = EventLog(full)
    try:
        for _ in range(2):
            with pytest.raises(FolderUnwritable, match="can no longer be written") as caught:
                log.append({"type": "one"})
            assert "No space left on device" in (caught.value.found or "")
    finally:
        log.close()


def test_who_adds_to_the_record_of_a_run_that_is_over_does_not_make_it_look_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another table of the same run would settle nothing meanwhile of what that run left."""
    path = tmp_path / "run" / EVENTS_FILE
    path.parent.mkdir()
    write(path, "one")
    alive: list[bool] = []
    append = EventLog.append

    def looked(log: EventLog, event: dict[str, object], *, durable: bool = False) -> None:
        alive.append(is_alive(path))
        append(log, event, durable=durable)

    monkeypatch.setattr(EventLog, "append", looked)
    add_event(tmp_path, "run", Note(1, "settled", "what"), by="later")
    assert (alive, len(read_events(path).lines)) == ([False], 2)


def test_who_looks_whether_a_run_is_alive_looks_dead_to_others_and_does_not_keep_it_from_showing_life(
    tmp_path: Path,
) -> None:
    path = tmp_path / "e"
    write(path, "one")
    looking = os.open(path, os.O_RDONLY)
    assert try_lock(looking, shared=True)
    assert not is_alive(path)
    timer = threading.Timer(0.1, os.close, (looking,))
    timer.start()
    log = EventLog(path)
    assert is_alive(path)
    log.close()
    timer.join()
