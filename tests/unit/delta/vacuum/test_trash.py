"""The trash: what goes in, what comes back, and what is emptied."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from maintainer.delta.storage.file_store import java_quote as quote
from maintainer.delta.storage.file_store import local_path
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.vacuum import trash, vacuum_candidates
from maintainer.delta.vacuum.trash import FOLDER, Manifest, TrashedFile, empty, expired_trash, undelete
from maintainer.errors import Refused, TableError
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.storage_facts import MarkedFile
from tests.support.tables import local_vacuum
from tests.support.tables.aged_tables import AgedTable, now_ms, tree
from tests.support.tables.builders import DAY_SECONDS
from tests.support.tables.local_vacuum import LocalTable, Vacuuming
from tests.support.tables.vacuum_cases import Stubborn, policies

OLD = ("p=x y/a%.parquet", "p=ä/b.parquet", "c.parquet")


@pytest.fixture
def table(tmp_path: Path) -> AgedTable:
    made = AgedTable(tmp_path / "lake" / "t")
    made.append(60, *OLD)
    made.rewrite(20, "all.parquet", *OLD)
    return made


def work(trash_seconds: int = 7 * DAY_SECONDS) -> Vacuuming:
    return Vacuuming(policies(trash_seconds=trash_seconds), run_id="run-1")


def trash_of(table: AgedTable, run_id: str = "run-1") -> Path:
    (folder,) = (table.path.parent / FOLDER).iterdir()
    return folder / run_id


def moved(table: AgedTable, trash_seconds: int = 7 * DAY_SECONDS) -> dict[str, str]:
    """Vacuum into the trash; returns the table's tree before."""
    before = tree(table.path)
    step = work(trash_seconds).step(table)
    assert step is not None
    assert step.trash_seconds == trash_seconds
    receipt = work(trash_seconds).delete(table, step)
    assert (receipt.num_files_deleted, receipt.remaining) == (3, ())
    assert receipt.trash == f"file:{trash_of(table)}"
    return before


def files(table: AgedTable) -> dict[str, str]:
    """The table's tree without its log."""
    return {path: content for path, content in tree(table.path).items() if not path.startswith("_delta_log")}


def test_files_are_moved_with_their_names_bytes_and_times_and_come_back(table: AgedTable) -> None:
    times = {name: (table.path / name).stat().st_mtime_ns for name in OLD}
    before = moved(table)
    assert set(files(table)) == {"all.parquet"}
    inside = tree(trash_of(table) / "files")
    assert inside == {name: before[name] for name in OLD}
    receipt = undelete(LocalTable(table.path), table.table_id, "run-1", "t")
    assert (receipt.num_files_restored, receipt.refused) == (3, ())
    assert files(table) == {path: content for path, content in before.items() if not path.startswith("_delta_log")}
    assert {name: (table.path / name).stat().st_mtime_ns for name in OLD} == times
    assert not trash_of_any(table)
    with pytest.raises(TableError) as caught:
        undelete(LocalTable(table.path), table.table_id, "run-1", "t")
    assert caught.value.code == "T430"


def trash_of_any(table: AgedTable) -> list[Path]:
    return [file for file in (table.path.parent / FOLDER).rglob("*") if file.is_file()]


def test_nothing_is_overwritten_and_a_changed_file_stays_in_the_trash(table: AgedTable) -> None:
    moved(table)
    (table.path / "c.parquet").write_bytes(b"new")
    (trash_of(table) / "files" / "p=ä" / "b.parquet").write_bytes(b"cut")
    receipt = undelete(LocalTable(table.path), table.table_id, "run-1", "t")
    assert receipt.num_files_restored == 1
    reasons = {line.partition(" (")[0]: line.partition(" (")[2].rstrip(")") for line in receipt.refused}
    assert reasons["c.parquet"] == "there is a file in its place"
    assert reasons["p=ä/b.parquet"].startswith("it has 3 bytes in the trash, ")
    assert (table.path / "c.parquet").read_bytes() == b"new"
    assert (trash_of(table) / "manifest.json").is_file()
    (table.path / "c.parquet").unlink()
    again = undelete(LocalTable(table.path), table.table_id, "run-1", "t")
    assert [line.partition(" (")[0] for line in again.refused] == ["p=ä/b.parquet"]


