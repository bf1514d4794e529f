"""Rules about commits and records: each commit of ours is explained by its run, and each claim stands in the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.checker.truth_log import LogCommit, LogStamp, LogTable, removes_a_request
from tests.support.checker.truth_records import REWRITES, Evidence, RunRecord

_ENDED = ("result", "settled")
_OUTSIDE_RUNS = ("auto_compact",)
"""Steps of writers' hooks, which have no run folder."""


def _commits_of_runs(evidence: Evidence) -> Iterator[tuple[LogTable, LogCommit, LogStamp, RunRecord]]:
    """Our commits whose run folder is here."""
    for table in evidence.tables:
        for commit, stamp in table.stamped():
            run = evidence.run(stamp.run_id)
            if run is not None and stamp.kind not in _OUTSIDE_RUNS and not run.event_lines[1]:
                yield table, commit, stamp, run


def commits_have_intents(evidence: Evidence) -> Iterator[str]:
    """Before each commit of ours its run wrote an INTENT, for the version that it read."""
    for table, commit, stamp, run in _commits_of_runs(evidence):
        read = [event["read_version"] for event in run.of_type("intent") if _is_of(event, stamp)]
        if not any(version < commit.version for version in read):
            text = (
                f"{table.root}@{commit.version} is from {_name(stamp)}, which wrote no INTENT for a version before it"
            )
            yield text


def commits_have_results(evidence: Evidence) -> Iterator[str]:
    """Each commit of ours is told by a RESULT, or was settled later, with its version and figures.

    A run that is alive, or dead and not settled yet, may lack it (`intents_are_settled` says until when). So may one
    whose engine died in a commit, and which says that it does not know what came of it.
    """
    for table, commit, stamp, run in _commits_of_runs(evidence):
        ends = [event for event in run.of_type(*_ENDED) if _is_of(event, stamp) and event["fate"] == "landed"]
        if stamp.kind == "vacuum":
            continue  # its files are counted, see the rules about vacuums
        if not ends:
            if run.is_finished and not is_open_and_unknown(run, stamp):
                yield f"{table.root}@{commit.version} is from {_name(stamp)}, which ended without a RESULT for it"
            continue
        for event in ends:
            if event["version"] != commit.version:
                yield (
                    f"{_name(stamp)} is told as version {event['version']} of {table.root}, its stamp is "
                    f"on {commit.version}"
                )
            for name, counted in figures_of(commit).items():
                if event["type"] == "result" and name in event and _known(event) and event[name] != counted:
                    yield (
                        f"{table.root}@{commit.version}: RESULT says {name} {event[name]}, the actions "
                        f"come to {counted}"
                    )


def results_tell_each_commit(evidence: Evidence) -> Iterator[str]:
    """`results.json` of a finished run has each of its commits, with the figures of the log.

    Of a commit whose fate was unknown at its end the events tell, once a later run has settled it; until then nobody.
    """
    for table, commit, stamp, run in _commits_of_runs(evidence):
        if stamp.kind == "vacuum" or run.results is None or not run.is_finished:
            continue
        receipts = [
            receipt
            for _, step in run.steps()
            if step["step_id"] == stamp.step_id
            for receipt in step["commits"]
            if receipt["version"] == commit.version
        ]
        unknown = any(step["status"] == "unknown" for _, step in run.steps() if step["step_id"] == stamp.step_id)
        settled = any(event["version"] == commit.version for event in run.of_type("settled"))
        settled = settled or is_open_and_unknown(run, stamp)
        if len(receipts) != 1 and not (unknown and settled and not receipts):
            yield f"{table.root}@{commit.version} is from {_name(stamp)}; results.json tells it {len(receipts)} times"
        for receipt in receipts:
            # A receipt that was lost says so: its proof is missing and it counts as not proven.
            if stamp.kind in REWRITES and receipt["proof"] is None:
                continue
            for name, counted in figures_of(commit).items():
                if receipt[name] != counted:
                    yield (
                        f"{table.root}@{commit.version}: results.json says {name} {receipt[name]}, the log {counted}"
                    )


