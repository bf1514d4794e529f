"""What a report shows, as plain values: made from plans and outcomes, drawn by the templates.

Nothing here is HTML. The templates make texts printable and escape them.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from maintainer.errors import ExitCode
from maintainer.journal.ledger.ledger_rows import proof_of
from maintainer.model.plan.plan import HELD_BACK, Plan, TablePlan
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import RunEnd, RunOutcome, TableOutcome, TableStatus
from maintainer.model.table.files_seen import LayoutBoxes
from maintainer.model.table.storage_facts import FileSizes, combined
from maintainer.policy.project.price_settings import Prices
from maintainer.report.document.blocks import Block, Bullets, Findings, Heading, Table, Text, literal
from maintainer.report.document.folding import FOLD, first_names, merged, wording
from maintainer.report.document.terminal_writer import plain
from maintainer.report.html.gains import Amount, Tile, amounts, gain_tiles, layout_gain
from maintainer.report.html.predictions import predictions
from maintainer.report.html.step_view import (
    did_text,
    mood_of,
    proof_mood,
    proof_words,
    step_blocks,
    verified_words,
)
from maintainer.report.html.table_past import Curve, TablePast, table_curves
from maintainer.report.plan.step_text import left_alone, step_word
from maintainer.report.run.outcome_text import TABLE_ENDS, WorkDone, message, time_text
from maintainer.report.run.run_findings import page_findings
from maintainer.report.run.run_text import END_TEXT
from maintainer.report.text_layout import moment, when
from maintainer.units import by_cause, count_of, format_size

MAX_TABLES_WITH_DETAILS = 100
"""Tables shown whole: those that failed first, then those with most bytes rewritten. All have a line."""

MAX_TABLES_WITH_CURVES = 40
"""Of those, the first have every curve; the others have that of their files."""

MAX_FINDINGS_SHOWN = 25
"""Findings that a page spells out; the rest is counted."""

BAD = frozenset({TableStatus.FAILED, TableStatus.VERIFY_FAILED})
PROOF_WORDS = {"fail": "failed", "error": "could not check", "pass": "proven"}
"""How a table's proofs ended, the worst first."""


@dataclass(frozen=True, slots=True)
class ReportProject:
    """The project that a page is about: its name for the headline, and its prices."""

    name: str = "maintainer"
    prices: Prices = field(default_factory=Prices)


NO_PROJECT = ReportProject()
NO_QUARANTINE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class TableView:
    """One table's line, and everything below it where it is shown whole."""

    anchor: str
    name: str
    owner: str
    policy_file: str
    status: str
    detail: str
    mood: str
    num_files_before: int | None
    num_files_after: int | None
    bytes_rewritten: int
    proof: str
    what: str
    sizes_before: FileSizes = ()
    sizes_after: FileSizes = ()
    blocks: tuple[Block, ...] = ()
    curves: tuple[Curve, ...] = ()
    boxes: LayoutBoxes | None = None
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class PageView:
    """What a page of one run and one of many have. ``proof`` says in plain sentences how no row is known to be lost."""

    project: str
    verdict: str
    mood: str
    tiles: tuple[Tile, ...]
    amounts: tuple[Amount, ...]
    proof: tuple[str, ...]
    proof_mood: str
    findings: Findings
    predictions: Table


@dataclass(frozen=True, slots=True)
class RunView(PageView):
    """One run.

    ``folded`` has one row for tables of which the same is said, ``alike`` are the anchors of those that are like one
    before them, ``pictured`` is the anchor of the table whose layout is in sight.
    """

    run_id: str
    started: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[TableView, ...]
    folded: tuple[TableView, ...]
    alike: frozenset[str]
    whole: tuple[TableView, ...]
    pictured: str


