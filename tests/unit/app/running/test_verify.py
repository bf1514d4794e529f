"""Verifying after the fact, without an engine: what is recorded, what it means for the next run, what is printed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from maintainer.app.engine_access import ProvingWorker
from maintainer.app.lookback.run_history import HistoryQuery, recorded_rows
from maintainer.app.project_folders import Project
from maintainer.app.running.observers.observed_run import handed_on, webhook_of
from maintainer.app.running.verify_commits import (
    VerifyRequest,
    VerifyTarget,
    parse_target,
    quarantine_events,
    verification_document,
    verification_from_json,
    verification_json,
    verify_tables,
)
from maintainer.cli.act.verify_and_undelete import _exit_code
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.protocols import VacuumQuestion
from maintainer.errors import ExitCode, NoTable, Refused
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Problem
from maintainer.model.run.commit_verdict import CheckResult, CommitCheck, CommitVerification, VerifyRun
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import CommitEnd
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, CommitsWanted
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import (
    ColumnRanges,
    ColumnSample,
    DataFile,
    TableFacts,
    TableRecord,
    TableRef,
    Update,
)  # fmt: skip
from maintainer.report.findings import render_annotations
from maintainer.report.run.verify_text import render_verify, verify_findings, verify_junit
from tests.support.http_receiver import http_receiver
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS, make_facts
from tests.support.writers import recorded_events

PROVEN, WRONG, NOT_CHECKED = CheckResult.PROVEN, CheckResult.WRONG, CheckResult.NOT_CHECKED
SCHEMA = Path(__file__).resolve().parents[4] / "schemas" / "verification.schema.json"


def _commit(version: int, *checks: tuple[str, CheckResult, str | None]) -> CommitVerification:
    listed = tuple(CommitCheck(level, f"{level} hold", result, detail) for level, result, detail in checks)
    return CommitVerification(version, NOW_MS, "OPTIMIZE", "Apache-Spark/4.1", None, "rewrite", listed, 3, 1, 20, 20)


class Answers:
    """A reader and a prover that say what they were told to."""

    def files_with_dropped_columns(self, facts: TableFacts, files: Sequence[DataFile]) -> frozenset[tuple[str, str]]:
        raise AssertionError("verifying opens no file for dropped columns")

    def __init__(self, commits: Mapping[str, CommitVerification]) -> None:
        self.known = commits
        self.asked: list[tuple[str, int, bool]] = []

    def facts(self, ref: TableRef) -> TableFacts:
        if ref.identifier not in self.known:
            raise NoTable("there is no such table", where=ref.identifier, help="correct it")
        return make_facts(name=ref.identifier, location=f"mem:/{ref}", table_id=f"id-{ref}", version=9)

    def newest_maintenance(self, facts: TableFacts) -> int:
        return self.known[facts.ref.identifier].version

    def prove(self, facts: TableFacts, version: int, *, exact: bool = False) -> CommitVerification:
        self.asked.append((facts.ref.identifier, version, exact))
        return replace(self.known[facts.ref.identifier], version=version)

    def location_of(self, ref: TableRef) -> str:
        raise AssertionError("not asked for")

    def vacuum_history(
        self, facts: TableFacts, checkpoints: tuple[tuple[str, str], ...], *, removed_before_ms: int | None
    ) -> VacuumHistory:
        raise AssertionError("not asked for")

    def vacuum_look(self, facts: TableFacts, question: VacuumQuestion) -> TableFacts:
        raise AssertionError("not asked for")

    def zordered_paths(self, facts: TableFacts, columns: tuple[str, ...]) -> frozenset[str]:
        raise AssertionError("not asked for")

    def rewritten_paths(self, facts: TableFacts, *, since_ms: int) -> frozenset[str]:
        raise AssertionError("not asked for")

    def column_ranges(self, facts: TableFacts, columns: tuple[str, ...]) -> ColumnRanges:
        raise AssertionError("not asked for")

    def column_sample(self, facts: TableFacts, columns: tuple[str, ...], *, max_rows: int) -> ColumnSample:
        raise AssertionError("not asked for")

    def find_commit(self, facts: TableFacts, stamp: CommitStamp, *, after_version: int) -> int | None:
        raise AssertionError("not asked for")

    def stamp_of(self, facts: TableFacts, version: int) -> CommitStamp | None:
        raise AssertionError("not asked for")

    def has_commit(self, facts: TableFacts, version: int) -> bool:
        raise AssertionError("not asked for")

    def updates(self, facts: TableFacts, **wanted: int | None) -> tuple[Update, ...]:
        raise AssertionError("not asked for here")

    def commits(self, ref: TableRef, wanted: CommitsWanted) -> CommitsRead:
        raise AssertionError("not asked for")


class Bench:
    """A project whose run folders are kept, and one call that verifies."""

    def __init__(self, root: Path, settings: str = "") -> None:
        write_project(root, {"maintainer.yml": settings, "policies/t.yml": "table: a.t\nowner: team"})
        self.project = Project.load(root)
        self.number = 0

    def journal(self) -> Journal:
        self.number += 1
        return Journal.open(self.project.runs_dir, f"20261121T22000{self.number}Z-0000", lambda: NOW_MS + self.number)

    def verify(self, answers: Answers, *names: str, accept: str | None = None, exact: bool = False) -> VerifyRun:
        targets = [parse_target(name, TableRef) for name in names]
        return self.verify_targets(answers, targets, accept=accept, exact=exact)

    def verify_targets(
        self, answers: Answers, targets: Sequence[VerifyTarget], *, accept: str | None = None, exact: bool = False
    ) -> VerifyRun:
        request = VerifyRequest(targets, exact=exact, accept=accept)
        return verify_tables(self.project, ProvingWorker(answers, answers, StoragePlaces()), self.journal(), request)

    def unproven(self, version: int) -> None:
        """A run of ours that committed a version and could not check it."""
        journal, facts = self.journal(), make_facts(name="a.t", location="mem:/a.t", table_id="id-a.t")
        about = (journal, CommitStamp(journal.run_id, "a.t/compact", 0, "sha256:p"), facts, "compact")
        recorded_events.intent(*about, read_version=version - 1)
        recorded_events.result(*about, CommitEnd.LANDED, receipt=CommitReceipt(version, version - 1))
        recorded_events.verified(journal, facts, "a.t/compact", version, "error", "storage did not answer")
        journal.finished()
        journal.close()

    def record(self) -> TableRecord:
        return remembered(self.project.runs_dir).record_of("id-a.t", "mem:/a.t", StoragePlaces())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


GOOD = _commit(7, ("actions", PROVEN, None), ("rows", PROVEN, "20 rows"), ("statistics", PROVEN, None))
BAD_ROWS = _commit(7, ("actions", PROVEN, None), ("rows", WRONG, "20 rows were removed, 19 added"))
BAD_BOUNDS = _commit(7, ("rows", PROVEN, "20 rows"), ("statistics", WRONG, "f: numRecords says 3, it holds 2 rows"))
FOUND_SO = _commit(
    7, ("rows", PROVEN, "20 rows"), ("inputs", CheckResult.NOTED, "the log says 21 rows, the files hold 20")
)
GONE = _commit(7, ("actions", PROVEN, None), ("rows", NOT_CHECKED, "3 of its files are not on storage any more"))


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [("a.t", "a.t", None), ("a.t@12", "a.t", 12), ("lake/t@home", "lake/t@home", None),
     ("lake/t@home@0", "lake/t@home", 0)],
)  # fmt: skip
def test_a_target_is_a_table_and_maybe_a_version(text: str, name: str, version: int | None) -> None:
    assert parse_target(text, TableRef) == VerifyTarget(TableRef(name), version)


def test_a_proven_version_is_no_longer_unproven(bench: Bench) -> None:
    bench.unproven(7)
    assert bench.record().unproven_versions == (7,)
    run = bench.verify(Answers({"a.t": GONE}), "a.t")
    assert (run.tables[0].note, bench.record().unproven_versions) == ("not proven yet: version 7", (7,))
    answers = Answers({"a.t": GOOD})
    run = bench.verify(answers, "a.t", exact=True)
    assert answers.asked == [("a.t", 7, True)]
    assert (run.tables[0].result, run.tables[0].note) == (PROVEN, None)
    assert bench.record() == TableRecord()


def test_wrong_rows_put_the_table_into_quarantine_until_a_person_accepts_it(bench: Bench) -> None:
    bench.verify(Answers({"a.t": BAD_ROWS}), "a.t@5")
    held = bench.record().quarantined
    assert held == "V507: version 5 was verified and is wrong: 20 rows were removed, 19 added"
    assert bench.verify(Answers({"a.t": BAD_ROWS}), "a.t").tables[0].quarantined == held
    bench.unproven(8)
    run = bench.verify(Answers({"a.t": GOOD}), "a.t", accept="rows compared with the export")
    assert bench.record() == TableRecord()
    assert "the quarantine is lifted" in (run.tables[0].note or "")
    assert "version 8 counts as proven" in (run.tables[0].note or "")
    events = [
        json.loads(line)
        for line in (bench.project.runs_dir / run.run_id / "events.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    (accepted,) = [event for event in events if event.get("type") == "accepted"]
    assert (accepted["reason"], accepted["versions"]) == ("rows compared with the export", [8])
    assert accepted["by"]


def test_a_table_that_is_wrong_again_is_held_again(bench: Bench) -> None:
    bench.verify(Answers({"a.t": BAD_ROWS}), "a.t")
    bench.verify(Answers({"a.t": BAD_ROWS}), "a.t", accept="known")
    # Accepting looks first, and what it finds is recorded before the acceptance.
    assert bench.record().quarantined is None
    bench.verify(Answers({"a.t": BAD_ROWS}), "a.t")
    assert bench.record().quarantined is not None


def test_what_nobody_has_seen_is_not_accepted(bench: Bench) -> None:
    bench.unproven(8)
    with pytest.raises(Refused) as caught:
        bench.verify(Answers({"a.t": BAD_ROWS}), "a.t", accept="all is well")
    assert (caught.value.code, caught.value.where) == ("A411", "a.t")
    assert caught.value.found == "version 7: rows hold: 20 rows were removed, 19 added"
    record = bench.record()
    assert (record.unproven_versions, record.quarantined is None) == ((8,), False)
    bench.verify(Answers({"a.t": BAD_ROWS}), "a.t", accept="it is known that a row is gone")
    assert bench.record() == TableRecord()
    # One that is wrong in another version is none that somebody has seen.
    bench.verify(Answers({"a.t": BAD_ROWS}), "a.t@5")
    with pytest.raises(Refused):
        bench.verify(Answers({"a.t": BAD_ROWS}), "a.t", accept="version 5 is known")
    assert [version for _, version in bench.record().quarantines] == [5, 7]


def test_wrong_statistics_quarantine_nothing(bench: Bench) -> None:
    run = bench.verify(Answers({"a.t": BAD_BOUNDS}), "a.t")
    assert (run.tables[0].result, bench.record().quarantined) == (WRONG, None)


def test_nothing_to_accept_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused) as caught:
        bench.verify(Answers({"a.t": GOOD}), "a.t", accept="why not")
    assert (caught.value.code, caught.value.exit_code) == ("A412", ExitCode.REFUSED)


def test_a_table_that_cannot_be_read_stops_no_other(bench: Bench) -> None:
    run = bench.verify(Answers({"a.t": GOOD}), "a.gone", "a.t")
    assert [table.result for table in run.tables] == [NOT_CHECKED, PROVEN]
    assert run.tables[0].problem is not None
    assert run.tables[0].problem.code == "T401"
    assert _exit_code(run, accepted=False) is ExitCode.FINDINGS


@pytest.mark.parametrize(
    ("commits", "code"),
    [((GOOD,), 0), ((GOOD, GONE), 1), ((GONE, BAD_BOUNDS), 5), ((BAD_ROWS, GOOD), 5), ((), 0), ((FOUND_SO,), 0)],
)
def test_the_gravest_answer_is_the_exit_code(bench: Bench, commits: tuple[CommitVerification, ...], code: int) -> None:
    answers = Answers({f"a.t{number}": table_commits for number, table_commits in enumerate(commits)})
    assert _exit_code(bench.verify(answers, *answers.known), accepted=False) == code


ONE_PROVEN = {"proven": 1, "files_only": 0, "wrong": 0, "not_checked": 0, "spelled_anew": 0}


def test_a_note_is_told_and_says_nothing_against_the_commit(bench: Bench) -> None:
    run = bench.verify(Answers({"a.t": FOUND_SO}), "a.t")
    assert run.count(PROVEN) == 1
    text = render_verify(run)
    assert "! note        the log says 21 rows, the files hold 20\n                    checked: inputs hold\n" in text
    assert "1 table: 1 proven" in text
    assert verification_document(run)["counts"] == ONE_PROVEN
    jsonschema.validate(verification_document(run), json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert verification_from_json(verification_json(run)) == run
    assert [finding.severity.name for finding in verify_findings(run)] == ["WARNING"]
    assert "<failure" not in verify_junit(run)
    assert not bench.record().quarantined


def test_the_ledger_is_counted_apart_and_its_verdict_holds(bench: Bench) -> None:
    """Of the ledger the documents say what came of it, but it is no table of the user's."""

    def verified(of_ledger: CommitVerification) -> VerifyRun:
        answers = Answers({"a.t": GOOD, "ledger": of_ledger})
        targets = (VerifyTarget(TableRef("a.t")), VerifyTarget(TableRef("ledger"), is_ledger=True))
        return bench.verify_targets(answers, targets)

    run = verified(GOOD)
    assert json.loads(verification_json(run))["counts"] == ONE_PROVEN
    assert verification_from_json(verification_json(run)) == run
    assert "\n1 table: 1 proven; our own ledger: proven, " in render_verify(run)
    assert [suite.get("name") for suite in ElementTree.fromstring(verify_junit(run))] == ["a.t"]
    assert _exit_code(run, accepted=False) is ExitCode.OK
    for commit, word, code in (
        (GONE, "could not check", ExitCode.FINDINGS), (BAD_ROWS, "WRONG", ExitCode.VERIFICATION_FAILED),
    ):  # fmt: skip
        run = verified(commit)
        assert f"\n1 table: 1 proven; our own ledger: {word}, " in render_verify(run)
        assert [suite.get("name") for suite in ElementTree.fromstring(verify_junit(run))] == ["a.t", "ledger"]
        assert _exit_code(run, accepted=False) is code


