"""How it goes wrong on the way: A14, A15 and stopping of the threats in docs/safe-vacuum.md.

Each test takes a hash of every file below the lake before and after, and says exactly which files went: everything else
must be there with the same content. The only files that may be new are VACUUM's own commits.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from maintainer.delta.storage.file_store import DeletedMany, StoredFile
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.vacuum.file_deletion import take_away
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import MaintainerError, VerificationFailed
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.progress import Phase, StepProgress
from maintainer.model.run.receipts import VacuumReceipt
from tests.support.tables.aged_tables import AgedTable, tree
from tests.support.tables.local_vacuum import LocalTable, Vacuuming
from tests.support.tables.vacuum_cases import Killed, Stubborn, assert_only, policies, vacuum, wide_table


def ended(table: AgedTable) -> tuple[str, int]:
    """What the newest commit, VACUUM END, says: its status and how many files went."""
    info = json.loads((table.path / "_delta_log" / f"{table.head:020}.json").read_text())["commitInfo"]
    assert info["operation"] == "VACUUM END"
    return info["operationParameters"]["status"], info["numDeletedFiles"]


class Bulk(LocalFiles):
    """A store that deletes many files by one request and keeps one of them, with an answer for it, none, or no end."""

    def __init__(self, kept: str, answer: str | OSError | None) -> None:
        self._kept, self._answer = kept, answer

    def delete_many(self, uris: Sequence[str]) -> DeletedMany | None:
        kept = [uri for uri in uris if uri.endswith(f"/{self._kept}")]
        for uri in uris:
            if uri not in kept:
                self.delete(uri)
        if isinstance(self._answer, OSError):
            raise self._answer
        return DeletedMany(dict.fromkeys(kept, self._answer) if self._answer else {})


class Noted(StepMeter):
    """A meter that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[StepProgress] = []
        super().__init__()

    def begin(self, phase: Phase, total_bytes: int = 0) -> None:
        super().begin(phase, total_bytes)
        self.told.append(self.progress())

    def files(self, num_done: int, num_total: int) -> None:
        super().files(num_done, num_total)
        self.told.append(self.progress())


def test_what_is_waited_for_before_a_deletion_is_said_and_how_far_the_look_is(lake: Path) -> None:
    table, _ = wide_table(lake)
    work, meter = Vacuuming(policies()), Noted()
    step = work.step(table)
    assert step is not None
    work.meter = meter
    work.delete(table, step)
    assert [told.phase for told in meter.told if not told.num_files] == [
        Phase.READING_LOG, Phase.LOOKING, Phase.READING_LOG, Phase.COMMITTING,
    ]  # fmt: skip
    looks = [(told.num_files_done, told.num_files) for told in meter.told if told.num_files]
    assert (looks[0], looks[-1], looks) == ((0, 20), (20, 20), sorted(looks))


class TestA14WhatWillNotGo:
    @pytest.mark.parametrize("nth", range(1, 21))
    def test_each_is_named(self, lake: Path, nth: int) -> None:
        table, names = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        receipt = work.delete(table, step, storage=Stubborn(table.path, nth, PermissionError(13, "Permission denied")))
        (left,) = receipt.remaining
        name, reason = left.split(" ", 1)
        assert (name in names, reason) == (True, "([Errno 13] Permission denied)")
        assert receipt.num_files_deleted == 19
        assert_only(lake, before, *(f"t/{other}" for other in names if other != name))
        assert ended(table) == ("FAILED", 19)

    def test_only_a_deletion_of_all_is_completed(self, lake: Path) -> None:
        table, names = wide_table(lake)
        vacuum(lake, table, Vacuuming(policies()), *names)
        assert ended(table) == ("COMPLETED", 20)

    def test_a_file_that_cannot_be_moved_to_the_trash_is_named(self, lake: Path) -> None:
        table, names = wide_table(lake)
        work = Vacuuming(policies(trash_seconds=7 * 86_400))
        step = work.step(table)
        assert step is not None

        def block() -> None:
            (folder,) = (lake / ".maintainer-trash").iterdir()
            (target,) = folder.iterdir()
            (target / "files").mkdir()
            (target / "files" / names[3]).write_bytes(b"in the way")

        receipt = work.delete(table, step, after_start=block)
        assert (receipt.num_files_deleted, [line.split(" ")[0] for line in receipt.remaining]) == (19, [names[3]])
        assert ended(table) == ("FAILED", 19)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [("AccessDenied", " (AccessDenied)"), (None, ""), (OSError("no answer"), " (no answer)")],
    )
    def test_of_a_request_for_many_each_file_has_its_own_answer(
        self, lake: Path, answer: str | OSError | None, said: str
    ) -> None:
        table, names = wide_table(lake)
        work, storage = Vacuuming(policies()), LocalTable(table.path)
        step = work.step(table)
        assert step is not None
        before, storage.files = tree(lake), Bulk(names[3], answer)
        receipt = work.delete(table, step, storage=storage)
        assert (receipt.num_files_deleted, receipt.remaining) == (19, (f"{names[3]}{said}",))
        assert_only(lake, before, *(f"t/{name}" for name in names if name != names[3]))
        assert ended(table) == ("FAILED", 19)

    def test_a_hidden_file_counts_like_any_other(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "live.parquet", ".hidden.parquet", "x.parquet")
        table.rewrite(20, "new.parquet", ".hidden.parquet", "x.parquet")
        vacuum(lake, table, Vacuuming(policies()), ".hidden.parquet", "x.parquet")
        assert ended(table) == ("COMPLETED", 2)


