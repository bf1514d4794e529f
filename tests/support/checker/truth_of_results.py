"""Rules about one run: results against plan, events, junit.xml, report.html, what was printed and the exit code."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from html import unescape
from typing import Any

from tests.support.checker.truth_records import REWRITES, Evidence, RunRecord

_WELL = ("succeeded", "nothing_left")
_FAILED_STEPS = ("failed", "unknown", "incomplete")
_NO_SUCCESS = ("failed", "not_reached", "interrupted")
BUG = "E699"


def _finished(evidence: Evidence) -> Iterator[tuple[RunRecord, dict[str, Any]]]:
    for run in evidence.runs:
        if run.results is not None and run.is_finished:
            yield run, run.results


def one_outcome_for_each_table(evidence: Evidence) -> Iterator[str]:
    """Each table of plan.json ends with exactly one outcome in results.json, and no other table does."""
    for run, results in _finished(evidence):
        ended = Counter(_ref(table["ref"]) for table in results["tables"])
        if run.plan is not None:
            planned = Counter(_ref(table["ref"]) for table in run.plan["tables"])
            for ref in sorted(planned.keys() | ended.keys()):
                if planned[ref] != ended[ref]:
                    yield (
                        f"run {run.run_id}: {ref} is {planned[ref]} times in plan.json, {ended[ref]} "
                        "times in results.json"
                    )
        finished = Counter(event["table"] for event in run.of_type("table_finished"))
        names = Counter(table["ref"]["identifier"] for table in results["tables"])
        for name in sorted(finished.keys() | names.keys()):
            if finished[name] != names[name]:
                yield f"run {run.run_id}: {name} has {names[name]} outcomes and {finished[name]} events table_finished"


def _user_tables(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Tables of the user's: all but the ledger, which only the built-in policy keeps."""
    return [table for table in results["tables"] if table.get("policy_file") != "built-in"]