def run_view(
    plan: Plan,
    outcome: RunOutcome,
    past: Mapping[str, TablePast],
    tz: tzinfo,
    *,
    run_folder: str,
    project: ReportProject = NO_PROJECT,
    quarantined: Mapping[str, str] = NO_QUARANTINE,
    verified: Sequence[HistoryRow] = (),
) -> RunView:
    """Gather what the report of a run shows.

    ``past`` is what earlier runs knew of each table, ``quarantined`` why one is in quarantine now, both by identifier.
    ``verified`` is what `verify` found of these tables, newest first.
    """
    plans = {table.ref: table for table in plan.tables}
    tables = [
        replace(
            _table(number, plans.get(table.ref), table, past.get(table.ref.identifier, TablePast()), tz),
            quarantined=table.ref.identifier in quarantined,
        )
        for number, table in enumerate(outcome.tables)
    ]
    tables.sort(key=lambda view: worst_first(view.mood, view.bytes_rewritten, view.name))
    code, held = exit_code(outcome), sum(view.quarantined for view in tables)
    gain, work = layout_gain(outcome.user_tables), WorkDone.of_run(outcome)
    groups = by_cause(tables, _alike, at_least=FOLD)
    with_steps = {table.ref.identifier for table in outcome.tables if table.steps}
    whole = [view for view in tables if view.name in with_steps or view.mood != "calm"][:MAX_TABLES_WITH_DETAILS]
    return RunView(
        run_id=outcome.run_id,
        project=project.name,
        started=f"{moment(outcome.started_at_ms, tz):%A %-d %B %Y, %H:%M %Z}".rstrip(),
        facts=(
            ("run", outcome.run_id),
            ("started", when(outcome.started_at_ms, tz)),
            ("took", time_text(outcome)),
            ("selection", " ".join(plan.selection) or "all tables with a policy"),
            ("environment", plan.environment or "none"),
            ("policies at", plan.git_commit or "no Git commit"),
            ("run folder", run_folder),
        ),
        tiles=(*_tiles(outcome, tables), *gain_tiles(gain, work), *_proof_tiles(work)),
        amounts=amounts(project.prices, gain, work, (outcome,)),
        verdict=_verdict(outcome, code, held),
        mood="bad" if held else _mood(outcome, code),
        proof=(*proof_words(outcome.user_tables), *verified_words(verified)),
        proof_mood=proof_mood(outcome.user_tables, quarantined, verified),
        findings=Findings(page_findings(outcome, quarantined), MAX_FINDINGS_SHOWN),
        tables=tuple(tables),
        folded=tuple(map(_joined, groups)),
        alike=frozenset(view.anchor for group in groups for view in group[1:]),
        pictured=next((view.anchor for view in whole if view.boxes), ""),
        whole=(
            *whole[:MAX_TABLES_WITH_CURVES],
            *(replace(view, curves=view.curves[:1]) for view in whole[MAX_TABLES_WITH_CURVES:]),
        ),
        predictions=predictions([(plan, outcome)]),
    )


def _alike(view: TableView) -> Hashable:
    """Return what tables must share to be one row; None for one that a person has to look at by itself."""
    if view.quarantined:
        return None
    return (view.mood, view.status, view.detail, view.owner, view.proof, wording(_VERSIONS.sub("", view.what)))


def _joined(views: Sequence[TableView]) -> TableView:
    """Return one row for tables of which the same is said, with sums."""
    first = views[0]
    if len(views) == 1:
        return first
    before, after = ([getattr(view, name) for view in views] for name in ("num_files_before", "num_files_after"))
    return replace(
        first,
        anchor="",
        name=f"{count_of(len(views), 'table')}: {first_names([view.name for view in views])}",
        num_files_before=None if None in before else sum(before),
        num_files_after=None if None in after else sum(after),
        bytes_rewritten=sum(view.bytes_rewritten for view in views),
        what=f"each: {merged([_VERSIONS.sub('', view.what) for view in views])}",
    )


_VERSIONS = re.compile(r",? *\bv[0-9]+(?:\.\.v[0-9]+)?\b")


def _left_alone(plan: TablePlan | None) -> list[Block]:
    said = left_alone(plan.left_alone) if plan else []
    lines: list[Text] = []
    for statement in said:
        ((text, origin),) = statement.reasons
        amount = f" ({plain(statement.facts[0])})" if statement.facts else ""
        lines.append((f"{text}{amount} ", literal(origin)))
    return [Heading("Left alone", 3), Bullets(lines)] if lines else []


def worst_first(mood: str, bytes_rewritten: int, name: str) -> tuple[int, int, str]:
    """Return a sort key: the worst tables, then those with most bytes rewritten."""
    return (("bad", "warn", "good", "calm").index(mood), -bytes_rewritten, name)


def _mood(outcome: RunOutcome, code: ExitCode) -> str:
    if any(table.status in BAD for table in outcome.user_tables):
        return "bad"
    return "warn" if code or outcome.end is not RunEnd.FINISHED else "good"


def _verdict(outcome: RunOutcome, code: ExitCode, held: int) -> str:
    """Say how the run ended, and how many of its tables are in quarantine now."""
    if outcome.end is not RunEnd.FINISHED:
        return END_TEXT[outcome.end]
    if code:
        return f"{exit_reason(code)} (exit code {code.value})"
    if held:
        verb = "is" if held == 1 else "are"
        return f"Nothing failed in this run, but {count_of(held, 'table')} {verb} in quarantine now."
    return "Nothing failed."


