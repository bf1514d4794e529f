"""What an embedded session starts with, and what becomes of the user's own settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.delta.spark import engine_log, start_conf
from maintainer.delta.spark.spark_session import open_session
from maintainer.delta.spark.start_conf import JAVA_OPTIONS
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import EnvironmentUnfit, NotSupportedYet
from maintainer.errors.foreign_text import SECRET_KEY

JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))


def conf_of(
    tmp_path: Path,
    *pairs: tuple[str, str],
    master: str | None = None,
    defaults: dict[str, str] | None = None,
    env: dict[str, str] | None = None,
) -> dict[str, str]:
    return start_conf.start_conf(SessionOptions(master=master, conf=pairs), JARS, tmp_path, defaults or {}, env or {})


def test_defaults_leave_nothing_in_the_users_folder(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    assert conf["spark.master"] == "local[*]"
    assert conf["spark.sql.warehouse.dir"] == str(tmp_path / "warehouse")
    assert conf["spark.local.dir"] == str(tmp_path / "local")
    assert str(tmp_path / "derby.log") in conf["spark.driver.extraJavaOptions"]
    assert conf["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert "spark.jars" not in conf
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.scheduler.mode"] == "FAIR"
    assert conf["spark.sql.session.timeZone"] == "UTC"


def test_a_cluster_gets_the_jars_too_and_no_loopback(tmp_path: Path) -> None:
    conf = conf_of(tmp_path, ("spark.jars", "s3://x/y.jar"), master="spark://host:7077")
    assert conf["spark.jars"] == "file:///jars/a.jar,file:///jars/b.jar,s3://x/y.jar"
    assert conf["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.local.dir"} & set(conf)


def test_lists_of_the_user_are_added_to_ours(tmp_path: Path) -> None:
    conf = conf_of(
        tmp_path,
        ("spark.sql.extensions", "com.x.Ext, io.delta.sql.DeltaSparkSessionExtension"),
        ("spark.driver.extraClassPath", "/mine/*"),
        defaults={"spark.driver.extraJavaOptions": "-Dfrom=file", "spark.driver.extraClassPath": "/not/this"},
    )
    assert conf["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension,com.x.Ext"
    assert conf["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/mine/*"
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Dfrom=file")


@pytest.mark.parametrize(
    ("pairs", "defaults", "env", "expected"),
    [
        ((("spark.driver.memory", "9g"),), {}, {}, "9g"),
        ((), {"spark.driver.memory": "3g"}, {}, None),
        ((), {}, {"SPARK_DRIVER_MEMORY": "2g"}, None),
    ],
)
def test_driver_memory_is_the_users_first(
    tmp_path: Path,
    pairs: tuple[tuple[str, str], ...],
    defaults: dict[str, str],
    env: dict[str, str],
    expected: str | None,
) -> None:
    assert conf_of(tmp_path, *pairs, defaults=defaults, env=env).get("spark.driver.memory") == expected


def test_driver_memory_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for total, expected in ((1 << 30, "1024m"), (8 << 30, "2048m"), (64 << 30, "4096m")):
        monkeypatch.setattr(start_conf, "machine_memory_bytes", lambda total=total: total)
        assert start_conf.default_driver_memory() == expected


@pytest.mark.parametrize(
    ("option", "pair", "expected"),
    [
        ("local[3]", ("spark.master", "yarn"), "local[3]"),
        (None, ("spark.master", "yarn"), "yarn"),
        (None, ("spark.app.id", "x"), "local[1]"),
    ],
)
def test_master_option_conf_file_in_this_order(
    tmp_path: Path, option: str | None, pair: tuple[str, str], expected: str
) -> None:
    conf = conf_of(tmp_path, pair, master=option, defaults={"spark.master": "local[1]"})
    assert conf["spark.master"] == expected


def test_paths_with_blanks_survive_the_launcher(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    options = start_conf.java_options(folder, False)
    assert f'"-Dlog4j2.configurationFile={folder}/log4j2.xml"' in options
    assert "SerialGC" not in options
    assert "SerialGC" in start_conf.java_options(folder, True)
    zones = [
        option
        for option in start_conf.java_options(folder, True, more="-Duser.timezone=CET").split()
        if "zone" in option
    ]
    assert zones == ["-Duser.timezone=UTC", "-Duser.timezone=CET"]  # Java takes the last one


def test_spark_defaults_file_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "# comment\n\nspark.a   1\nspark.b=2 3\n  spark.c: 4\n! old comment\nspark.d\n"
    )
    assert start_conf.read_spark_defaults(tmp_path, {}) == {"spark.a": "1", "spark.b": "2 3", "spark.c": "4"}
    assert start_conf.read_spark_defaults(tmp_path, {"SPARK_CONF_DIR": str(tmp_path)}) == {}


@pytest.mark.parametrize(
    ("options", "env"),
    [
        (SessionOptions(master="sc://host"), {}),
        (SessionOptions(remote="sc://host"), {}),
        (SessionOptions(), {"SPARK_REMOTE": "sc://host"}),
        (SessionOptions(conf=(("spark.remote", "sc://host"),)), {}),
        (SessionOptions(master="local[2]"), {"SPARK_REMOTE": "sc://host"}),
    ],
)
def test_connect_is_refused_by_name(options: SessionOptions, env: dict[str, str]) -> None:
    with pytest.raises(NotSupportedYet, match="does not run over Spark Connect") as caught:
        open_session(options, env)
    assert (caught.value.code, caught.value.found) == ("E620", "Spark Connect was asked for: sc://host")


def test_unsafe_setting_is_refused_before_anything_starts() -> None:
    options = SessionOptions(conf=(("spark.sql.files.ignoreCorruptFiles", "true"),))
    with pytest.raises(EnvironmentUnfit) as caught:
        open_session(options, {"PATH": "/nowhere"})
    assert caught.value.code == "E608"


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, False),
        ({"spark.sql.catalogImplementation": "in-memory"}, False),
        ({"spark.sql.catalogImplementation": "hive"}, True),
        ({"spark.sql.catalog.unity": "io.unitycatalog.spark.UCSingleCatalog"}, True),
        ({"spark.sql.catalog.spark_catalog": "io.unitycatalog.spark.UCSingleCatalog"}, True),
    ],
)
def test_tables_have_names_where_a_catalog_outlives_the_session(
    tmp_path: Path, conf: dict[str, str], expected: bool
) -> None:
    settings = start_conf.start_conf(SessionOptions(conf=tuple(conf.items())), (), tmp_path, {}, {})
    assert start_conf.has_catalog(settings) is expected
    (tmp_path / "spark-defaults.conf").write_text("\n".join(map(" ".join, conf.items())), encoding="utf-8")
    # What Spark's own defaults file says counts before the session starts, too.
    with open_session(SessionOptions(), {"SPARK_CONF_DIR": str(tmp_path)}, when_needed=True) as lease:
        unstarted = lease.unstarted(pytest.fail)
        assert unstarted is not None
        assert unstarted.has_catalog is expected
        assert {key: lease.setting(key) for key in conf} == conf


@pytest.mark.parametrize(
    ("more", "defaults", "expected"),
    [({}, {}, "15s"), ({"x": "3s"}, {}, "3s"), ({}, {"x": "4s"}, "4s"), ({"x": "3s"}, {"x": "4s"}, "3s")],
)
def test_a_metastore_is_waited_for_shortly_unless_the_user_says_otherwise(
    tmp_path: Path, more: dict[str, str], defaults: dict[str, str], expected: str
) -> None:
    key = "spark.hadoop.hive.metastore.client.socket.timeout"
    hive = {"spark.sql.catalogImplementation": "hive", **dict.fromkeys([key for _ in more], more.get("x", ""))}
    named = dict.fromkeys([key for _ in defaults], defaults.get("x", ""))
    settings = start_conf.start_conf(SessionOptions(conf=tuple(hive.items())), (), tmp_path, named, {})
    assert settings[key] == expected
    assert key not in start_conf.start_conf(SessionOptions(), (), tmp_path, {}, {})


def test_log_tail_is_short_and_never_fails(tmp_path: Path) -> None:
    path = tmp_path / "spark.log"
    assert engine_log.tail(path) == ""
    path.write_bytes(b"x" * 100_000 + b"\n\n" + b"\n".join(b"line %d" % n for n in range(50)) + b"\n\xff\n")
    assert engine_log.tail(path, 3) == "line 48\nline 49\n\ufffd"


def test_secrets_do_not_reach_the_command_line() -> None:
    for key in ("spark.hadoop.fs.s3a.secret.key", "fs.azure.account.key.x", "spark.my.password", "a.access.key"):
        assert SECRET_KEY.search(key), key
    assert not SECRET_KEY.search("spark.sql.shuffle.partitions")


@pytest.mark.parametrize(
    ("master", "sent"),
    [
        ("local", False),
        ("local[2]", False),
        ("local-cluster[2,1,1024]", True),
        ("spark://h:7077", True),
        ("yarn", True),
    ],
)
def test_executors_of_their_own_are_sent_the_jars(tmp_path: Path, master: str, sent: bool) -> None:
    assert ("spark.jars" in conf_of(tmp_path, master=master)) is sent


def test_a_short_run_starts_fast_and_a_long_one_compiles(tmp_path: Path) -> None:
    def java_options(*pairs: tuple[str, str], master: str = "local[2]", long_work: bool = False) -> str:
        options = SessionOptions(master, pairs, long_work=long_work)
        return start_conf.start_conf(options, JARS, tmp_path, {}, {}, ("-XX:SharedArchiveFile=/a b",))[JAVA_OPTIONS]

    assert "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m" in java_options()
    own = java_options(("spark.driver.extraJavaOptions", "-XX:ReservedCodeCacheSize=99m"))
    assert own.count("ReservedCodeCacheSize") == 1
    assert '"-XX:SharedArchiveFile=/a b"' in java_options()
    # Executors have options of their own: the driver's JVM plans and commits there, and reads no rows.
    assert "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" in java_options(master="spark://host:7077")
    assert "-XX:TieredStopAtLevel" not in java_options(long_work=True)
    assert "-XX:+UseSerialGC" not in java_options(long_work=True)
    # A JVM with two collectors does not start.
    assert "-XX:+UseSerialGC" not in java_options((JAVA_OPTIONS, "-XX:+UseParallelGC"))
    assert java_options((JAVA_OPTIONS, "-XX:+UseParallelGC")).endswith(" -XX:+UseParallelGC")


@pytest.mark.parametrize(
    ("conf", "env"),
    [
        (((JAVA_OPTIONS, "-Dhttps.proxyHost=proxy"),), {}),
        ((), {"JAVA_TOOL_OPTIONS": "-Dhttp.proxyHost=proxy"}),
    ],
)
def test_a_store_behind_a_proxy_of_javas_is_left_to_java(
    tmp_path: Path, conf: tuple[tuple[str, str], ...], env: dict[str, str]
) -> None:
    def schemes(conf: tuple[tuple[str, str], ...], env: dict[str, str]) -> frozenset[str] | None:
        return start_conf.direct_schemes(SessionOptions(conf=conf, storage=("s3",)), tmp_path, {}, env)

    assert schemes((), {}) == frozenset({"file", "s3", "s3a"})
    assert schemes(conf, env) == frozenset({"file"})