def test_every_document_says_the_same(bench: Bench) -> None:
    answers = Answers({"a.good": GOOD, "a.bad": BAD_ROWS, "a.gone": GONE})
    run = bench.verify(answers, *answers.known, "a.missing")
    document = json.loads(verification_json(run))
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert document == json.loads(json.dumps(verification_document(run)))
    assert document["counts"] == {"proven": 1, "files_only": 0, "wrong": 1, "not_checked": 2, "spelled_anew": 0}
    stored = json.loads((bench.project.runs_dir / run.run_id / "verification.json").read_text(encoding="utf-8"))
    assert stored == document
    suites = ElementTree.fromstring(verify_junit(run))
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("8", "1", "2")
    annotations = render_annotations(verify_findings(run)).splitlines()
    assert [line.split(" ")[0] for line in annotations] == ["::error", "::warning", "::warning"]
    text = render_verify(run)
    about = "OPTIMIZE by Apache-Spark/4.1, 2026-11-21T22:00:00.000Z, 3 -> 1 file; claims to change no data"
    assert f"  x a.bad@7     {about}\n" in text
    assert "x WRONG       20 rows were removed, 19 added\n                    checked: rows hold\n" in text
    begins = "in quarantine  from now on: no run changes the table\n                    help: look at what failed"
    assert text.count(begins) == 1
    assert text.count("`maintainer verify a.bad@7 --accept REASON`") == 1
    assert "in quarantine  V507: version 7 was" in render_verify(bench.verify(answers, "a.bad"))
    accepted = render_verify(bench.verify(answers, "a.bad", accept="looked at"))
    assert ("--accept" in accepted, "from now on" in accepted) == (False, False)
    assert "! could not check  rows hold (3 of its files are not on storage any more)\n" in text
    assert "4 tables: 1 proven, 1 WRONG, 2 could not check" in text


