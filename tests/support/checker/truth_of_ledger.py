"""Rules about the ledger and `history`: one row for each step, with the figures of results.json and of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.support.checker.truth_of_commits import figures_of, is_open_and_unknown
from tests.support.checker.truth_records import REWRITES, Evidence, RunRecord

_FIGURES = ("num_files_removed", "num_files_added", "bytes_removed", "bytes_added")
_FROM_HISTORY = "history"
"""The `source` of a row that was rebuilt from a table's own log."""
_BY_HOOK = "auto_compact"
"""The kind of a commit that the hook made in a writer's process, without a run folder."""
_FIRST_LOOK_MS = 7 * 86_400_000
"""How far back `apply` looks for commits of the hook when it meets a table for the first time."""


def rows_are_single(evidence: Evidence) -> Iterator[str]:
    """No step has two rows in a ledger, and none waits that is there already."""
    for folder, rows in evidence.ledgers.items():
        keys = Counter((row["run_id"], row["step_id"]) for row in rows)
        for (run_id, step_id), number in sorted(keys.items()):
            if number > 1:
                yield f"{folder} has {number} rows of run {run_id} step {step_id}"
        for run in evidence.runs:
            # A run that died between the append and the removal of its file leaves both; its token keeps them apart.
            twice = [row["step_id"] for row in run.pending if (run.run_id, row["step_id"]) in keys]
            is_told = any(event.get("about") == "ledger" for event in run.of_type("note"))  # E652: nobody could look
            if twice and run.is_finished and not is_told:
                yield f"run {run.run_id}: {', '.join(twice)} wait for the ledger and are in {folder}"


def steps_have_rows(evidence: Evidence) -> Iterator[str]:
    """Each step of a finished run is a row of the ledger, or waits in the run folder."""
    there = {(row["run_id"], row["step_id"].partition("#")[0]) for row in evidence.ledger_rows}
    for run in evidence.runs:
        if not run.is_finished or run.is_alive:
            continue
        waiting = {row["step_id"].partition("#")[0] for row in run.pending}
        for _, step in run.steps():
            if (run.run_id, step["step_id"]) not in there and step["step_id"] not in waiting:
                yield (
                    f"run {run.run_id}: {step['step_id']} {step['status']} is in no ledger and does not wait for one"
                )


def waiting_rows_are_said(evidence: Evidence) -> Iterator[str]:
    """Rows that wait, although there is a ledger, are told as a note of the run, or taken along by the next one."""
    appended = {row["run_id"] for row in evidence.ledger_rows}
    for number, run in enumerate(evidence.runs):
        if not run.pending or run.is_alive or not appended:
            continue
        # A later run may have made them: only one that ended after that had them before it.
        known_ms = max((event["at_ms"] for event in run.of_type("ledger_rows")), default=0)
        later = [
            later.run_id
            for later in evidence.runs[number + 1 :]
            if later.run_id in appended and any(end["at_ms"] >= known_ms for end in later.of_type("run_finished"))
        ]
        has_note = any(event.get("about") == "ledger" for event in run.of_type("note"))
        by_itself = (run.path / "undelete.json").exists()
        if later:
            yield f"rows of run {run.run_id} still wait, though run {later[0]} appended its own after it"
        elif run.is_finished and not has_note and not by_itself and run.run_id > min(appended):
            yield f"rows of run {run.run_id} wait for the ledger, and its record does not say why"


def rows_agree_with_results(evidence: Evidence) -> Iterator[str]:
    """A row says what results.json says of its step: status, versions, files and bytes.

    A later run may know more of a step whose end was unknown.
    """
    for row in _rows(evidence):
        run = evidence.run(row["run_id"])
        if run is None or run.results is None or not run.is_finished or row["kind"] == "undelete":
            continue
        step_id = row["step_id"].partition("#")[0]
        steps = [step for _, step in run.steps() if step["step_id"] == step_id]
        where = f"ledger row of run {row['run_id']} step {row['step_id']}"
        if not steps:
            yield f"{where}: results.json has no such step"
        for step in steps:
            if step["turns"] or row.get("source") == _FROM_HISTORY:
                continue  # a row for each turn: compared with the log
            if step["status"] == "unknown" and row["step_id"].endswith("#settled"):
                continue  # a later run found out what became of it: results.json is what was known before
            for name, value in _row_of(step).items():
                if row[name] != value:
                    yield f"{where}: {name} is {row[name]}, results.json says {value}"