SICK = OSError(errno.EIO, "Input/output error")


class SickLog(LocalTable):
    """Storage whose log cannot be read while a condition holds."""

    def __init__(self, path: Path, is_sick: Callable[[], bool], error: Exception) -> None:
        super().__init__(path)
        self._is_sick, self._error = is_sick, error

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        if self._is_sick():
            raise self._error
        return super().commits(after_version=after_version)

    def log_files(self) -> dict[str, StoredFile]:
        if self._is_sick():
            raise self._error
        return super().log_files()


class TestALogThatCannotBeReadOnTheWay:
    @pytest.mark.parametrize(
        ("error", "code"),
        [(SICK, "T447"), (ValueError("Unterminated string"), "T403")],
    )
    def test_what_went_is_counted_and_the_cause_is_named(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
    ) -> None:
        monkeypatch.setattr("maintainer.delta.vacuum.file_deletion.CHUNK", 5)
        table, names = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        storage = SickLog(table.path, lambda: sum((table.path / name).exists() for name in names) == 15, error)
        with pytest.raises(MaintainerError) as caught:
            work.delete(table, step, storage=storage)
        assert caught.value.code == code
        assert caught.value.what.endswith("; 5 files had been deleted before")
        assert "nothing was changed" not in (caught.value.help or "")
        assert ended(table) == ("FAILED", 5)

    def test_nothing_goes_where_the_time_of_the_first_commit_cannot_be_read(self, lake: Path) -> None:
        table, _ = wide_table(lake)
        work, first = Vacuuming(policies()), table.head
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        with pytest.raises(MaintainerError) as caught:
            work.delete(table, step, storage=SickLog(table.path, lambda: table.head > first, SICK))
        assert caught.value.code == "T447"
        assert_only(lake, before)
        assert ended(table) == ("FAILED", 0)


class TestA15KilledInTheMiddle:
    @pytest.mark.parametrize("nth", range(1, 21))
    def test_the_next_run_takes_the_rest(self, lake: Path, nth: int) -> None:
        table, names = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        before = tree(lake)
        with pytest.raises(Killed):
            work.delete(table, step, storage=Stubborn(table.path, nth, Killed()))
        left = {f"t/{name}" for name in names} & tree(lake).keys()
        assert left
        rest = work.step(table)
        assert rest is not None
        assert {f"t/{file.path}" for file in rest.files} == left
        work.delete(table, rest)
        assert_only(lake, before, *(f"t/{name}" for name in names))
        assert work.step(table) is None


