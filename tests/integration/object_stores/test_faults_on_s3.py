"""An S3 server that is busy, slow or loses answers while a table is compacted: rows, commits and records stay right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.runs.command_host import CommandHost, Done
from tests.support.stores.s3_projects import S3Project, ledger_rows, project_beside, two_minutes_later, uri
from tests.support.stores.s3_server import S3Server
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

COMMIT = f"{3:020}.json"
"""What a compaction of a table with three commits writes."""


def rules_of(name: str) -> dict[str, list[FaultRule]]:
    table, ledger = f"/tables/{name}/", f"/{name}/ledger/_delta_log/"
    return {
        "busy": [FaultRule(Fault.SLOW_DOWN, "*", table, times=4)],
        "failing": [FaultRule(Fault.FAILS, "PUT", table, COMMIT, times=2)],
        "slow": [FaultRule(Fault.SLOW, "*", table, times=ALWAYS, seconds=0.2)],
        "lost-answer": [FaultRule(Fault.LOST_ANSWER, "PUT", table, COMMIT)],
        "lost-answers": [FaultRule(Fault.LOST_ANSWER, "PUT", table, COMMIT, times=ALWAYS)],
        "lost-request": [FaultRule(Fault.LOST_REQUEST, "PUT", table, COMMIT, times=2)],
        "lost-data": [FaultRule(Fault.LOST_ANSWER, "PUT", table, ".parquet")],
        "cut-data": [FaultRule(Fault.CUT_ANSWER, "GET", table, ".parquet", times=2)],
        "cut-log": [FaultRule(Fault.CUT_ANSWER, "GET", table, ".json", times=2)],
        "cut-list": [FaultRule(Fault.CUT_ANSWER, "GET", "/lake", "/lake")],
        "lost-ledger": [FaultRule(Fault.LOST_ANSWER, "PUT", ledger, ".json", times=2)],
    }


def prepared(root: Path, server: S3Server, host: CommandHost, name: str) -> S3Project:
    project = project_beside(root, server, name, "optimize: {}", host)
    project.append(name, 3)
    return project


def check_one_commit(project: S3Project, name: str, done: Done) -> None:
    """One compaction by this run stands in the log, in the ledger and in the result, and nothing else."""
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    (table,) = done.document["tables"]
    (step,) = table["steps"]
    (commit,) = step["commits"]
    assert (step["status"], commit["version"], commit["proof"]["rows_in_log"]) == ("succeeded", 3, 30)
    assert (project.table(name).version(), len(project.table(name).file_uris())) == (3, 1)
    assert sum(done.document["run_id"] in stamp for stamp in project.stamps(name)) == 1
    assert ledger_rows(project, name) == [(uri(name), "compact", "succeeded")]


@pytest.mark.parametrize("kind", sorted(rules_of("")))
def test_what_a_retry_overcomes_is_one_commit_and_true_records(
    server: S3Server, host: CommandHost, tmp_path: Path, kind: str
) -> None:
    project = prepared(tmp_path, server, host, kind)
    rows = project.rows(kind)
    rules = [server.faults.add(rule) for rule in rules_of(kind)[kind]]
    done = project.run("apply", "--yes", "-o", "json")
    assert all(rule.num_met for rule in rules), "no request met the fault"
    server.faults.clear()
    check_one_commit(project, kind, done)
    assert project.rows(kind) == rows


def test_a_store_that_stays_busy_ends_the_plan_with_its_code(
    server: S3Server, host: CommandHost, tmp_path: Path
) -> None:
    project = prepared(tmp_path, server, host, "too-busy")
    server.faults.add(FaultRule(Fault.SLOW_DOWN, "*", "/tables/too-busy/", times=ALWAYS))
    planned = project.run("plan", "-o", "json")
    (table,) = [table for table in planned.document["tables"] if table["ref"]["identifier"] == uri("too-busy")]
    assert (planned.returncode, table["problem"]["code"]) == (1, "T444"), planned.out
    assert "too busy" in table["problem"]["what"]


REQUESTS_OF_A_LOOK = 3
"""A look asks for a commit so often, by its readers one after another, before it ends with what the store answered."""


@pytest.mark.parametrize(
    ("times", "num_met", "code"),
    [(REQUESTS_OF_A_LOOK, REQUESTS_OF_A_LOOK, None), (ALWAYS, 20, "T440")],
    ids=["renewed", "stays expired"],
)
def test_a_table_whose_token_has_expired_is_tried_once_more(
    server: S3Server, host: CommandHost, tmp_path: Path, times: int, num_met: int, code: str | None
) -> None:
    name = f"expired-{times}"
    project = prepared(tmp_path, server, host, name)
    answer = ("400 Bad Request", "ExpiredToken", "The provided token has expired.")
    rule = server.faults.add(FaultRule(Fault.REFUSES, "GET", f"tables/{name}/", times=times, answer=answer))
    planned = project.run("plan", "-o", "json")
    (table,) = [table for table in planned.document["tables"] if table["ref"]["identifier"] == uri(name)]
    # Commits are asked for side by side, and again through Hadoop: how many were under way differs, their end does not.
    assert min(times, REQUESTS_OF_A_LOOK) <= rule.num_met <= num_met
    problem = table["problem"]
    assert (planned.returncode, problem and problem["code"]) == (0 if code is None else 1, code), planned.out
    assert [step["kind"] for step in table["steps"]] == (["compact"] if code is None else [])


EXPIRED = ("400 Bad Request", "ExpiredToken", "The provided token has expired.")


@pytest.mark.parametrize("moment", ["with the new file", "at the commit", "after the commit"])
def test_credentials_that_expire_midway_lose_nothing_and_the_next_run_goes_on(
    server: S3Server, host: CommandHost, tmp_path: Path, moment: str
) -> None:
    """All requests are refused from a moment on: also those that would find out what came of the commit, and those
    that would bring the run's record and its ledger row to the store."""
    name = "expire-" + moment.replace(" ", "-")
    project = prepared(tmp_path, server, host, name)
    rows, table = project.rows(name), f"/tables/{name}/"
    last = {
        "with the new file": FaultRule(Fault.SLOW, "PUT", table, ".parquet"),
        "at the commit": FaultRule(Fault.REFUSES, "PUT", table, COMMIT, answer=EXPIRED),
        "after the commit": FaultRule(Fault.SLOW, "PUT", table, COMMIT),
    }[moment]
    server.faults.add(last)
    server.faults.add(FaultRule(Fault.REFUSES, "*", "/lake", times=ALWAYS, answer=EXPIRED, since=last))
    ended = project.run("apply", "--yes", "-o", "json")
    assert ended.returncode != 0
    assert "ExpiredToken" in ended.out + ended.err
    server.faults.clear()
    landed = moment == "after the commit"
    assert (project.table(name).version(), project.rows(name)) == (3 if landed else 2, rows)
    two_minutes_later(project, name)  # it could not give back its lease
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert (project.table(name).version(), len(project.table(name).file_uris())) == (3, 1)
    assert project.rows(name) == rows
    ledger = project.table(f"s3://lake/{name}/ledger").to_pyarrow_table().to_pylist()
    told = sorted((row["status"], row["version_after"]) for row in ledger if row["kind"] == "compact")
    # One row for each run's step, also where a later run found out what came of it.
    assert told == ([("interrupted", 3)] if landed else [("failed", None), ("succeeded", 3)])


