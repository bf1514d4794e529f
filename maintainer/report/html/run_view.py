"""What a report shows, as plain values: made from plans and outcomes, drawn by the templates.

Nothing here is HTML. Texts are as people read them; the templates escape them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from maintainer.errors import ExitCode
from maintainer.journal.ledger.ledger_rows import Predicted, predicted, proof_of
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import Step
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import RunEnd, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.table.file_sizes import FileSizes, combined
from maintainer.report.findings.finding import Finding
from maintainer.report.html.time_series import Curve, TablePast, table_curves
from maintainer.report.plan.step_text import describe, group_left_alone, how_much, step_word
from maintainer.report.run.outcome_text import (
    STATUS_WORD,
    TABLE_STATUS_TEXT,
    assertion_text,
    figures,
    message,
    time_text,
)
from maintainer.report.run.run_findings import run_findings
from maintainer.report.run.run_text import END_TEXT
from maintainer.report.text.text_layout import count, printable, when
from maintainer.units import format_size

MAX_TABLES_WITH_DETAILS = 100
"""Tables shown whole: those that failed first, then those with most bytes rewritten. All have a line."""

MAX_TABLES_WITH_CURVES = 50
"""Of those, so many with every curve; the others have that of their files."""

MAX_CHECKS_SHOWN = 40
"""Checks of one step listed by name when they did not pass."""

MAX_CHECKS_NAMED = 6
"""Names of checks that passed, for an idea of what was checked; all are in results.json."""

BAD = frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED})
WARN = frozenset(
    {
        TableStatus.YIELDED,
        TableStatus.BLOCKED,
        TableStatus.UNSUPPORTED,
        TableStatus.NOT_REACHED,
        TableStatus.INTERRUPTED,
    },
)


@dataclass(frozen=True, slots=True)
class StepView:
    """One step: what was planned and why, what came of it, and how that was proven."""

    word: str
    status: str
    mood: str
    planned: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    did: str
    note: str
    proof: tuple[str, ...]
    failed_checks: tuple[tuple[str, str], ...]
    seconds: str


@dataclass(frozen=True, slots=True)
class TableView:
    """One table's line, and everything below it where it is shown whole."""

    anchor: str
    name: str
    owner: str
    policy_file: str
    status: str
    mood: str
    num_files_before: int | None
    num_files_after: int | None
    bytes_rewritten: int
    proof: str
    what: str
    sizes_before: FileSizes = ()
    sizes_after: FileSizes = ()
    steps: tuple[StepView, ...] = ()
    left_alone: tuple[tuple[str, str, str], ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """Plan against outcome for all steps of one kind."""

    kind: str
    steps: int
    files_removed: tuple[int, int]
    files_added: tuple[int, int]
    bytes_removed: tuple[int, int]


@dataclass(frozen=True, slots=True)
class RunView:
    """One run."""

    run_id: str
    facts: tuple[tuple[str, str], ...]
    tiles: tuple[tuple[str, str, str], ...]
    verdict: str
    mood: str
    findings: tuple[Finding, ...]
    tables: tuple[TableView, ...]
    whole: tuple[TableView, ...]
    predictions: tuple[Prediction, ...]


def run_view(plan: Plan, outcome: RunOutcome, past: Mapping[str, TablePast], tz: tzinfo, *, run_folder: str) -> RunView:
    """Gather what the report of a run shows.

    Args:
        plan: As it was applied.
        outcome: What came of it.
        past: What earlier runs knew of each table, by identifier.
        tz: For times.
        run_folder: Where everything else about the run lies.
    """
    plans = {table.ref: table for table in plan.tables}
    tables = [
        _table(number, plans.get(table.ref), table, past.get(table.ref.identifier, TablePast()), tz)
        for number, table in enumerate(outcome.tables)
    ]
    rank = {"bad": 0, "warn": 1, "good": 2, "calm": 3}
    tables.sort(key=lambda one: (rank[one.mood], -one.bytes_rewritten, one.name))
    code = exit_code(outcome)
    whole = [one for one in tables if one.steps or one.mood != "calm"][:MAX_TABLES_WITH_DETAILS]
    return RunView(
        run_id=outcome.run_id,
        facts=_facts(plan, outcome, tz, run_folder),
        tiles=_tiles(outcome),
        verdict=_verdict(outcome, code),
        mood=_mood(outcome, code),
        findings=tuple(run_findings(outcome)),
        tables=tuple(tables),
        whole=(
            *whole[:MAX_TABLES_WITH_CURVES],
            *(replace(one, curves=one.curves[:1]) for one in whole[MAX_TABLES_WITH_CURVES:]),
        ),
        predictions=predictions([(plan, outcome)]),
    )


def _mood(outcome: RunOutcome, code: ExitCode) -> str:
    if any(table.status in BAD for table in outcome.user_tables):
        return "bad"
    return "warn" if code or outcome.end is not RunEnd.FINISHED else "good"


def _verdict(outcome: RunOutcome, code: ExitCode) -> str:
    if outcome.end is not RunEnd.FINISHED:
        return END_TEXT[outcome.end]
    return f"{exit_reason(code)} (exit code {code.value})" if code else "Nothing failed."


def predictions(runs: Sequence[tuple[Plan, RunOutcome]]) -> tuple[Prediction, ...]:
    """Add up plan and outcome by kind of step; steps that did not succeed are left out, they say nothing of it."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for plan, outcome in runs:
        plans = {table.ref: table for table in plan.tables}
        for table in outcome.tables:
            for step in table.steps:
                mine = _planned(plans.get(table.ref), step)
                if mine is not None and step.status is StepStatus.SUCCEEDED and step.kind != "set_properties":
                    found.setdefault(step.kind, []).append(_against(predicted(mine), step))
    views = []
    for kind, rows in sorted(found.items()):
        a, b, c, d, e, f = (sum(column) for column in zip(*rows, strict=True))
        views.append(Prediction(step_word(kind), len(rows), (a, b), (c, d), (e, f)))
    return tuple(views)


def _planned(plan: TablePlan | None, step: StepOutcome) -> Step | None:
    """The planned step that came to this end; None where the plan has none of that name."""
    return next((one for one in plan.steps if plan.step_id(one) == step.step_id), None) if plan else None


def _against(guess: Predicted, step: StepOutcome) -> tuple[int, ...]:
    commits, vacuum = step.commits, step.vacuum
    removed = sum(one.num_files_removed for one in commits) + (vacuum.num_files_deleted if vacuum else 0)
    size = sum(one.bytes_removed for one in commits) + (vacuum.bytes_deleted if vacuum else 0)
    added = sum(one.num_files_added for one in commits)
    return guess.num_files_removed, removed, guess.num_files_added, added, guess.bytes_removed, size


def _facts(plan: Plan, outcome: RunOutcome, tz: tzinfo, run_folder: str) -> tuple[tuple[str, str], ...]:
    rows = [
        ("started", when(outcome.started_at_ms, tz)),
        ("took", time_text(outcome)),
        ("selection", " ".join(plan.selection) or "all tables with a policy"),
        ("environment", plan.environment or "none"),
        ("policies at", plan.git_commit or "no Git commit"),
        ("run folder", run_folder),
    ]
    return tuple((label, printable(text)) for label, text in rows)


def _tiles(outcome: RunOutcome) -> tuple[tuple[str, str, str], ...]:
    """(figure, what it is, mood) for the head of the page."""
    steps = [step for table in outcome.user_tables for step in table.steps]
    commits = [one for step in steps for one in step.commits]
    checks = [one for step in steps for one in step.assertions]
    proofs = [one for one in commits if one.proof is not None]
    held = sum(one.proof.holds for one in proofs if one.proof is not None)
    passed = sum(one.outcome == "pass" for one in checks)
    wrong = sum(one.outcome == "fail" for one in checks)
    failed = sum(table.status in BAD for table in outcome.user_tables)
    vacuums = [step.vacuum for step in steps if step.vacuum]
    removed, added = sum(one.num_files_removed for one in commits), sum(one.num_files_added for one in commits)
    tiles = [
        (f"{len(outcome.user_tables):,}", "tables looked at", "calm"),
        (f"{outcome.count(TableStatus.DONE):,}", "changed", "calm"),
        (f"{failed:,}", "failed", "bad" if failed else "calm"),
        (f"{removed:,} \u2192 {added:,}", "files rewritten", "calm"),
        (format_size(sum(one.bytes_removed for one in commits)), "read and written again", "calm"),
        (f"{held:,} of {len(proofs):,}", "rewrites proven before commit", "good" if held == len(proofs) else "bad"),
        (
            f"{passed:,} of {len(checks):,}",
            "checks passed",
            "bad" if wrong else "good" if passed == len(checks) else "warn",
        ),
    ]
    if passed + wrong < len(checks):
        tiles.append((f"{len(checks) - passed - wrong:,}", "checks that could not be made", "warn"))
    if vacuums:
        size = format_size(sum(one.bytes_deleted for one in vacuums))
        tiles.append((size, f"deleted in {count(sum(one.num_files_deleted for one in vacuums), 'file')}", "calm"))
    return tuple(tiles)


def mood_of(status: TableStatus) -> str:
    """``good``, ``bad``, ``warn`` or ``calm``: the class that colours what the word beside it says."""
    if status in BAD:
        return "bad"
    if status in WARN:
        return "warn"
    return "good" if status is TableStatus.DONE else "calm"


def _table(number: int, plan: TablePlan | None, table: TableOutcome, past: TablePast, tz: tzinfo) -> TableView:
    observed = plan.observed if plan else None
    commits = [one for step in table.steps for one in step.commits]
    before = observed.file_sizes if observed else ()
    files_before = observed.num_files if observed else None
    change = sum(one.num_files_added - one.num_files_removed for one in commits)
    files_after = None if files_before is None else files_before + change
    name = printable(table.ref.identifier)
    return TableView(
        anchor=f"t{number}",
        name=name,
        owner=printable(table.owner or ""),
        policy_file=printable(table.policy_file),
        status=TABLE_STATUS_TEXT[table.status],
        mood=mood_of(table.status),
        num_files_before=files_before,
        num_files_after=files_after,
        bytes_rewritten=sum(one.bytes_removed for one in commits),
        proof=_proof_word(table),
        what=_what(plan, table),
        sizes_before=before,
        sizes_after=combined(before, [one.sizes_removed for one in commits], [one.sizes_added for one in commits]),
        steps=tuple(_step(plan, step, tz) for step in table.steps),
        left_alone=_left_alone(plan),
        curves=table_curves(past),
    )


def _proof_word(table: TableOutcome) -> str:
    results = {result for level, result in map(proof_of, table.steps) if result != "none"}
    for word, text in (("fail", "failed"), ("error", "could not check"), ("pass", "proven")):
        if word in results:
            return text
    return ""


def _what(plan: TablePlan | None, table: TableOutcome) -> str:
    """The line's last word: what was done, or why nothing was."""
    if table.problem is not None:
        return f"{printable(table.problem.code)}: {printable(table.problem.what)}"
    done = "; ".join(f"{step_word(step.kind)}: {figures(step) or message(step) or 'done'}" for step in table.steps)
    if done:
        return done
    if plan is None:
        return ""
    groups = group_left_alone(plan.left_alone)
    return printable(groups[0].text) if groups else "nothing to do"


def _step(plan: TablePlan | None, step: StepOutcome, tz: tzinfo) -> StepView:
    planned = _planned(plan, step)
    text = describe(planned, tz) if planned else None
    word, _ = STATUS_WORD[step.status]
    good = step.status.value in ("succeeded", "nothing_left")
    wrong = [
        (assertion_text(one), "bad" if one.outcome == "fail" else "warn")
        for one in step.assertions
        if one.outcome != "pass"
    ]
    return StepView(
        word=step_word(step.kind),
        status=word,
        mood="good" if good else "warn" if step.status.value in ("yielded", "skipped", "interrupted") else "bad",
        planned=text.facts if text else (),
        reasons=tuple(
            (printable(reason.text), printable(reason.origin or ""))
            for group in (text.reasons if text else ())
            for reason in group
        ),
        did=figures(step),
        note="" if step.status.value == "succeeded" else message(step),
        proof=_proof_lines(step),
        failed_checks=tuple(wrong[:MAX_CHECKS_SHOWN]),
        seconds=f"{step.duration_seconds:.1f} s",
    )


def _proof_lines(step: StepOutcome) -> tuple[str, ...]:
    """How we know that nothing was lost, a line for each commit and one for the checks after it."""
    lines = []
    for receipt in step.commits:
        proof = receipt.proof
        if proof is None:
            continue
        digest = "".join(f"{one:x}" for one in proof.read.sums)[:16]
        how = f", order-free fingerprint {digest}\u2026" if digest else ""
        equal = "equal" if proof.holds else "NOT equal"
        lines.append(
            f"v{receipt.version}, before it was committed: {count(proof.read.rows, 'row')} read, "
            f"{proof.written.rows:,} read back from the new files, {equal}{how}"
        )
        if proof.uncovered_columns:
            lines.append(f"not covered by the fingerprint: {printable(', '.join(proof.uncovered_columns))}")
    if step.assertions:
        passed = sum(one.outcome == "pass" for one in step.assertions)
        names = sorted({one.expectation for one in step.assertions})
        more = f" and {len(names) - MAX_CHECKS_NAMED:,} more" if len(names) > MAX_CHECKS_NAMED else ""
        shown = ", ".join(printable(name) for name in names[:MAX_CHECKS_NAMED]) + more
        lines.append(f"{passed:,} of {count(len(step.assertions), 'check')} passed after the commit: {shown}")
    return tuple(lines)


def _left_alone(plan: TablePlan | None) -> tuple[tuple[str, str, str], ...]:
    if plan is None:
        return ()
    groups = group_left_alone(plan.left_alone)
    return tuple(
        (
            printable(group.text),
            how_much(group.num_files, group.size_bytes, group.num_partitions),
            printable(", ".join(group.origins)),
        )
        for group in groups
    )
