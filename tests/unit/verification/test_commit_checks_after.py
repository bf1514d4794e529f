"""Checks after a commit, on versions that are frames of pandas: what passes, what fails, and what is remembered."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from maintainer.errors import NoTable
from maintainer.model.plan.plan import CheckedExpectation, Checks, ContentCheck, RowCountCheck
from maintainer.model.plan.steps import Batch, Bin, VacuumStep
from maintainer.model.run.receipts import CommitReceipt, Fingerprint, Proof, VacuumReceipt, Verdict
from maintainer.model.table.storage_facts import MissingFiles
from maintainer.model.table.table_facts import TableFacts
from maintainer.verification import commit_checks_after
from maintainer.verification.commit_checks_after import GreatExpectationsVerifier
from maintainer.verification.verification_result import Pair, Verification, figures_by_name
from tests.support.tables.builders import make_facts, make_files

ROWS = pd.DataFrame({"id": [1, 2, 3], "day": ["a", "b", "b"]})
FACTS = make_facts(columns={"id": "long", "day": "string"}, files=make_files(10, 20))
LOG = Checks(row_count=RowCountCheck.LOG, files=False)


class Frames:
    """Reads versions of a table that are frames in memory; what is asked is noted."""

    def __init__(self, *versions: pd.DataFrame, missing: dict[int, tuple[str, ...]] | None = None) -> None:
        self.frames = dict(enumerate(versions))
        self.missing = missing or {}
        self.asked: list[tuple[str, int]] = []
        self.beside: list[tuple[int, int]] = []
        self.rows_in_log: int | None = None
        self.num_files = 2
        self.uncovered: tuple[str, ...] = ()
        self.findings: tuple[str, ...] = ()

    def frame(self, version: int, what: str) -> pd.DataFrame:
        self.asked.append((what, version))
        if version not in self.frames:
            raise NoTable(f"version {version} is gone", where="t", help="none")
        return self.frames[version]

    def dataframe(self, facts: TableFacts, version: int) -> object:
        return self.frame(version, "frame")

    def columns(self, facts: TableFacts, version: int) -> tuple[str, ...]:
        return tuple(self.frame(version, "columns").columns)

    def row_count(self, facts: TableFacts, version: int, *, scan: bool, beside: int | None = None) -> int:
        rows = len(self.frame(version, "scan" if scan else "log"))
        if beside is not None:
            self.beside.append((version, beside))
        return rows if scan or self.rows_in_log is None else self.rows_in_log

    def missing_files(self, facts: TableFacts, version: int) -> MissingFiles:
        self.frame(version, "missing")
        return MissingFiles(self.num_files + version, self.missing.get(version, ()))

    def files_there(self, facts: TableFacts, paths: Sequence[str]) -> frozenset[str]:
        raise AssertionError("not asked for")

    def proof(self, facts: TableFacts, version: int) -> Proof:
        """What it finds besides is as a test says; it does not look at the columns ``uncovered``."""
        read, written = (self._fingerprint(self.frame(each, "proof")) for each in (version - 1, version))
        return Proof(read, written, None, self.uncovered, findings=self.findings, after_commit=True)

    def _fingerprint(self, frame: pd.DataFrame) -> Fingerprint:
        rows = frame.drop(columns=list(self.uncovered)).itertuples(index=False, name=None)
        return Fingerprint(len(frame), (sum(zlib.crc32(repr(row).encode()) for row in rows),))

    def rows_differ(self, facts: TableFacts, version_a: int, version_b: int) -> int:
        before, after = (
            Counter(self.frame(v, "rows").itertuples(index=False, name=None)) for v in (version_a, version_b)
        )
        return sum(((before - after) + (after - before)).values())


def expectation(name: str, **arguments: Any) -> CheckedExpectation:
    return CheckedExpectation(name, json.dumps(arguments))


NOT_NULL = expectation("expect_column_values_to_not_be_null", column="id")
TWO_DAYS = expectation("expect_column_unique_value_count_to_be_between", column="day", min_value=3)


PROOF = ("rows read = rows written", "hash sum 1 read = hash sum 1 written")


def check(frames: Frames, checks: Checks = Checks(), version: int = 1) -> Verification:  # noqa: B008 (frozen)
    return GreatExpectationsVerifier().version_pair(frames, FACTS, version, checks)


def failed(verification: Verification) -> list[str]:
    return [each.expectation.partition(": ")[2] for each in verification.assertions if each.outcome != Verdict.PASS]


def test_equal_versions_pass_with_their_figures() -> None:
    done = check(Frames(ROWS, ROWS.iloc[::-1]), Checks(content=ContentCheck.EXACT, files=False))
    assert (done.verdict, done.detail, done.note) == (Verdict.PASS, None, None)
    assert (done.version_before, done.version_after, done.rows_before, done.rows_after) == (0, 1, 3, 3)
    assert (done.content_equal, done.num_files_checked) == (True, None)
    assert [document.name for document in done.documents] == ["sales.orders@v1.versions"]


@pytest.mark.parametrize(
    ("after", "pairs"),
    [
        (ROWS[:2], [*PROOF, "rows before, by scan = rows after, by scan",
                    "rows in one version only = rows that may differ"]),
        (ROWS.replace("a", "c"), [PROOF[1], "rows in one version only = rows that may differ"]),
        (ROWS.rename(columns={"id": "ID"}), ["columns before, for after = columns after"]),
        (ROWS[["day", "id"]], [PROOF[1], "columns before, for after = columns after",
                               "rows in one version only = rows that may differ"]),
    ],
    ids=["lost", "changed", "renamed", "order"],
)  # fmt: skip
def test_a_difference_fails_by_its_name(after: pd.DataFrame, pairs: list[str]) -> None:
    done = check(Frames(ROWS, after), Checks(content=ContentCheck.EXACT))
    assert (done.verdict, failed(done)) == (Verdict.FAIL, pairs)
    assert done.detail is not None
    assert f"{pairs[0]} at version 1: expected " in done.detail
    assert done.content_equal is ("rows in one version only = rows that may differ" not in pairs)


def test_a_version_that_cannot_be_read_is_an_error_and_no_failure() -> None:
    done = check(Frames(ROWS))
    assert done.verdict is Verdict.ERROR
    assert done.detail is not None
    assert done.detail.startswith("proof at version 1 could not be checked: ")
    assert "version 1 is gone" in done.detail


@pytest.mark.parametrize("rows", [RowCountCheck.LOG, RowCountCheck.SCAN, RowCountCheck.OFF])
def test_what_an_earlier_run_committed_is_proven_though_its_counts_fit(rows: RowCountCheck) -> None:
    """Delta's commands are proven after their commit: a run may end before that."""
    checks = Checks(row_count=rows, files=False)
    changed = check(Frames(ROWS, ROWS.replace("a", "c")), checks)
    assert (changed.verdict, failed(changed)) == (Verdict.FAIL, [PROOF[1]])
    frames = Frames(ROWS, ROWS)
    assert check(frames, checks).verdict is Verdict.PASS
    frames.findings = ("f has wrong statistics",)
    assert failed(check(frames, checks)) == ["the proof found nothing wrong"]