def _row_of(step: dict[str, Any]) -> dict[str, Any]:
    commits, vacuum = step["commits"], step["vacuum"]
    sums = {name: sum(receipt[name] for receipt in commits) for name in _FIGURES}
    if vacuum is not None:
        sums["num_files_removed"] += vacuum["num_files_deleted"]
        sums["bytes_removed"] += vacuum["bytes_deleted"]
    after = commits[-1]["version"] if commits else vacuum["version_after"] if vacuum else None
    return {"status": step["status"], "version_after": after, "kind": step["kind"], **sums}


def rows_stand_in_the_log(evidence: Evidence) -> Iterator[str]:
    """A version that a row claims carries the row's stamp, and its figures are those of the log's commits."""
    for row in _rows(evidence):
        after = row["version_after"]
        table = evidence.table_at(row["location"], row["table_id"]) if row["location"] else None
        if table is None or after is None or row["kind"] not in (*REWRITES, _BY_HOOK, "set_properties"):
            continue
        step_id = row["step_id"].partition("#")[0]
        where = f"ledger row of run {row['run_id']} step {row['step_id']}"
        if after > table.version:
            yield f"{where} claims version {after} of {table.root}, which ends at {table.version}"
        commit = table.commits.get(after)
        if commit is None:
            continue
        if commit.stamp is None or (commit.stamp.run_id, commit.stamp.step_id) != (row["run_id"], step_id):
            yield f"{where} claims version {after} of {table.root}, which is not its own"
            continue
        before = row["version_before"] if row["version_before"] is not None else after - 1
        own = [
            commit
            for commit, stamp in table.stamped()
            if (stamp.run_id, stamp.step_id) == (row["run_id"], step_id) and before < commit.version <= after
        ]
        for name in _FIGURES:
            figures = [figures_of(commit) for commit in own]
            counts = row["kind"] == _BY_HOOK or (row["kind"] in REWRITES and row["proof_level"] != "none")
            if counts and all(name in figure for figure in figures):
                counted = sum(figure[name] for figure in figures)
                if row[name] != counted:
                    yield f"{where}: {name} is {row[name]}, the log has {counted}"


def commits_have_rows(evidence: Evidence) -> Iterator[str]:
    """A commit of a run that is over is told by a row, in the ledger or waiting, once a later run has appended rows.

    So also the commits of a run that was killed: the first complete run after it brings them into the ledger. Where the
    fate of a commit is not known yet, its row names no version.
    """
    rows = list(_rows(evidence))
    appended = {row["run_id"] for row in evidence.ledger_rows}
    for table in evidence.tables:
        for commit, stamp in table.stamped():
            run = evidence.run(stamp.run_id)
            if run is None or run.is_alive or is_open_and_unknown(run, stamp):
                continue
            if not run.is_finished and not any(run_id > run.run_id for run_id in appended):
                continue
            has_row = any(
                row["run_id"] == stamp.run_id
                and row["step_id"].partition("#")[0] == stamp.step_id
                and row["version_after"] is not None
                and (-1 if row["version_before"] is None else row["version_before"])
                < commit.version
                <= row["version_after"]
                for row in rows
            )
            if not has_row and (run.is_finished or run.run_id < max(appended, default="")):
                yield (
                    f"{table.root}@{commit.version} is from run {stamp.run_id} step {stamp.step_id}, and "
                    "no row tells it"
                )


def hook_commits_have_rows(evidence: Evidence) -> Iterator[str]:
    """A commit of the writers' hook has one row once a whole run has planned its table at that version or a later one.

    What is older than the first look reaches need not have one.
    """
    rows = [row for row in evidence.ledger_rows if row["kind"] == _BY_HOOK]
    for run in filter(_is_whole, evidence.runs):
        since_ms = run.plan["created_at_ms"] - _FIRST_LOOK_MS if run.plan is not None else 0
        for planned in run.planned_tables:
            observed = planned.get("observed")
            table = evidence.table_at(observed["location"], observed["table_id"]) if observed else None
            if observed is None or table is None:
                continue
            for commit, stamp in table.stamped():
                if stamp.kind != _BY_HOOK or commit.version > observed["version"]:
                    continue
                key = (stamp.run_id, observed["table_id"], commit.version)
                number = sum((row["run_id"], row["table_id"], row["version_after"]) == key for row in rows)
                if number != 1 and int(commit.info.get("timestamp") or 0) >= since_ms:
                    yield (
                        f"{table.root}@{commit.version} is from the hook in a writer, run {run.run_id} looked at it, "
                        f"and {number} rows tell it"
                    )


