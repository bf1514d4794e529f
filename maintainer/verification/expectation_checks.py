"""Run the expectations of a policy after a commit: what counts against it, and what need not be run. Pure but for GE.

They run on the new version N. A failure that N-1 has as well is reported and does not count against the commit. Where a
proof has shown that both versions hold the same rows, one of them is enough: a verdict of this run on N-1 is carried
over, and what fails on N fails on N-1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maintainer.model.plan.plan import CheckedExpectation
from maintainer.model.run.outcome import NOT_OURS, Assertion
from maintainer.model.run.receipts import Verdict
from maintainer.verification.great_expectations_suite import Validated

ORDER_DEPENDENT = frozenset({"expect_column_values_to_be_decreasing", "expect_column_values_to_be_increasing"})
"""Expectations about the order of rows, which a rewrite may change: their verdicts are not carried."""

Verdicts = Mapping[CheckedExpectation, Assertion]
Validate = Callable[[int, tuple[CheckedExpectation, ...], str], Validated]
"""Runs expectations on a version; the text names the document of the results."""


@dataclass(frozen=True, slots=True)
class CheckedExpectations:
    """What came of a policy's expectations.

    ``assertions`` are in the order of the policy; ``documents`` are the evidence by name. ``verdicts`` are those on the
    new version that may be carried on. ``notes`` are for people.
    """

    assertions: tuple[Assertion, ...]
    documents: tuple[tuple[str, dict[str, Any]], ...]
    verdicts: Verdicts
    notes: tuple[str, ...] = ()


def check_expectations(
    expectations: tuple[CheckedExpectation, ...],
    versions: tuple[int, int],
    validate: Validate,
    judged_before: Verdicts,
    *,
    has_same_rows: bool,
) -> CheckedExpectations:
    """Run expectations on a new version, as far as their verdicts are not known.

    Args:
        expectations: The policy's, each once.
        versions: The version before the commit, and the commit's.
        validate: Runs some of them on a version.
        judged_before: Verdicts of this run on the version before.
        has_same_rows: Whether it was proven that both versions hold the same rows.
    """
    before, after = versions
    verdicts = _verdicts_kept(expectations, versions, judged_before) if has_same_rows else {}
    document = _evidence(verdicts, versions)
    asked = tuple(expectation for expectation in expectations if expectation not in verdicts)
    if asked:
        validated = validate(after, asked, "expectations")
        success = bool(document.get("success", True) and validated.document["success"])
        document = {**document, **validated.document, "success": success}
        if not validated.is_run:
            return CheckedExpectations(validated.assertions, (("expectations", document),), {})
        verdicts.update(zip(asked, validated.assertions, strict=True))
    documents = [("expectations", document)]
    known = {expectation: verdict for expectation, verdict in verdicts.items() if verdict.outcome != Verdict.ERROR}
    notes: dict[CheckedExpectation, str] = {}
    again = []
    for expectation, verdict in verdicts.items():
        if verdict.outcome == Verdict.FAIL and has_same_rows and expectation.type not in ORDER_DEPENDENT:
            notes[expectation] = f"failed before as well: version {before} has the same rows by proof"
        elif verdict.outcome != Verdict.PASS:
            again.append(expectation)
    if again:
        validated = validate(before, tuple(again), "expectations-before")
        documents.append(("expectations-before", validated.document))
        # What could not be run at all says nothing of any expectation: it excuses none.
        for expectation, verdict in zip(again, validated.assertions, strict=True) if validated.is_run else ():
            if verdict.outcome == verdicts[expectation].outcome:
                result = "failed" if verdict.outcome == Verdict.FAIL else "could not be checked"
                notes[expectation] = f"{result} before as well, at version {before}"
    for expectation, note in notes.items():
        detail = f": {verdicts[expectation].error}" if verdicts[expectation].error else ""
        text = f"{NOT_OURS}{note}{detail}"
        verdicts[expectation] = replace(verdicts[expectation], error=text)
    return CheckedExpectations(
        tuple(verdicts[expectation] for expectation in expectations),
        tuple(documents),
        known,
        tuple(f"{expectation.type} {notes[expectation]}" for expectation in expectations if expectation in notes),
    )


def _verdicts_kept(
    expectations: tuple[CheckedExpectation, ...], versions: tuple[int, int], judged: Verdicts
) -> dict[CheckedExpectation, Assertion]:
    """Verdicts on the version before that hold for the new one as well."""
    before, after = versions
    return {
        expectation: replace(
            verdict, version=after, carried_from=before if verdict.carried_from is None else verdict.carried_from
        )
        for expectation in expectations
        if (verdict := judged.get(expectation)) is not None and expectation.type not in ORDER_DEPENDENT
    }


def _evidence(verdicts: Verdicts, versions: tuple[int, int]) -> dict[str, Any]:
    """What the document says of expectations that were not run again; empty without any."""
    if not verdicts:
        return {}
    return {
        "success": all(verdict.outcome == Verdict.PASS for verdict in verdicts.values()),
        "carried_because": f"versions {versions[0]} and {versions[1]} hold the same rows by proof",
        "carried": [
            {
                "expectation": expectation.type,
                "arguments": json.loads(expectation.arguments_json),
                "outcome": str(verdict.outcome),
                "run_at_version": verdict.carried_from,
            }
            for expectation, verdict in verdicts.items()
        ],
    }
