"""Check a commit after it has landed: the audit, one suite for rows and columns, the policy's own expectations.

Version N is compared with N-1, never "before the run" with "after": whatever other writers did is in both, so they
raise no false alarm, and their appends cannot hide a loss. Each equality is asserted once: the audit compares the
commit with the plan in Python, Great Expectations compares row counts and columns of the two versions. The policy's
expectations run on N, too (``expectation_checks``).

The audit is pure, has no trust in the writer, and works without Great Expectations. A rewrite commit removes exactly
the planned files of the batch, with their bytes and deletion vectors; it adds at least one file where there were rows;
its proof is present and holds.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

from maintainer.engine.protocols import VersionReader
from maintainer.errors import MaintainerError
from maintainer.model.plan.plan import CheckedExpectation, Checks, ContentCheck, RowCountCheck
from maintainer.model.plan.steps import Batch
from maintainer.model.run.outcome import Assertion
from maintainer.model.run.receipts import CommitReceipt, FileFigures, Proof, VacuumReceipt, Verdict
from maintainer.model.table.storage_facts import MissingFiles
from maintainer.model.table.table_facts import TableFacts
from maintainer.verification import great_expectations_suite as gx
from maintainer.verification.expectation_checks import Verdicts, check_expectations
from maintainer.verification.verification_result import Pair, ValidationDocument, Verification

MAX_REMEMBERED_VERSIONS = 1000


class GreatExpectationsVerifier:
    """The verifier of a run; one for all workers."""

    def __init__(self) -> None:
        self._judged: OrderedDict[tuple[str, str, int], Verdicts] = OrderedDict()
        self._lock = threading.Lock()

    def preflight(self, expectations: tuple[CheckedExpectation, ...]) -> None:
        gx.preflight(expectations)

    def after_rewrite(
        self, versions: VersionReader, facts: TableFacts, batch: Batch, receipt: CommitReceipt, checks: Checks
    ) -> Verification:
        return _Check(self, versions, facts, receipt.version, checks, receipt.proof).run(audit(batch, receipt))

    def version_pair(self, versions: VersionReader, facts: TableFacts, version: int, checks: Checks) -> Verification:
        """Proves it, too: the run that committed may not have come to it, where the proof is made after the commit."""
        try:
            proof = versions.proof(facts, version)
        except MaintainerError as error:
            failed = (Assertion("proof", Verdict.ERROR, version, error=str(error)),)
            return Verification(
                Verdict.ERROR, failed, version_before=version - 1, version_after=version, detail=_detail(failed)
            )
        return _Check(self, versions, facts, version, checks, proof).run(_proof_assertions(version, proof))

    def after_vacuum(
        self, versions: VersionReader, facts: TableFacts, receipt: VacuumReceipt, checks: Checks
    ) -> Verification | None:
        if not checks.files:
            return None
        name = f"{facts.ref.identifier}@v{facts.version}.files"
        found = Verification(Verdict.PASS, version_before=receipt.version_before, version_after=facts.version)
        try:
            looked_for = versions.missing_files(facts, facts.version)
        except MaintainerError as error:
            failed = (Assertion(name, Verdict.ERROR, facts.version, error=str(error)),)
            return replace(found, verdict=Verdict.ERROR, assertions=failed, detail=_detail(failed))
        # How many of the planned files are gone proves nothing: another vacuum may have taken some before us.
        missing = looked_for.paths
        pairs = (Pair("live files missing", str(len(missing)), "live files that may be missing", "0"),)
        done = gx.validate_pairs(pairs, name, version=facts.version)
        verdict = _verdict(done.assertions)
        return replace(
            found,
            verdict=verdict,
            assertions=done.assertions,
            documents=(ValidationDocument(name, {**done.document, "missing": list(missing[:100])}),),
            num_files_checked=looked_for.num_files,
            detail=_detail(done.assertions) if verdict is not Verdict.PASS else None,
        )

    def judged(self, facts: TableFacts, version: int) -> Verdicts:
        """Return the verdicts of this run on a version."""
        with self._lock:
            return self._judged.get((facts.location, facts.table_id, version), {})

    def remember_verdicts(self, facts: TableFacts, version: int, verdicts: Verdicts) -> None:
        """Keep the verdicts on a version for the next batch."""
        with self._lock:
            self._judged[(facts.location, facts.table_id, version)] = verdicts
            while len(self._judged) > MAX_REMEMBERED_VERSIONS:
                self._judged.popitem(last=False)


class _Check:
    """One commit's check: collects assertions and documents, then gives a verdict."""

    def __init__(
        self,
        owner: GreatExpectationsVerifier,
        versions: VersionReader,
        facts: TableFacts,
        version: int,
        checks: Checks,
        proof: Proof | None = None,
    ) -> None:
        self._owner, self._versions, self._facts, self._checks = owner, versions, facts, checks
        self._before, self._after = version - 1, version
        # A command takes the table as it finds it, and what a run left unproven is proven beside later facts: a column
        # may have been added in between.
        self._has_planned_columns = proof is None or not proof.after_commit
        self._assertions: list[Assertion] = []
        self._documents: list[ValidationDocument] = []
        uncovered = () if proof is None else proof.uncovered_columns
        self.notes = [f"the fingerprint does not cover {', '.join(uncovered)}"] if uncovered else []
        self._proof_holds = None if proof is None else proof.holds
        self._has_same_rows = bool(self._proof_holds) and not uncovered
        self._found = Verification(Verdict.PASS, version_before=self._before, version_after=self._after)
        """What was measured, without its verdict."""

    def run(self, audited: tuple[Assertion, ...]) -> Verification:
        """Measure both versions, assert the suite, then the policy's expectations if everything passed so far."""
        self._assertions.extend(audited)
        try:
            validated = gx.validate_pairs(self._measure(), self._name("versions"), version=self._after)
            self._assertions.extend(validated.assertions)
            self._documents.append(ValidationDocument(self._name("versions"), validated.document))
            if self._checks.expectations and _verdict(self._assertions) is Verdict.PASS:
                # The same expectation twice is one: a suite holds each only once.
                self._assert_expectations(tuple(dict.fromkeys(self._checks.expectations)))
        except MaintainerError as error:
            self._assertions.append(Assertion("check", Verdict.ERROR, self._after, error=str(error)))
        verdict = _verdict(self._deciding())
        return replace(
            self._found,
            verdict=verdict,
            assertions=tuple(self._assertions),
            documents=tuple(self._documents),
            detail=_detail(self._deciding()) if verdict is not Verdict.PASS else None,
            note="; ".join(self.notes) or None,
        )

    def _measure(self) -> tuple[Pair, ...]:
        """Measure what must be equal at both versions: rows, columns, and files or content as the policy asks."""
        pairs: list[Pair] = []
        columns = {"planned": _column_list(self._facts.columns)} if self._has_planned_columns else {}
        for version, when in ((self._before, "before"), (self._after, "after")):
            columns[when] = _column_list(self._versions.columns(self._facts, version))
        (first, expected), *others = columns.items()
        pairs += [Pair(f"columns {first}, for {when}", expected, f"columns {when}", found) for when, found in others]
        count = self._checks.row_count
        if count is not RowCountCheck.OFF:
            is_scan = count is RowCountCheck.SCAN
            before, after = self._rows(scan=is_scan)
            if min(before, after) < 0:  # the log does not count the rows of each file
                is_scan, (before, after) = True, self._rows(scan=True)
            how = "by scan" if is_scan else "by the log"
            self._found = replace(self._found, rows_before=before, rows_after=after)
            pairs.append(Pair(f"rows before, {how}", str(before), f"rows after, {how}", str(after)))
        if self._checks.content is ContentCheck.EXACT:
            differing = self._versions.rows_differ(self._facts, self._before, self._after)
            self._found = replace(self._found, content_equal=differing == 0)
            pairs.append(Pair("rows in one version only", str(differing), "rows that may differ", "0"))
        elif self._checks.content is ContentCheck.FINGERPRINT:
            self._found = replace(self._found, content_equal=self._proof_holds)  # what the audit has compared
        looked_for = self._missing() if self._checks.files else MissingFiles(0, ())
        missing = looked_for.paths
        if self._checks.files and count is not RowCountCheck.SCAN:
            self._found = replace(self._found, num_files_checked=looked_for.num_files)
        if missing or self._found.num_files_checked is not None:
            pairs.append(Pair("live files missing", str(len(missing)), "live files that may be missing", "0"))
        return tuple(pairs)

    def _rows(self, *, scan: bool) -> list[int]:
        """Count the rows of both versions; -1 where the log cannot say."""
        both = ((self._before, self._after), (self._after, self._before))
        return [self._versions.row_count(self._facts, version, scan=scan, beside=beside) for version, beside in both]

    def _missing(self) -> MissingFiles:
        """Live files that are not on storage; what was missing at the version before is not this commit's."""
        missing = self._versions.missing_files(self._facts, self._after)
        if not missing.paths:
            return missing
        before = set(self._versions.missing_files(self._facts, self._before).paths)
        if gone_before := [path for path in missing.paths if path in before]:
            self.notes.append(f"live files missing before this commit: {len(gone_before)}, such as {gone_before[0]}")
        return replace(missing, paths=tuple(path for path in missing.paths if path not in before))

    def _assert_expectations(self, expectations: tuple[CheckedExpectation, ...]) -> None:
        before = self._owner.judged(self._facts, self._before) if self._has_same_rows else {}
        done = check_expectations(
            expectations, (self._before, self._after), self._validate, before, has_same_rows=self._has_same_rows
        )
        self._owner.remember_verdicts(self._facts, self._after, done.verdicts)
        self._assertions.extend(done.assertions)
        self._documents.extend(ValidationDocument(self._name(name), document) for name, document in done.documents)
        self.notes.extend(done.notes)

    def _deciding(self) -> list[Assertion]:
        return [assertion for assertion in self._assertions if not assertion.failed_before]

    def _validate(self, version: int, expectations: tuple[CheckedExpectation, ...], name: str) -> gx.Validated:
        frame = self._versions.dataframe(self._facts, version)
        return gx.validate_frame(frame, self._name(name), expectations, version=version)

    def _name(self, what: str) -> str:
        return f"{self._facts.ref.identifier}@v{self._after}.{what}"


