"""What a report shows of one step, and how it is known that no row was lost: in plain sentences, and line by line."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import tzinfo

from maintainer.model.plan.plan import TablePlan
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import Proof
from maintainer.report.document.blocks import Block, Bullets, Fold, Heading, Line, Span, Text, literal, spans
from maintainer.report.plan.step_text import describe, step_word
from maintainer.report.run.outcome_text import STEP_ENDS, TABLE_ENDS, WorkDone, assertion_text, figures, message
from maintainer.report.style import Role
from maintainer.report.text_layout import PROOF_WORDS, printable
from maintainer.units import count_of, named

MAX_CHECKS_SHOWN = 40
"""Checks of one step listed by name when they did not pass."""

MAX_VERIFIED_NAMED = 10
"""Commits that `verify` checked and a page names; the rest is counted."""

MAX_CHECKS_NAMED = 6
"""Names of checks that passed, for an idea of what was checked; all are in results.json."""


def mood_of(status: TableStatus) -> Role | None:
    """Return how a table's end is coloured on a page, which has no dim words."""
    role = TABLE_ENDS[status].role
    return Role.GOOD if role is Role.DIM else role


def proof_words(tables: Iterable[TableOutcome]) -> Iterator[str]:
    """Say for people who do not read logs how it is known that no row was lost; nothing where nothing was rewritten."""
    steps = [step for table in tables for step in table.steps]
    proofs = [proof for step in steps for proof in step.proofs]
    rows, work = sum(proof.read.rows for proof in proofs), WorkDone(steps)
    if not proofs and not work.steps_wrong:
        return
    if proofs:
        yield from _when_compared(proofs)
        was, result = "was" if len(proofs) == 1 else "were", "" if work.steps_wrong else ": none differed"
        yield f"{count_of(len(proofs), 'rewrite')} by maintainer with {count_of(rows, 'row')} {was} compared{result}."
    if work.steps_wrong:
        yield f"In {count_of(work.steps_wrong, 'step')} a verification failed, see above."
    if work.checks:
        left = work.checks - work.checks_passed
        rest = "all passed" if not left else f"{work.checks_passed:,} passed, {left:,} did not"
        yield f"Afterwards {count_of(work.checks, 'check')} ran on the new versions: {rest}."
    moved = "moved to the trash, from where `maintainer undelete` brings them back"
    for number, what in ((work.files_deleted, "deleted"), (work.files_moved, moved)):
        if number:
            was = "was" if number == 1 else "were"
            yield f"{count_of(number, 'file')} that no version within the retention needs {was} {what}."


def _when_compared(proofs: Sequence[Proof]) -> Iterator[str]:
    """Say when the rows were compared; Delta's own commands commit first."""
    afterwards = sum(proof.after_commit for proof in proofs)
    if afterwards < len(proofs):
        yield (
            "Before new files replaced old ones, all rows of both were read and compared. Only when they were equal "
            "was the table changed."
        )
    if afterwards:
        which = "Each rewrite" if afterwards == len(proofs) else count_of(afterwards, "rewrite")
        was = "was" if which == "Each rewrite" or afterwards == 1 else "were"
        yield (
            f"{which} {was} done by a command of Delta, which commits first: all rows of the old and the new files "
            "were compared after that commit."
        )


def verified_words(found: Iterable[HistoryRow]) -> Iterator[str]:
    """Say of which commits `verify` proved that no row was lost, and of which not: the wrong ones first.

    Args:
        found: What it found, newest first; of each version the newest counts.
    """
    newest: dict[tuple[str, int | None], HistoryRow] = {}
    for row in found:
        newest.setdefault((row.table, row.version_after), row)
    rows = sorted(newest.values(), key=lambda row: list(PROOF_WORDS).index(row.proof or "error"))
    for row in rows[:MAX_VERIFIED_NAMED]:
        word = "wrong" if row.proof == "fail" else PROOF_WORDS[row.proof or "error"]
        result = f"{word}: {row.error}" if row.error else word
        what = f"version {row.version_after} of {printable(row.table)}, {printable(row.reason or '')}"
        yield f"`maintainer verify` checked {what}: {printable(result)} (run {row.run_id})."
    if len(rows) > MAX_VERIFIED_NAMED:
        yield f"It checked {count_of(len(rows) - MAX_VERIFIED_NAMED, 'more commit')}: `maintainer history` lists them."


