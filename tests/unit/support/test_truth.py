"""The checker of truth notices each kind of contradiction, and accepts what is true."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tests.support.checker.contradictions import RULES, assert_truth, contradictions
from tests.support.checker.truth_log import replay_table
from tests.unit.support.forged_ledgers import LEDGER_FORGERIES, LOOKED, hook_compacts, past_step
from tests.unit.support.forged_logs import LOG_FORGERIES, a_live_file_is_gone, a_promised_version_is_not_whole
from tests.unit.support.forged_project import (
    COMPACTED,
    NEW,
    OLD,
    OLD_BYTES,
    PLANNED_AT_MS,
    TABLE,
    VACUUMED,
    event,
    forged_project,
    stamp,
)
from tests.unit.support.forged_results import RESULT_FORGERIES, a_lease_of_a_finished_run_goes_on
from tests.unit.support.forgery_cases import Forgery, judged, judged_again

CASES = [*LOG_FORGERIES, *RESULT_FORGERIES, *LEDGER_FORGERIES]


@pytest.mark.parametrize(("rule", "words", "change"), CASES, ids=[change.__name__ for _, _, change in CASES])
def test_a_forged_contradiction_is_noticed(tmp_path: Path, rule: str, words: str, change: Forgery) -> None:
    project = forged_project(tmp_path)
    change(project)
    reported = judged(project)
    assert [text for name, text in reported if name == rule and words in text], reported


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


def test_a_vacuum_promises_nothing_for_after_a_later_one_began(tmp_path: Path) -> None:
    """The later one was killed in the middle, so only its intent tells of it."""
    project = forged_project(tmp_path)
    a_promised_version_is_not_whole(project)
    killed = deepcopy(project.vacuumed)
    killed.events, killed.results = killed.events[:2], None
    assert [event["type"] for event in killed.events] == ["run_started", "intent"]
    project.runs["20261122T000000Z-cccc"] = killed
    assert [text for text in judged(project) if "promised_versions_are_whole" in text or "is whole" in text] == []


def test_rules_can_be_left_out_by_name(tmp_path: Path) -> None:
    project = forged_project(tmp_path)
    a_live_file_is_gone(project)
    project.write()
    assert {contradiction.rule for contradiction in contradictions(project.root)} == {
        "live_files_are_there",
        "promised_versions_are_whole",
    }
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
    assert "live_files_are_there" in {contradiction.rule for contradiction in contradictions(project.root)}


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


def test_rows_that_were_made_after_a_run_had_appended_its_own_did_not_wait_for_it(tmp_path: Path) -> None:
    """A run that settles what another one left may be killed before it appends the rows of that."""
    project = forged_project(tmp_path)
    project.compacted.pending = [project.rows.pop(0)]
    project.compacted.events.append(event("ledger_rows", at_ms=1, num_rows=1))
    assert "waiting_rows_are_said" not in {rule for rule, _ in judged(project)}