def batch_and_receipt(**changes: Any) -> tuple[Batch, CommitReceipt]:
    """A commit that rewrote two files of 100 rows each."""
    batch = Batch((Bin(FACTS.files),))
    fingerprint = Fingerprint(200, (1, 2))
    proof = Proof(fingerprint, fingerprint, 200)
    receipt = CommitReceipt(
        1, 0, num_files_removed=2, num_files_added=1, bytes_removed=30, bytes_added=30, proof=proof
    )  # fmt: skip
    return batch, replace(receipt, **changes)


def after_rewrite(
    frames: Frames, checks: Checks, verifier: GreatExpectationsVerifier | None = None, **changes: Any
) -> Verification:
    batch, receipt = batch_and_receipt(**changes)
    return (verifier or GreatExpectationsVerifier()).after_rewrite(frames, FACTS, batch, receipt, checks)


def test_a_command_that_found_another_column_than_the_plan_is_no_wrong_commit() -> None:
    """It takes the table as it finds it; a rewrite that was proven before its commit has the columns of the plan."""
    frames, (_, receipt) = Frames(ROWS.assign(later=1), ROWS.assign(later=1)), batch_and_receipt()
    assert receipt.proof is not None
    done = after_rewrite(frames, LOG, proof=replace(receipt.proof, after_commit=True))
    assert (done.verdict, done.detail) == (Verdict.PASS, None)
    assert len(failed(after_rewrite(frames, LOG))) == 2, "not as planned, before the commit and after it"
    dropped = Frames(ROWS.assign(later=1), ROWS)
    done = after_rewrite(dropped, LOG, proof=replace(receipt.proof, after_commit=True))
    assert failed(done) == ["columns before, for after = columns after"]


