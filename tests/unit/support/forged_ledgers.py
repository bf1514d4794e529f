"""Forgeries of the ledger and of what `history` tells, also for commits of the hook in a writer."""

from __future__ import annotations

from typing import Any

from tests.unit.support.forged_project import (
    COMPACTED,
    NEW,
    NEW_BYTES,
    PLANNED_AT_MS,
    TABLE,
    VACUUMED,
    ForgedProject,
    ForgedRun,
    event,
    stamp,
)
from tests.unit.support.forgery_cases import Case, registering

LOOKED = "20261122T000000Z-cccc"
"""A third run, which finds nothing to do and looks for commits of the hook."""

LEDGER_FORGERIES: list[Case] = []
forgery = registering(LEDGER_FORGERIES)


@forgery("rows_are_single", "2 rows of run")
def a_row_is_there_twice(project: ForgedProject) -> None:
    project.rows.append(project.rows[0])


@forgery("steps_have_rows", "is in no ledger and does not wait for one")
def a_step_has_no_row(project: ForgedProject) -> None:
    project.rows.pop(0)


@forgery("waiting_rows_are_said", f"though run {VACUUMED} appended its own")
def rows_are_left_waiting(project: ForgedProject) -> None:
    project.compacted.pending = [project.rows.pop(0)]


@forgery("waiting_rows_are_said", "does not say why")
def rows_wait_without_a_word(project: ForgedProject) -> None:
    project.vacuumed.pending = [project.rows.pop(1)]


@forgery("rows_agree_with_results", "bytes_removed is 1, results.json says 200")
def a_row_has_other_figures_than_results(project: ForgedProject) -> None:
    project.rows[1]["bytes_removed"] = 1


@forgery("rows_stand_in_the_log", "num_files_added is 5, the log has 1")
def a_row_has_other_figures_than_the_log(project: ForgedProject) -> None:
    project.rows[0]["num_files_added"] = 5


@forgery("rows_stand_in_the_log", "which is not its own")
def a_row_claims_the_version_of_somebody_else(project: ForgedProject) -> None:
    project.rows[0]["version_after"] = 2


@forgery("commits_have_rows", "no row tells it")
def a_killed_runs_commit_has_no_row(project: ForgedProject) -> None:
    project.compacted.events.pop()
    project.rows.pop(0)


def hook_compacts(project: ForgedProject) -> dict[str, Any]:
    """The hook in a writer replaces the only file after both runs; a third run looks. Returns the row that tells it."""
    row = {**project.rows[0], "run_id": "maintainer-auto-compact-1", "kind": "auto_compact", "version_before": 3,
           "step_id": f"{TABLE}/auto_compact", "version_after": 4, "num_files_removed": 1, "bytes_removed": 150,
           "proof_level": "none", "proof_result": "none", "source": "history"}  # fmt: skip
    by_hook = {"operation": "OPTIMIZE", "timestamp": PLANNED_AT_MS, "userMetadata": stamp(row["run_id"], row["kind"])}
    add = {**project.action(1, "add"), "path": "part-3.parquet"}
    remove = {"path": NEW, "size": NEW_BYTES, "dataChange": False}
    project.log[4] = [{"commitInfo": by_hook}, {"remove": remove}, {"add": add}]
    project.files[f"{TABLE}/part-3.parquet"] = NEW_BYTES
    plan, results = project.vacuumed.plan, project.vacuumed.results
    assert plan is not None
    assert results is not None
    (table,) = plan["tables"]
    later = {**table, "steps": [], "observed": {**table["observed"], "version": 4}}
    up_to_date = {"ref": table["ref"], "status": "up_to_date", "steps": [], "problem": None}
    counts = {"done": 0, "failed": 0, "up_to_date": 1}
    project.runs[LOOKED] = ForgedRun(
        {**plan, "tables": [later]},
        {"run_id": LOOKED, "tables": [up_to_date], "counts": counts, "interrupted_by": None},
        [event("run_started", run=LOOKED), event("table_finished", table=TABLE, status="up_to_date"),
         event("run_finished", run=LOOKED, interrupted_by=None)],
    )  # fmt: skip
    return row


@forgery("hook_commits_have_rows", "and 0 rows tell it")
def a_hooks_commit_has_no_row(project: ForgedProject) -> None:
    hook_compacts(project)


@forgery("hook_commits_have_rows", "and 2 rows tell it")
def a_hooks_commit_has_two_rows(project: ForgedProject) -> None:
    row = hook_compacts(project)
    project.rows += [row, {**row, "step_id": f"{row['step_id']}#2"}]


@forgery("rows_stand_in_the_log", "num_files_removed is 2, the log has 1")
def a_hooks_row_has_other_figures_than_the_log(project: ForgedProject) -> None:
    project.rows.append({**hook_compacts(project), "num_files_removed": 2})


@forgery("proofs_passed", "says proof pass, checks of version 1 said ['error']")
def a_row_says_pass_where_a_check_could_not_be_made(project: ForgedProject) -> None:
    (verified,) = project.events(COMPACTED, "verified")
    verified["result"] = "error"


@forgery("history_tells_each_step", "history lacks lake/orders/vacuum")
def history_lacks_a_step(project: ForgedProject) -> None:
    project.histories = {"": {"history": [past_step(project, COMPACTED)]}}


@forgery("history_tells_each_step", "num_files_removed of lake/orders/vacuum, run 20261121T230000Z-bbbb, is 60")
def history_says_another_figure(project: ForgedProject) -> None:
    past = [past_step(project, COMPACTED), {**past_step(project, VACUUMED), "num_files_removed": 60}]
    project.histories = {"": {"history": past}}


@forgery("history_tells_each_step", "not_reached, results.json succeeded")
def history_says_another_status(project: ForgedProject) -> None:
    past = [past_step(project, COMPACTED), {**past_step(project, VACUUMED), "status": "not_reached"}]
    project.histories = {"": {"history": past}}


@forgery("history_tells_each_step", "tells version 1 of run 20261121T220000Z-aaaa 2 times")
def history_tells_a_commit_twice(project: ForgedProject) -> None:
    once = [past_step(project, COMPACTED), past_step(project, VACUUMED)]
    project.histories = {TABLE: {"history": [*once, once[0]]}}


def past_step(project: ForgedProject, run_id: str) -> dict[str, Any]:
    """The row of `history -o json` for a run's step."""
    (row,) = (row for row in project.rows if row["run_id"] == run_id)
    return {**row, "step": row["kind"]}