def _tiles(outcome: RunOutcome, tables: Sequence[TableView]) -> tuple[Tile, ...]:
    """Return how many tables were changed, and what became of their files; the ledger is not counted."""
    users = {table.ref.identifier for table in outcome.user_tables}
    counted = [view for view in tables if view.name in users and view.num_files_before is not None]
    changed = [view for view in counted if view.bytes_rewritten]
    failed = sum(table.status in BAD for table in outcome.user_tables)
    num_tables = len(outcome.user_tables)
    num_changed = sum(table.changed for table in outcome.user_tables)
    tiles: list[Tile] = [(f"{num_changed:,} of {num_tables:,}", "tables changed", "calm")]
    if failed:
        tiles.append((f"{failed:,}", "failed", "bad"))
    if changed:
        before, after = (
            sum(number or 0 for number in numbers)
            for numbers in zip(*((view.num_files_before, view.num_files_after) for view in changed), strict=True)
        )
        whose = "the table" if len(changed) == 1 else f"the {len(changed):,} tables"
        tiles.append((f"{before:,} \u2192 {after:,}", f"files in {whose} rewritten", "good"))
    return tuple(tiles)


def _proof_tiles(work: WorkDone) -> tuple[Tile, ...]:
    tiles: list[Tile] = []
    if work.bytes_removed:
        tiles.append((format_size(work.bytes_removed), "read and written again", "calm"))
    if work.commits_with_proof:
        all_proven = work.commits_proven == work.commits_with_proof
        figure = f"{work.commits_proven:,} of {work.commits_with_proof:,}"
        when = "" if work.proofs_after_commit else " before commit"
        tiles.append((figure, f"rewrites proven{when}", "good" if all_proven else "bad"))
    if work.checks:
        mood = "bad" if work.checks_failed else "good" if work.checks_passed == work.checks else "warn"
        tiles.append((f"{work.checks_passed:,} of {work.checks:,}", "checks passed", mood))
    not_made = work.checks - work.checks_passed - work.checks_failed
    if not_made:
        tiles.append((f"{not_made:,}", "checks that could not be made", "warn"))
    return tuple(tiles)


def _table(number: int, plan: TablePlan | None, table: TableOutcome, past: TablePast, tz: tzinfo) -> TableView:
    met = table.files_met or (plan.checked if plan else None)
    left = table.files_left
    observed = plan.observed if plan else None
    commits = [receipt for step in table.steps for receipt in step.commits]
    before = met.sizes if met else observed.file_sizes if observed else ()
    num_before: int | None = met.num_files if met else observed.num_files if observed else None
    work = WorkDone.of(table.steps)
    if left is not None:
        num_after: int | None = left.num_files
        after = left.sizes
    else:
        after = combined(before, [c.sizes_removed for c in commits], [c.sizes_added for c in commits])
        num_after = None if num_before is None else num_before + work.files_added - work.files_removed
    results = {result for _, result in map(proof_of, table.steps)}
    status, _, detail = TABLE_ENDS[table.status].text.partition(": ")
    return TableView(
        anchor=f"t{number}",
        name=table.ref.identifier,
        owner=table.owner or "",
        policy_file=table.policy_file,
        status=status,
        detail=detail,
        mood=mood_of(table.status),
        num_files_before=num_before,
        num_files_after=num_after,
        bytes_rewritten=work.bytes_removed,
        proof=next((word for result, word in PROOF_WORDS.items() if result in results), ""),
        what=_what(plan, table),
        sizes_before=before,
        sizes_after=after,
        blocks=(*(block for step in table.steps for block in step_blocks(plan, step, tz)), *_left_alone(plan)),
        curves=table_curves(past, tz),
        boxes=next((step.boxes for step in reversed(table.steps) if step.boxes is not None), None),
    )


def _what(plan: TablePlan | None, table: TableOutcome) -> str:
    """Return the last cell of a table's line: what was done, or why nothing was."""
    if table.problem is not None:
        return f"{table.problem.code}: {table.problem.what}"
    done = "; ".join(f"{step_word(step.kind)}: {did_text(step) or message(step) or 'done'}" for step in table.steps)
    if done or plan is None:
        return done
    held = sorted(plan.left_alone, key=lambda entry: entry.reason.code not in HELD_BACK)
    return held[0].reason.text if held else "nothing to do"