def test_rows_by_the_log_are_compared_and_scanned_where_it_does_not_count_them() -> None:
    """That nobody could count is no difference."""
    frames = Frames(ROWS, ROWS)
    done = after_rewrite(frames, LOG)
    assert (done.verdict, done.rows_before, done.content_equal) == (Verdict.PASS, 3, True)
    frames.rows_in_log = -1
    done = after_rewrite(frames, LOG)
    assert (done.verdict, done.rows_before, done.rows_after) == (Verdict.PASS, 3, 3)
    lost = Frames(ROWS, ROWS[:2])
    lost.rows_in_log = -1
    assert failed(after_rewrite(lost, LOG))[-1] == "rows before, by scan = rows after, by scan"


def test_with_no_count_files_are_looked_for() -> None:
    checks = Checks(row_count=RowCountCheck.OFF, content=ContentCheck.OFF)
    frames = Frames(ROWS, ROWS, missing={1: ("a", "b"), 0: ("b",)})
    done = after_rewrite(frames, checks)
    assert (done.verdict, failed(done)) == (Verdict.FAIL, ["live files missing = live files that may be missing"])
    assert done.note == "live files missing before this commit: 1, such as b"
    assert (done.num_files_checked, done.content_equal, done.rows_after) == (3, None, None)
    assert check(frames, checks).num_files_checked == 3, "those of the version, and not of the facts"
    assert after_rewrite(Frames(ROWS, ROWS), checks).verdict is Verdict.PASS
    lost = after_rewrite(Frames(ROWS, ROWS, missing={1: ("a",)}), checks)
    assert (lost.verdict, lost.note) == (Verdict.FAIL, None), "nothing was missing before"


def test_the_audit_decides_with_the_suite_and_then_expectations_are_not_run() -> None:
    frames = Frames(ROWS, ROWS)
    done = after_rewrite(frames, replace(LOG, expectations=(NOT_NULL,)), num_files_removed=3)
    assert (done.verdict, failed(done)) == (Verdict.FAIL, ["files planned = files removed"])
    assert ("frame", 1) not in frames.asked


def test_columns_that_no_proof_covers_are_named_and_rows_not_called_the_same() -> None:
    fingerprint = Fingerprint(200, (1, 2))
    proof = Proof(fingerprint, fingerprint, 200, uncovered_columns=("shape", "area"))
    frames = Frames(ROWS, ROWS)
    done = after_rewrite(frames, replace(LOG, expectations=(TWO_DAYS,)), proof=proof)
    assert done.note is not None
    assert done.note.startswith("the fingerprint does not cover shape, area; ")
    assert ("frame", 0) in frames.asked, "what fails is run on the version before"


def test_a_rewrite_without_a_proof_does_not_pass() -> None:
    done = after_rewrite(Frames(ROWS, ROWS), LOG, proof=None)
    assert (done.verdict, done.content_equal) == (Verdict.FAIL, None)
    assert failed(done)[0] == "rows read = rows written"


def test_expectations_that_failed_before_as_well_do_not_decide() -> None:
    done = after_rewrite(Frames(ROWS, ROWS), replace(LOG, expectations=(NOT_NULL, TWO_DAYS, NOT_NULL)))
    assert done.verdict is Verdict.PASS
    assert [each.outcome for each in done.assertions[-2:]] == [Verdict.PASS, Verdict.FAIL]
    assert done.note is not None
    assert "version 0 has the same rows by proof" in done.note
    assert [document.name for document in done.documents] == [
        "sales.orders@v1.versions", "sales.orders@v1.expectations",
    ]  # fmt: skip


def test_an_expectation_that_held_before_fails_the_commit() -> None:
    empty = pd.DataFrame({"id": [1, None, 3], "day": ["a", "b", "b"]})
    fingerprint = Fingerprint(200, (1, 2))
    proof = Proof(fingerprint, fingerprint, 200, uncovered_columns=("id",))
    done = after_rewrite(Frames(ROWS, empty), replace(LOG, expectations=(NOT_NULL,)), proof=proof)
    assert done.verdict is Verdict.FAIL
    asserted = done.assertions[-1]
    assert (asserted.expectation, asserted.outcome, asserted.error) == (NOT_NULL.type, Verdict.FAIL, None)
    earlier = Frames(ROWS, empty)
    earlier.uncovered = ("id",)
    only = check(earlier, Checks(expectations=(NOT_NULL,)))
    assert only.verdict is Verdict.FAIL
    assert only.detail == "expect_column_values_to_not_be_null at version 1: expected {}, found 1"