def test_a_file_that_a_kill_left_under_both_names_is_back(table: AgedTable) -> None:
    """It is moved by a second link, and then the first one goes."""
    before = moved(table)
    (table.path / "c.parquet").hardlink_to(trash_of(table) / "files" / "c.parquet")
    receipt = undelete(LocalTable(table.path), table.table_id, "run-1", "t")
    assert (receipt.num_files_restored, receipt.refused) == (3, ())
    assert before.items() <= tree(table.path).items()
    assert not trash_of_any(table)


def test_another_tables_trash_and_another_run_are_refused(table: AgedTable) -> None:
    moved(table)
    for table_id, run_id in (("other", "run-1"), (table.table_id, "run-2"), (table.table_id, "../run-1")):
        with pytest.raises(TableError) as caught:
            undelete(LocalTable(table.path), table_id, run_id, "t")
        assert (caught.value.code, caught.value.allowed) == ("T430", "run-1")


def test_the_newest_of_many_runs_is_given_back_and_the_newest_are_named(
    table: AgedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trash, "MAX_RUNS_LOOKED_AT", 2)
    before = moved(table)
    for number in range(30):
        (trash_of(table).parent / f"run-0{number:02}").mkdir()
    with pytest.raises(TableError) as refused:
        undelete(LocalTable(table.path), table.table_id, "run-9", "t")
    assert (refused.value.allowed or "").split(", ") == [*(f"run-0{number:02}" for number in range(11, 30)), "run-1"]
    undelete(LocalTable(table.path), table.table_id, "run-1", "t")
    assert before.items() <= tree(table.path).items()


class HidingFiles(LocalFiles):
    """A bucket that keeps versions: what a marker hides has another name."""

    def hide(self, folder: Path, *names: str) -> None:
        for name in names:
            (folder / name).rename(folder / f"{name}.hidden")

    def uncover(self, markers: Mapping[str, str]) -> dict[str, str]:
        for uri, marker in markers.items():
            hidden = Path(f"{local_path(uri)}.hidden")
            if marker != "under another" and hidden.exists():
                hidden.rename(local_path(uri))
        return {}

    def hiding(self, uris: Collection[str]) -> dict[str, str]:
        return {uri: "m9" for uri in uris if Path(f"{local_path(uri)}.hidden").exists()}


class OnABucket(LocalTable):
    @property
    def root_uri(self) -> str:
        return "s3a://bucket/t"


def test_a_run_that_recorded_no_delete_marker_is_refused_with_the_cause(table: AgedTable) -> None:
    storage = OnABucket(table.path)
    with pytest.raises(TableError) as unknown:
        undelete(storage, table.table_id, "run-1", "t")
    assert (unknown.value.code, unknown.value.found) == ("T430", "run-1")
    with pytest.raises(TableError) as final:
        undelete(storage, table.table_id, "run-1", "t", [MarkedFile("c.parquet", 1, None)])
    assert (final.value.code, final.value.found) == ("T431", "run-1, 1 file")
    assert "suspend:" in (final.value.help or "")


def test_in_a_bucket_only_what_the_record_has_a_marker_of_comes_back_and_the_rest_is_named(table: AgedTable) -> None:
    storage, files = OnABucket(table.path), HidingFiles()
    storage.files = files
    before = {name: (table.path / name).stat().st_size for name in OLD}
    files.hide(table.path, *OLD)
    (table.path / "written.parquet").write_bytes(b"another")
    marks = {OLD[0]: "m1", OLD[1]: None, OLD[2]: "under another"}
    deleted = [MarkedFile(quote(name), before[name], marks[name]) for name in OLD]
    deleted += [MarkedFile("written.parquet", 8, "m2"), MarkedFile("all.parquet", size_of(table, "all.parquet"), None)]
    receipt = undelete(storage, table.table_id, "run-1", "t", deleted)
    assert (receipt.num_files_restored, receipt.bytes_restored) == (1, before[OLD[0]])
    assert receipt.refused == (
        f"{quote(OLD[1])} (no delete marker of it is recorded; m9 hides it, and the store's tools can remove that if "
        "it is this run's)",
        "c.parquet (something still hides it)",
        "written.parquet (there is another file in its place)",
    )
    assert (table.path / "written.parquet").read_bytes() == b"another"
    assert undelete(storage, table.table_id, "run-1", "t", deleted) == receipt


