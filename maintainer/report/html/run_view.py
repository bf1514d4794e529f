"""What a report shows, as plain values: made from plans and outcomes, drawn by the templates.

Nothing here is HTML. The templates make texts printable and escape them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from maintainer.errors import ExitCode
from maintainer.journal.ledger.ledger_rows import predicted, proof_of
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import Step, StepKind
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import RunEnd, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.table.storage_facts import FileSizes, combined
from maintainer.report.findings import Finding
from maintainer.report.html.charts import Curve, TablePast, table_curves
from maintainer.report.plan.step_text import describe, group_left_alone, how_much, step_word
from maintainer.report.run.outcome_text import (
    STEP_ENDS,
    TABLE_ENDS,
    WorkDone,
    assertion_text,
    figures,
    message,
    time_text,
)
from maintainer.report.run.run_findings import run_findings
from maintainer.report.run.run_text import END_TEXT
from maintainer.report.style import Role
from maintainer.report.text_layout import named, when
from maintainer.units import count_of, format_size

MAX_TABLES_WITH_DETAILS = 100
"""Tables shown whole: those that failed first, then those with most bytes rewritten. All have a line."""

MAX_TABLES_WITH_CURVES = 50
"""Of those, the first have every curve; the others have that of their files."""

MAX_CHECKS_SHOWN = 40
"""Checks of one step listed by name when they did not pass."""

MAX_CHECKS_NAMED = 6
"""Names of checks that passed, for an idea of what was checked; all are in results.json."""

BAD = frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED})
_MOODS = {None: "calm", Role.GOOD: "good", Role.DIM: "good", Role.WARN: "warn", Role.BAD: "bad"}
PROOF_WORDS = {"fail": "failed", "error": "could not check", "pass": "proven"}
"""How a table's proofs ended, the worst first."""

Tile = tuple[str, str, str]
"""(figure, what it is, mood) for the head of a page."""


@dataclass(frozen=True, slots=True)
class StepView:
    """One step: what was planned and why, what it did, and how that was proven."""

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
    """Plan and outcome for all steps of one kind; each pair is (predicted, actual)."""

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
    tiles: tuple[Tile, ...]
    verdict: str
    mood: str
    findings: tuple[Finding, ...]
    tables: tuple[TableView, ...]
    whole: tuple[TableView, ...]
    predictions: tuple[Prediction, ...]


def run_view(plan: Plan, outcome: RunOutcome, past: Mapping[str, TablePast], tz: tzinfo, *, run_folder: str) -> RunView:
    """Gather what the report of a run shows; ``past`` is what earlier runs knew of each table, by identifier."""
    plans = {table.ref: table for table in plan.tables}
    tables = [
        _table(number, plans.get(table.ref), table, past.get(table.ref.identifier, TablePast()), tz)
        for number, table in enumerate(outcome.tables)
    ]
    tables.sort(key=lambda view: worst_first(view.mood, view.bytes_rewritten, view.name))
    code = exit_code(outcome)
    whole = [view for view in tables if view.steps or view.mood != "calm"][:MAX_TABLES_WITH_DETAILS]
    return RunView(
        run_id=outcome.run_id,
        facts=(
            ("started", when(outcome.started_at_ms, tz)),
            ("took", time_text(outcome)),
            ("selection", " ".join(plan.selection) or "all tables with a policy"),
            ("environment", plan.environment or "none"),
            ("policies at", plan.git_commit or "no Git commit"),
            ("run folder", run_folder),
        ),
        tiles=_tiles(outcome),
        verdict=_verdict(outcome, code),
        mood=_mood(outcome, code),
        findings=tuple(run_findings(outcome)),
        tables=tuple(tables),
        whole=(
            *whole[:MAX_TABLES_WITH_CURVES],
            *(replace(view, curves=view.curves[:1]) for view in whole[MAX_TABLES_WITH_CURVES:]),
        ),
        predictions=predictions([(plan, outcome)]),
    )


def worst_first(mood: str, bytes_rewritten: int, name: str) -> tuple[int, int, str]:
    """Return a sort key: the worst tables, then those with most bytes rewritten."""
    return (("bad", "warn", "good", "calm").index(mood), -bytes_rewritten, name)


