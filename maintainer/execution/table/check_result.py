"""Keep what a check after a change has found, and end the step where the check failed or could not be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from maintainer.errors import CheckImpossible, Interrupted, VerificationFailed
from maintainer.errors.missing_files import files_gone_help
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.model.run.progress import Verified
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt, Verdict
from maintainer.model.table.table_facts import TableFacts
from maintainer.verification.verification_result import Verification

_FIGURES = {field.name for field in fields(Verification)} & {field.name for field in fields(Verified)}
_NEXT_APPLY_HELP = "the files that it replaced are not deleted until this check was made; the next apply makes it"


def check_change(
    worker: TableWorker,
    work: StepWork,
    facts: TableFacts,
    receipt: CommitReceipt | VacuumReceipt,
    check: Callable[[], Verification | None],
    on_event: Callable[[Verified], None] = lambda event: None,
) -> None:
    """Make a check after a change, and keep what it found, in the run folder first; then let it decide.

    Args:
        worker: The table's worker.
        work: The step; assertions, notes and verdicts are added to it.
        facts: The table.
        receipt: The commit or deletion that is checked; without a proof where this run has made none.
        check: Makes the check; None where the policy asks for none.
        on_event: Called with what was found, before anything is kept.

    Raises:
        VerificationFailed: V503, checked and wrong; V505, a live file is gone after a deletion.
        CheckImpossible: V504, could not be checked.
        Interrupted: It could not be checked because the table must end.
        FolderUnwritable: The result could not be kept, so the version counts as not proven.
    """
    context, started = worker.context, worker.context.clock.monotonic()
    verification = check()
    if verification is None:
        return
    version = receipt.version if isinstance(receipt, CommitReceipt) else None
    figures: dict[str, Any] = {name: getattr(verification, name) for name in _FIGURES}
    figures["detail"] = verification.detail or verification.note
    event = Verified(
        context.clock.now_ms(), worker.plan.ref.identifier, work.step_id, verification.verdict.value,
        context.clock.monotonic() - started,
        version=version, table_id=facts.table_id, location=facts.location, **figures,
    )  # fmt: skip
    on_event(event)
    for document in verification.documents:
        context.journal.folder.write_assertions(document.name, document.content)
    work.assertions.extend(verification.assertions)
    if verification.note:
        work.notes.append(verification.note)
    context.record(event)
    work.commits[:] = [
        replace(commit, verdict=verification.verdict) if commit.version == version else commit
        for commit in work.commits
    ]
    _decide(worker, work, facts, verification, receipt)


def _decide(
    worker: TableWorker,
    work: StepWork,
    facts: TableFacts,
    verification: Verification,
    receipt: CommitReceipt | VacuumReceipt,
) -> None:
    version, deletion = (receipt.version, None) if isinstance(receipt, CommitReceipt) else (None, receipt)
    where = f"{facts.ref.identifier}@{verification.version_after if version is None else version}"
    match verification.verdict:
        case Verdict.FAIL if deletion is not None:
            help_text = files_gone_help(
                deletion.num_files_deleted, deletion.trash, facts.ref.identifier, worker.context.run_id,
                num_marked=deletion.num_marked,
            )  # fmt: skip
            raise VerificationFailed(
                f"files that had to stay are gone from storage after the deletion: {verification.detail}",
                code="V505", where=where, help=help_text,
            )  # fmt: skip
        case Verdict.FAIL:
            work.wrong_version = version
            before = (
                "" if version is None else f"; version {version - 1} is intact: RESTORE it, if nobody committed since"
            )
            raise VerificationFailed(
                f"a check after the change failed: {verification.detail}", code="V503", where=where,
                help=f"nothing more is deleted: the old files are still there{before}",
            )  # fmt: skip
        case Verdict.ERROR:
            help_text = _NEXT_APPLY_HELP if deletion is None else _deletion_help(worker.context.run_id, where)
            if worker.control.reason is not None:
                raise Interrupted(
                    f"stopped while it was checked: {worker.control.reason}", where=where,
                    help=f"the commit stays; {help_text}" if deletion is None else help_text,
                )  # fmt: skip
            raise CheckImpossible(_unchecked(verification.detail, receipt), where=where, help=help_text)
        case Verdict.PASS:
            return


def _unchecked(detail: str | None, receipt: CommitReceipt | VacuumReceipt) -> str:
    """Say that the check could not be made, and how far what was done is known to be right all the same."""
    if isinstance(receipt, VacuumReceipt):
        noun = "file was" if receipt.num_files_deleted == 1 else "files were"
        done = "deleted" if receipt.trash is None else "moved to the trash"
        number = f"{receipt.num_files_deleted:,} {noun} {done}"
        return f"{number}, but the check whether all live files are still there could not be made: {detail}"
    if receipt.proof is not None:
        return f"committed and proven, but the check afterwards could not be made: {detail}"
    return f"committed, but the check that would prove it could not be made: {detail}"


def _deletion_help(run_id: str, where: str) -> str:
    """Say how to make the check; no unproven version is remembered of a deletion, so that the next apply makes none."""
    return (
        f"`maintainer verify {where}` makes this check; else the next deletion does, before it deletes anything; "
        f"plan.json of run {run_id} names the files of this one"
    )