def test_after_a_kill_before_any_marker_was_recorded_what_hides_the_files_is_named_and_left(table: AgedTable) -> None:
    storage, files = OnABucket(table.path), HidingFiles()
    storage.files = files
    files.hide(table.path, *OLD)
    receipt = undelete(storage, table.table_id, "run-1", "t", [MarkedFile(quote(name), 1, None) for name in OLD])
    assert (receipt.num_files_restored, len(receipt.refused)) == (0, 3)
    assert all("; m9 hides it" in line for line in receipt.refused)
    assert not any((table.path / name).exists() for name in OLD)


def size_of(table: AgedTable, name: str) -> int:
    return (table.path / name).stat().st_size


def test_it_is_emptied_when_its_time_is_over_and_not_before(table: AgedTable) -> None:
    moved(table)
    storage = LocalTable(table.path)
    assert expired_trash(storage, now_ms() + 6 * 86_400_000) == ()
    (run,) = expired_trash(storage, now_ms() + 8 * 86_400_000)
    assert (run.run_id, run.num_files) == ("run-1", 3)
    # A step that names it too early empties nothing: the manifest decides.
    step = VacuumStep((), now_ms() - 8 * 86_400_000, 7 * DAY_SECONDS, "x", (), emptied=(run,))
    assert work().delete(table, step).num_files_emptied == 0
    manifest = trash_of(table) / "manifest.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "keep_until_ms": now_ms() - 1}))
    (trash_of(table) / "files" / "somebody.txt").write_text("not ours")
    before, head = files(table), table.head
    step_now = work().step(table)
    assert step_now is not None
    assert (step_now.files, [emptied_run.run_id for emptied_run in step_now.emptied]) == ((), ["run-1"])
    receipt = work().delete(table, step_now)
    assert (receipt.num_files_emptied, receipt.num_files_deleted) == (3, 0)
    assert (receipt.version_before, receipt.version_after) == (head, None)
    assert (files(table), table.head) == (before, head)
    assert [path.name for path in trash_of_any(table)] == ["somebody.txt"]


def test_a_file_that_is_live_again_and_lies_nowhere_else_stays_in_the_trash(table: AgedTable) -> None:
    add = table.add_action("c.parquet", 60)
    moved(table, trash_seconds=1)
    table.commit(0, add, operation="RESTORE")
    manifest = trash_of(table) / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "keep_until_ms": now_ms() - 1}))
    step = work().step(table)
    assert step is not None
    assert step.emptied
    before = tree(table.path.parent)
    with pytest.raises(Refused, match="is live, as ") as refused:
        work().delete(table, step)
    assert refused.value.code == "A452"
    assert tree(table.path.parent) == before
    # Where the file is in its place again, its copy may go.
    table.file("c.parquet", 60)
    assert work().delete(table, step).num_files_emptied == 3


def test_a_clock_that_is_wrong_empties_no_trash(table: AgedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    moved(table)
    (run,) = expired_trash(LocalTable(table.path), now_ms() + 8 * 86_400_000)

    def ahead() -> int:
        return now_ms() + 8 * 86_400_000

    monkeypatch.setattr(vacuum_candidates, "now_ms", ahead)
    step = VacuumStep((), now_ms() - 8 * 86_400_000, 7 * DAY_SECONDS, "x", (), emptied=(run,))
    with pytest.raises(Refused) as refused:
        work().delete(table, step, clock=ahead)
    assert refused.value.code == "A451"
    assert len(list((trash_of(table) / "files").rglob("*.parquet"))) == 3
    monkeypatch.setattr(local_vacuum, "now_ms", ahead)
    plan = work().plan(table)
    assert (plan.steps, [reason.code for reason in plan.blocked]) == ((), [ReasonCode.CANNOT_BE_SURE])


@pytest.mark.parametrize("how", ["through a link", "after a move", "after a move, through a link"])
def test_it_is_found_by_whatever_path_the_table_is_reached(table: AgedTable, tmp_path: Path, how: str) -> None:
    before = moved(table)
    lake = table.path.parent
    if how.startswith("after a move"):
        lake = lake.rename(tmp_path / "elsewhere")
    path = lake / "t"
    if how.endswith("through a link"):
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "name").symlink_to(path)
        path = tmp_path / "other" / "name"
    assert [run.num_files for run in expired_trash(LocalTable(path), now_ms() + 8 * 86_400_000)] == [3]
    receipt = undelete(LocalTable(path), table.table_id, "run-1", "t")
    assert (receipt.num_files_restored, receipt.refused) == (3, ())
    assert {name: tree(path)[name] for name in OLD} == {name: before[name] for name in OLD}