def _mood(outcome: RunOutcome, code: ExitCode) -> str:
    if any(table.status in BAD for table in outcome.user_tables):
        return "bad"
    return "warn" if code or outcome.end is not RunEnd.FINISHED else "good"


def _verdict(outcome: RunOutcome, code: ExitCode) -> str:
    if outcome.end is not RunEnd.FINISHED:
        return END_TEXT[outcome.end]
    return f"{exit_reason(code)} (exit code {code.value})" if code else "Nothing failed."


def predictions(runs: Sequence[tuple[Plan, RunOutcome]]) -> tuple[Prediction, ...]:
    """Add up plan and outcome by kind of step; only steps that succeeded say something about the prediction."""
    pairs: dict[str, list[tuple[Step, StepOutcome]]] = {}
    for plan, outcome in runs:
        plans = {table.ref: table for table in plan.tables}
        for table in outcome.tables:
            for step in table.steps:
                planned = _planned(plans.get(table.ref), step)
                if planned and step.status is StepStatus.SUCCEEDED and step.kind != StepKind.SET_PROPERTIES:
                    pairs.setdefault(step.kind, []).append((planned, step))
    return tuple(_prediction(kind, steps) for kind, steps in sorted(pairs.items()))


def _prediction(kind: str, steps: Sequence[tuple[Step, StepOutcome]]) -> Prediction:
    guesses = [predicted(planned) for planned, _ in steps]
    work = WorkDone.of(step for _, step in steps)
    return Prediction(
        step_word(kind),
        len(steps),
        (sum(guess.num_files_removed for guess in guesses), work.files_removed + work.files_deleted),
        (sum(guess.num_files_added for guess in guesses), work.files_added),
        (sum(guess.bytes_removed for guess in guesses), work.bytes_removed + work.bytes_deleted),
    )


def _planned(plan: TablePlan | None, step: StepOutcome) -> Step | None:
    return next((planned for planned in plan.steps if plan.step_id(planned) == step.step_id), None) if plan else None


def _tiles(outcome: RunOutcome) -> tuple[Tile, ...]:
    work = WorkDone.of_run(outcome)
    failed = sum(table.status in BAD for table in outcome.user_tables)
    all_proven = work.commits_proven == work.commits_with_proof
    checks_mood = "bad" if work.checks_failed else "good" if work.checks_passed == work.checks else "warn"
    tiles = [
        (f"{len(outcome.user_tables):,}", "tables looked at", "calm"),
        (f"{outcome.count(TableStatus.DONE):,}", "changed", "calm"),
        (f"{failed:,}", "failed", "bad" if failed else "calm"),
        (f"{work.files_removed:,} \u2192 {work.files_added:,}", "files rewritten", "calm"),
        (format_size(work.bytes_removed), "read and written again", "calm"),
        (
            f"{work.commits_proven:,} of {work.commits_with_proof:,}",
            "rewrites proven before commit",
            "good" if all_proven else "bad",
        ),
        (f"{work.checks_passed:,} of {work.checks:,}", "checks passed", checks_mood),
    ]
    not_made = work.checks - work.checks_passed - work.checks_failed
    if not_made:
        tiles.append((f"{not_made:,}", "checks that could not be made", "warn"))
    if any(step.vacuum for table in outcome.user_tables for step in table.steps):
        tiles.append((format_size(work.bytes_deleted), f"deleted in {count_of(work.files_deleted, 'file')}", "calm"))
    return tuple(tiles)


def mood_of(status: TableStatus) -> str:
    """Return ``good``, ``bad``, ``warn`` or ``calm``: the class that colours what the word beside it says."""
    return _MOODS[TABLE_ENDS[status].role]