def is_praised(tables: Sequence[TableOutcome], quarantined: Container[str], found: Iterable[HistoryRow]) -> bool:
    """Return whether nothing said that something is wrong.

    That is a proof, a check after a commit, a table in quarantine (by its identifier), and what `verify` found.
    """
    if any(table.ref.identifier in quarantined for table in tables) or any(row.proof == "fail" for row in found):
        return False
    return not WorkDone.of_tables(tables).steps_wrong


def did_text(step: StepOutcome) -> str:
    """Say what a step did, on one line of a page: its columns are for terminals."""
    return figures(step).replace("   ", ", ")


def step_blocks(plan: TablePlan | None, step: StepOutcome, tz: tzinfo) -> list[Block]:
    """Say of a step what was planned and why, what it did, and its proof."""
    planned, end = plan.step_of(step.step_id) if plan else None, STEP_ENDS[step.status]
    said = describe([planned], tz) if planned else []
    wrong = [check for check in step.assertions if check.outcome != "pass"]
    failed = [Span(assertion_text(check), Role.BAD if check.outcome == "fail" else Role.WARN) for check in wrong]
    reasons = [reason for statement in said for reason in statement.reasons]
    took = Span(f"{step.duration_seconds:.1f} s", Role.DIM)
    did = did_text(step)
    blocks: list[Block] = [Heading((f"{step_word(step.kind)} ", Span(end.word, end.role), " ", took), 3)]
    blocks += [Line(did)] if did else []
    blocks += [] if step.status is StepStatus.SUCCEEDED else [Line(Span(message(step), end.role))]
    blocks += [Bullets(failed[:MAX_CHECKS_SHOWN])] if failed else []
    blocks += [Bullets([(f"because {text} ", literal(origin)) for text, origin in reasons])] if reasons else []
    lines: list[Text] = [("planned: ", *spans(fact)) for statement in said for fact in statement.facts]
    lines += [f"proof: {line}" for line in _proof_lines(step)]
    return [*blocks, Fold("Technical lines: plan and proof", [Bullets(lines)])] if lines else blocks


def _proof_lines(step: StepOutcome) -> Iterator[str]:
    """Say how we know that nothing was lost: a line for each commit and one for the checks after it."""
    for receipt in step.commits:
        proof = receipt.proof
        if proof is None:
            continue
        digest = "".join(f"{part:x}" for part in proof.read.sums)[:16]
        how = f", order-free fingerprint {digest}\u2026" if digest else ""
        equal = "equal" if proof.holds else "NOT equal"
        when = "after" if proof.after_commit else "before"
        yield (
            f"v{receipt.version}, {when} it was committed: {count_of(proof.read.rows, 'row')} read, "
            f"{proof.written.rows:,} read back from the new files, {equal}{how}"
        )
        for use in proof.lanes:
            yield f"{count_of(use.num_bins, 'bin')} in lane {use.lane} ({use.reason}), both sides read by {use.prover}"
        if proof.uncovered_columns:
            yield f"not covered by the fingerprint: {', '.join(proof.uncovered_columns)}"
    if step.assertions:
        passed = WorkDone((step,)).checks_passed
        names = named(sorted({check.expectation for check in step.assertions}), MAX_CHECKS_NAMED)
        yield f"{passed:,} of {count_of(len(step.assertions), 'check')} passed after the commit: {names}"
        carried = sorted({check.carried_from for check in step.assertions if check.carried_from is not None})
        if carried:
            versions = named([f"v{version}" for version in carried], MAX_CHECKS_NAMED)
            yield f"expectations were not run again where a proof shows the same rows; they were run at {versions}"