class TestStopping:
    @pytest.mark.parametrize(
        ("by_request", "sizes"), [(True, [1_000, 1_000, 200]), (False, [500, 500, 500, 500, 200])], ids=["many", "each"]
    )
    def test_right_before_each_request_and_each_chunk_is_a_check(self, by_request: bool, sizes: list[int]) -> None:
        uris, gone, seen = [str(number) for number in range(2_200)], list[str](), list[int]()

        def remove_many(part: list[str]) -> DeletedMany | None:
            if by_request:
                gone.extend(part)
            return DeletedMany({}) if by_request else None

        done = take_away(
            uris, gone.append, stop_reason=lambda: None, check=lambda: seen.append(len(gone)), remove_many=remove_many
        )
        assert [after - before for before, after in pairwise([*seen, len(gone)])] == sizes
        assert (sorted(gone), done.num_tried, done.errors) == (sorted(uris), len(uris), {})

    def test_the_delete_markers_of_each_request_are_told_before_the_next_one(self) -> None:
        uris, told = [str(number) for number in range(2_100)], list[tuple[int, int]]()

        def remove_many(part: list[str]) -> DeletedMany:
            told.append((-1, len(part)))
            return DeletedMany({}, {uri: f"marker of {uri}" for uri in part})

        done = take_away(
            uris,
            lambda uri: None,
            stop_reason=lambda: None,
            check=lambda: None,
            progress=lambda number, markers: told.append((number, len(markers))),
            remove_many=remove_many,
        )
        requests = [(-1, 1_000), (1_000, 1_000), (-1, 1_000), (2_000, 1_000), (-1, 100), (2_100, 100)]
        assert (told, done.num_marked) == ([(0, 0), *requests], 2_100)

    def test_it_stops_between_two_chunks_and_says_how_far_it_came(
        self, lake: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("maintainer.delta.vacuum.file_deletion.CHUNK", 5)
        table, names = wide_table(lake)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        answers = iter([None, None, "SIGINT"])
        before = tree(lake)
        receipt = work.delete(table, step, stop_reason=lambda: next(answers))
        assert (receipt.num_files_deleted, receipt.stopped, receipt.remaining) == (10, "SIGINT", ())
        gone = {f"t/{name}" for name in names} - tree(lake).keys()
        assert len(gone) == 10
        assert_only(lake, before, *gone)
        rest = work.step(table)
        assert rest is not None
        work.delete(table, rest)
        assert_only(lake, before, *(f"t/{name}" for name in names))


class TestEmptyingTheTrash:
    """Five of twenty files are in the trash, and their time is over."""

    @pytest.fixture
    def table(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> AgedTable:
        monkeypatch.setattr("maintainer.delta.vacuum.file_deletion.CHUNK", 5)
        table, _ = wide_table(lake)
        work = Vacuuming(policies(trash_seconds=7 * 86_400))
        answers = iter([None, "SIGINT"])
        work.delete(table, self.step(table, work), stop_reason=lambda: next(answers))
        (manifest,) = (lake / ".maintainer-trash").glob("*/run-1/manifest.json")
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "keep_until_ms": 1}))
        return table

    @staticmethod
    def step(table: AgedTable, work: Vacuuming | None = None) -> VacuumStep:
        step = (work or Vacuuming(policies())).step(table)
        assert step is not None
        return step

    @staticmethod
    def trashed(lake: Path) -> list[Path]:
        return [path for path in (lake / ".maintainer-trash").rglob("*") if path.is_file()]

    def test_a_deletion_that_was_stopped_leaves_it(self, lake: Path, table: AgedTable) -> None:
        step = self.step(table)
        assert (len(step.files), [run.num_files for run in step.emptied]) == (15, [5])
        answers = iter([None, "a verification failed on u", None])
        receipt = Vacuuming(policies()).delete(table, step, stop_reason=lambda: next(answers))
        assert (receipt.num_files_deleted, receipt.num_files_emptied) == (5, 0)
        assert receipt.stopped == "a verification failed on u"
        assert len(self.trashed(lake)) == 6

    @pytest.mark.parametrize("num_emptied", [0, 2])
    def test_it_stops_between_two_files_and_the_rest_goes_the_next_time(
        self, lake: Path, table: AgedTable, num_emptied: int
    ) -> None:
        step = replace(self.step(table), files=())
        answers = iter([*[None] * num_emptied, "a verification failed on u"])
        receipt = Vacuuming(policies()).delete(table, step, stop_reason=lambda: next(answers))
        assert (receipt.num_files_emptied, receipt.stopped) == (num_emptied, "a verification failed on u")
        assert len(self.trashed(lake)) == 6 - num_emptied
        assert [run.num_files for run in self.step(table).emptied] == [5 - num_emptied]
        assert Vacuuming(policies()).delete(table, step).num_files_emptied == 5 - num_emptied
        assert self.trashed(lake) == []


class TestSomebodyElseDeletes:
    def test_files_that_vanish_beside_the_planned_ones_are_told(self, lake: Path) -> None:
        table, names = wide_table(lake)
        stranger = table.file("stranger.parquet", 100)
        work = Vacuuming(policies())
        step = work.step(table)
        assert step is not None
        receipt = work.delete(table, step, after_start=stranger.unlink)
        assert (receipt.num_files_deleted, receipt.num_vanished) == (len(names), 1)

    def test_a_needed_file_that_vanishes_while_files_are_moved_says_where_they_are(self, lake: Path) -> None:
        table, _ = wide_table(lake)
        work = Vacuuming(policies(trash_seconds=7 * 86_400))
        step = work.step(table)
        assert step is not None
        with pytest.raises(VerificationFailed) as caught:
            work.delete(table, step, after_start=(table.path / "live.parquet").unlink)
        (trash,) = (lake / ".maintainer-trash").iterdir()
        assert f"moved 20 files to file:{trash}/run-1: `maintainer undelete" in str(caught.value.help)
        assert len(list((trash / "run-1" / "files").iterdir())) == 20

    def test_a_needed_file_that_vanishes_is_the_loudest_error(self, lake: Path) -> None:
        table, _ = wide_table(lake)
        table.append(3, "young.parquet")
        table.delete(2, "young.parquet")
        work = Vacuuming(policies())
        for needed in ("live.parquet", "young.parquet"):
            step = work.step(table)
            assert step is not None
            with pytest.raises(VerificationFailed) as caught:
                work.delete(table, step, after_start=(table.path / needed).unlink)
            assert caught.value.code == "V505"
            assert needed in str(caught.value.found)
            receipt = caught.value.receipt
            assert isinstance(receipt, VacuumReceipt)
            assert (receipt.num_files_deleted, receipt.num_vanished) == (20, 1)
            assert "removed 20 files for good" in str(caught.value.help)
            for name in step.files:
                table.file(name.path, 60)
