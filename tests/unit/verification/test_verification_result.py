"""The audit of a commit by its figures: forged receipts are caught, honest ones are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.run.receipts import CommitReceipt, FileFigures, Fingerprint, PlanDifference, Proof
from maintainer.verification.commit_checks_after import audit, pairs_of
from maintainer.verification.verification_result import Pair, figures_by_name
from tests.support.tables.builders import make_file

BATCH = Batch((Bin((make_file("a", size=10, records=3), make_file("b", size=20, records=5, deleted=1))),))
GOOD = Proof(Fingerprint(7, (2**70, -5)), Fingerprint(7, (2**70, -5)), 7)
RECEIPT = CommitReceipt(
    version=8, read_version=6, num_files_removed=2, num_files_added=1, bytes_removed=30, bytes_added=25,
    num_deletion_vectors_removed=1, proof=GOOD,
)  # fmt: skip


def failed(receipt: CommitReceipt, batch: Batch = BATCH) -> list[str]:
    return [
        assertion.expectation.removeprefix("audit: ")
        for assertion in audit(batch, receipt)
        if assertion.outcome == "fail"
    ]


def test_an_honest_commit_passes() -> None:
    assert failed(RECEIPT) == []
    assert all(pair.holds for pair in pairs_of(BATCH, RECEIPT))


def test_what_was_proven_before_the_commit_is_no_check_after_it() -> None:
    """It cannot fail any more; a command's proof comes after its commit, and decides here."""
    counted = {assertion.expectation.removeprefix("audit: ") for assertion in audit(BATCH, RECEIPT)}
    after = replace(RECEIPT, proof=replace(GOOD, after_commit=True))
    of_content = {"rows read = rows written", *(f"hash sum {n} read = hash sum {n} written" for n in (1, 2))}
    assert {assertion.expectation.removeprefix("audit: ") for assertion in audit(BATCH, after)} == counted | of_content
    assert not counted & of_content


@pytest.mark.parametrize(
    ("forged", "expected"),
    [
        ({"num_files_removed": 3}, ["files planned = files removed"]),
        ({"bytes_removed": 31}, ["bytes planned = bytes removed"]),
        ({"num_deletion_vectors_removed": 0}, ["deletion vectors planned = deletion vectors removed"]),
        ({"num_files_added": 0}, ["rows are in files"]),
        ({"version": 6}, ["the commit follows the version it read"]),
        ({"proof": None}, ["rows read = rows written"]),
        ({"proof": replace(GOOD, written=Fingerprint(6, (2**70, -5)))}, ["rows read = rows written"]),
        ({"proof": replace(GOOD, written=Fingerprint(7, (2**70 + 1, -5)))}, ["hash sum 1 read = hash sum 1 written"]),
        ({"proof": replace(GOOD, written=Fingerprint(7, (2**70,)))}, ["hash sum 2 read = hash sum 2 written"]),
        # Both sides lost a row alike: only the log's own count tells.
        ({"proof": Proof(Fingerprint(6, (1,)), Fingerprint(6, (1,)), 6)}, ["rows by the log = rows read from files"]),
    ],
)
def test_a_forged_commit_is_caught(forged: dict[str, Any], expected: list[str]) -> None:
    assert failed(replace(RECEIPT, **forged)) == expected


def test_what_a_command_took_beside_the_plan_is_expected_and_no_more() -> None:
    new, old = make_file("new", size=7, records=2), make_file("b", size=20, records=5, deleted=1)
    difference = PlanDifference(FileFigures.of([new]), FileFigures.of([old]))
    took = replace(
        RECEIPT,
        num_deletion_vectors_removed=0,
        bytes_removed=17,
        proof=Proof(Fingerprint(5, (1,)), Fingerprint(5, (1,)), 5),
        difference=difference,
    )
    assert failed(took) == []
    assert failed(replace(took, num_files_removed=3)) == ["files planned = files removed"]
    assert failed(replace(took, bytes_removed=18)) == ["bytes planned = bytes removed"]
    assert failed(replace(took, difference=None))[:2] == [
        "bytes planned = bytes removed",
        "deletion vectors planned = deletion vectors removed",
    ]
    assert str(difference) == "it took 1 files beside the plan and left 1 of it"


def test_what_a_proof_found_is_a_failure() -> None:
    changed = replace(GOOD, findings=("f1 has 3 rows, the log says 4",))
    assert not changed.holds
    assert failed(replace(RECEIPT, proof=changed)) == ["the proof found nothing wrong"]


def test_without_counts_in_the_log_the_proof_alone_decides() -> None:
    batch = Batch((Bin((make_file("a", size=30, records=None),)),))
    receipt = replace(RECEIPT, num_files_removed=1, num_deletion_vectors_removed=0)
    assert failed(receipt, batch) == []


def test_files_without_rows_may_become_no_file() -> None:
    empty = Proof(Fingerprint(0, (0,)), Fingerprint(0, (0,)), 0)
    batch = Batch((Bin((make_file("a", size=30, records=4, deleted=4),)),))
    receipt = replace(RECEIPT, num_files_removed=1, num_files_added=0, proof=empty)
    assert failed(receipt, batch) == []


def test_two_figures_that_were_not_measured_are_not_equal() -> None:
    assert not Pair("a", None, "b", None).holds
    with pytest.raises(ValueError, match="named"):
        figures_by_name((Pair("a", "1", "b", "1"), Pair("a", "2", "c", "2")))
