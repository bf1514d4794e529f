"""What every engine must do, said through its protocol alone: the one in memory, the transaction and the commands.

Tests of execution run on the engine in memory. What they show is worth as much as that engine behaves like a real one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.product import (
    CommitConflict,
    CommitReceipt,
    CommitsWanted,
    DeletionGuard,
    Proof,
    RemovedFile,
    SetPropertiesStep,
    TableEngine,
    TableError,
    TableFacts,
    TableRef,
    VacuumStep,
    VerificationFailed,
    audit,
)
from tests.support.runs.contract_lakes import ContractLake, ContractTable, DeltaLake, MemoryLake
from tests.support.runs.fake_lake import FakeLake
from tests.support.tables.delta_tables import compaction, no_intent, stamp
from tests.support.writers.writers import Fault, engine_of

REAL = [pytest.mark.spark, pytest.mark.long]
MEMORY, TRANSACTION = "memory", pytest.param("transaction", marks=REAL)
KINDS = [MEMORY, TRANSACTION, *(pytest.param(kind, marks=REAL) for kind in ("connect", "command"))]
NOT_BY_COMMANDS = pytest.mark.parametrize("contract", [MEMORY, TRANSACTION], indirect=True)
FAR_FUTURE_MS = 1 << 52
A_FILE_IS_LOST = pytest.mark.contradicts("live_files_are_there", reason="a live file is damaged, to see it missed")


@pytest.fixture(params=KINDS)
def contract(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContractLake]:
    """A lake of each kind. Spark is started for the real ones only."""
    kind = str(request.param)
    if kind == "memory":
        lake = FakeLake()
        with lake.worker("contract") as engine:
            yield MemoryLake(engine, lake)
        return
    lease = request.getfixturevalue("lease")
    url = request.getfixturevalue("connect_url") if kind == "connect" else ""

    def with_fault(fault: Fault, path: Path) -> AbstractContextManager[TableEngine]:
        return engine_of(kind, lease, url, fault, path)

    with engine_of(kind, lease, url) as engine:
        yield DeltaLake(engine, tmp_path, with_fault, proves_first=kind == "transaction")


def rewritten(lake: ContractLake, table: ContractTable, other: Callable[[], object] = lambda: None) -> CommitReceipt:
    """Compact all files of a table; another writer acts at the last moment before the commit."""
    facts = lake.engine.reader.facts(table.ref)
    step, batch = compaction(facts)
    acted: list[int] = []

    def act(read_version: int, proof: Proof | None) -> None:
        if not acted:
            acted.append(read_version)
            other()

    receipt = lake.engine.writer.rewrite(facts, step, batch, stamp(), act)
    assert {assertion.outcome for assertion in audit(batch, receipt)} == {"pass"}
    return receipt


def test_a_rewrite_lands_with_its_proof_its_figures_and_its_stamp(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,), (4, 5, 6))
    reader = contract.engine.reader
    facts = reader.facts(table.ref)
    step, batch = compaction(facts)
    calls: list[tuple[int, int | None]] = []
    receipt = contract.engine.writer.rewrite(
        facts, step, batch, stamp(), lambda version, proof: calls.append((version, proof.read.rows if proof else None))
    )
    assert calls == [(facts.version, 6 if contract.proves_first else None)]
    assert (receipt.version, receipt.read_version) == (facts.version + 1, facts.version)
    assert (receipt.num_files_removed, receipt.num_files_added) == (3, 1)
    assert (receipt.bytes_removed, receipt.difference) == (facts.size_bytes, None)
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert (receipt.proof.read.rows, receipt.proof.written.rows, receipt.proof.rows_in_log) == (6, 6, 6)
    after = reader.facts(table.ref)
    assert (after.version, len(after.files), after.size_bytes) == (receipt.version, 1, receipt.bytes_added)
    assert (after.table_id, after.schema_json, after.protocol) == (facts.table_id, facts.schema_json, facts.protocol)
    assert after.files[0].live_records == 6
    assert table.rows() == [1, 2, 3, 4, 5, 6]
    assert reader.find_commit(facts, stamp(), after_version=facts.version) == receipt.version
    assert reader.find_commit(facts, stamp(), after_version=receipt.version) is None
    assert reader.find_commit(facts, stamp(batch=1), after_version=facts.version) is None
    assert (reader.stamp_of(after, receipt.version), reader.stamp_of(after, facts.version)) == (stamp(), None)
    assert [reader.has_commit(after, receipt.version + n) for n in (0, 1)] == [True, False]
    newest, *older = reader.commits(table.ref, CommitsWanted(2, counted=True)).commits
    assert (newest.version, newest.stamp) == (receipt.version, stamp())
    assert [commit.version for commit in older] == [facts.version]
    assert (newest.num_files_removed, newest.num_files_added) == (3, 1)


def test_properties_are_set_and_those_that_another_writer_set_are_left(contract: ContractLake) -> None:
    table = contract.table((1,), (2,))
    facts = contract.engine.reader.facts(table.ref)
    calls: list[tuple[int, Proof | None]] = []
    step = SetPropertiesStep((("owner's", None),), (("owner's", 'it\'s `x` "y"'),), ())
    receipt = contract.engine.writer.set_properties(
        facts, step, stamp("t/p"), lambda version, proof: calls.append((version, proof))
    )
    assert calls == [(facts.version, None)]
    assert (receipt.version, receipt.read_version, receipt.proof) == (facts.version + 1, facts.version, None)
    after = contract.engine.reader.facts(table.ref)
    assert after.property_map["owner's"] == 'it\'s `x` "y"'
    assert contract.engine.reader.find_commit(facts, stamp("t/p"), after_version=facts.version) == receipt.version
    before = table.state()
    again = SetPropertiesStep((("owner's", None),), (("owner's", "ours"),), ())
    with pytest.raises(CommitConflict, match="owner's was changed"):
        contract.engine.writer.set_properties(after, again, stamp("t/p", 1), no_intent)
    assert table.state() == before


def test_a_property_that_another_writer_sets_while_the_intent_is_written_is_left(contract: ContractLake) -> None:
    table = contract.table((1,), (2,))
    writer, facts = contract.engine.writer, contract.engine.reader.facts(table.ref)
    theirs, ours = (SetPropertiesStep((("owner's", None),), (("owner's", value),), ()) for value in ("them", "us"))

    def another_sets_it(version: int, proof: Proof | None) -> None:
        writer.set_properties(facts, theirs, stamp("t/theirs"), no_intent)

    with pytest.raises(CommitConflict, match="owner's was changed"):
        writer.set_properties(facts, ours, stamp("t/p"), another_sets_it)
    after = contract.engine.reader.facts(table.ref)
    assert (after.version, after.property_map["owner's"]) == (facts.version + 1, "them")


def test_a_file_that_is_gone_before_the_rewrite_begins_is_a_conflict(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,))
    facts = contract.engine.reader.facts(table.ref)
    step, batch = compaction(facts)
    table.delete(1)
    before = table.state()
    with pytest.raises(CommitConflict):
        contract.engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert table.state() == before


def test_a_table_that_was_created_again_is_not_rewritten(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,))
    facts = contract.engine.reader.facts(table.ref)
    step, batch = compaction(facts)
    table.create_again()
    before = table.state()
    with pytest.raises(CommitConflict, match="created again"):
        contract.engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    properties = SetPropertiesStep((("a", None),), (("a", "b"),), ())
    with pytest.raises(CommitConflict, match="created again"):
        contract.engine.writer.set_properties(facts, properties, stamp("t/p"), no_intent)
    assert table.state() == before


def test_an_intent_that_cannot_be_written_stops_it(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,))
    facts = contract.engine.reader.facts(table.ref)
    step, batch = compaction(facts)
    properties = SetPropertiesStep((("a", None),), (("a", "b"),), ())
    before = table.state()

    def refuse(version: int, proof: Proof | None) -> None:
        raise OSError("no space for the intent")

    with pytest.raises(OSError, match="no space"):
        contract.engine.writer.rewrite(facts, step, batch, stamp(), refuse)
    with pytest.raises(OSError, match="no space"):
        contract.engine.writer.set_properties(facts, properties, stamp("t/p"), refuse)
    assert table.state() == before


def test_an_append_at_the_last_moment_loses_nothing(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,))
    version = contract.engine.reader.facts(table.ref).version
    receipt = rewritten(contract, table, lambda: table.append(4, 5, 6))
    assert receipt.version == version + 2
    assert table.rows() == [1, 2, 3, 4, 5, 6]
    assert receipt.proof is not None
    assert receipt.proof.holds
    num_files = len(contract.engine.reader.facts(table.ref).files)
    if contract.proves_first or receipt.difference is None:
        assert (receipt.difference, num_files) == (None, 2)
    else:
        # A command decides when it looks: it may take the new file, and the receipt says so.
        assert (receipt.difference.beyond.num_files, receipt.difference.untaken.num_files) == (1, 0)
        assert (receipt.difference.beyond.live_records, num_files) == (3, 1)


def test_a_delete_at_the_last_moment_is_not_undone(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,))
    try:
        receipt = rewritten(contract, table, lambda: table.delete(1))
    except CommitConflict:
        assert len(contract.engine.reader.facts(table.ref).files) == 2
    else:
        # A command that looked later took what the other writer left, and the receipt says so.
        assert not contract.proves_first
        assert receipt.difference is not None
        assert (receipt.difference.beyond.num_files, receipt.difference.untaken.num_files) == (1, 1)
        assert receipt.proof is not None
        assert receipt.proof.holds
    assert table.rows() == [2, 3]


@pytest.mark.contradicts(
    "live_files_are_there", "metrics_agree_with_actions", reason="a written file is replaced, as if the engine did it"
)
def test_a_row_that_is_lost_is_found_by_the_proof(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3, 4, 5))
    facts = contract.engine.reader.facts(table.ref)
    step, batch = compaction(facts)
    before = table.state()
    with contract.losing_a_row(table) as engine:
        if contract.proves_first:
            with pytest.raises(VerificationFailed):
                engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
            assert table.state() == before
            return
        receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert receipt.proof is not None
    assert not receipt.proof.holds
    assert (receipt.proof.read.rows, receipt.proof.written.rows) == (5, 4)
    assert "numRecords says 5, it holds 4 rows" in receipt.proof.findings[0]
    failed = {assertion.expectation for assertion in audit(batch, receipt) if assertion.outcome == "fail"}
    assert {"audit: rows read = rows written", "audit: the proof found nothing wrong"} <= failed


@A_FILE_IS_LOST
def test_old_versions_are_counted_compared_and_looked_for(contract: ContractLake) -> None:
    table = contract.table((1, 2), (2, 3))
    before = contract.engine.reader.facts(table.ref).version
    after = rewritten(contract, table).version
    table.append(2, 4)
    table.delete(3)
    facts, versions = contract.engine.reader.facts(table.ref), contract.engine.versions
    assert facts.version == after + 2
    for version, num_rows in ((before, 4), (after, 4), (after + 1, 6), (after + 2, 5)):
        assert versions.row_count(facts, version, scan=True) == num_rows
        assert versions.row_count(facts, version, scan=False) == num_rows
        assert versions.columns(facts, version) == ("id",)
        assert versions.missing_files(facts, version).paths == ()
    assert versions.rows_differ(facts, before, after) == 0
    assert versions.rows_differ(facts, after, after + 1) == 2
    assert versions.rows_differ(facts, after + 1, after + 2) == 1
    paths = [file.path for file in facts.files]
    assert versions.files_there(facts, [*paths, "part-nothing.parquet"]) == frozenset(paths)
    table.lose(paths[0])
    assert versions.missing_files(facts, facts.version).paths == (paths[0],)
    assert versions.files_there(facts, paths) == frozenset(paths[1:])


def deletion(lake: ContractLake, table: ContractTable) -> tuple[TableFacts, VacuumStep]:
    """Rewrite the table, and plan to delete the files that it had before."""
    old = lake.engine.reader.facts(table.ref).files
    version = rewritten(lake, table).version
    before_ms = int(time.time() * 1000) + 1
    files = tuple(
        RemovedFile(file.path, file.size_bytes, before_ms - 1, removed_in_version=version, replaced=True)
        for file in old
    )
    return lake.engine.reader.facts(table.ref), VacuumStep(files, before_ms, 0, "vacuum.retention", ())


@NOT_BY_COMMANDS
@pytest.mark.parametrize("num_planned", [2, 3])
def test_exactly_the_planned_files_are_deleted(contract: ContractLake, num_planned: int) -> None:
    table = contract.table((1, 2), (3,), (4, 5))
    facts, whole = deletion(contract, table)
    step = replace(whole, files=whole.files[:num_planned])
    calls: list[tuple[int, Proof | None]] = []
    progress: list[int] = []
    receipt = contract.engine.writer.vacuum(
        facts,
        step,
        stamp("t/vacuum"),
        lambda version, proof: calls.append((version, proof)),
        DeletionGuard(progress=lambda num_deleted, markers: progress.append(num_deleted)),
    )
    assert calls == [(facts.version, None)]
    assert progress[0] == 0
    assert progress == sorted(progress)
    assert (receipt.num_files_deleted, receipt.bytes_deleted) == (num_planned, step.size_bytes)
    assert (receipt.remaining, receipt.version_before, receipt.stopped) == ((), facts.version, None)
    paths = [file.path for file in whole.files]
    assert contract.engine.versions.files_there(facts, paths) == frozenset(paths[num_planned:])
    after = contract.engine.reader.facts(table.ref)
    assert contract.engine.versions.missing_files(after, after.version).paths == ()
    assert table.rows() == [1, 2, 3, 4, 5]


@NOT_BY_COMMANDS
def test_a_deletion_that_is_held_or_whose_intent_cannot_be_written_takes_nothing(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,))
    facts, step = deletion(contract, table)
    before = table.state()

    def refuse(version: int, proof: Proof | None) -> None:
        raise OSError("no space for the intent")

    with pytest.raises(OSError, match="no space"):
        contract.engine.writer.vacuum(facts, step, stamp("t/vacuum"), refuse)
    assert table.state() == before
    receipt = contract.engine.writer.vacuum(
        facts, step, stamp("t/vacuum"), no_intent, DeletionGuard(stop_reason=lambda: "held")
    )
    assert (receipt.num_files_deleted, receipt.stopped) == (0, "held")
    paths = [file.path for file in step.files]
    assert contract.engine.versions.files_there(facts, paths) == frozenset(paths)


@NOT_BY_COMMANDS
@pytest.mark.parametrize("act", ["restore", "create_again"])
def test_files_that_another_writer_needs_again_are_not_deleted(contract: ContractLake, act: str) -> None:
    table = contract.table((1, 2), (3,))
    first = contract.engine.reader.facts(table.ref).version
    facts, step = deletion(contract, table)
    if act == "restore":
        table.restore(first)
    else:
        table.create_again()
    before = table.state()
    calls: list[int] = []
    with pytest.raises(CommitConflict):
        contract.engine.writer.vacuum(facts, step, stamp("t/vacuum"), lambda version, proof: calls.append(version))
    assert (calls, table.state()) == ([], before)
    assert table.rows() == [1, 2, 3]


def test_only_what_others_took_away_is_an_update(contract: ContractLake) -> None:
    table = contract.table((1, 2), (3,))
    reader = contract.engine.reader
    first = reader.facts(table.ref).version
    landed = rewritten(contract, table).version
    table.append(4)
    assert reader.updates(reader.facts(table.ref), since_ms=FAR_FUTURE_MS, after_version=first) == ()
    table.delete(1)
    facts = reader.facts(table.ref)
    (update,) = reader.updates(facts, since_ms=FAR_FUTURE_MS, after_version=first)
    assert (update.version, update.operation) == (landed + 2, "DELETE")
    assert reader.updates(facts, since_ms=FAR_FUTURE_MS, after_version=update.version) == ()
    assert [update.version for update in reader.updates(facts, since_ms=0, after_version=facts.version)] == [landed + 2]


def test_the_values_of_files_bound_their_rows(contract: ContractLake) -> None:
    table = contract.table((7, 12), (3,))
    facts = contract.engine.reader.facts(table.ref)
    ranges = contract.engine.reader.column_ranges(facts, ("id",))
    assert ranges.columns == ("id",)
    bounds = sorted(tuple(int(str(value)) for value in row[0][:2]) for row in ranges.by_file.values())
    assert bounds == [(3, 3), (7, 12)]


def test_a_table_that_is_not_there_is_an_error_with_its_code(contract: ContractLake, tmp_path: Path) -> None:
    with pytest.raises(TableError) as caught:
        contract.engine.reader.facts(TableRef(str(tmp_path / "nothing")))
    assert caught.value.code == "T401"
