"""Make the row of one table in ``status`` (its state, its next steps, who works on it), and look at all of them.

A look takes plans, past runs, and neighbours that nobody manages. Steps of past runs are told by the table that they
changed: a table that was made anew under an old name has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.lookback.ledger_access import ledger_problem
from maintainer.app.lookback.run_history import HistoryQuery, history_row, recorded_rows
from maintainer.app.planning.make_plan import PlannedTable, PlanRequest, make_plan
from maintainer.app.planning.policy_places import unmanaged_tables
from maintainer.app.project_folders import Project
from maintainer.app.running.run_control import leases_now
from maintainer.app.selection.chosen_tables import ChosenTables, tables_out_of_reach
from maintainer.app.selection.recorded_tables import CurrentTable, FoundBy, RecordedTable, current_table
from maintainer.app.selection.run_spec import RunSpec, narrowed
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.reasons import STILL_WRITTEN, ReasonCode
from maintainer.model.plan.steps import REWRITE_KINDS, BatchedStep, SetPropertiesStep, Step, VacuumStep
from maintainer.model.run.auto_compaction import SESSION_ENABLED, AutoCompactSwitch, try_switch_of
from maintainer.model.run.history_rows import NOTHING_TO_DO, UNDELETE, VERIFY, HistoryRow, StatusRow
from maintainer.model.run.outcome import FAILED_STEPS
from maintainer.model.run.progress import PlacedTable
from maintainer.model.table.commit_records import DELETING, REWRITING
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.model.table.table_features import UNSUPPORTED_CODES
from maintainer.planning.zorder.zorder_options import layout_of
from maintainer.policy.table_names import name_key
from maintainer.units import format_size

MAX_PAST_STEPS = 10_000


class PastSteps:
    """The newest steps of a project, as ``history TABLE`` tells them apart.

    Args:
        root: The project's folder.
        rows: The steps, newest first.
        keys: Id and place that the newest run met, by a table's name.
    """

    def __init__(self, root: Path, rows: Sequence[LedgerRow], keys: Mapping[str, PlacedTable]) -> None:
        self._keys = keys
        self._steps: list[tuple[RecordedTable, HistoryRow]] = []
        self._by_id: dict[str, list[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        recorded: dict[tuple[str, str | None, str | None], RecordedTable] = {}
        for number, row in enumerate(rows):
            key = (row.table, row.table_id, row.location)
            table = recorded.get(key) or recorded.setdefault(key, RecordedTable.of_row(row, root))
            self._steps.append((table, history_row(row)))
            self._by_name.setdefault(name_key(table.ref), []).append(number)
            if table.table_id is not None:
                self._by_id.setdefault(table.table_id, []).append(number)

    @staticmethod
    def read(project: Project) -> tuple[PastSteps, list[Problem]]:
        """Return the steps of a project's runs, and what could not be read.

        Raises:
            EnvironmentUnfit: E641, the folder of runs cannot be listed.
        """
        rows, unread = recorded_rows(project.past_runs_dir, HistoryQuery(limit=MAX_PAST_STEPS))
        with reading_runs(project.past_runs_dir):
            keys = remembered(project.past_runs_dir).keys
        return PastSteps(project.root, rows, keys), unread

    def of(self, planned: PlannedTable) -> list[HistoryRow]:
        """Return the steps of a table as planning sees it now, newest first."""
        table = self._current(planned)
        same_id = self._by_id.get(table.table_id, []) if table.table_id is not None else []
        chosen = sorted({*same_id, *self._by_name.get(name_key(table.ref), [])})
        return [row for recorded, row in map(self._steps.__getitem__, chosen) if table.was(recorded)]

    def _current(self, planned: PlannedTable) -> CurrentTable:
        ref, facts = planned.policy.table, planned.facts
        if facts is None:
            return current_table(ref, self._keys.get(ref.identifier))
        return CurrentTable(ref, facts.location, facts.table_id, FoundBy.ID, StoragePlaces())


def auto_compact_of(planned: PlannedTable, session_value: str | None) -> AutoCompactSwitch | str | None:
    """Return whether writers of a table compact by themselves, or why that is unknown; None for an unread table."""
    return None if planned.facts is None else try_switch_of(session_value, planned.facts.property_map)


def status_row(
    planned: PlannedTable,
    past: Sequence[HistoryRow],
    auto_compact_in_session: str | None = None,
    running: str | None = None,
) -> StatusRow:
    """Return one table's state.

    Args:
        planned: The table as planning sees it now.
        past: Its own steps, newest first.
        auto_compact_in_session: ``spark.databricks.delta.autoCompact.enabled`` of the session, None where not set.
        running: The run that works on it now.
    """
    plan, facts, record = planned.plan, planned.facts, planned.record
    last = _last_step(past)
    last_proof = next((row.proof for row in past if row.proof is not None), None)
    proven = next((row for row in past if row.proof == "pass"), None)
    optimized = next((row for row in past if row.step in REWRITE_KINDS), None)
    switch = auto_compact_of(planned, auto_compact_in_session)
    bound = planned.policy.optimize.min_file_size_bytes
    small = [] if facts is None else [file for file in facts.files if file.size_bytes < bound]
    layout = None if facts is None else layout_of(planned.policy, facts)
    others_optimized = None if facts is None else facts.newest_by_others(REWRITING)
    others_vacuumed = None if facts is None else facts.newest_by_others(DELETING)
    return StatusRow(
        table=str(plan.ref),
        state=_state(plan, last, small),
        small_files=None if facts is None else len(small),
        small_bytes=None if facts is None else sum(file.size_bytes for file in small),
        deleted_rows_ratio=None if facts is None else _deleted_rows_ratio(facts),
        num_files=None if facts is None else len(facts.files),
        size_bytes=None if facts is None else facts.size_bytes,
        version=None if facts is None else facts.version,
        last_optimize_at_ms=record.last_rewrite_at_ms,
        last_optimize_status=optimized.status if optimized else None,
        last_vacuum_at_ms=record.last_delete_at_ms,
        last_proof=last_proof,
        last_proof_at_ms=proven.at_ms if proven else None,
        next=_next(plan, last, bound),
        auto_compact=switch.enabled if isinstance(switch, AutoCompactSwitch) else None,
        auto_compact_source=switch.source.value if isinstance(switch, AutoCompactSwitch) else switch,
        files_read=layout.files_read if layout else None,
        overlap_depth=layout.overlap_depth if layout else None,
        unindexed_ratio=layout.unindexed_ratio if layout else None,
        scheduled=bool(plan.rewrites),
        running=running,
        policy_file=plan.source,
        owner=plan.owner,
        others_optimized_at_ms=others_optimized.at_ms if others_optimized else None,
        others_optimized_by=others_optimized.by if others_optimized else None,
        others_vacuumed_at_ms=others_vacuumed.at_ms if others_vacuumed else None,
        others_vacuumed_by=others_vacuumed.by if others_vacuumed else None,
        commits_seen_from=None if facts is None else facts.first_commit_read,
        maintained_twice=plan.maintained_twice,
    )


def _last_step(past: Sequence[HistoryRow]) -> HistoryRow | None:
    """The step that tells how the table is: files that came back from the trash do not make a failed step good.

    What `verify` found is no step: wrong rows are the table's quarantine.
    """
    past = [row for row in past if row.step != VERIFY]
    if past and past[0].status in FAILED_STEPS:
        return past[0]
    return next((row for row in past if row.step != UNDELETE), None)


def _unsearched(plan: TablePlan) -> StatusRow:
    """The row of a place that could not be searched, or of a table about which rules disagree."""
    assert plan.problem is not None
    why = f"{plan.problem.what} [{plan.problem.code}]"
    return StatusRow(plan.ref.identifier, "problem", next=why, policy_file=plan.source)


def _deleted_rows_ratio(facts: TableFacts) -> float | None:
    """The share of rows that deletion vectors hide; None where the log does not count the rows of each file."""
    if any(file.physical_records is None for file in facts.files):
        return None
    rows = sum(file.physical_records or 0 for file in facts.files)
    return sum(file.deleted_records for file in facts.files) / rows if rows else 0.0


def _is_hot(plan: TablePlan, small: Sequence[DataFile]) -> bool:
    """Whether small files would be compacted, were they not in a partition that is still being written."""
    return any(
        entry.num_files > 1 and sum(entry.partition_values in (None, file.partition_values) for file in small) > 1
        for entry in plan.left_alone
        if entry.reason.code in STILL_WRITTEN or entry.reason.code is ReasonCode.NEWEST_PARTITION
    )


def _state(plan: TablePlan, last: HistoryRow | None, small: Sequence[DataFile]) -> str:
    if plan.problem is not None:
        return "unsupported" if plan.problem.code in UNSUPPORTED_CODES else "problem"
    codes = {reason.code for reason in plan.blocked}
    if ReasonCode.QUARANTINED in codes:
        return "quarantined"
    if codes:
        return "blocked"
    if any(entry.reason.code is ReasonCode.SUSPENDED for entry in plan.left_alone):
        return "suspended"
    if last is not None and last.status in FAILED_STEPS:
        return "failed"
    if not plan.steps:
        return "hot" if _is_hot(plan, small) else "ok"
    return "drift" if all(isinstance(step, SetPropertiesStep) for step in plan.steps) else "due"


def _next(plan: TablePlan, last: HistoryRow | None, small_below_bytes: int) -> str:
    lost = [entry.reason.text for entry in plan.left_alone if entry.reason.code is ReasonCode.LOST_VALUE]
    following = _next_step(plan, last, small_below_bytes)
    # Beside "nothing to do" nobody would see it.
    return "; ".join(lost if lost and following.startswith(NOTHING_TO_DO) else [following, *lost])


def _next_step(plan: TablePlan, last: HistoryRow | None, small_below_bytes: int) -> str:
    if plan.problem is not None:
        return f"{plan.problem.what} [{plan.problem.code}]"
    if plan.blocked:
        return plan.blocked[0].text
    if plan.steps:
        return ", ".join(_step_in_brief(step) for step in plan.steps)
    if last is not None and last.status in FAILED_STEPS:
        return f"last {last.step} {last.status.replace('_', ' ')}: maintainer history"
    waits = next((entry.reason.text for entry in plan.left_alone if entry.reason.code in _WAITING), None)
    if waits is not None:
        return waits
    for entry in plan.left_alone:
        if entry.reason.code is ReasonCode.LOST_VALUE:
            continue  # said beside it, whatever is done to the others
        if entry.num_files > 0 and entry.size_bytes < entry.num_files * small_below_bytes:
            return f"{NOTHING_TO_DO}: {entry.reason.text}"  # this is why small files stay as they are
    return NOTHING_TO_DO


_WAITING = STILL_WRITTEN | {
    ReasonCode.SUSPENDED,
    ReasonCode.BELOW_MIN_SIZE,
    ReasonCode.OUTSIDE_WINDOW,
    ReasonCode.NOT_DUE,
    ReasonCode.NOT_WORTH_IT,
    ReasonCode.OVER_BUDGET,
}
"""Why something is not done now and will be later: what ``next`` says of a table without a step."""


def _step_in_brief(step: Step) -> str:
    match step:
        case SetPropertiesStep():
            return "properties"
        case BatchedStep() | VacuumStep():
            return f"{step.kind} {format_size(step.size_bytes)}"
        case _:
            assert_never(step)


_NO_POLICY = "no policy names it, so nothing is done to it: maintainer inventory"


@dataclass(frozen=True, slots=True)
class StatusLook:
    """What one look found: rows sorted by table, and when. ``plan`` is what would be done, with a budget for nothing.

    ``problems`` are the tables and places that could not be looked at, each with its name, and past runs that could not
    be read. ``ledger`` is what is wrong with the ledger.
    """

    at_ms: int
    plan: Plan
    rows: tuple[StatusRow, ...]
    problems: tuple[tuple[str | None, Problem], ...] = ()
    ledger: Problem | None = None

    @property
    def everything_wrong(self) -> tuple[tuple[str | None, Problem], ...]:
        """The problems, and that of the ledger; none where the rows say how everything is."""
        return (*self.problems, *(() if self.ledger is None else ((None, self.ledger),)))


def look_at_all(
    project: Project, opened: OpenedEngine, tables: ChosenTables, spec: RunSpec, *, at_ms: int, scheduled: bool = False
) -> StatusLook:
    """Look at the tables of some policies as they are now. Nothing is changed.

    Args:
        project: The project; without a selection, tables beside its own are named, too.
        opened: The engine.
        tables: Tables to look at, and problems beside them.
        spec: What was asked for: the selection that the tables come from, and how many are looked at side by side.
        at_ms: Now, milliseconds since 1970 UTC.
        scheduled: Only tables that a run is working on, or whose files the next apply would rewrite.

    Raises:
        MaintainerError: The engine, or the folder of runs, cannot be used.
    """
    past, unread = PastSteps.read(project)
    rows: list[StatusRow] = []
    in_session = opened.session_setting(SESSION_ENABLED)
    running = {lease.table: lease.run_id for lease in leases_now(project, at_ms)}

    def add_row(planned: PlannedTable) -> None:
        table = planned.policy.table.identifier
        rows.append(status_row(planned, past.of(planned), in_session, running.get(table)))

    away = tables_out_of_reach(opened, (policy.table for policy in tables.policies if not policy.is_ledger), ends=False)
    request = PlanRequest(tables.policies, at_ms, jobs=spec.jobs, on_table=add_row, problems=tables.problems)
    request = replace(request, stages=spec.engine.stages, away=away, purpose="")
    plan = make_plan(project, opened.engine, request)
    rows += (_unsearched(table) for table in plan.tables if table.observed is None and table.policy_digest == "")
    plan = narrowed(plan, project.loaded, spec.selection, command="status")
    names = {str(table.ref) for table in plan.tables}
    problems: list[tuple[str | None, Problem]] = [(None, problem) for problem in unread]
    unread_tables = [(str(table.ref), table.problem) for table in plan.tables if table.problem is not None]
    problems += ((table, problem) for table, problem in unread_tables if problem.code not in UNSUPPORTED_CODES)
    rows = [row for row in rows if row.table in names and (row.scheduled or row.running or not scheduled)]
    problem = ledger_problem(project, opened.ledger_at(project.ledger_location))
    if problem is not None:  # a plan reads the log alone, and may not have noticed
        rows = [replace(row, state="problem", next=problem.help) if row.is_ledger else row for row in rows]
    if spec.tables is None and not spec.selection.given and not scheduled:
        rows += (StatusRow(ref.identifier, "unmanaged", next=_NO_POLICY) for ref in unmanaged_tables(project))
    return StatusLook(at_ms, plan, tuple(sorted(rows, key=lambda row: row.table)), tuple(problems), problem)
