"""The audit of a commit by its figures alone: pure, and without trust in whoever committed.

A rewrite commit removes exactly the planned files of the batch, with their bytes and deletion vectors; it adds at
least one file where there were rows; its proof is there and holds. This is level L1 of verification: it costs nothing,
reads nothing, and catches a commit that did more or less than was planned.
"""

from __future__ import annotations

from maintainer.model.plan.steps import Batch
from maintainer.model.run.outcome import Assertion, CommitReceipt, FileFigures
from maintainer.verification.verification_result import Pair


def pairs_of(batch: Batch, receipt: CommitReceipt) -> tuple[Pair, ...]:
    """Everything about the commit that must be equal, as pairs of text (None where it was not measured).

    Args:
        batch: The batch as it was given to the engine, after bins that were no longer live were dropped.
        receipt: What the commit's own actions say.
    """
    pairs = [
        Pair("files planned", str(_now(batch, receipt, "num_files")), "files removed", str(receipt.num_files_removed)),
        Pair("bytes planned", str(_now(batch, receipt, "size_bytes")), "bytes removed", str(receipt.bytes_removed)),
        Pair(
            "deletion vectors planned",
            str(_now(batch, receipt, "num_deletion_vectors")),
            "deletion vectors removed",
            str(receipt.num_deletion_vectors_removed),
        ),
    ]
    proof = receipt.proof
    if proof is None:
        return (*pairs, Pair("rows read", None, "rows written", None))
    pairs.append(Pair("rows read", str(proof.read.rows), "rows written", str(proof.written.rows)))
    total = _now(batch, receipt, "live_records")
    if total is not None:
        # The log's own counts, taken from the plan and not from the engine that measured.
        pairs.append(Pair("rows by the log", str(total), "rows read from files", str(proof.read.rows)))
    sums = max(len(proof.read.sums), len(proof.written.sums))
    for index in range(sums):
        read = str(proof.read.sums[index]) if index < len(proof.read.sums) else None
        written = str(proof.written.sums[index]) if index < len(proof.written.sums) else None
        pairs.append(Pair(f"hash sum {index + 1} read", read, f"hash sum {index + 1} written", written))
    return tuple(pairs)


def _now(batch: Batch, receipt: CommitReceipt, figure: str) -> int | None:
    """A figure of the batch, plus what a command took beside it and less what it left; None where it is not known."""
    found: int | None = getattr(FileFigures.of(batch.files), figure)
    if receipt.difference is None or found is None:
        return found
    beyond, left = (getattr(one, figure) for one in (receipt.difference.beyond, receipt.difference.left))
    return None if beyond is None or left is None else found + int(beyond) - int(left)


def audit(batch: Batch, receipt: CommitReceipt) -> tuple[Assertion, ...]:
    """The audit's findings: an assertion for each pair, and for what is not a pair.

    A plain comparison in Python. Great Expectations asserts the same pairs again and keeps the result; this one
    stands even where it is not installed or not sound.
    """
    found = [
        Assertion(
            expectation=f"audit: {pair.name_before} = {pair.name_after}",
            outcome="pass" if pair.holds else "fail",
            version=receipt.version,
            expected=pair.before,
            observed=pair.after,
        )
        for pair in pairs_of(batch, receipt)
    ]
    rows = receipt.proof.written.rows if receipt.proof is not None else None
    adds_up = receipt.num_files_added > 0 if rows else receipt.num_files_added >= 0
    found.append(
        Assertion(
            expectation="audit: rows are in files",
            outcome="pass" if adds_up else "fail",
            version=receipt.version,
            expected=f"files for {rows} rows",
            observed=f"{receipt.num_files_added} files",
        )
    )
    if receipt.proof is not None and receipt.proof.findings:
        found.append(
            Assertion(
                expectation="audit: the proof found nothing wrong",
                outcome="fail",
                version=receipt.version,
                expected="nothing",
                observed="; ".join(receipt.proof.findings),
            )
        )
    later = receipt.version > receipt.read_version
    found.append(
        Assertion(
            expectation="audit: the commit follows the version it read",
            outcome="pass" if later else "fail",
            version=receipt.version,
            expected=f"above {receipt.read_version}",
            observed=str(receipt.version),
        )
    )
    return tuple(found)
