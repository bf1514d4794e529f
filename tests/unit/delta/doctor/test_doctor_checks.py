"""What doctor says about sick machines; none of it may end in a traceback."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.delta.doctor import doctor_checks, doctor_storage
from maintainer.delta.doctor.doctor_checks import DoctorInput, run_checks
from maintainer.delta.doctor.doctor_model import Check, Status, guarded
from maintainer.delta.spark.installed_versions import Versions
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import EnvironmentUnfit


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def fake_java(folder: Path, version: str) -> None:
    folder.mkdir()
    binary = folder / "java"
    binary.write_text(f'#!/bin/sh\ncase "$1" in --add*) exit 1;; esac\necho \'openjdk version "{version}"\' >&2\n')
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)


def make_table(path: Path) -> Path:
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / f"{0:020}.json").write_text("{}\n")
    return path


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.22", 11)])
def test_old_java_is_named_and_spark_is_not_tried(tmp_path: Path, version: str, major: int) -> None:
    fake_java(tmp_path / "bin", version)
    env = {"PATH": str(tmp_path / "bin"), "MAINTAINER_HOME": str(tmp_path / "home")}
    checks = by_name(run_checks(DoctorInput(tmp_path, env=env)))
    assert checks["java"].status is Status.FAIL
    assert checks["java"].code == "E602"
    assert f"Java {major}" in checks["java"].detail
    assert checks["java"].fix
    assert checks["session"] == Check("session", Status.WARN, "not tried, because of: java")


def test_no_java_and_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    checks = by_name(run_checks(DoctorInput(tmp_path, env={"PATH": "/nowhere"})))
    assert (checks["java"].code, checks["jars"].code) == ("E601", "E605")
    assert {checks["java"].status, checks["jars"].status} == {Status.FAIL}


def test_half_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(env: object) -> object:
        raise EnvironmentUnfit("half", code="E604", found="pyspark none", help="pip install x")

    monkeypatch.setattr(doctor_checks, "check_versions", broken)
    monkeypatch.setattr(doctor_checks, "installed", lambda name: None)
    checks = by_name(run_checks(DoctorInput(tmp_path, try_spark=False)))
    assert checks["spark and delta"] == Check(
        "spark and delta", Status.FAIL, "half; found: pyspark none", "pip install x", "E604"
    )
    assert checks["great expectations"].fix == "pip install 'maintainer[spark]'"


@pytest.mark.parametrize(
    ("version", "status"), [("1.24.1", Status.OK), ("1.23.9", Status.FAIL), ("2.0.0", Status.FAIL), ("x", Status.FAIL)]
)
def test_great_expectations_has_a_range(monkeypatch: pytest.MonkeyPatch, version: str, status: Status) -> None:
    monkeypatch.setattr(doctor_checks, "installed", lambda name: version)
    [check] = doctor_checks._packages()
    assert check.status is status


def test_whatever_a_check_raises_becomes_a_finding() -> None:
    def look() -> Iterator[Check]:
        yield Check("a", Status.OK, "fine so far")
        raise ZeroDivisionError("\n  told\nmore")

    assert guarded("b", look) == [
        Check("a", Status.OK, "fine so far"),
        Check("b", Status.FAIL, "ZeroDivisionError: told"),
    ]


def test_without_spark_missing_jars_are_only_noted(tmp_path: Path) -> None:
    env = {**os.environ, "MAINTAINER_HOME": str(tmp_path / "home")}
    env.pop("MAINTAINER_JARS", None)
    check = by_name(run_checks(DoctorInput(tmp_path, try_spark=False, env=env)))["jars"]
    assert check.status is Status.WARN
    assert check.fix == "maintainer doctor"
    assert not (tmp_path / "home").exists()


def test_named_jar_folder_that_is_empty_fails(tmp_path: Path) -> None:
    env = {**os.environ, "MAINTAINER_JARS": str(tmp_path)}
    check = by_name(run_checks(DoctorInput(tmp_path, try_spark=False, env=env)))["jars"]
    assert (check.status, check.code) == (Status.FAIL, "E605")
    assert "delta-storage-4.4.0.jar" in (check.fix or "")


def test_a_connector_that_sparks_defaults_bring_is_no_jar_of_ours(tmp_path: Path) -> None:
    """As a run sees it: it would not fetch them, nor refuse a Hadoop that has none pinned (E671)."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.3.6.jar").touch()
    (tmp_path / "spark-defaults.conf").write_text("spark.jars.packages org.apache.hadoop:hadoop-aws:3.3.6\n")
    env = {"SPARK_CONF_DIR": str(tmp_path), "MAINTAINER_HOME": str(tmp_path / "home")}
    subject = DoctorInput(tmp_path, try_spark=False, options=SessionOptions(storage=("s3",)), env=env)
    (check,) = doctor_checks._jars(subject, None, Versions("4.1.4", "4.4.0", tmp_path), print)
    assert check.detail.startswith("4 of Delta's four JARs are not in ")


Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(("free", "status"), [(100 << 20, Status.FAIL), (1 << 30, Status.WARN), (50 << 30, Status.OK)])
def test_disk_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: Status) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, free))
    checks = list(doctor_storage.check_disk(tmp_path / "not" / "there"))
    assert [check.status for check in checks] == [status, status]
    assert all(bool(check.fix) is (status is not Status.OK) for check in checks)


