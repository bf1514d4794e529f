"""Every command on a table of an S3 server, with the state there, in one session; another engine reads what is left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.policies.projects import write_project
from tests.support.product import Leases, ObjectStorage, documents_in, store_settings
from tests.support.runs.command_host import CommandHost
from tests.support.stores.s3_projects import SETTINGS, S3Project, ledger_rows, make_project, project_beside, uri
from tests.support.stores.s3_server import S3Server, spark_keys
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_each_command_says_the_truth_of_a_table_there(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
    project = project_beside(tmp_path, server, "orders", "optimize: {}", host)
    project.append("orders", 6)
    rows = project.rows("orders")

    plan = project.run("plan", "--detailed-exitcode", "-o", "json")
    assert plan.returncode == 3, plan.err
    assert [step["kind"] for table in plan.document["tables"] for step in table["steps"]] == ["compact"]
    assert project.table("orders").version() == 5

    first = project.run("apply", "--yes", "-o", "json")
    assert (first.returncode, first.document["problems"]) == (0, []), first.err
    assert (project.table("orders").version(), len(project.table("orders").file_uris())) == (6, 1)
    assert project.rows("orders") == rows

    again = project.run("apply", "--yes", "-o", "json")
    assert (again.returncode, again.document["problems"]) == (0, []), again.err
    assert again.document["counts"]["up_to_date"] == 1
    assert project.table("orders").version() == 6
    assert ledger_rows(project, "orders") == [(uri("orders"), "compact", "succeeded")]

    verified = project.run("verify", uri("orders"), "-o", "json")
    assert verified.returncode == 0, verified.err
    assert [table["result"] for table in verified.document["tables"]] == ["proven"]
    check_what_looks_back(project, first.document["run_id"], verified.document["run_id"])

    refused = project.run("undelete", uri("orders"), "--run", first.document["run_id"], "--yes")
    assert refused.returncode == 1, refused.out
    assert "error[T430]: no record of this run names a file" in refused.err
    assert project.table("orders").version() == 6


def check_what_looks_back(project: S3Project, run_id: str, verification_id: str) -> None:
    """Status, history and reports: what `verify` checked, the one compaction, and six writes of another engine."""
    status = project.run("status", "-o", "json")
    (row,) = [row for row in status.document["tables"] if row["table"] == uri("orders")]
    assert (row["state"], row["num_files"], row["version"], row["last_proof"]) == ("ok", 1, 6, "pass"), status.out
    history = project.run("history", uri("orders"), "-o", "json").document["history"]
    verification, compaction, *writes = history
    assert (verification["step"], verification["run_id"], verification["version_after"]) == (
        "verify", verification_id, 6)  # fmt: skip
    assert (compaction["step"], compaction["run_id"], compaction["version_after"]) == ("compact", run_id, 6)
    assert (compaction["num_files_removed"], compaction["num_files_added"]) == (6, 1)
    assert [(row["run_id"], row["num_files_added"]) for row in writes] == [(None, 1)] * 6
    (from_ledger,) = project.run("history", "--ledger", "-o", "json").document["history"]
    assert (from_ledger["step"], from_ledger["table"], from_ledger["run_id"]) == ("compact", uri("orders"), run_id)
    for arguments in (("report", run_id), ("report", "--fleet")):
        written = project.run(*arguments)
        assert written.returncode == 0, written.err
        assert uri("orders") in Path(written.out.strip()).read_text()


def test_a_rule_manages_what_lies_below_a_root_there(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
    settings = SETTINGS.replace("lake/_maintainer", "lake/by-rule") + "roots: [s3://lake/tables/ruled]\n"
    project = make_project(tmp_path, server, {}, settings=settings, host=host)
    rule = 'match: {tables: ["s3://lake/tables/ruled/*"], exclude: ["*_tmp"]}\nmanage: true\n'
    write_project(project.root, {"policies/rule.yml": rule})
    names = ("ruled/a", "ruled/b", "ruled/c_tmp")
    for name in names:
        project.append(name, 3)
    rows = {name: project.rows(name) for name in names}
    listed = project.run("list", "-o", "json").document["tables"]
    by_rule = {table["table"]: table["rule_line"] for table in listed if table["rule_line"] is not None}
    assert by_rule == {uri("ruled/a"): 2, uri("ruled/b"): 2}
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"], done.document["counts"]["done"]) == (0, [], 2), done.err
    assert [len(project.table(name).file_uris()) for name in names] == [1, 1, 3]
    assert {name: project.rows(name) for name in names} == rows
    assert project.run("validate", "-s", uri("ruled/a")).returncode == 0
    # A search begins with HEAD, whose answers have no body: the reason stands in that to a list.
    refusal = ("403 Forbidden", "SignatureDoesNotMatch", "The signature does not match")
    server.faults.add(FaultRule(Fault.REFUSES, "*", "/lake", "", ALWAYS, answer=refusal))
    looks = (("list",), ("why", "a"), ("history", "a"), ("verify", "a"), ("verify", "a@1"))
    refused = [project.run(*arguments) for arguments in looks]
    server.faults.clear()
    for answer in refused:
        assert (answer.returncode, "T440" in answer.err) == (1, True), answer.err
        assert "T405" not in answer.err


def test_a_watch_takes_what_arrived_and_ends(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
    project = project_beside(tmp_path, server, "watched", "optimize: {}", host)
    project.append("watched", 5)
    rows = project.rows("watched")
    watched = project.run("watch", "--until-idle", "--interval", "1s", "--yes")
    assert watched.returncode == 0, watched.err
    assert (project.table("watched").version(), len(project.table("watched").file_uris())) == (5, 1)
    assert project.rows("watched") == rows
    assert ledger_rows(project, "watched") == [(uri("watched"), "compact", "succeeded")]


def test_a_table_whose_lease_another_machine_holds_is_left_alone_until_it_is_given_back(
    server: S3Server, host: CommandHost, tmp_path: Path
) -> None:
    project = project_beside(tmp_path, server, "shared", "optimize: {}", host)
    project.append("shared", 4)
    rows = project.rows("shared")
    state = "s3://lake/shared"
    storage = ObjectStorage.open(state, store_settings(state, spark_keys(server)))
    elsewhere = Leases(
        tmp_path,
        "20261120T030000Z-else",
        lambda: time.time_ns() // 1_000_000,
        documents=documents_in(storage, "leases"),
    )
    lease = elsewhere.acquire(str(project.table("shared").metadata().id), uri("shared"))
    try:
        listed = project.run("leases", "list")
        assert uri("shared") in listed.out
        assert "20261120T030000Z-else" in listed.out
        late = project.run("apply", "--yes", "-o", "json")
        (table,) = [table for table in late.document["tables"] if table["ref"]["identifier"] == uri("shared")]
        assert (late.returncode, table["problem"]["code"]) == (4, "A406"), late.out
        assert "run 20261120T030000Z-else on " in table["problem"]["what"]
        assert project.table("shared").version() == 3
    finally:
        assert elsewhere.release(lease) is None
        elsewhere.close()
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["counts"]["done"]) == (0, 1), done.err
    assert (project.table("shared").version(), len(project.table("shared").file_uris())) == (4, 1)
    assert project.rows("shared") == rows
    assert "20261120T030000Z-else" not in project.run("leases", "list").out