def test_the_trash_of_a_table_that_lay_in_this_place_is_emptied_and_not_given_back(table: AgedTable) -> None:
    moved(table)
    storage = LocalTable(table.path)
    with pytest.raises(TableError):
        undelete(storage, "the table that is there now", "run-1", "t")
    runs = expired_trash(storage, now_ms() + 8 * 86_400_000)
    assert empty(storage, runs, now_ms(), lambda: None).num_files == 0
    assert empty(storage, runs, now_ms() + 8 * 86_400_000, lambda: None).num_files == 3


def test_a_file_that_will_not_go_from_the_trash_is_named(table: AgedTable) -> None:
    moved(table, trash_seconds=1)
    manifest = trash_of(table) / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "keep_until_ms": now_ms() - 1}))
    step = work().step(table)
    assert step is not None
    receipt = work().delete(table, step, storage=Stubborn(table.path, 2, PermissionError(13, "Permission denied")))
    assert (receipt.num_files_emptied, len(receipt.remaining)) == (2, 1)
    assert receipt.remaining[0].startswith(f"{FOLDER}: ")
    assert receipt.remaining[0].endswith("([Errno 13] Permission denied)")
    assert len(list((trash_of(table) / "files").rglob("*.parquet"))) == 1
    # Its manifest stays, so that it can be brought back or emptied later.
    rest = work().step(table)
    assert rest is not None
    assert rest.emptied[0].num_files == 1
    assert work().delete(table, rest).num_files_emptied == 1
    assert not trash_of_any(table)


@pytest.mark.parametrize("path", ["../../precious", "/etc/passwd", "a/%2E%2E/%2E%2E/x", "%2Fetc/passwd"])
def test_a_manifest_that_names_other_places_is_no_manifest(path: str) -> None:
    manifest = Manifest("run-1", "file:/t", "id", 0, (TrashedFile(path, 1, 1),))
    assert Manifest.from_bytes(manifest.to_bytes()) is None
    assert Manifest.from_bytes(b"{") is None
    assert Manifest.from_bytes(b"[]") is None


def test_a_run_that_is_tried_again_moves_the_rest(table: AgedTable) -> None:
    vacuuming = work()
    step = vacuuming.step(table)
    assert step is not None
    answers = iter([None, "stop"])
    import maintainer.delta.vacuum.file_deletion as deletion

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deletion, "CHUNK", 1)
        receipt = vacuuming.delete(table, step, stop_reason=lambda: next(answers))
    assert (receipt.num_files_deleted, receipt.stopped) == (1, "stop")
    rest = vacuuming.step(table)
    assert rest is not None
    assert vacuuming.delete(table, rest).num_files_deleted == 2
    receipt_back = undelete(LocalTable(table.path), table.table_id, "run-1", "t")
    assert receipt_back.num_files_restored == 3


class OnAStore(LocalTable):
    @property
    def root_uri(self) -> str:
        return "s3a://bucket/t"


def test_a_plan_with_a_trash_on_an_object_store_is_refused_before_anything_is_read(table: AgedTable) -> None:
    step = work().step(table)
    assert step is not None
    before = tree(table.path)
    with pytest.raises(TableError) as caught:
        work().delete(table, step, storage=OnAStore(table.path))
    assert caught.value.code == "T431"
    assert tree(table.path) == before


def test_a_trash_that_cannot_be_written_deletes_nothing(table: AgedTable) -> None:
    (table.path.parent / FOLDER).write_text("a file in its place")
    before = tree(table.path)
    step = work().step(table)
    assert step is not None
    with pytest.raises(TableError) as caught:
        work().delete(table, step)
    assert caught.value.code == "T432"
    assert tree(table.path) == before


def test_a_file_that_cannot_be_moved_stays_and_is_named(table: AgedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    monkeypatch.setattr("os.rename", refuse)
    step = work().step(table)
    assert step is not None
    before = files(table)
    receipt = work().delete(table, step)
    assert (receipt.num_files_deleted, len(receipt.remaining)) == (0, 3)
    assert all("Invalid cross-device link" in line for line in receipt.remaining)
    assert files(table) == before
