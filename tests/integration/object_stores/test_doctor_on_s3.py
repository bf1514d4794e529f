"""`doctor` on an S3 server: what it says of a store that is well, and the fix of each way in which one is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.runs.command_host import CommandHost
from tests.support.stores.s3_projects import S3Project, project_beside, uri
from tests.support.stores.s3_server import S3Server
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

pytestmark = [pytest.mark.spark, pytest.mark.long]


def of_store(project: S3Project) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code of ``doctor``, and its checks of the table and of its bucket's commits."""
    done = project.run("doctor", "-o", "json")
    checks = {check["name"]: check for check in done.document["checks"]}
    return done.returncode, {
        name: checks[name] for name in checks if name.split(" ")[0] in ("table", "commits", "store", "reads")
    }


def test_a_store_that_is_well_keeps_its_condition(server: S3Server, tmp_path: Path) -> None:
    """In a process of its own: the store is tried once for each bucket and process."""
    project = project_beside(tmp_path, server, "looked-at", "optimize: {}", None)
    project.append("looked-at", 2)
    server.faults.clear()
    code, checks = of_store(project)
    assert (code, {name: check["status"] for name, check in checks.items()}) == (
        0,
        {f"table {uri('looked-at')}": "ok", "table s3://lake/looked-at/ledger": "ok", "commits lake": "ok"},
    )
    assert server.faults.num_requests("DELETE", "", ".maintainer-probe-") == 1
    assert project.table("looked-at").version() == 1


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("spark.hadoop.fs.s3a.bucket.lake.acl.default", "Private", "fs.s3a.bucket.lake.acl.default"),
        (
            "spark.driver.extraJavaOptions",
            "-Dhttp.proxyHost=proxy.invalid -Dhttp.proxyPort=80 -Dhttp.nonProxyHosts=127.0.0.1",
            "http.proxyHost",
        ),
    ],
)
def test_what_sends_a_store_through_hadoop_is_named(
    server: S3Server, tmp_path: Path, setting: str, value: str, named: str
) -> None:
    name = f"by-hadoop-{named.rpartition('.')[2].lower()}"
    project = project_beside(tmp_path, server, name, "optimize: {}", None)
    project.append(name, 2)
    settings = project.root / "maintainer.yml"
    settings.write_text(settings.read_text().replace("  conf:\n", f"  conf:\n    {setting}: {value}\n"))
    _, checks = of_store(project)
    assert checks[f"table {uri(name)}"]["status"] == "ok"
    assert checks["reads lake"]["status"] == "ok"
    assert checks["reads lake"]["detail"].endswith(f"because of {named}")


def test_a_bucket_that_is_not_there(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
    project = project_beside(tmp_path, server, "nowhere", "optimize: {}", host)
    policy = project.root / "policies" / "nowhere.yml"
    policy.write_text(policy.read_text().replace("s3://lake/", "s3://laek/"))
    code, checks = of_store(project)
    check = checks["store"]
    assert (code, check["status"], check["code"]) == (1, "FAIL", "T442")
    assert "s3://laek/tables/nowhere" in check["detail"]
    assert "spark.hadoop.fs.s3a.endpoint" in check["fix"]


def test_a_wrong_secret_is_said_once_with_how_many_tables(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
    project = project_beside(tmp_path, server, "secret00", "optimize: {}", host)
    policy = project.root / "policies" / "secret00.yml"
    for number in range(1, 12):
        text = policy.read_text().replace("secret00", f"secret{number:02}")
        (project.root / "policies" / f"secret{number:02}.yml").write_text(text)
    answer = ("403 Forbidden", "SignatureDoesNotMatch", "The signature does not match")
    server.faults.add(FaultRule(Fault.REFUSES, "*", "/lake", times=ALWAYS, answer=answer))
    done = project.run("doctor")
    of_state, of_tables = (line for line in done.out.splitlines() if line.startswith("FAIL"))
    assert done.returncode == 1
    assert of_state.startswith("FAIL  state ")
    assert " and 12 more tables" in of_tables  # twelve tables and the ledger
    assert of_tables.endswith("[T440]")


@pytest.mark.parametrize(
    ("answer", "code", "fix"),
    [
        (("403 Forbidden", "InvalidAccessKeyId", "No such key"), "T440", "AWS_ACCESS_KEY_ID"),
        (("404 Not Found", "InvalidAccessKeyId", "No such key"), "T440", "AWS_ACCESS_KEY_ID"),
        (("403 Forbidden", "AccessDenied", "Access Denied"), "T405", "read and write access"),
        (
            ("400 Bad Request", "AuthorizationHeaderMalformed", "the region is wrong; expecting 'eu-west-1'"),
            "T443",
            "spark.hadoop.fs.s3a.endpoint.region: eu-west-1",
        ),
        (("501 Not Implemented", "NotImplemented", "not implemented"), "T445", "spark.hadoop.fs.s3a."),
    ],
)
def test_what_the_store_refuses_has_its_fix_and_never_a_backup(
    server: S3Server, host: CommandHost, tmp_path: Path, answer: tuple[str, str, str], code: str, fix: str
) -> None:
    name = code.lower()
    project = project_beside(tmp_path, server, name, "optimize: {}", host)
    project.append(name, 1)
    # Not HEAD, whose answers have no body, so no code; but some servers say 404 to both.
    method = "*" if answer[0].startswith("404") else "GET"
    server.faults.add(FaultRule(Fault.REFUSES, method, "/lake", "", ALWAYS, answer=answer))
    returncode, checks = of_store(project)
    of_bucket = code in ("T440", "T443")
    check = checks["store" if of_bucket else f"table {uri(name)}"]
    assert ("and 1 more table" in check["detail"]) == of_bucket
    assert (returncode, check["status"], check["code"]) == (1, "FAIL", code), check
    assert fix in check["fix"]
    assert "backup" not in check["fix"]
    assert "commits lake" not in checks, "said once"


def test_a_store_that_stays_busy_is_asked_for_one_table(server: S3Server, host: CommandHost, tmp_path: Path) -> None:
    project = project_beside(tmp_path, server, "throttled", "optimize: {}", host)
    project.append("throttled", 1)
    server.faults.add(FaultRule(Fault.SLOW_DOWN, "*", "/lake", times=ALWAYS))
    returncode, checks = of_store(project)
    assert returncode == 1
    assert {name: (check["status"], check["code"]) for name, check in checks.items()} == {"store": ("FAIL", "T444")}
    assert "and 1 more table" in checks["store"]["detail"]  # the ledger