def test_what_was_verified_is_in_the_history_with_its_proof(bench: Bench) -> None:
    other = replace(GOOD, kind="data_change")
    spelled = _commit(7, ("partitions", CheckResult.SPELLED_ANEW, "p was 'a'\nRESTORE brings it back"))
    answers = Answers({"a.t": GOOD, "b.t": BAD_ROWS, "c.t": spelled, "d.t": other})
    bench.verify(answers, "a.t", "b.t", "c.t", "d.t", "e.t")
    rows, unread = recorded_rows(bench.project.runs_dir)
    assert unread == []
    found = {row.table: (row.kind, row.status, row.proof_result, row.version_after, row.error_code) for row in rows}
    assert found == {
        "a.t": ("verify", "succeeded", "pass", 7, None),
        "b.t": ("verify", "verify_failed", "fail", 7, "V507"),
        "c.t": ("verify", "spelled_anew", "spelled_anew", 7, None),
    }
    failed, _ = recorded_rows(bench.project.runs_dir, HistoryQuery(failed=True))
    assert {row.table: row.error for row in failed} == {
        "b.t": "20 rows were removed, 19 added",
        "c.t": "p was 'a'; RESTORE brings it back",
    }
    places = {(row.table, row.table_id, row.location) for row in failed}
    assert places == {("b.t", "id-b.t", "mem:/b.t"), ("c.t", "id-c.t", "mem:/c.t")}
    assert recorded_rows(bench.project.runs_dir, HistoryQuery(since_ms=NOW_MS + 1_000_000)) == ([], [])