def _searched(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tables without the places that could not be searched, which only the project's file names."""
    return [table for table in tables if table.get("policy_file") != "maintainer.yml"]


def counts_add_up(evidence: Evidence) -> Iterator[str]:
    """The counts of results.json are those of its tables; neither the ledger is one, nor a place."""
    for run, results in _finished(evidence):
        tables = _searched(_user_tables(results))
        counted = Counter(table["status"] for table in tables)
        for status, number in results["counts"].items():
            if counted[status] != number:
                yield f"run {run.run_id}: results.json counts {number} tables {status}, it has {counted[status]}"
        if sum(results["counts"].values()) != len(tables):
            yield f"run {run.run_id}: the counts come to {sum(results['counts'].values())}, of {len(tables)} tables"


def statuses_follow_from_steps(evidence: Evidence) -> Iterator[str]:
    """A table's status is no better than its worst step, and a step's no better than what it did."""
    for run, results in _finished(evidence):
        for table in results["tables"]:
            where = f"run {run.run_id}, {table['ref']['identifier']}"
            for text in _status_troubles(table):
                yield f"{where}: {text}"
            for step in table["steps"]:
                for text in _step_troubles(step):
                    yield f"{where}, {step['step_id']}: {text}"


def _status_troubles(table: dict[str, Any]) -> Iterator[str]:
    status, steps = table["status"], [step["status"] for step in table["steps"]]
    commits = sum(len(step["commits"]) for step in table["steps"])
    if status == "done" and ("succeeded" not in steps or any(step not in _WELL for step in steps)):
        yield f"the table is done, its steps are {steps}"
    if status == "up_to_date" and (commits or any(step not in ("nothing_left",) for step in steps)):
        yield f"the table was up to date, but has {commits} commits and steps {steps}"
    if status == "blocked" and commits:
        yield f"the table was refused before anything was touched, but has {commits} commits"
    held = [
        step for step in table["steps"] if step["status"] == "skipped" and (step["error"] or {}).get("code") == "C715"
    ]
    if status in ("unsupported", "not_reached") and steps:
        yield f"the table is {status}, but has steps {steps}"
    if status == "waiting" and steps and (not held or any(step not in _WELL for step in steps[:-1])):
        yield f"the table is waiting, but has steps {steps} and no vacuum that waits for the next run"
    if held and (status != "waiting" or held != [table["steps"][-1]] or held[0]["kind"] != "vacuum"):
        yield f"the table is {status}, its vacuum waits for the next run, and its steps are {steps}"
    if status != "verify_failed" and "verify_failed" in steps:
        yield f"the table is {status}, but a step failed its verification"
    if status not in ("failed", "verify_failed") and any(step in _FAILED_STEPS for step in steps):
        yield f"the table is {status}, its steps are {steps}"
    if status == "failed" and table["problem"] is None and not any(step in _FAILED_STEPS for step in steps):
        yield f"the table failed without a problem, its steps are {steps}"
    seen_bad = False
    for step in steps:
        if seen_bad and step != "skipped":
            yield f"a step was run after one that did not succeed: {steps}"
        seen_bad = seen_bad or step not in _WELL


def _step_troubles(step: dict[str, Any]) -> Iterator[str]:
    status, commits, vacuum = step["status"], step["commits"], step["vacuum"]
    if status == "succeeded" and step["kind"] in (*REWRITES, "set_properties") and not commits:
        yield "it succeeded without a commit"
    if status == "succeeded" and step["error"] is not None:
        yield f"it succeeded with the error {step['error']['code']}"
    if status not in _WELL and status not in ("skipped", "incomplete") and step["error"] is None:
        yield f"it is {status} and does not say why"
    if status in ("nothing_left", "skipped") and commits:
        yield f"it is {status}, but has {len(commits)} commits"
    # What failed on the version before as well is no fault of the commit; the note of the step must name it.
    outcomes = {
        check["outcome"]
        for check in step["assertions"]
        if not (check.get("error") or "").startswith("not this commit's: ")
        or check["expectation"] not in (step.get("note") or "")
    }
    if "fail" in outcomes and status != "verify_failed":
        yield f"a check failed, and the step is {status}"
    if "error" in outcomes and status in _WELL:
        yield f"a check could not be made, and the step is {status}"
    if status == "succeeded" and vacuum is not None and (vacuum["remaining"] or vacuum["stopped"]):
        yield f"it succeeded, but {len(vacuum['remaining'])} files remain (stopped: {vacuum['stopped']})"
    versions = [receipt["version"] for receipt in commits]
    if versions != sorted(set(versions)):
        yield f"its versions do not rise: {versions}"
    for receipt in commits:
        if not receipt["read_version"] < receipt["version"]:
            yield f"version {receipt['version']} was committed after reading {receipt['read_version']}"


def events_agree_with_results(evidence: Evidence) -> Iterator[str]:
    """Events step_finished and table_finished say the same statuses as results.json."""
    for run, results in _finished(evidence):
        statuses = {step["step_id"]: step["status"] for table in results["tables"] for step in table["steps"]}
        for event in run.of_type("step_finished"):
            if statuses.get(event["step"]) != event["status"]:
                yield (
                    f"run {run.run_id}: events say {event['step']} {event['status']}, results.json "
                    f"{statuses.get(event['step'])}"
                )
        ends = {table["ref"]["identifier"]: table["status"] for table in results["tables"]}
        for event in run.of_type("table_finished"):
            if ends.get(event["table"]) != event["status"]:
                yield (
                    f"run {run.run_id}: events say {event['table']} {event['status']}, results.json "
                    f"{ends.get(event['table'])}"
                )
        ended = run.of_type("run_finished")[-1]
        if results.get("end", "finished") != "finished":
            yield f"run {run.run_id}: events say it finished, results.json {results['end']}"
        if ended.get("interrupted_by") != results["interrupted_by"]:
            yield (
                f"run {run.run_id}: events say interrupted by {ended.get('interrupted_by')}, "
                f"results.json {results['interrupted_by']}"
            )


def expected_exit_code(results: dict[str, Any]) -> int:
    """What a run with these results may end with, by the table of exit codes in the documentation."""
    tables = {table["status"] for table in results["tables"]}
    steps = [step for table in results["tables"] for step in table["steps"]]
    statuses = {step["status"] for step in steps}
    problems = [table["problem"] for table in results["tables"]] + [step["error"] for step in steps]
    if "verify_failed" in tables | statuses:
        return 5
    if any(problem and problem["code"] == BUG for problem in problems):
        return 70
    # What else happens to the ledger's own maintenance is a warning.
    tables = {table["status"] for table in _user_tables(results)}
    steps = [step for table in _user_tables(results) for step in table["steps"]]
    statuses = {step["status"] for step in steps}
    if results["interrupted_by"] is not None:
        return 143 if "TERM" in results["interrupted_by"].upper() else 130
    if {step["error"]["code"] for step in steps if step["error"]} == {"E607"}:
        return 2  # Spark did not start, so that nothing ran
    if results.get("problems") or tables.intersection(_NO_SUCCESS) or statuses.intersection(_FAILED_STEPS):
        return 1
    if "blocked" in tables:
        return 6 if any(step["commits"] or _deleted(step["vacuum"]) for step in steps) else 4
    return 0


def _deleted(vacuum: dict[str, Any] | None) -> bool:
    """Whether a deletion changed anything: files went, from the table or its trash, or its commits landed."""
    if vacuum is None:
        return False
    gone = int(vacuum["num_files_deleted"]) + int(vacuum["num_files_emptied"])
    return gone > 0 or vacuum["version_after"] is not None


def exit_codes_follow_from_results(evidence: Evidence) -> Iterator[str]:
    """A process ends with the code that its results mean."""
    for run, results in _finished(evidence):
        code = evidence.exit_codes.get(run.run_id)
        expected = expected_exit_code(results)
        if code is not None and code != expected:
            yield f"run {run.run_id} ended with {code}, its results mean {expected}"


def printed_document_is_the_record(evidence: Evidence) -> Iterator[str]:
    """What `apply -o json` printed is results.json."""
    try:
        printed = json.loads(evidence.stdout or "")
    except ValueError:
        return
    run = evidence.run(str(printed.get("run_id"))) if isinstance(printed, dict) else None
    if run is not None and run.results is not None and "tables" in printed and printed != run.results:
        names = [name for name in printed if printed[name] != run.results.get(name)]
        yield f"run {run.run_id} printed another document than results.json has: {', '.join(names)} differ"


def junit_agrees_with_results(evidence: Evidence) -> Iterator[str]:
    """junit.xml has a suite for each table, and its counts are those of its cases and of the steps and checks.

    The ledger has a suite only where something about it did not go well.
    """
    for run, results in _finished(evidence):
        text = run.text_of("junit.xml")
        if not text:
            continue
        root = ElementTree.fromstring(text)
        where = f"{run.path / 'junit.xml'}"
        suites = [str(suite.get("name")) for suite in root]
        tables = [table["ref"]["identifier"] for table in _user_tables(results)]
        ledgers = {table["ref"]["identifier"] for table in results["tables"]} - set(tables)
        of_users = [name for name in suites if name not in ledgers]
        if len(of_users) != len(tables):
            yield f"{where} has {len(of_users)} suites for {len(tables)} tables"
        for suite in root:
            cases = _case_counts(suite)
            if suite.get("name") in ledgers and not cases["failures"] + cases["errors"] + cases["skipped"]:
                yield f"{where} counts the ledger, of which everything went well"
        for element in (root, *root):
            for name, count in _case_counts(element).items():
                if int(element.get(name, "0")) != count:
                    label = f"{element.get('name')}: {name}"
                    yield f"{where}, {label} is {element.get(name)}, it holds {count}"
        steps = [step for table in _user_tables(results) for step in table["steps"]]
        checks = [check["outcome"] for step in steps for check in step["assertions"]]
        least = len(steps) + len(checks)
        if int(root.get("tests", "0")) < least:
            yield f"{where} has {root.get('tests')} cases for {least} steps and checks"
        all_steps = [step for table in results["tables"] for step in table["steps"]]
        all_checks = [check["outcome"] for step in all_steps for check in step["assertions"]]
        wrong = all_checks.count("fail") + sum(step["status"] == "verify_failed" for step in all_steps)
        if int(root.get("failures", "0")) < wrong:
            yield f"{where} has {root.get('failures')} failures, results.json {wrong}"


def _case_counts(element: ElementTree.Element) -> dict[str, int]:
    cases = list(element.iter("testcase"))
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": len(cases)} | {
        name: sum(case.find(kind) is not None for case in cases) for name, kind in kinds.items()
    }


