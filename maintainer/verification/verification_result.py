"""Results of a check after a commit, and the figures it compares. Execution needs no Great Expectations for them.

Figures are text: sums of hashes exceed 64 bits, and a data frame would turn them into floats. A figure that was not
measured is None, and None never equals None: a measurement that failed on both sides proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from maintainer.engine.protocols import VersionReader
from maintainer.model.plan.plan import CheckedExpectation, Checks
from maintainer.model.plan.steps import Batch
from maintainer.model.run.outcome import Assertion
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt, Verdict
from maintainer.model.table.table_facts import TableFacts


@dataclass(frozen=True, slots=True)
class ValidationDocument:
    """The result of one validation as Great Expectations gives it, for ``assertions/<name>.json``."""

    name: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verification:
    """One commit's (or deletion's) check. Figures are None where they were not asked for.

    ``note`` says what did not decide the verdict and still should be read: an expectation of the user's that fails
    now and failed before, too.
    """

    verdict: Verdict
    assertions: tuple[Assertion, ...] = ()
    documents: tuple[ValidationDocument, ...] = ()
    version_before: int | None = None
    version_after: int | None = None
    rows_before: int | None = None
    rows_after: int | None = None
    content_equal: bool | None = None
    num_files_checked: int | None = None
    detail: str | None = None
    note: str | None = None


class Verifier(Protocol):
    """Checks what was done, after it was done. One serves all workers."""

    def preflight(self, expectations: tuple[CheckedExpectation, ...]) -> None:
        """Show, before anything is changed, that checking will be possible.

        Raises:
            MaintainerError: Great Expectations is missing or broken, or an expectation is not known to it.
        """

    def after_rewrite(
        self, versions: VersionReader, facts: TableFacts, batch: Batch, receipt: CommitReceipt, checks: Checks
    ) -> Verification:
        """Check one rewrite commit against the version before it. Never raises for what it finds."""

    def version_pair(self, versions: VersionReader, facts: TableFacts, version: int, checks: Checks) -> Verification:
        """Check a commit of ours of which only the version is known, against the version before it."""

    def after_vacuum(
        self, versions: VersionReader, facts: TableFacts, receipt: VacuumReceipt, checks: Checks
    ) -> Verification | None:
        """Check that every file of the newest version still exists; None where the policy asks for no such check.

        Never raises for what it finds.
        """


@dataclass(frozen=True, slots=True)
class Pair:
    """Two figures that must be equal, with the names under which a result shows them."""

    name_before: str
    before: str | None
    name_after: str
    after: str | None

    @property
    def holds(self) -> bool:
        """Whether both were measured and are equal."""
        return self.before is not None and self.before == self.after


def figures_by_name(pairs: tuple[Pair, ...]) -> dict[str, str | None]:
    """Return both figures of every pair under their names.

    Raises:
        ValueError: Two figures have the same name; one of them would be lost.
    """
    figures: dict[str, str | None] = {}
    for pair in pairs:
        for name, value in ((pair.name_before, pair.before), (pair.name_after, pair.after)):
            if name in figures:
                raise ValueError(f"two figures are named {name!r}")
            figures[name] = value
    return figures