def test_a_commit_that_the_store_takes_after_it_was_given_up_finds_its_files(
    server: S3Server, host: CommandHost, tmp_path: Path
) -> None:
    """The first try is not answered in time and lands at last, when every later one has failed: a rewrite that removed
    its files meanwhile would have lost every row."""
    project = prepared(tmp_path, server, host, "late")
    rows = project.rows("late")
    table = "/tables/late/"
    late = server.faults.add(FaultRule(Fault.LATE, "PUT", table, COMMIT, seconds=250))
    server.faults.add(FaultRule(Fault.LOST_REQUEST, "PUT", table, COMMIT, times=ALWAYS))
    unknown = project.run("apply", "--yes", "-o", "json")
    (outcome,) = unknown.document["tables"]
    (step,) = outcome["steps"]
    assert (unknown.returncode, step["error"]["code"]) == (1, "C703"), unknown.out
    assert project.table("late").version() == 2
    late.released.set()
    assert late.done.wait(30)
    server.faults.clear()
    assert (project.table("late").version(), len(project.table("late").file_uris())) == (3, 1)
    assert project.rows("late") == rows
    again = project.run("apply", "--yes", "-o", "json")
    assert (again.returncode, again.document["problems"]) == (0, []), again.err
    assert project.table("late").version() == 3
    assert project.rows("late") == rows


def test_a_commit_that_never_arrives_leaves_the_table_to_the_next_run(
    server: S3Server, host: CommandHost, tmp_path: Path
) -> None:
    project = prepared(tmp_path, server, host, "never")
    rows = project.rows("never")
    server.faults.add(FaultRule(Fault.LOST_REQUEST, "PUT", "/tables/never/", COMMIT, times=ALWAYS))
    unknown = project.run("apply", "--yes", "-o", "json")
    (outcome,) = unknown.document["tables"]
    (step,) = outcome["steps"]
    assert (unknown.returncode, step["error"]["code"]) == (1, "C703"), unknown.out
    server.faults.clear()
    assert project.table("never").version() == 2
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["counts"]["done"]) == (0, 1), done.err
    assert (project.table("never").version(), len(project.table("never").file_uris())) == (3, 1)
    assert project.rows("never") == rows
    assert "C703" in project.run("history", "--failed").out
    assert ledger_rows(project, "never") == [
        (uri("never"), "compact", "succeeded"),
        (uri("never"), "compact", "unknown"),
    ]
