"""The checker of truth notices each kind of contradiction, and accepts what is true."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.checker.contradictions import RULES, assert_truth, contradictions
from tests.support.checker.truth_log import replay_table
from tests.unit.support.forged_project import (
    COMPACTED,
    NEW,
    NEW_BYTES,
    OLD,
    OLD_BYTES,
    PLANNED_AT_MS,
    TABLE,
    VACUUMED,
    ForgedProject,
    ForgedRun,
    event,
    event_line,
    forged_project,
    stamp,
)

Forgery = Callable[[ForgedProject], None]
CASES: list[tuple[str, str, Forgery]] = []
LOOKED = "20261122T000000Z-cccc"
"""A third run, which finds nothing to do and looks for commits of the hook."""


def forgery(rule: str, words: str) -> Callable[[Forgery], Forgery]:
    """Register a change to a true project that a rule must notice, with words of its message."""

    def register(change: Forgery) -> Forgery:
        CASES.append((rule, words, change))
        return change

    return register


def judged(project: ForgedProject) -> list[tuple[str, str]]:
    """Rule and text of each contradiction of a written project."""
    project.write()
    found = contradictions(
        project.root, exit_codes=project.exit_codes, stdout=project.stdout, histories=project.histories
    )
    return [(one.rule, one.text) for one in found]


def judged_again(project: ForgedProject) -> list[str]:
    """What contradicts itself when the events are written anew."""
    for run_id, run in project.runs.items():
        text = "".join(event_line(one) + "\n" for one in run.events)
        (project.runs_dir / run_id / "events.jsonl").write_text(text)
    return [one.text for one in contradictions(project.root)]


@forgery("live_files_are_there", "it is not on disk")
def a_live_file_is_gone(project: ForgedProject) -> None:
    del project.files[f"{TABLE}/{NEW}"]


@forgery("live_files_are_there", "on disk it has 149")
def a_live_file_is_cut_off(project: ForgedProject) -> None:
    project.files[f"{TABLE}/{NEW}"] -= 1


@forgery("live_files_are_there", "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
def a_deletion_vector_is_gone(project: ForgedProject) -> None:
    # The example of the Delta protocol.
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    project.log[4] = [{"remove": {"path": NEW, "dataChange": True}}]
    project.log[4] += [{"add": {**project.action(1, "add"), "dataChange": True, "deletionVector": vector}}]


@forgery("logs_can_be_read", "misses a commit")
def the_log_of_a_table_that_is_done_has_a_hole(project: ForgedProject) -> None:
    del project.log[2]


@forgery("rewrites_change_no_data", "dataChange True")
def a_rewrite_says_that_it_changed_data(project: ForgedProject) -> None:
    project.action(1, "add")["dataChange"] = True


@forgery("rewrites_change_no_data", "removed files with 20 rows and added files with 19")
def a_rewrite_lost_a_row(project: ForgedProject) -> None:
    project.action(1, "add")["stats"] = json.dumps({"numRecords": 19})


@forgery("metrics_agree_with_actions", "numRemovedFiles is 3, the actions come to 2")
def metrics_count_a_file_too_many(project: ForgedProject) -> None:
    project.action(1, "commitInfo")["operationMetrics"]["numRemovedFiles"] = "3"


@forgery("other_commits_touch_no_file", "our step vacuum adds or removes files")
def a_vacuum_start_removes_a_file(project: ForgedProject) -> None:
    project.log[2].append({"remove": {"path": NEW, "dataChange": False}})


@forgery("partition_folders_agree", "lies in day=1")
def a_file_lies_in_another_partition(project: ForgedProject) -> None:
    add = project.action(1, "add")
    add["path"], add["partitionValues"] = f"day=1/{NEW}", {"day": "2"}
    project.files = {f"{TABLE}/day=1/{NEW}": add["size"]}


@forgery("stamps_are_single", "versions 1 and 4 carry the same stamp")
def a_rewrite_landed_twice(project: ForgedProject) -> None:
    project.log[4] = [{"commitInfo": project.action(1, "commitInfo")}]


@forgery("events_are_whole", "1 lines whose checksum is wrong")
def a_line_of_the_record_is_damaged(project: ForgedProject) -> None:
    project.compacted.damage = '{"type": "note", "crc": "00000000"}\n'


@forgery("commits_have_intents", "wrote no INTENT")
def a_commit_came_before_its_intent(project: ForgedProject) -> None:
    (intent,) = project.events(COMPACTED, "intent")
    intent["read_version"] = 1


@forgery("commits_have_results", "ended without a RESULT")
def a_result_is_missing(project: ForgedProject) -> None:
    (result,) = project.events(COMPACTED, "result")
    project.compacted.events.remove(result)


@forgery("commits_have_results", "RESULT says bytes_removed 1")
def a_result_has_other_figures(project: ForgedProject) -> None:
    (result,) = project.events(COMPACTED, "result")
    result["bytes_removed"] = 1


@forgery("results_tell_each_commit", "results.json tells it 0 times")
def results_forget_a_commit(project: ForgedProject) -> None:
    project.step(COMPACTED)["commits"] = []


@forgery("results_tell_each_commit", "results.json says num_files_removed 9, the log 2")
def results_have_other_figures(project: ForgedProject) -> None:
    project.step(COMPACTED)["commits"][0]["num_files_removed"] = 9


@forgery("claims_stand_in_the_log", "which ends at 3")
def a_result_claims_a_version_that_is_not_there(project: ForgedProject) -> None:
    (result,) = project.events(VACUUMED, "result")
    result["version"] = 8


@forgery("claims_stand_in_the_log", "somebody else (WRITE)")
def a_result_claims_the_version_of_somebody_else(project: ForgedProject) -> None:
    (result,) = project.events(VACUUMED, "result")
    result["version"] = 0


@forgery("claims_stand_in_the_log", "says not_landed, but it is version 1")
def what_did_not_land_is_there(project: ForgedProject) -> None:
    (result,) = project.events(COMPACTED, "result")
    result["fate"] = "not_landed"


@forgery("claims_stand_in_the_log", "says no_commit, but it is version 3")
def a_deletion_that_committed_is_said_to_have_no_commit(project: ForgedProject) -> None:
    (result,) = project.events(VACUUMED, "result")
    result.update(fate="no_commit", version=None)


@forgery("claims_stand_in_the_log", "says no commit, and version 3")
def a_deletion_without_a_commit_names_a_version(project: ForgedProject) -> None:
    (result,) = project.events(VACUUMED, "result")
    project.vacuumed.events.insert(3, {**result, "batch": 1, "fate": "no_commit"})


@forgery("claims_stand_in_the_log", "results.json of run 20261121T230000Z-bbbb claims version 1")
def a_deletion_without_a_commit_claims_the_version_that_it_read(project: ForgedProject) -> None:
    assert project.vacuumed.results is not None
    (table,) = project.vacuumed.results["tables"]
    table["steps"][0]["vacuum"]["version_after"] = 1


@forgery("intents_are_settled", "is open")
def an_intent_stays_open(project: ForgedProject) -> None:
    (intent,) = project.events(COMPACTED, "intent")
    project.compacted.events.insert(2, {**intent, "batch": 1})


@forgery("intents_are_settled", f"run {VACUUMED} completed {TABLE}")
def a_dead_run_is_not_settled_by_the_next(project: ForgedProject) -> None:
    project.compacted.events = project.compacted.events[:2]
    project.rows = project.rows[1:]


@forgery("proofs_come_before_commits", "has no proof that holds")
def an_unproven_rewrite_landed(project: ForgedProject) -> None:
    (intent,) = project.events(COMPACTED, "intent")
    intent["proof"] = {**intent["proof"], "rows_written": 19}


@forgery("proofs_come_before_commits", "and no check is recorded")
def a_commands_rewrite_was_not_checked(project: ForgedProject) -> None:
    (intent,), (verified,) = project.events(COMPACTED, "intent"), project.events(COMPACTED, "verified")
    intent.update(proof=None, proven=False)
    project.compacted.events.remove(verified)


@forgery("one_outcome_for_each_table", "is 1 times in plan.json, 0 times in results.json")
def a_table_has_no_outcome(project: ForgedProject) -> None:
    assert project.vacuumed.results is not None
    project.vacuumed.results["tables"] = []


@forgery("counts_add_up", "counts 2 tables done, it has 1")
def a_count_is_wrong(project: ForgedProject) -> None:
    assert project.compacted.results is not None
    project.compacted.results["counts"]["done"] = 2


@forgery("statuses_follow_from_steps", "the table is done, its steps are ['failed']")
def a_failed_step_makes_a_table_done(project: ForgedProject) -> None:
    project.step(COMPACTED)["status"] = "failed"


@forgery("statuses_follow_from_steps", "a check failed, and the step is succeeded")
def a_failed_check_is_a_success(project: ForgedProject) -> None:
    project.step(COMPACTED)["assertions"][0]["outcome"] = "fail"


@forgery("statuses_follow_from_steps", "it succeeded, but 1 files remain")
def an_incomplete_vacuum_succeeded(project: ForgedProject) -> None:
    project.step(VACUUMED)["vacuum"]["remaining"] = [OLD[0]]


@forgery("events_agree_with_results", "events say lake/orders failed, results.json done")
def events_say_another_status(project: ForgedProject) -> None:
    (finished,) = project.events(COMPACTED, "table_finished")
    finished["status"] = "failed"


@forgery("exit_codes_follow_from_results", "ended with 4, its results mean 0")
def an_exit_code_says_refused_after_a_success(project: ForgedProject) -> None:
    project.exit_codes[COMPACTED] = 4


@forgery("exit_codes_follow_from_results", "ended with 4, its results mean 6")
def a_partial_success_is_called_refused(project: ForgedProject) -> None:
    results = project.compacted.results
    assert results is not None
    results["tables"].append(
        {"ref": {"identifier": "b"}, "status": "blocked", "steps": [], "problem": {"code": "A420"}}
    )
    project.exit_codes[COMPACTED] = 4


@forgery("printed_document_is_the_record", "tables differ")
def another_document_was_printed(project: ForgedProject) -> None:
    project.stdout = json.dumps({**(project.vacuumed.results or {}), "tables": []})


@forgery("junit_agrees_with_results", "tests is 3, it holds 2")
def junit_counts_a_case_too_many(project: ForgedProject) -> None:
    project.compacted.junit = (project.compacted.junit or "").replace('tests="2"', 'tests="3"')


@forgery("junit_agrees_with_results", "counts the ledger")
def junit_counts_the_ledger(project: ForgedProject) -> None:
    """Its suite stays, and the table in it becomes the ledger."""
    project.table(COMPACTED)["policy_file"] = "built-in"
    assert project.compacted.results is not None
    project.compacted.results["counts"]["done"] = 0


@forgery("report_agrees_with_results", "says 2 of 1 tables changed, results.json 1 of 1")
def the_report_says_another_figure(project: ForgedProject) -> None:
    report = project.compacted.report or ""
    project.compacted.report = report.replace("1 of 1</b>tables changed", "2 of 1</b>tables changed")


@forgery("report_agrees_with_results", "says 5 \u2192 3 files, results.json 2 removed, 1 added")
def the_report_says_other_files(project: ForgedProject) -> None:
    report = project.compacted.report or ""
    project.compacted.report = report.replace("5 \u2192 4", "5 \u2192 3")


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


@forgery("deleted_files_are_gone", "1 of 2 planned are gone")
def a_deleted_file_is_there(project: ForgedProject) -> None:
    project.files[f"{TABLE}/{OLD[0]}"] = OLD_BYTES


@forgery("deleted_files_are_gone", "and left")
def a_deleted_file_leaves_its_checksum(project: ForgedProject) -> None:
    project.files[f"{TABLE}/.{OLD[0]}.crc"] = 8


@forgery("vacuum_commits_agree", "VACUUM END says 49 files")
def a_vacuum_end_says_another_number(project: ForgedProject) -> None:
    project.action(3, "commitInfo")["operationMetrics"]["numDeletedFiles"] = "49"


@forgery("vacuum_commits_agree", "is COMPLETED, but 1 files remain")
def an_incomplete_vacuum_is_completed(project: ForgedProject) -> None:
    project.step(VACUUMED)["vacuum"].update(remaining=[OLD[0]], num_files_deleted=1)


@forgery("trash_holds_what_was_moved", "holds 0")
def the_trash_is_empty(project: ForgedProject) -> None:
    project.step(VACUUMED)["vacuum"]["trash"] = f"file:{project.root}/.maintainer-trash/orders"


@forgery("promised_versions_are_whole", "every version from 0 on is whole; 0 needs")
def a_promised_version_is_not_whole(project: ForgedProject) -> None:
    project.step(VACUUMED)["vacuum"]["oldest_version"] = 0


@forgery("deletions_spare_live_files", "which is live")
def a_deleted_file_is_live(project: ForgedProject) -> None:
    project.log[4] = [{"add": {**project.action(0, "add"), "path": f"{project.root}/{TABLE}/{OLD[0]}"}}]


@forgery("interrupted_deletions_are_told", "when 2 of its files were gone; no row of the ledger tells it")
def a_killed_vacuum_has_no_row(project: ForgedProject) -> None:
    del project.vacuumed.events[2:], project.log[3]
    project.vacuumed.results = None
    later = {**project.rows.pop(1), "run_id": "20261122T000000Z-cccc", "version_after": None}
    project.rows.append(later)


@forgery("leases_are_given_back", "which is finished")
def a_lease_of_a_finished_run_goes_on(project: ForgedProject) -> None:
    project.leases["orders.json"] = {"run_id": COMPACTED, "table": TABLE, "expires_at_ms": 4_000_000_000_000}


@forgery("nothing_temporary_stays", ".results.json.0a0b.tmp is left")
def a_temporary_file_stays(project: ForgedProject) -> None:
    project.files[f".maintainer/runs/{COMPACTED}/.results.json.0a0b.tmp"] = 1


@forgery("no_unknown_files", "no record names it")
def a_failed_rewrite_leaves_a_file(project: ForgedProject) -> None:
    project.files[f"{TABLE}/part-9.parquet"] = 1


@forgery("no_checksum_alone", "lies there without its file")
def a_failed_rewrite_leaves_a_checksum(project: ForgedProject) -> None:
    project.files[f"{TABLE}/.part-9.parquet.crc"] = 1


def past_step(project: ForgedProject, run_id: str) -> dict[str, Any]:
    """The row of `history -o json` for a run's step."""
    (row,) = (one for one in project.rows if one["run_id"] == run_id)
    return {**row, "step": row["kind"]}