def claims_stand_in_the_log(evidence: Evidence) -> Iterator[str]:
    """A version that a RESULT, a settlement or results.json claims carries that stamp in the table's log."""
    for run in evidence.runs:
        claims = [
            (event.get("location"), event.get("table_id"), event["step"], event["version"], event["type"])
            for event in run.of_type(*_ENDED)
            if event["fate"] == "landed" and event.get("version") is not None
        ]
        places = {table["ref"]["identifier"]: table.get("observed") or {} for table in run.planned_tables}
        for table_outcome, step in run.steps():
            observed = places.get(table_outcome["ref"]["identifier"], {})
            for receipt in step["commits"]:
                place = observed.get("location"), observed.get("table_id")
                claims.append((*place, step["step_id"], receipt["version"], "results.json"))
            if step["vacuum"] is not None and step["vacuum"]["version_after"] is not None:
                place = observed.get("location"), observed.get("table_id")
                claims.append((*place, step["step_id"], step["vacuum"]["version_after"], "results.json"))
        for location, table_id, step_id, version, source in claims:
            table = evidence.table_at(location, table_id) if location else None
            yield from _unsupported_claim(table, run.run_id, step_id, version, source)
        yield from _landed_all_the_same(evidence, run)


def _unsupported_claim(table: LogTable | None, run_id: str, step_id: str, version: int, source: str) -> Iterator[str]:
    if table is None or version < min(table.commits, default=0):
        return
    commit = table.commits.get(version)
    if commit is None:
        yield f"{source} of run {run_id} claims version {version} of {table.root}, which ends at {table.version}"
    elif commit.stamp is None or (commit.stamp.run_id, commit.stamp.step_id) != (run_id, step_id):
        bearer = _name(commit.stamp) if commit.stamp else f"somebody else ({commit.operation})"
        yield f"{source} of run {run_id} claims version {version} of {table.root} for {step_id}, it is from {bearer}"


def _landed_all_the_same(evidence: Evidence, run: RunRecord) -> Iterator[str]:
    """What was last said to have not landed, or to have left no commit, is not in the log."""
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for event in run.of_type(*_ENDED):
        last[(event["step"], event["batch"])] = event
    for (step_id, batch), event in last.items():
        if event["fate"] == "no_commit":
            if event.get("version") is not None:
                yield f"{event['type']} of run {run.run_id} {step_id} says no commit, and version {event['version']}"
        elif event["fate"] != "not_landed" or event.get("kind") == "vacuum":
            continue
        table = evidence.table_at(event.get("location"), event.get("table_id"))
        if table is None:
            continue
        for commit, stamp in table.stamped():
            if (stamp.run_id, stamp.step_id, stamp.batch) == (run.run_id, step_id, batch):
                yield (
                    f"{event['type']} of {_name(stamp)} says {event['fate']}, but it is version "
                    f"{commit.version} of {table.root}"
                )


def intents_are_settled(evidence: Evidence) -> Iterator[str]:
    """No INTENT stays open when its run is finished, or when a later run has completed the same table."""
    for number, run in enumerate(evidence.runs):
        if run.is_alive:
            continue
        for event in open_intents(run):
            if run.is_finished:
                # An unknown fate is left open on purpose; the table must not be called done then.
                fates = [result["fate"] for result in run.of_type("result") if _same_try(result, event)]
                if fates[-1:] != ["unknown"]:
                    yield (
                        f"run {run.run_id} is finished, but its INTENT of {event['step']} batch "
                        f"{event['batch']} is open"
                    )
            for later in evidence.runs[number + 1 :]:
                if _completed(later, event):
                    yield (
                        f"run {later.run_id} completed {event['table']}, but the INTENT of run {run.run_id}, "
                        f"{event['step']} batch {event['batch']}, is still open"
                    )


