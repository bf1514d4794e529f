"""Run folders: private, whole, and refused before anything is touched when they cannot be written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from maintainer.journal.folder.atomic_files import ABANDONED_AFTER_SECONDS, FolderUnwritable
from maintainer.journal.folder.run_folder import (
    MAX_FOLDERS_TIDIED,
    RunFolder,
    file_name,
    is_run_id,
    latest_time_ms,
    new_run_id,
    run_folders,
    tidy_state,
)
from tests.support.tables.builders import NOW_MS

RUN = "20261121T220000Z-7f3a"


def test_a_run_id_is_the_utc_second_and_four_hex_digits() -> None:
    made = new_run_id(NOW_MS)
    assert made.startswith("20261121T220000Z-")
    assert is_run_id(made)
    assert not is_run_id("../" + made)
    assert len({new_run_id(NOW_MS) for _ in range(20)}) > 15
    # Two runs of one second sort by time as well: history, and whatever asks for the newest run, go by the id.
    ids = [new_run_id(NOW_MS + milliseconds) for milliseconds in range(1000)]
    assert ids == sorted(ids)
    assert all(is_run_id(id_) for id_ in ids)


def test_the_folder_and_its_files_are_private(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / ".maintainer" / "runs", RUN)
    folder.write_results({"a": 1})
    path = folder.write_assertions("sales.orders@v2.after", {"success": True})
    for made, mode in ((folder.path, 0o700), (folder.path / "assertions", 0o700), (path, 0o600)):
        assert os.stat(made).st_mode & 0o777 == mode
    assert json.loads((folder.path / "results.json").read_text()) == {"a": 1}
    assert sorted(entry.name for entry in folder.path.iterdir()) == ["assertions", "results.json"]


def test_a_failed_rewrite_of_results_leaves_the_old_ones_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.create(tmp_path / ".maintainer" / "runs", RUN)
    folder.write_results({"step": 1})
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(FolderUnwritable) as caught:
        folder.write_results({"step": 2})
    assert caught.value.code == "E651"
    assert json.loads((folder.path / "results.json").read_text()) == {"step": 1}
    assert sorted(entry.name for entry in folder.path.iterdir()) == ["assertions", "results.json"]


def test_the_name_of_a_new_run_is_on_the_disk_before_anything_is_recorded_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An INTENT that is synced into a folder whose own name was lost in a power cut is lost with it."""
    synced: list[Path] = []
    monkeypatch.setattr("maintainer.journal.folder.run_folder.sync_folder", synced.append)
    runs_dir = tmp_path / ".maintainer" / "runs"
    RunFolder.create(runs_dir, RUN)
    assert synced == [runs_dir, runs_dir.parent]


@pytest.mark.parametrize("reason", ["a file is in the way", "full disk", "no permission"])
def test_a_folder_that_cannot_be_used_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    runs_dir = tmp_path / ".maintainer" / "runs"
    if reason == "a file is in the way":
        (tmp_path / ".maintainer").write_text("")
    elif reason == "full disk":
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    else:
        monkeypatch.setattr("os.replace", lambda a, b: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(FolderUnwritable) as caught:
        RunFolder.create(runs_dir, RUN)
    assert caught.value.code == "E650"
    assert caught.value.exit_code == 2
    assert caught.value.where == str(runs_dir / RUN)
    assert caught.value.help


def test_only_run_folders_are_listed_oldest_first(tmp_path: Path) -> None:
    for name in ("20261122T000000Z-0000", RUN, "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "20261123T000000Z-0000").symlink_to(tmp_path / RUN)
    assert [folder.run_id for folder in run_folders(tmp_path)] == [RUN, "20261122T000000Z-0000"]
    assert run_folders(tmp_path / "none") == []


def test_file_names_are_safe_and_never_shared() -> None:
    texts = ["a/b", "a_b", "a b", "../../etc/passwd", "s3://bucket/table", "größe", ".hidden", "x" * 300, "x" * 301, ""]
    names = [file_name(text) for text in texts]
    assert len(set(names)) == len(texts)
    assert all("/" not in name and not name.startswith(".") and 0 < len(name) <= 120 for name in names)


def test_what_killed_processes_left_half_written_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    state, run, old = tmp_path, tmp_path / "runs" / RUN, tmp_path / "runs" / "20250101T000000Z-0000"
    for folder in (state / "leases", state / "ledger", run / "assertions", old):
        folder.mkdir(parents=True)
    for number in range(MAX_FOLDERS_TIDIED - 1):
        (tmp_path / "runs" / f"20260101T0000{number:02}Z-0000").mkdir()
    abandoned = [
        state / ".state.json.0a1b2c3d.tmp",
        state / "leases" / ".t.json.0a1b2c3d.tmp",
        run / ".results.json.0a1b2c3d.tmp",
        run / "assertions" / ".a.json.0a1b2c3d.tmp",
    ]
    spared = [
        state / "ledger" / ".part.json.0a1b2c3d.tmp",
        state / "notes.tmp",
        state / ".state.json.lock",
        old / ".results.json.0a1b2c3d.tmp",
    ]
    young = state / ".state.json.ffffffff.tmp"
    for path in (*abandoned, *spared, young):
        path.write_text("half")
        os.utime(path, (0, NOW_MS / 1000 - ABANDONED_AFTER_SECONDS - 1))
    os.utime(young, (0, NOW_MS / 1000 - ABANDONED_AFTER_SECONDS + 1))
    (state / ".folder.0a1b2c3d.tmp").mkdir()
    tidy_state(tmp_path / "runs", NOW_MS)
    assert not any(path.exists() for path in abandoned)
    assert all(path.exists() for path in (*spared, young, state / ".folder.0a1b2c3d.tmp"))
    tidy_state(tmp_path / "nowhere" / "runs", NOW_MS)


def test_a_plan_in_pieces_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RUN)
    folder.write_plan(iter([b"{}", b"\n"]))
    assert (folder.path / "plan.json").read_bytes() == b"{}\n"

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        folder.write_plan(broken())
    assert (folder.path / "plan.json").read_bytes() == b"{}\n"
    assert [file.name for file in folder.path.iterdir() if file.name.endswith(".tmp")] == []


def test_runs_of_a_clock_that_was_ahead_are_the_oldest_and_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else what such a run says is the last word on each table until its time has come."""
    soon = new_run_id(latest_time_ms() - 60_000)
    ids = ["20960101T000000Z-0000", "20950101T000000Z-0000", soon, "20260301T000000Z-0000", "20260201T000000Z-0000"]
    for run_id in ids:
        (tmp_path / run_id).mkdir()
    for _ in range(2):
        assert [folder.run_id for folder in run_folders(tmp_path)] == [ids[1], ids[0], ids[4], ids[3], soon]
    (told,) = caplog.messages
    assert told.startswith("2 runs with a time in the future, such as 20950101T000000Z-0000")