def _is_whole(run: RunRecord) -> bool:
    """Whether a run came to its end and its ledger took what it had to say."""
    if not run.is_finished or run.is_alive or run.results is None or run.pending:
        return False
    refused = run.results.get("problems") or any(event.get("about") == "ledger" for event in run.of_type("note"))
    return run.results["interrupted_by"] is None and not refused


def proofs_passed(evidence: Evidence) -> Iterator[str]:
    """A row of a rewrite says `pass` only where a check of each of its versions passed, and none failed."""
    for row in _rows(evidence):
        table = evidence.table_at(row["location"], row["table_id"]) if row["location"] else None
        if row["proof_result"] != "pass" or row["kind"] not in REWRITES or table is None:
            continue
        run = evidence.run(row["run_id"])
        if run is None:
            continue
        step_id = row["step_id"].partition("#")[0]
        before = row["version_before"] if row["version_before"] is not None else -1
        for commit, stamp in table.stamped():
            own = (stamp.run_id, stamp.step_id) == (row["run_id"], step_id)
            if not own or not before < commit.version <= (row["version_after"] or -1):
                continue
            said = _checks_of(evidence, table.table_id, commit.version)
            if "pass" not in said or "fail" in said:
                yield (
                    f"ledger row of run {row['run_id']} step {row['step_id']} says proof pass, "
                    f"checks of version {commit.version} said {said or 'nothing'}"
                )


def _checks_of(evidence: Evidence, table_id: str, version: int) -> list[str]:
    """What checks of a version said, of any run."""
    return [
        str(event["result"])
        for run in evidence.runs
        for event in run.of_type("verified")
        if (event.get("table_id"), event.get("version")) == (table_id, version)
    ]


def history_tells_each_step(evidence: Evidence) -> Iterator[str]:
    """`history` has each step of each finished run with its figures; `history TABLE` tells each commit of ours once.

    Of a step whose end was unknown it tells what a later run found out.
    """
    for name, document in evidence.histories.items():
        rows = document["history"]
        title = f"history {name}".rstrip()
        for run in evidence.runs:
            for table, step in run.steps() if run.is_finished else ():
                key = (run.run_id, table["ref"]["identifier"], step["kind"])
                if name not in ("", key[1]):
                    continue
                telling = [row for row in rows if (row["run_id"], row["table"], row["step"]) == key]
                if not telling:
                    yield f"{title} lacks {step['step_id']} of run {run.run_id}"
                elif step["status"] == "unknown" and any(
                    event.get("step") == step["step_id"] for event in run.of_type("settled")
                ):
                    continue
                elif step["status"] not in {row["status"] for row in telling}:
                    said = ", ".join(str(row["status"]) for row in telling)
                    yield f"{title} says {step['step_id']} of run {run.run_id} {said}, results.json {step['status']}"
                for figure in _FIGURES if telling else ():
                    in_history, counted = sum(row[figure] for row in telling), _row_of(step)[figure]
                    if in_history != counted:
                        where = f"{step['step_id']}, run {run.run_id}"
                        yield f"{title}: {figure} of {where}, is {in_history}, results.json {counted}"
        yield from _versions_told(evidence, name, rows)


def _versions_told(evidence: Evidence, name: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    for run in evidence.runs:
        for planned in run.planned_tables:
            observed = planned.get("observed")
            if not name or planned["ref"]["identifier"] != name or not observed:
                continue
            table = evidence.table_at(observed["location"], observed["table_id"])
            for commit, stamp in table.stamped() if table is not None else ():
                if stamp.run_id != run.run_id:
                    continue
                telling = [
                    row for row in rows if row["run_id"] == run.run_id and _tells(row, stamp.kind, commit.version)
                ]
                if len(telling) != 1:
                    yield f"history {name} tells version {commit.version} of run {run.run_id} {len(telling)} times"


def _tells(row: dict[str, Any], kind: str, version: int) -> bool:
    # A Z-order that somebody asked for removes the request at its end, in a row that says so.
    if row["step"] not in (kind, "set_properties") or row["version_after"] is None:
        return False
    before = row["version_before"] if row["version_before"] is not None else row["version_after"] - 1
    return bool(before < version <= row["version_after"])


def _rows(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """Rows of the ledgers, and those that wait."""
    yield from evidence.ledger_rows
    for run in evidence.runs:
        yield from run.pending


RULES = (
    rows_are_single,
    steps_have_rows,
    waiting_rows_are_said,
    rows_agree_with_results,
    rows_stand_in_the_log,
    commits_have_rows,
    hook_commits_have_rows,
    proofs_passed,
    history_tells_each_step,
)