def test_a_verification_that_cannot_be_read_is_named(bench: Bench) -> None:
    run = bench.verify(Answers({"a.t": GOOD}), "a.t")
    path = bench.project.runs_dir / run.run_id / "verification.json"
    path.write_text("{", encoding="utf-8")
    rows, (unread,) = recorded_rows(bench.project.runs_dir)
    assert (rows, unread.code, unread.where) == ([], "E643", str(path))


def test_a_new_quarantine_is_posted_once_and_an_accepted_one_is_not(tmp_path: Path) -> None:
    with http_receiver() as receiver:
        bench = Bench(tmp_path, f"notify: {{url: {receiver.url}}}")

        def verify(commit: CommitVerification, accept: str | None = None) -> None:
            journal, answers = bench.journal(), Answers({"a.t": commit, "b.t": commit})
            webhook = webhook_of(bench.project)
            assert webhook is not None
            undelivered: list[Problem] = []
            request = VerifyRequest([VerifyTarget(TableRef("a.t")), VerifyTarget(TableRef("b.t"))], accept=accept)
            with handed_on((webhook,), None, undelivered.append) as sink:
                request = quarantine_events(bench.project, journal, request, sink)
                verify_tables(bench.project, ProvingWorker(answers, answers, StoragePlaces()), journal, request)
            assert undelivered == []

        for commit in (GOOD, GONE, BAD_BOUNDS):
            verify(commit)
        assert receiver.posts == []
        verify(BAD_ROWS)
        verify(BAD_ROWS)
        verify(BAD_ROWS, accept="known")
        messages = [json.loads(body) for _, _, body in receiver.posts]
    assert [(message["event"], message["tables"][0]["table"]) for message in messages] == [
        ("quarantine", "a.t"),
        ("quarantine", "b.t"),
    ]
    (table,) = messages[0]["tables"]
    assert (table["owner"], table["policy_file"], table["code"]) == ("team", "policies/t.yml", "V507")
    assert table["what"] == "V507: version 7 was verified and is wrong: 20 rows were removed, 19 added"
    assert messages[0]["run_id"] in messages[0]["run_folder"]
