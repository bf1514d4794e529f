"""The archive of Java's classes: only ``doctor --warm`` asks for one, and the next JVM reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.delta.spark.installed_versions import check_versions
from maintainer.delta.spark.jars import ensure_jars
from maintainer.delta.spark.java_home import inspect_java
from tests.support.policies.projects import write_project

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

READS = """
from maintainer.delta.spark.spark_session import open_session
with open_session(when_needed=True) as lease:
    pid = lease.embedded().process.pid
    print("\\n".join({line.split()[-1] for line in open(f"/proc/{pid}/maps") if ".jsa" in line}))
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has the JARs and nothing else in its cache."""
    jars = tmp_path / "home" / "jars" / "4.4.0"
    jars.mkdir(parents=True)
    for jar in ensure_jars(inspect_java(), check_versions()):
        (jars / jar.name).symlink_to(jar)
    return {**{k: v for k, v in os.environ.items() if k != "MAINTAINER_JARS"}, "MAINTAINER_HOME": f"{tmp_path}/home"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for number in range(4):
        deltalake.write_deltalake(tmp_path / "lake" / "t", pa.table({"a": [number]}), mode="append")
    return write_project(tmp_path, {"maintainer.yml": "", "policies/t.yml": "table: lake/t\noptimize: {}\n"})


def python(machine: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=machine, capture_output=True, text=True, timeout=300, check=False
    )


def maintainer(machine: dict[str, str], project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(machine, "-m", "maintainer", "--project", str(project), *arguments)


def archives(machine: dict[str, str]) -> list[Path]:
    return list(Path(machine["MAINTAINER_HOME"]).rglob("*.jsa"))


@pytest.mark.parametrize(
    ("command", "archive_asked_for"),
    [
        pytest.param("apply --yes", False, marks=pytest.mark.every_run),
        ("doctor", False),
        pytest.param("doctor --warm", True, marks=pytest.mark.every_run),
    ],
)
def test_what_java_is_started_with(
    machine: dict[str, str], project: Path, tmp_path: Path, command: str, archive_asked_for: bool
) -> None:
    started = tmp_path / "started"
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/sh\ncase "$*" in *-version) echo \'openjdk version "21.0.1"\' >&2; exit 0;; esac\n'
        f"printf '%s\\n' \"$@\" > {started}\nexit 1\n"
    )
    java.chmod(0o755)
    done = maintainer({**machine, "JAVA_HOME": str(tmp_path / "jdk")}, project, *command.split())
    assert "E607" in done.stdout + done.stderr
    asked = started.read_text()
    assert "spark.driver.extraJavaOptions" in asked
    assert ("-XX:ArchiveClassesAtExit=" in asked) == archive_asked_for


@pytest.mark.long
def test_the_start_after_doctor_warm_reads_what_it_wrote(machine: dict[str, str], project: Path) -> None:
    done = maintainer(machine, project, "apply", "--yes")
    assert (done.returncode, archives(machine)) == (0, []), done.stderr
    warmed = maintainer(machine, project, "doctor", "--warm", "-o", "json")
    [archive] = archives(machine)
    checks = {check["name"]: check for check in json.loads(warmed.stdout)["checks"]}
    assert (warmed.returncode, checks["class archive"]["status"]) == (0, "ok"), warmed.stdout
    assert str(archive) in checks["class archive"]["detail"]
    assert not {"run folder", "tables", "state"} & set(checks)
    assert str(archive) in python(machine, "-c", READS).stdout.split()
