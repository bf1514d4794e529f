"""A verifier for lakes in memory: it compares versions, and gives other verdicts in an order that a test asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from maintainer.model.plan.plan import CheckedExpectation, Checks
from maintainer.model.plan.steps import Batch
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt, Verdict
from maintainer.model.table.table_facts import TableFacts
from maintainer.verification.commit_checks_after import audit
from maintainer.verification.verification_result import ValidationDocument, Verification


class PlainVerifier:
    """A ``Verifier`` without Great Expectations: the audit, row counts and missing files, in plain Python.

    ``order`` fixes what the next checks find, whatever is true.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int | None]] = []
        self.order: list[Verdict] = []
        self.broken: Exception | None = None

    def preflight(self, expectations: tuple[CheckedExpectation, ...]) -> None:
        if self.broken is not None:
            raise self.broken

    def after_rewrite(
        self, versions: Any, facts: TableFacts, batch: Batch, receipt: CommitReceipt, checks: Checks
    ) -> Verification:
        self.asked.append(("rewrite", facts.ref.identifier, receipt.version))
        assertions = audit(batch, receipt)
        if any(assertion.outcome != "pass" for assertion in assertions):
            return Verification(Verdict.FAIL, assertions, detail="the audit found something")
        return self._counts(versions, facts, receipt.version)

    def version_pair(self, versions: Any, facts: TableFacts, version: int, checks: Checks) -> Verification:
        self.asked.append(("pair", facts.ref.identifier, version))
        return self._counts(versions, facts, version)

    def after_vacuum(
        self, versions: Any, facts: TableFacts, receipt: VacuumReceipt, checks: Checks
    ) -> Verification | None:
        if not checks.files:
            return None
        self.asked.append(("vacuum", facts.ref.identifier, None))
        missing = versions.missing_files(facts, facts.version).paths
        return self._found(not missing, Verification(Verdict.PASS, version_after=facts.version, detail=str(missing)))

    def _counts(self, versions: Any, facts: TableFacts, version: int) -> Verification:
        before, after = (versions.row_count(facts, number, scan=True) for number in (version - 1, version))
        document = ValidationDocument(f"{facts.ref}@v{version}", {"before": before, "after": after})
        return self._found(
            before == after,
            Verification(
                Verdict.PASS, documents=(document,), version_before=version - 1, version_after=version,
                rows_before=before, rows_after=after, detail=f"{before} rows before, {after} after",
            ),
        )  # fmt: skip

    def _found(self, holds: bool, verification: Verification) -> Verification:
        verdict = self.order.pop(0) if self.order else (Verdict.PASS if holds else Verdict.FAIL)
        return replace(verification, verdict=verdict)