def _table(number: int, plan: TablePlan | None, table: TableOutcome, past: TablePast, tz: tzinfo) -> TableView:
    observed = plan.observed if plan else None
    commits = [receipt for step in table.steps for receipt in step.commits]
    before = observed.file_sizes if observed else ()
    after = combined(before, [commit.sizes_removed for commit in commits], [commit.sizes_added for commit in commits])
    work = WorkDone.of(table.steps)
    results = {result for _, result in map(proof_of, table.steps)}
    return TableView(
        anchor=f"t{number}",
        name=table.ref.identifier,
        owner=table.owner or "",
        policy_file=table.policy_file,
        status=TABLE_ENDS[table.status].text,
        mood=mood_of(table.status),
        num_files_before=observed.num_files if observed else None,
        num_files_after=observed.num_files + work.files_added - work.files_removed if observed else None,
        bytes_rewritten=work.bytes_removed,
        proof=next((word for result, word in PROOF_WORDS.items() if result in results), ""),
        what=_what(plan, table),
        sizes_before=before,
        sizes_after=after,
        steps=tuple(_step(plan, step, tz) for step in table.steps),
        left_alone=tuple(
            (group.text, how_much(group.num_files, group.size_bytes, group.num_partitions), ", ".join(group.origins))
            for group in (group_left_alone(plan.left_alone) if plan else ())
        ),
        curves=table_curves(past),
    )


def _what(plan: TablePlan | None, table: TableOutcome) -> str:
    """Return the last cell of a table's line: what was done, or why nothing was."""
    if table.problem is not None:
        return f"{table.problem.code}: {table.problem.what}"
    done = "; ".join(f"{step_word(step.kind)}: {figures(step) or message(step) or 'done'}" for step in table.steps)
    if done or plan is None:
        return done
    groups = group_left_alone(plan.left_alone)
    return groups[0].text if groups else "nothing to do"


def _step(plan: TablePlan | None, step: StepOutcome, tz: tzinfo) -> StepView:
    planned = _planned(plan, step)
    text = describe(planned, tz) if planned else None
    failed = [
        (assertion_text(check), "bad" if check.outcome == "fail" else "warn")
        for check in step.assertions
        if check.outcome != "pass"
    ]
    return StepView(
        word=step_word(step.kind),
        status=STEP_ENDS[step.status].word,
        mood=_MOODS[STEP_ENDS[step.status].role],
        planned=text.facts if text else (),
        reasons=tuple(
            (reason.text, reason.origin or "") for group in (text.reasons if text else ()) for reason in group
        ),
        did=figures(step),
        note="" if step.status is StepStatus.SUCCEEDED else message(step),
        proof=_proof_lines(step),
        failed_checks=tuple(failed[:MAX_CHECKS_SHOWN]),
        seconds=f"{step.duration_seconds:.1f} s",
    )


def _proof_lines(step: StepOutcome) -> tuple[str, ...]:
    """Say how we know that nothing was lost: a line for each commit and one for the checks after it."""
    lines = []
    for receipt in step.commits:
        proof = receipt.proof
        if proof is None:
            continue
        digest = "".join(f"{part:x}" for part in proof.read.sums)[:16]
        how = f", order-free fingerprint {digest}\u2026" if digest else ""
        equal = "equal" if proof.holds else "NOT equal"
        lines.append(
            f"v{receipt.version}, before it was committed: {count_of(proof.read.rows, 'row')} read, "
            f"{proof.written.rows:,} read back from the new files, {equal}{how}"
        )
        lines += [
            f"{count_of(use.num_bins, 'bin')} in lane {use.lane} ({use.reason}), both sides read by {use.prover}"
            for use in proof.lanes
        ]
        if proof.uncovered_columns:
            lines.append(f"not covered by the fingerprint: {', '.join(proof.uncovered_columns)}")
    if step.assertions:
        passed = WorkDone.of((step,)).checks_passed
        names = named(sorted({check.expectation for check in step.assertions}), MAX_CHECKS_NAMED)
        lines.append(f"{passed:,} of {count_of(len(step.assertions), 'check')} passed after the commit: {names}")
        carried = sorted({check.carried_from for check in step.assertions if check.carried_from is not None})
        if carried:
            versions = named([f"v{version}" for version in carried], MAX_CHECKS_NAMED)
            lines.append(
                f"expectations were not run again where a proof shows the same rows; they were run at {versions}"
            )
    return tuple(lines)