def test_run_folder_is_probed_and_nothing_is_left(tmp_path: Path) -> None:
    checks = list(doctor_storage.check_run_folder(tmp_path / "runs"))
    assert [check.name for check in checks] == ["run folder", "clock"]
    assert {check.status for check in checks} == {Status.OK}
    assert list(tmp_path.iterdir()) == []


def test_run_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    [check] = doctor_storage.check_run_folder(tmp_path / "runs")
    assert check.status is Status.FAIL
    assert check.fix is not None
    assert check.fix.startswith(f'chmod u+w "{tmp_path}"')


def test_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    assert doctor_storage._clock(now).status is Status.OK
    assert doctor_storage._clock(now - 3600).status is Status.WARN
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert doctor_storage._clock(0.0).status is Status.FAIL


def test_tables_on_local_paths(tmp_path: Path) -> None:
    make_table(tmp_path / "good one")
    make_table(tmp_path / "uri table")
    (tmp_path / "plain").mkdir()
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    uri = (tmp_path / "uri table").as_uri()
    locations = ["./good one", uri, "./plain", "./gone", "./empty", "sales.orders", "s3a://bucket/t", "abfss://c@h/t"]
    checks = list(doctor_storage.check_tables(tmp_path, locations))
    assert [(check.name, check.status) for check in checks] == [
        ("tables", Status.OK),
        ("table", Status.FAIL),
        ("table", Status.FAIL),
        ("table", Status.FAIL),
    ]
    assert [check.detail.split()[0] for check in checks[1:]] == [
        str(tmp_path / name) for name in ("plain", "gone", "empty/_delta_log")
    ]
    assert checks[0].detail == "2 of 5 on local paths can be read"
    assert all(check.fix for check in checks[1:])


@pytest.mark.parametrize("is_configured", [False, True])
def test_a_path_without_a_scheme_is_sparks_to_look_at_where_hadoop_may_say_where_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_configured: bool
) -> None:
    """With `fs.defaultFS` it may lie on HDFS: nobody misses it on this disk, and no policy is to be removed."""
    asked: list[tuple[str, ...]] = []

    def session(subject: DoctorInput, say: object) -> Iterator[Check]:
        asked.append(subject.locations)
        yield from ()

    monkeypatch.setattr(doctor_checks, "_session", session)
    monkeypatch.setattr(doctor_checks, "_NEEDED", frozenset())
    env = {"PATH": "/nowhere", "SPARK_CONF_DIR": str(tmp_path), "MAINTAINER_HOME": str(tmp_path)}
    env |= {"HADOOP_CONF_DIR": "/etc/hadoop"} if is_configured else {}
    others = ("sales.orders", "s3://lake/t")
    here = str(make_table(tmp_path / "t"))
    subject = DoctorInput(tmp_path, ("/data/orders", here, f"file:{here}", *others), env=env)
    told = [check.detail for check in run_checks(subject) if check.name.startswith("table")]
    unseen = [check for check in run_checks(replace(subject, try_spark=False)) if "not looked for" in check.detail]
    assert [check.status for check in unseen] == [Status.WARN] * is_configured
    if is_configured:
        assert asked == [("/data/orders", *others)]
        assert told == ["2 of 2 on local paths can be read"]
    else:
        assert asked == [others]
        assert told == ["2 of 3 on local paths can be read", "/data/orders does not exist"]


def test_rights_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(tmp_path / "t")
    real = os.access

    def deny(right: int, path: Path) -> None:
        monkeypatch.setattr(os, "access", lambda p, mode: real(p, mode) and not (Path(p) == path and mode & right))

    deny(os.R_OK, table / "_delta_log")
    assert [c.status for c in doctor_storage.check_tables(tmp_path, ["./t"])] == [Status.FAIL]
    deny(os.W_OK, table)
    [check] = doctor_storage.check_tables(tmp_path, ["./t"])
    assert check.status is Status.WARN
    assert "plan works, apply does not" in check.detail


def test_one_fault_of_many_tables_is_said_once_with_how_many(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    tables = [f"./t{number:02}" for number in range(50)]
    gone, *plain = doctor_storage.check_tables(tmp_path, [*tables, "./a", "./b"])
    head, more = gone.detail.split("\n")
    assert (gone.name, gone.status) == ("table", Status.FAIL)
    assert head == f"{tmp_path}/t00 does not exist"
    assert more.startswith(f"the same of 49 more tables: {tmp_path}/t01, ")
    assert more.endswith(f"{tmp_path}/t12 and 37 more")
    assert [check.detail for check in plain] == [
        f"{tmp_path}/{name} is not a Delta table: it has no _delta_log" for name in ("a", "b")
    ]
