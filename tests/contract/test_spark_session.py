"""Sessions on the real Spark: settings read back, nothing left behind, nothing said on the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.policies.projects import write_project
from tests.support.product import (
    THREAD_PROPERTIES,
    DeltaEngine,
    EnvironmentUnfit,
    SessionLease,
    SessionOptions,
    active_session,
    check_versions,
    inspect_java,
    jars,
    open_session,
    quote,
    run,
    text_literal,
    worker_session,
)
from tests.support.product import session_settings as settings
from tests.support.suites.package_path import PACKAGE_PATH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(2)]


@pytest.mark.every_run
def test_worker_has_every_setting_although_the_base_session_says_otherwise(lease: SessionLease) -> None:
    base = lease.spark
    base.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    base.conf.set("spark.sql.parquet.compression.codec", "gzip")
    try:
        worker = worker_session(lease)
        settings_now = {key: worker.conf.get(key, None) for key in settings.worker_settings(lease.cores, lease.conf)}
        assert settings_now == settings.worker_settings(lease.cores, lease.conf)
        assert base.conf.get("spark.sql.files.ignoreMissingFiles") == "true"
        assert base.conf.get("spark.sql.parquet.compression.codec") == "gzip"
    finally:
        base.conf.unset("spark.sql.files.ignoreMissingFiles")
        base.conf.unset("spark.sql.parquet.compression.codec")


def test_an_unsafe_session_is_named_once_by_plan_apply_and_doctor_and_left_as_it_is(
    lease: SessionLease, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "spark.databricks.delta.retentionDurationCheck.enabled"
    deltalake.write_deltalake(tmp_path / "lake" / "t", pa.table({"a": [1]}))
    write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    lease.spark.createDataFrame([(1,)], "a int")  # makes it the active one, whatever an earlier test left
    lease.spark.conf.set(key, "false")
    try:
        for command in (["plan"], ["apply", "--yes"], ["doctor"]):
            run(["--project", str(tmp_path), *command])
            shown = capsys.readouterr()
            said = " ".join(f"{shown.out}{shown.err}".split())
            assert said.count(f"the session has {key}=false: a VACUUM in it may delete files") == 1, command
        assert lease.spark.conf.get(key) == "false"
    finally:
        lease.spark.conf.unset(key)


@pytest.mark.every_run
def test_a_setting_that_does_not_take_stops_everything(lease: SessionLease, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.conf import RuntimeConfig

    real = RuntimeConfig.get

    def lying(self: RuntimeConfig, key: str, *default: str | None) -> str | None:
        return "true" if key == "spark.sql.files.ignoreCorruptFiles" else real(self, key, *default)

    monkeypatch.setattr(RuntimeConfig, "get", lying)
    with pytest.raises(EnvironmentUnfit) as caught:
        worker_session(lease)
    assert caught.value.code == "E606"
    assert caught.value.where == "spark.sql.files.ignoreCorruptFiles"


def test_workers_of_two_threads_do_not_share_settings(lease: SessionLease) -> None:
    seen: dict[str, str | None] = {}
    both = threading.Barrier(2, timeout=60)

    def work(codec: str) -> None:
        worker = worker_session(lease)
        worker.conf.set("spark.sql.parquet.compression.codec", codec)
        both.wait()
        seen[codec] = worker.conf.get("spark.sql.parquet.compression.codec")

    threads = [threading.Thread(target=work, args=(codec,)) for codec in ("gzip", "zstd")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert seen == {"gzip": "gzip", "zstd": "zstd"}


@pytest.mark.every_run
def test_second_lease_borrows_and_its_end_stops_nothing(lease: SessionLease) -> None:
    with open_session(SessionOptions(master="local[2]")) as second:
        assert second.borrowed
        assert second.spark.sparkContext.applicationId == lease.spark.sparkContext.applicationId
    assert active_session() is not None
    assert lease.spark.range(3).count() == 3


@pytest.mark.every_run
def test_active_session_and_job_group_are_again_what_they_were_when_a_borrowed_lease_ends(lease: SessionLease) -> None:
    from pyspark.sql import SparkSession

    users, context = lease.spark, lease.spark.sparkContext
    java: Any = users._jvm

    def state() -> tuple[Any, ...]:
        active = java.org.apache.spark.sql.classic.SparkSession.getActiveSession().get().hashCode()
        return SparkSession.getActiveSession(), active, [context.getLocalProperty(key) for key in THREAD_PROPERTIES]

    users.createDataFrame([(1,)], "a int")  # makes it the active one, whatever an earlier test left
    context.setJobGroup("mine", "my job", interruptOnCancel=True)
    try:
        before = state()
        with open_session(SessionOptions()) as borrowed, DeltaEngine(borrowed).worker("w") as engine:
            engine.jvm.spark.createDataFrame([(1,)], "a int")
            within = state()
        assert state() == before
        assert (before[0], before[2]) == (users, [None, "mine", "my job", "true"])
        assert [value for value in zip(before, within, strict=True) if value[0] == value[1]] == []
    finally:
        for key in THREAD_PROPERTIES:
            context.setLocalProperty(key, None)  # type: ignore[arg-type]  # None removes the property


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (SessionOptions(master="local[7]"), "--master"),
        (SessionOptions(conf=(("spark.driver.memory", "7g"),)), "--conf spark.driver.memory"),
    ],
)
def test_wishes_that_come_too_late_are_refused(lease: SessionLease, options: SessionOptions, word: str) -> None:
    with pytest.raises(EnvironmentUnfit, match=word) as caught:
        open_session(options)
    assert caught.value.code == "E608"


@pytest.mark.every_run
def test_a_session_of_another_spark_is_refused_before_anything_is_asked_of_it(
    lease: SessionLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(lease.spark.sparkContext), "version", "3.5.9")
    with pytest.raises(EnvironmentUnfit) as caught:
        open_session(SessionOptions())
    assert (caught.value.code, caught.value.found) == ("E604", "Spark 3.5.9")


def test_old_timestamps_pass_through_exactly(spark: SparkSession, lake: Path) -> None:
    import pyarrow.parquet as pq

    path = lake / "old"
    values = ["0001-01-01 00:00:00", "1582-10-10 12:00:00", "1883-11-18 12:03:57", "9999-12-31 23:59:59.999999"]
    rows = ", ".join(f"(timestamp'{value}', date'{value[:10]}')" for value in values)
    spark.sql(f"select * from values {rows} as t(at, day)").coalesce(1).write.format("delta").save(str(path))
    [file] = [f for f in path.iterdir() if f.suffix == ".parquet"]
    table = pq.read_table(file)
    assert sorted(str(v)[:19] for v in table["at"].to_pylist()) == [value[:19] for value in values]
    assert sorted(str(v) for v in table["day"].to_pylist()) == [value[:10] for value in values]


SCRIPT = """
import json, sys, threading
from pathlib import Path
from maintainer.delta.spark import spark_session
from maintainer.delta.spark.spark_session import SessionOptions, active_session, open_session, worker_session
log, registered, set_and_check = Path(sys.argv[1]), [], spark_session.set_and_check
def noted(conf, settings):
    sql_conf = getattr(getattr(lease.spark._jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    registered.append(sql_conf.containsConfigKey("spark.databricks.delta.autoCompact.enabled"))
    set_and_check(conf, settings)
spark_session.set_and_check = noted
with open_session(SessionOptions(master="local[2]", log_path=log)) as lease:
    spark = worker_session(lease)
    table = str(log.parent / "caf\\u00e9")
    spark.range(10).write.format("delta").save(table)
    spark.sql(f"VACUUM delta.`{table}`").collect()
    try:
        spark.sql("select 1 / 0").collect()
    except Exception as error:
        failed = type(error).__name__
    process = lease.spark.sparkContext._gateway.proc
    result = {"rows": spark.read.format("delta").load(table).count(), "failed": failed, "borrowed": lease.borrowed}
    result["made"] = [row.n for row in spark.createDataFrame([(7,)], "n int").coalesce(1).collect()]
    result["registered"] = registered
    result["names"] = (Path(table) / "_delta_log").is_dir()
lease.close()
result["ended"] = process.poll() is not None
result["active"] = active_session() is not None
result["threads"] = [t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]
print(json.dumps(result))
"""


@pytest.mark.every_run
def test_embedded_session_from_start_to_end(tmp_path: Path) -> None:
    """One process, as a user has it: silent, complete, and gone without a trace.

    `python3` and PYSPARK_PYTHON name what is no Python there, and the locale is not installed.
    """
    cwd, temp, path = tmp_path / "cwd", tmp_path / "with blank", tmp_path / "bin"
    for folder in (cwd, temp, path):
        folder.mkdir()
    (path / "python3").symlink_to("/bin/false")
    log = tmp_path / "run" / "spark.log"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(log)],
        cwd=cwd,
        env={
            **os.environ,
            "PYSPARK_PYTHON": "/bin/false",
            "TMPDIR": str(temp),
            "LC_ALL": "xx_XX.UTF-8",
            "PATH": f"{path}:{os.environ['PATH']}",
            "PYTHONPATH": PACKAGE_PATH,
            "PYTHONWARNINGS": "ignore::FutureWarning",  # of pyspark 4.2, that it does not know pandas 3
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "rows": 10,
        "failed": "ArithmeticException",
        "borrowed": False,
        "registered": [True],  # before they were set: another worker may have Delta register them just then
        "made": [7],
        "names": True,
        "ended": True,
        "active": False,
        "threads": [],
    }
    assert list(cwd.iterdir()) == []
    assert list(temp.iterdir()) == []
    assert "Deleted 0 files" in log.read_text()


@pytest.mark.slow
def test_half_filled_maven_repository_does_no_harm(tmp_path: Path) -> None:
    """A POM without its JAR in ``~/.m2`` makes ``spark.jars.packages`` fail; our fetch does not look there."""
    home = tmp_path / "home"
    needed = jars.needed_jars(check_versions())
    for jar in needed:
        folder = home / ".m2" / "repository" / "io" / "delta" / jar.artifact / jar.version
        folder.mkdir(parents=True)
        (folder / f"{jar.artifact}-{jar.version}.pom").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            f"<groupId>io.delta</groupId><artifactId>{jar.artifact}</artifactId><version>{jar.version}</version></project>"
        )
    env = {
        **{key: value for key, value in os.environ.items() if key not in ("MAINTAINER_JARS", "XDG_CACHE_HOME")},
        "HOME": str(home),
        "MAINTAINER_HOME": str(tmp_path / "cache"),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={home}",
    }
    paths = jars.ensure_jars(inspect_java(env), check_versions(env), env)
    assert jars.unfit_jars(jars.jar_folder(env), needed) == {}
    assert sorted(p.name for p in paths[0].parent.iterdir()) == sorted(jar.file_name for jar in needed)
    assert sorted(p.name for p in home.iterdir()) == [".m2"]


def test_doctor_on_the_real_thing(
    lease: SessionLease, spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.product import DoctorInput, Status, run_checks

    spark.range(3).write.format("delta").save(str(lake / "t"))
    # What is looked at is the active session: here one that nobody has tuned. pyspark calls that session active which
    # Python made first, and in a whole suite that may be any.
    untuned = lease.spark.newSession()
    for key, default in settings.SLOW_DEFAULTS.items():
        untuned.conf.set(key, default)
    monkeypatch.setattr("maintainer.delta.spark.spark_session.active_session", lambda: untuned)
    checks = run_checks(DoctorInput(lake, locations=("./t", "nobody.knows")))
    checks_by_name = {check.name: check for check in checks}
    assert [c.name for c in checks if c.status is Status.FAIL] == ["table nobody.knows"]
    missing = checks_by_name["table nobody.knows"]
    assert (missing.code, missing.detail) == ("T401", "there is no such table in the catalog at nobody.knows")
    assert checks_by_name["session"].detail.startswith("the active session is used: local[2]")
    assert checks_by_name["tables"].detail == "1 of 1 on local paths can be read"
    assert checks_by_name["session settings"].status is Status.WARN
    assert checks_by_name["delta"].status is Status.OK
    pair = f"Spark {version('pyspark')} with Delta {version('delta-spark')}"
    assert checks_by_name["engine"].detail == f"{pair} has every private member that the transaction engine uses"
    assert checks_by_name["engine"].status is Status.OK


def test_a_variable_in_a_name_or_a_value_is_text(lease: SessionLease) -> None:
    """Spark itself would put the value of an environment variable, or of a setting, into the statement."""
    text = "${env:HOME}${spark.app.id}"
    worker = worker_session(lease)
    frame = worker.sql(f"SELECT {text_literal(text)} AS {quote(text)}").selectExpr("*", f"{text_literal(text)} AS b")
    assert frame.columns == [text, "b"]
    assert [list(row) for row in frame.collect()] == [[text, text]]
    assert lease.spark.sql("SELECT '${env:HOME}' AS a").collect()[0].a != "${env:HOME}"