def _column_list(columns: Sequence[str]) -> str:
    return json.dumps(list(columns), ensure_ascii=False)


def _verdict(assertions: Sequence[Assertion]) -> Verdict:
    outcomes = {assertion.outcome for assertion in assertions}
    if Verdict.FAIL in outcomes:
        return Verdict.FAIL
    return Verdict.ERROR if Verdict.ERROR in outcomes else Verdict.PASS


def _detail(assertions: Sequence[Assertion]) -> str:
    """Describe the first assertion that failed, or else the first that could not be checked."""
    for outcome in (Verdict.FAIL, Verdict.ERROR):
        for assertion in assertions:
            if assertion.outcome == outcome:
                place = f" at version {assertion.version}" if assertion.version is not None else ""
                if outcome == Verdict.ERROR:
                    return f"{assertion.expectation}{place} could not be checked: {assertion.error}"
                return f"{assertion.expectation}{place}: expected {assertion.expected}, found {assertion.observed}"
    return ""


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
    beyond, missed = (getattr(files, figure) for files in (receipt.difference.beyond, receipt.difference.untaken))
    return None if beyond is None or missed is None else planned + int(beyond) - int(missed)


def audit(batch: Batch, receipt: CommitReceipt) -> tuple[Assertion, ...]:
    """Assert every pair, that rows are in files, that the proof holds, and that the version follows the one read."""
    version = receipt.version
    rows = receipt.proof.written.rows if receipt.proof is not None else None
    assertions = _equal(version, pairs_of(batch, receipt))
    in_files = receipt.num_files_added > 0 or not rows
    expected, found = f"files for {rows} rows", f"{receipt.num_files_added} files"
    assertions.append(_assertion(version, "rows are in files", in_files, expected, found))
    assertions += _findings(version, receipt.proof)
    follows = version > receipt.read_version
    name = "the commit follows the version it read"
    assertions.append(_assertion(version, name, follows, f"above {receipt.read_version}", str(version)))
    return tuple(assertions)


def _proof_assertions(version: int, proof: Proof) -> tuple[Assertion, ...]:
    return (*_equal(version, _content_pairs(proof)), *_findings(version, proof))


def _equal(version: int, pairs: Iterable[Pair]) -> list[Assertion]:
    return [
        _assertion(version, f"{pair.name_before} = {pair.name_after}", pair.holds, pair.before, pair.after)
        for pair in pairs
    ]


def _findings(version: int, proof: Proof | None) -> list[Assertion]:
    if proof is None or not proof.findings:
        return []
    return [_assertion(version, "the proof found nothing wrong", False, "nothing", "; ".join(proof.findings))]


def _assertion(version: int, name: str, holds: bool, expected: str | None, observed: str | None) -> Assertion:
    return Assertion(f"audit: {name}", Verdict.PASS if holds else Verdict.FAIL, version, expected, observed)
