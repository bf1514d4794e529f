"""Forgeries of what a run writes down: events, INTENTs, results, exit codes, JUnit, the report, leases."""

from __future__ import annotations

import json

from tests.unit.support.forged_project import COMPACTED, OLD, TABLE, VACUUMED, ForgedProject
from tests.unit.support.forgery_cases import Case, registering

RESULT_FORGERIES: list[Case] = []
forgery = registering(RESULT_FORGERIES)


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


@forgery("statuses_follow_from_steps", "no vacuum that waits for the next run")
def a_table_waits_though_its_step_was_skipped_for_no_reason(project: ForgedProject) -> None:
    project.step(VACUUMED)["status"] = "skipped"
    project.table(VACUUMED)["status"] = "waiting"


@forgery("statuses_follow_from_steps", "its vacuum waits for the next run")
def a_table_with_a_vacuum_that_waits_is_called_done(project: ForgedProject) -> None:
    project.step(VACUUMED).update({"status": "skipped", "error": {"code": "C715", "what": "it waits"}})


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


@forgery("leases_are_given_back", "which is finished")
def a_lease_of_a_finished_run_goes_on(project: ForgedProject) -> None:
    project.leases["orders.json"] = {"run_id": COMPACTED, "table": TABLE, "expires_at_ms": 4_000_000_000_000}
