"""What a soak must notice: a small one is played by delta-rs alone, and then damaged in each way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pytest

from tests.soak.judgement.commit_replay import LoggedCommit, TableReplay, read_commits, replay, strange_commits
from tests.soak.judgement.failure_causes import OTHERS, OURS, UNCLEAR, cause_of
from tests.soak.judgement.soak_checks import content, late_files, reader, settled_operations
from tests.soak.judgement.soak_verdict import memory_figures
from tests.soak.process_memory import MIB, MemorySample, slope_a_minute
from tests.soak.soak_lake import TABLES, write_soak_project
from tests.soak.soak_settings import SoakSettings
from tests.soak.traffic.operation_ledger import LedgerReader, Operation, OperationLedger, OperationRecord
from tests.soak.traffic.rust_appender import RustAppender

PLAIN = TABLES["plain"]
SMALL_STATS = {"add": {"path": "x", "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": False}}


@pytest.fixture
def settings(tmp_path: Path) -> SoakSettings:
    """A lake with one table, three appends, and a reader that saw them."""
    made = SoakSettings(str(tmp_path / "soaked"), 60, 3)
    made.root.mkdir()
    write_soak_project(made)
    appender = RustAppender(made, "rust-appender-1", 1, ("plain",))
    for _ in range(3):
        operation = appender.draw()
        appender.ledger.begin(operation)
        appender.carry_out(operation)
        appender.ledger.end(operation)
    seen = made.streams / "plain"
    seen.mkdir()
    rows = replayed(made).appended
    names = ("id", "part", "value", "note")
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    (seen / "batch-00000000.json").write_text(text, encoding="utf-8")
    return made


def records(settings: SoakSettings) -> dict[str, OperationRecord]:
    ledgers = LedgerReader(settings.ledgers)
    ledgers.read_on()
    return ledgers.records


def replayed(settings: SoakSettings) -> TableReplay:
    return replay(read_commits(PLAIN.path(settings)), records(settings))


def complaints(settings: SoakSettings) -> Iterator[str]:
    commits, known = read_commits(PLAIN.path(settings)), records(settings)
    expected = replay(commits, known)
    yield from settled_operations(PLAIN, commits, known, expected)
    yield from content(PLAIN, settings, expected)
    yield from reader(PLAIN, settings, expected)


def append_again(settings: SoakSettings, rows: list[dict[str, object]]) -> None:
    import pyarrow as pa

    path = str(PLAIN.path(settings))
    table = pa.Table.from_pylist(rows, deltalake.DeltaTable(path).to_pyarrow_table().schema)
    deltalake.write_deltalake(path, table, mode="append")


def test_a_soak_that_went_well_has_no_complaint(settings: SoakSettings) -> None:
    assert list(complaints(settings)) == []
    assert len(replayed(settings).rows) > 0


def test_a_row_that_is_there_twice_is_noticed(settings: SoakSettings) -> None:
    row = deltalake.DeltaTable(str(PLAIN.path(settings))).to_pyarrow_table().to_pylist()[0]
    append_again(settings, [row])
    complained = "\n".join(complaints(settings))
    assert "rows in the table: 1 too many" in complained
    assert "is nobody's" in complained


def test_a_row_that_is_gone_is_noticed(settings: SoakSettings) -> None:
    gone = min(replayed(settings).rows)
    deltalake.DeltaTable(str(PLAIN.path(settings))).delete(f"id = {gone}")
    assert "rows in the table: 1 missing" in "\n".join(complaints(settings))


def test_an_acknowledged_commit_that_is_overwritten_is_noticed(settings: SoakSettings) -> None:
    log = PLAIN.path(settings) / "_delta_log"
    last = sorted(log.glob("*.json"))[-1]
    last.write_text(json.dumps({"commitInfo": {"operation": "WRITE", "userMetadata": "somebody"}}) + "\n")
    complained = "\n".join(complaints(settings))
    assert "rust-appender-1-2 was acknowledged, and no commit names it" in complained


def test_an_operation_that_landed_twice_is_noticed(settings: SoakSettings) -> None:
    log = PLAIN.path(settings) / "_delta_log"
    last = sorted(log.glob("*.json"))[-1]
    (log / f"{int(last.stem) + 1:020d}.json").write_bytes(last.read_bytes())
    assert "has landed in versions" in "\n".join(complaints(settings))


@pytest.mark.parametrize(("change", "told"), [("twice", "too many"), ("lost", "missing"), ("error", "reader failed")])
def test_what_a_reader_saw_wrongly_is_noticed(settings: SoakSettings, change: str, told: str) -> None:
    folder = settings.streams / "plain"
    batch = folder / "batch-00000000.json"
    if change == "twice":
        (folder / "batch-00000001.json").write_bytes(batch.read_bytes())
    elif change == "lost":
        batch.write_text(json.dumps(json.loads(batch.read_text())[1:]))
    else:
        (folder / "error-1").write_text("a file is gone")
    assert told in "\n".join(complaints(settings))


def test_merges_and_deletes_follow_the_order_of_their_commits() -> None:
    result = TableReplay()
    result.carry_out(Operation("a-0", "a", "changes", "append", 1, 3, part=2, salt=5), 1)
    result.carry_out(Operation("d-0", "d", "changes", "delete", 2, 2), 2)
    result.carry_out(Operation("m-0", "m", "changes", "merge", 9, 9, part=2, salt=7, updated=(2, 3)), 3)
    assert {row_id: row[3] for row_id, row in result.rows.items()} == {1: "a-0", 2: "m-0", 3: "m-0", 9: "m-0"}
    kinds = sorted((change[1], change[0], change[2]) for change in result.changes)
    assert kinds == [
        (1, "insert", 1), (1, "insert", 2), (1, "insert", 3), (2, "delete", 2),
        (3, "insert", 2), (3, "insert", 9), (3, "update_postimage", 3), (3, "update_preimage", 3),
    ]  # fmt: skip


def test_a_failure_is_laid_to_who_won(settings: SoakSettings) -> None:
    log = PLAIN.path(settings) / "_delta_log"
    stamp = json.dumps({"maintainer": {"run": "r", "step": "lake/plain/compact", "batch": 0, "policy": "p"}})
    info = {"operation": "OPTIMIZE", "userMetadata": stamp, "timestamp": 10_000_000}
    number = len(list(log.glob("*.json")))
    (log / f"{number:020d}.json").write_text(json.dumps({"commitInfo": info}) + "\n" + json.dumps(SMALL_STATS) + "\n")
    commits = read_commits(PLAIN.path(settings))
    assert list(strange_commits(commits[1:], records(settings))) == []
    operation = Operation("m-0", "m", "plain", "merge", 1, 1)

    def cause(error: str, begun_ms: int = 0, ended_ms: int = 1) -> str:
        return cause_of(OperationRecord(operation, begun_ms, ended_ms, "refused", error), commits)

    assert cause(f"a concurrent OPTIMIZE added data, committed at version {number}.") == OURS
    assert cause(f"a concurrent WRITE added data, committed at version {number - 1}.") == OTHERS
    assert cause("FileNotFoundException: part-1") == OURS
    assert cause("CommitFailedError: metadata changed", 9_999_000, 10_001_000) == OURS
    assert cause("out of memory") == UNCLEAR


def test_files_that_vacuum_forgot_are_noticed(settings: SoakSettings) -> None:
    table = deltalake.DeltaTable(str(PLAIN.path(settings)))
    old = set(table.file_uris())
    table.delete()
    commits = read_commits(PLAIN.path(settings))
    now_ms = commits[-1].timestamp_ms
    assert late_files(PLAIN, settings, commits, 60, now_ms + 30_000) == []
    late = late_files(PLAIN, settings, commits, 60, now_ms + 90_000)
    assert {Path(path).name for path in late} == {Path(path).name for path in old}
    again = LoggedCommit(commits[-1].version + 1, commits[-1].info, adds=(late[0],), removes=(late[0],))
    assert late_files(PLAIN, settings, [*commits, again], 60, now_ms + 90_000) == late[1:], "live with deleted rows"


def test_growth_is_measured_in_the_last_life_after_its_warm_up() -> None:
    assert slope_a_minute([(0, 0), (60, 2), (120, 4), (130, 90), (180, 6)]) == pytest.approx(2)
    lives = [(1, [400, 500]), (2, [100, 200, 300, 303, 306, 309, 312, 315, 318])]
    samples: list[MemorySample] = []
    for process_id, sizes in lives:
        samples += [
            MemorySample(60.0 * (len(samples) + number), process_id, size * MIB, 2 * size * MIB, 0, 0)
            for number, size in enumerate(sizes)
        ]
    figures = memory_figures(samples)
    assert figures is not None
    assert figures.python_slope_mib == pytest.approx(3)
    assert figures.jvm_slope_mib == pytest.approx(6)
    assert (figures.samples, figures.minutes, figures.python_peak_mib) == (6, 5, 500)
    assert memory_figures(samples[:1]) is None


def test_a_ledger_is_read_on_from_where_it_ended(tmp_path: Path) -> None:
    ledger, ledgers = OperationLedger(tmp_path / "w.jsonl"), LedgerReader(tmp_path)
    first = Operation("w-0", "w", "plain", "append", 1, 2)
    ledger.begin(first)
    assert (ledgers.read_on(), ledgers.records["w-0"].outcome) == ([], "unknown")
    ledger.end(first)
    assert [record.outcome for record in ledgers.read_on()] == ["acknowledged"]
    second = Operation("w-1", "w", "plain", "merge", 3, 3, updated=(1,))
    ledger.begin(second)
    ledger.end(second, RuntimeError("ConcurrentAppendException: someone"))
    assert [(row.operation, row.outcome) for row in ledgers.read_on()] == [(second, "refused")]
