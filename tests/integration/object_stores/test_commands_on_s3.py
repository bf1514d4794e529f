"""Commands on a table of an S3 server, with the state there, in one session; another engine reads what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.runs.command_host import CommandHost
from tests.support.runs.s3_projects import ledger_rows, project_beside, uri
from tests.support.runs.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_plan_apply_apply_again_and_verify(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
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


def test_a_watch_takes_what_arrived_and_ends(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
    project = project_beside(tmp_path, server, "watched", "optimize: {}", host)
    project.append("watched", 5)
    rows = project.rows("watched")
    watched = project.run("watch", "--until-idle", "--interval", "1s", "--yes")
    assert watched.returncode == 0, watched.err
    assert (project.table("watched").version(), len(project.table("watched").file_uris())) == (5, 1)
    assert project.rows("watched") == rows
    assert ledger_rows(project, "watched") == [(uri("watched"), "compact", "succeeded")]