@pytest.mark.parametrize(("rule", "words", "change"), CASES, ids=[change.__name__ for _, _, change in CASES])
def test_a_forged_contradiction_is_noticed(tmp_path: Path, rule: str, words: str, change: Forgery) -> None:
    project = forged_project(tmp_path)
    change(project)
    found = judged(project)
    assert [text for name, text in found if name == rule and words in text], found


@pytest.mark.parametrize("fate", ["unknown", None])
def test_a_commit_of_which_its_run_says_that_it_does_not_know_is_no_contradiction(
    tmp_path: Path, fate: str | None
) -> None:
    project = forged_project(tmp_path)
    (result,) = project.events(COMPACTED, "result")
    if fate is None:
        project.compacted.events.remove(result)
    else:
        result.update(fate=fate, version=None)
    project.step(COMPACTED).update(status="unknown", commits=[])
    project.rows[0].update(version_after=None)
    about_commits = {"commits_have_results", "results_tell_each_commit", "commits_have_rows"}
    rules = {rule for rule, _ in judged(project)}
    assert rules & about_commits == (set() if fate else about_commits)
    assert "intents_are_settled" in rules  # the second run completed the table, and left it open


def test_a_lease_that_a_run_says_it_left_is_true(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    a_lease_of_a_finished_run_goes_on(project)
    project.runs[COMPACTED].events.insert(-1, {**event("note"), "about": "lease_left", "table": TABLE})
    assert judged(project) == []


def test_a_hooks_commit_with_its_row_is_true(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    project.rows.append(hook_compacts(project))
    assert judged(project) == []


@pytest.mark.parametrize("why", ["not looked at", "interrupted", "ledger failed", "too old"])
def test_a_hooks_commit_needs_no_row_before_a_whole_run_looked(tmp_path: Path, why: str) -> None:
    project = forged_project(tmp_path)
    hook_compacts(project)
    looked = project.runs[LOOKED]
    assert looked.plan is not None
    assert looked.results is not None
    match why:
        case "not looked at":
            looked.plan["tables"][0]["observed"]["version"] = 3
        case "interrupted":
            looked.results["interrupted_by"] = "SIGINT"
            looked.events[-1]["interrupted_by"] = "SIGINT"
        case "ledger failed":
            looked.results["problems"] = [{"code": "E652", "what": "the ledger could not be written"}]
        case "too old":
            project.action(4, "commitInfo")["timestamp"] = PLANNED_AT_MS - 8 * 86_400_000
    assert [rule for rule, _ in judged(project) if rule == "hook_commits_have_rows"] == []


def test_each_rule_has_a_forgery_and_a_sentence() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in CASES}
    assert all((rule.__doc__ or "").strip().endswith((".", ")")) for rule in RULES)


def test_a_true_project_has_no_contradiction(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    past = [past_step(project, COMPACTED), past_step(project, VACUUMED)]
    project.histories = {"": {"history": past}, TABLE: {"history": past}}
    project.stdout = json.dumps(project.vacuumed.results)
    assert judged(project) == []
    assert_truth(project.root, exit_code=0)


def test_a_run_that_was_killed_may_have_an_open_intent_until_the_next_has_completed(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    del project.runs[VACUUMED], project.log[2], project.log[3], project.rows[1]
    project.files |= {f"{TABLE}/{name}": OLD_BYTES for name in OLD}
    project.compacted.events = project.compacted.events[:2]
    project.compacted.results = None
    project.rows = []
    assert judged(project) == []


def test_a_commit_whose_run_folder_is_elsewhere_needs_no_record(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    info = {"operation": "SET TBLPROPERTIES", "userMetadata": stamp("20260101T000000Z-cccc", "set_properties")}
    project.log[4] = [{"commitInfo": info}]
    assert judged(project) == []


def test_a_row_of_somebody_else_in_the_ledger_is_nothing_of_ours(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    project.rows.append(dict.fromkeys(project.rows[0]) | {"run_id": "theirs"})
    assert judged(project) == []


def test_our_own_ledger_is_no_table_of_the_users(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    ref = {"identifier": ".maintainer/ledger", "path": None}
    run = project.compacted
    assert run.plan is not None
    assert run.results is not None
    run.plan["tables"].append({"ref": ref, "observed": None, "steps": []})
    problem = {"code": "E652"}
    run.results["tables"].append(
        {"ref": ref, "status": "failed", "steps": [], "problem": problem, "policy_file": "built-in"}
    )
    run.events.insert(-1, event("table_finished", table=ref["identifier"], status="failed"))
    run.junit = None
    assert judged(project) == []


def test_an_unreadable_log_is_no_contradiction_where_the_run_says_so(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    del project.log[2], project.runs[VACUUMED], project.rows[1]
    project.table(COMPACTED)["status"] = "failed"
    rules = {rule for rule, _ in judged(project)}
    assert "logs_can_be_read" not in rules


def test_a_torn_last_line_is_no_damage(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    project.write()
    with (project.runs_dir / VACUUMED / "events.jsonl").open("a") as events:
        events.write('{"type": "no')
    assert contradictions(project.root) == []


def test_a_line_torn_by_a_kill_is_no_damage_when_the_file_was_reopened(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    project.compacted.damage = '{"type": "no\n'
    project.compacted.events.insert(0, event("reopened"))
    assert judged(project) == []


def test_a_deletion_that_only_empties_the_trash_claims_no_commit(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    (result,) = project.events(VACUUMED, "result")
    emptied = {**result, "batch": 1, "fate": "no_commit", "version": None, "read_version": 1}
    project.vacuumed.events.insert(3, emptied)
    assert judged(project) == []
    project.vacuumed.events[3] |= {"fate": "landed", "version": 1}
    assert [text for text in judged_again(project) if "claims version 1" in text]


def test_rules_can_be_left_out_by_name(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    a_live_file_is_gone(project)
    project.write()
    assert {one.rule for one in contradictions(project.root)} == {"live_files_are_there", "promised_versions_are_whole"}
    left_out = ("live_files_are_there", "promised_versions_are_whole")
    assert contradictions(project.root, but_not=left_out) == []
    with pytest.raises(ValueError, match="no such rules"):
        contradictions(project.root, but_not=("no_such_rule",))
    with pytest.raises(AssertionError, match="is not on disk"):
        assert_truth(project.root)


@pytest.mark.parametrize("kept_from", [0, 3])
def test_a_checkpoint_stands_for_the_commits_before_it(tmp_path: Path, kept_from: int) -> None:
    import pyarrow
    import pyarrow.parquet

    project = forged_project(tmp_path)
    project.write()
    log = tmp_path / TABLE / "_delta_log"
    action = project.action(1, "add")
    rows = [
        {"add": {"path": NEW, "size": action["size"]}, "metaData": None},
        {"add": None, "metaData": {"id": project.action(0, "metaData")["id"]}},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), log / f"{2:020d}.checkpoint.parquet")
    for version in range(kept_from):
        (log / f"{version:020d}.json").unlink()
    assert contradictions(project.root) == []
    (tmp_path / TABLE / NEW).unlink()
    assert "live_files_are_there" in {one.rule for one in contradictions(project.root)}


def test_names_with_a_percent_of_their_own_are_found(tmp_path: Path) -> None:
    """delta-rs gives a folder the name that a partition's value has in a URL, and the log encodes its % once more."""
    rows = pa.table({"id": [1, 2], "region": ["ü=1", "a/b c"]})
    deltalake.write_deltalake(str(tmp_path), rows, partition_by=["region"])
    table = replay_table(tmp_path)
    assert {file.is_file() for file in table.history[0]} == {True}
    assert table.history[0] <= table.known


def test_a_left_file_is_named_by_how_its_name_begins(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    prefix = f"part-{COMPACTED}-"
    note = f"data files whose names begin with {prefix} and that no version names may be left of it"
    project.vacuumed.events.insert(1, event("note", about="settled", table=TABLE, text=note))
    project.files[f"{TABLE}/{prefix}0a-part-00000.parquet"] = 1
    project.files[f"{TABLE}/part-other.parquet"] = 1
    ((rule, text),) = judged(project)
    assert (rule, "part-other.parquet was written" in text) == ("no_unknown_files", True)