def is_open_and_unknown(run: RunRecord, stamp: LogStamp) -> bool:
    """Whether a run says that it does not know what came of a try to commit, and nobody has settled that."""
    tries = [event for event in open_intents(run) if _is_of(event, stamp)]
    return any(
        result["fate"] == "unknown" for event in tries for result in run.of_type("result") if _same_try(result, event)
    )


def open_intents(run: RunRecord) -> list[dict[str, Any]]:
    """INTENTs without an end, oldest first."""
    still: dict[tuple[str, int], dict[str, Any]] = {}
    for event in run.of_type("intent", *_ENDED):
        key = (event["step"], event["batch"])
        if event["type"] == "intent":
            still[key] = event
        elif event["fate"] != "unknown":
            still.pop(key, None)
    return list(still.values())


def _completed(run: RunRecord, intent: dict[str, Any]) -> bool:
    """Whether a run took up the table of an intent and ended it well."""
    if not run.is_finished:
        return False
    planned = [
        table["ref"]
        for table in run.planned_tables
        if (table.get("observed") or {}).get("table_id") == intent["table_id"]
        and str(table["observed"]["location"]).rstrip("/") == str(intent["location"]).rstrip("/")
    ]
    return any(table["ref"] in planned and table["status"] in ("done", "up_to_date") for table in run.tables)


def events_are_whole(evidence: Evidence) -> Iterator[str]:
    """No line in the middle of a record is damaged."""
    for run in evidence.runs:
        damaged = run.event_lines[1]
        if damaged:
            yield f"{run.path / 'events.jsonl'} has {damaged} lines whose checksum is wrong"


def proofs_come_before_commits(evidence: Evidence) -> Iterator[str]:
    """A rewrite lands with an INTENT that says proven, with equal rows and sums.

    The INTENT of a command of Delta's has no proof; then the commit is checked afterwards, and the record says how.
    """
    for table, commit, stamp, run in _commits_of_runs(evidence):
        if stamp.kind not in REWRITES or removes_a_request(commit):
            continue
        where = f"{table.root}@{commit.version}"
        for event in [event for event in run.of_type("intent") if _is_of(event, stamp)][-1:]:
            proof = event.get("proof")
            if proof is None:
                checked = any(
                    verified_event.get("version") == commit.version for verified_event in run.of_type("verified")
                )
                if run.is_finished and (event["proven"] or not checked):
                    yield f"{where} landed without a proof in the INTENT of {_name(stamp)}, and no check is recorded"
            elif not event["proven"] or (proof["rows_read"], proof["sums_read"]) != (
                proof["rows_written"],
                proof["sums_written"],
            ):
                yield f"{where} landed, but the INTENT of {_name(stamp)} has no proof that holds"


def figures_of(commit: LogCommit) -> dict[str, int]:
    """Files and bytes of a commit, counted from its actions; without sizes where the log has none."""
    removes, adds = commit.named("remove"), commit.named("add")
    figures = {"num_files_removed": len(removes), "num_files_added": len(adds)}
    figures["bytes_added"] = sum(int(add["size"]) for add in adds)
    if all(remove.get("size") is not None for remove in removes):
        figures["bytes_removed"] = sum(int(remove["size"]) for remove in removes)
    return figures


def _known(event: dict[str, Any]) -> bool:
    """Whether a RESULT has figures: one whose receipt was lost has an error and zeros."""
    return event.get("error") is None


def _is_of(event: dict[str, Any], stamp: LogStamp) -> bool:
    return (event.get("step"), event.get("batch")) == (stamp.step_id, stamp.batch)


def _same_try(event: dict[str, Any], intent: dict[str, Any]) -> bool:
    return (event.get("step"), event.get("batch")) == (intent["step"], intent["batch"])


def _name(stamp: LogStamp) -> str:
    return f"run {stamp.run_id} step {stamp.step_id} batch {stamp.batch}"


RULES = (
    events_are_whole,
    commits_have_intents,
    commits_have_results,
    results_tell_each_commit,
    claims_stand_in_the_log,
    intents_are_settled,
    proofs_come_before_commits,
)