def test_verdicts_are_remembered_for_the_next_batch() -> None:
    frames, verifier = Frames(ROWS, ROWS, ROWS), GreatExpectationsVerifier()
    checks = Checks(files=False, expectations=(NOT_NULL,))
    assert after_rewrite(frames, checks, verifier).verdict is Verdict.PASS
    frames.asked.clear()
    second = after_rewrite(frames, checks, verifier, version=2, read_version=1)
    assert second.verdict is Verdict.PASS
    assert second.rows_before == 3
    assert [asked for asked in frames.asked if asked[0] in ("scan", "frame")] == [("scan", 1), ("scan", 2)]
    assert second.assertions[-1].carried_from == 1


def test_a_scan_opens_what_one_of_the_versions_has_alone_and_looks_for_the_other_files() -> None:
    frames = Frames(ROWS, ROWS, missing={0: ("old",), 1: ("old",)})
    done = check(frames)
    assert (done.verdict, done.note) == (Verdict.PASS, "live files missing before this commit: 1, such as old")
    assert frames.beside == [(0, 1), (1, 0)]
    done = check(Frames(ROWS, ROWS, missing={1: ("f",)}))
    assert failed(done) == ["live files missing = live files that may be missing"]


def test_memory_is_bounded_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_checks_after, "MAX_REMEMBERED_VERSIONS", 2)
    verifier = GreatExpectationsVerifier()
    verdicts: Any = {"x": "pass"}
    for version in (1, 2, 3):
        verifier.remember_verdicts(FACTS, version, verdicts)
    assert [len(verifier.judged(FACTS, version)) for version in (1, 2, 3)] == [0, 1, 1]
    assert verifier.judged(replace(FACTS, table_id="another"), 3) == {}


VACUUM = VacuumStep((), 0, 0, "x", ())


def after_vacuum(frames: Frames) -> Verification:
    facts, receipt = replace(FACTS, version=2), VacuumReceipt(1, 1, version_before=1)
    done = GreatExpectationsVerifier().after_vacuum(frames, facts, receipt, Checks())
    assert done is not None
    return done


def test_after_a_vacuum_every_live_file_is_there() -> None:
    done = after_vacuum(Frames(ROWS, ROWS, ROWS))
    assert (done.verdict, done.version_before, done.version_after) == (Verdict.PASS, 1, 2)
    assert (done.num_files_checked, done.detail) == (4, None)
    lost = after_vacuum(Frames(ROWS, ROWS, ROWS, missing={2: tuple(f"f{n:03}" for n in range(101))}))
    assert (lost.verdict, failed(lost)) == (Verdict.FAIL, ["live files missing = live files that may be missing"])
    assert lost.detail is not None
    assert lost.detail.endswith("at version 2: expected 101, found 0")
    assert len(lost.documents[0].content["missing"]) == 100
    gone = after_vacuum(Frames(ROWS))
    assert (gone.verdict, gone.version_before) == (Verdict.ERROR, 1)
    assert gone.detail is not None
    assert "version 2 is gone" in gone.detail


def test_without_a_check_of_files_nothing_is_found_out_after_a_vacuum() -> None:
    frames, receipt = Frames(), VacuumReceipt(1, 1)
    done = GreatExpectationsVerifier().after_vacuum(frames, FACTS, receipt, Checks(files=False))
    assert done is None
    assert frames.asked == []


@pytest.mark.parametrize(("written", "equal"), [((7, 9), True), ((7, 8), False)])
def test_a_fingerprint_says_that_the_content_is_equal_only_where_it_was_taken(
    written: tuple[int, int], equal: bool
) -> None:
    proof = Proof(Fingerprint(3, (7, 9)), Fingerprint(3, written), rows_in_log=3)
    batch, receipt = Batch((Bin(FACTS.files),)), CommitReceipt(1, 0, 2, 1, 30, 30, proof=proof)
    done = GreatExpectationsVerifier().after_rewrite(Frames(ROWS, ROWS), FACTS, batch, receipt, LOG)
    assert done.content_equal is equal
    # A commit of an earlier run is compared anew.
    assert check(Frames(ROWS, ROWS), LOG).content_equal is True


def test_preflight_builds_the_expectations() -> None:
    GreatExpectationsVerifier().preflight((NOT_NULL,))


def test_two_figures_have_two_names() -> None:
    assert figures_by_name((Pair("a", "1", "b", None),)) == {"a": "1", "b": None}
    with pytest.raises(ValueError, match="two figures are named 'a'"):
        figures_by_name((Pair("a", "1", "b", "1"), Pair("c", "1", "a", "1")))


def test_a_detail_names_a_failure_before_an_error() -> None:
    assert commit_checks_after._detail(()) == ""
