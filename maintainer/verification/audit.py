"""Audit a rewrite commit by its figures alone. Pure, and without trust in the writer.

The commit removes exactly the planned files of the batch, with their bytes and deletion vectors; it adds at least one
file where there were rows; its proof is present and holds. Reads nothing and works without Great Expectations.
"""

from __future__ import annotations

from itertools import zip_longest

from maintainer.model.plan.steps import Batch
from maintainer.model.run.outcome import Assertion, CommitReceipt, FileFigures, Proof, Verdict
from maintainer.verification.verification_result import Pair


def pairs_of(batch: Batch, receipt: CommitReceipt) -> tuple[Pair, ...]:
    """Pair every figure of the plan with the figure of the commit that must be equal (None: not measured).

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
    total = _now(batch, receipt, "live_records")
    if total is not None:
        # The log's own counts, taken from the plan and not from the engine that measured.
        pairs.append(Pair("rows by the log", str(total), "rows read from files", str(proof.read.rows)))
    if proof.after_commit or proof.read != proof.written:
        pairs += _content_pairs(proof)
    return tuple(pairs)


def _content_pairs(proof: Proof) -> list[Pair]:
    """Pair rows and hash sums; what was proven equal before the commit cannot differ here, and is no check any more."""
    pairs = [Pair("rows read", str(proof.read.rows), "rows written", str(proof.written.rows))]
    for number, (read, written) in enumerate(zip_longest(proof.read.sums, proof.written.sums), start=1):
        sums = [None if figure is None else str(figure) for figure in (read, written)]
        pairs.append(Pair(f"hash sum {number} read", sums[0], f"hash sum {number} written", sums[1]))
    return pairs


def _now(batch: Batch, receipt: CommitReceipt, figure: str) -> int | None:
    """Sum a figure of the planned files, plus what a command took beyond them, less what it left; None if unknown."""
    planned: int | None = getattr(FileFigures.of(batch.files), figure)
    if receipt.difference is None or planned is None:
        return planned
    beyond, missed = (getattr(files, figure) for files in (receipt.difference.beyond, receipt.difference.left))
    return None if beyond is None or missed is None else planned + int(beyond) - int(missed)


def audit(batch: Batch, receipt: CommitReceipt) -> tuple[Assertion, ...]:
    """Assert every pair, that rows are in files, that the proof holds, and that the version follows the one read."""
    version = receipt.version
    rows = receipt.proof.written.rows if receipt.proof is not None else None
    findings = receipt.proof.findings if receipt.proof is not None else ()
    assertions = [
        _assertion(version, f"{pair.name_before} = {pair.name_after}", pair.holds, pair.before, pair.after)
        for pair in pairs_of(batch, receipt)
    ]
    in_files = receipt.num_files_added > 0 or not rows
    expected, found = f"files for {rows} rows", f"{receipt.num_files_added} files"
    assertions.append(_assertion(version, "rows are in files", in_files, expected, found))
    if findings:
        assertions.append(_assertion(version, "the proof found nothing wrong", False, "nothing", "; ".join(findings)))
    follows = version > receipt.read_version
    name = "the commit follows the version it read"
    assertions.append(_assertion(version, name, follows, f"above {receipt.read_version}", str(version)))
    return tuple(assertions)


def _assertion(version: int, name: str, holds: bool, expected: str | None, observed: str | None) -> Assertion:
    return Assertion(f"audit: {name}", Verdict.PASS if holds else Verdict.FAIL, version, expected, observed)