def report_agrees_with_results(evidence: Evidence) -> Iterator[str]:
    """The figures at the head of report.html are those of results.json."""
    for run, results in _finished(evidence):
        text = run.text_of("report.html")
        tiles = {unescape(label).strip(): unescape(figure) for figure, label in _TILE.findall(text)}
        tables = _user_tables(results)
        steps = [step for table in tables for step in table["steps"]]
        receipts = [receipt for step in steps for receipt in step["commits"]]
        checks = [check for step in steps for check in step["assertions"]]
        proven = [receipt for receipt in receipts if receipt["proof"] is not None]
        num_changed = sum(any(map(_changed, table["steps"])) for table in tables)
        expected = {"tables changed": f"{num_changed:,} of {len(_searched(tables)):,}"}
        if proven:
            late = any(receipt["proof"].get("after_commit") for receipt in proven)
            when = "" if late else " before commit"
            expected[f"rewrites proven{when}"] = f"{sum(map(_holds, proven)):,} of {len(proven):,}"
        if checks:
            passed = sum(check["outcome"] == "pass" for check in checks)
            expected["checks passed"] = f"{passed:,} of {len(checks):,}"
        for label, figure in expected.items():
            if text and tiles.get(label) != figure:
                yield f"{run.path / 'report.html'} says {tiles.get(label)} {label}, results.json {figure}"
        removed, added = (sum(receipt[f"num_files_{how}"] for receipt in receipts) for how in ("removed", "added"))
        for figure in (figure for label, figure in tiles.items() if _OF_FILES.fullmatch(label)):
            before, after = (int(number.replace(",", "")) for number in figure.split("\u2192"))
            if before - after != removed - added:
                yield f"{run.path / 'report.html'} says {figure} files, results.json {removed} removed, {added} added"


_OF_FILES = re.compile(r"files in the (?:table|[\d,]+ tables) rewritten")
_TILE = re.compile(r"<li><b[^>]*>([^<]*)</b>([^<]*)</li>")


def _changed(step: dict[str, Any]) -> bool:
    vacuum = step["vacuum"]
    gone = vacuum and (any(vacuum.get(key) for key in ("num_files_deleted", "num_files_emptied", "version_after")))
    return bool(step["commits"] or gone)


def _holds(receipt: dict[str, Any]) -> bool:
    proof = receipt["proof"]
    return (
        proof["read"] == proof["written"]
        and proof["rows_in_log"] in (None, proof["read"]["rows"])
        and not proof["findings"]
    )


def _ref(ref: dict[str, Any]) -> str:
    return f"{ref['identifier']} ({ref.get('path')})"


RULES = (
    one_outcome_for_each_table,
    counts_add_up,
    statuses_follow_from_steps,
    events_agree_with_results,
    exit_codes_follow_from_results,
    printed_document_is_the_record,
    junit_agrees_with_results,
    report_agrees_with_results,
)
