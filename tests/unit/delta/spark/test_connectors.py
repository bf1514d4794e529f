"""Which connectors a session brings: those that the project needs and the Spark has not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from maintainer.delta.jvm import TESTED_DELTA
from maintainer.delta.spark import start_conf
from maintainer.delta.spark.connectors import CONNECTOR_SETTINGS, connector_settings, connectors_to_bring
from maintainer.delta.spark.installed_versions import Versions
from maintainer.delta.spark.jars import CONNECTORS, needed_jars
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import EnvironmentUnfit


def spark_home(tmp_path: Path, *jars: str) -> Path:
    (tmp_path / "jars").mkdir()
    for name in jars:
        (tmp_path / "jars" / f"{name}.jar").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("kinds", "jars", "conf", "expected"),
    [
        ((), ["hadoop-client-api-3.3.6"], {}, ()),
        (("s3",), ["hadoop-client-api-3.4.2"], {}, ("s3",)),
        (("s3", "s3", "gcs"), [], {}, ("s3", "gcs")),
        (("s3", "azure"), ["hadoop-client-api-3.4.2", "hadoop-aws-3.4.2"], {}, ("azure",)),
        (("s3",), ["hadoop-client-api-3.3.6", "hadoop-aws-3.3.6"], {}, ()),
        (("s3",), [], {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.2"}, ()),
        (("s3",), [], {"spark.driver.extraClassPath": "/opt/hadoop-aws-3.4.2.jar"}, ()),
    ],
)
def test_what_is_there_is_not_brought_again(
    tmp_path: Path, kinds: Sequence[str], jars: Sequence[str], conf: dict[str, str], expected: tuple[str, ...]
) -> None:
    home, options = spark_home(tmp_path, *jars), SessionOptions(storage=tuple(kinds), conf=tuple(conf.items()))
    assert connectors_to_bring(options, home, {}) == expected
    assert connectors_to_bring(SessionOptions(storage=tuple(kinds)), home, conf) == expected


@pytest.mark.parametrize(
    ("kind", "package"),
    [
        ("s3", "org.apache.hadoop:hadoop-aws:3.3.6"),
        ("azure", "org.apache.hadoop:hadoop-azure:3.3.6"),
        ("gcs", "com.google.cloud.bigdataoss:gcs-connector:VERSION"),
    ],
)
def test_another_hadoop_is_refused_with_the_lines_that_bring_its_connector(
    tmp_path: Path, kind: str, package: str
) -> None:
    with pytest.raises(EnvironmentUnfit) as caught:
        connectors_to_bring(SessionOptions(storage=(kind,)), spark_home(tmp_path, "hadoop-client-api-3.3.6"), {})
    assert (caught.value.code, caught.value.found) == ("E671", "Hadoop 3.3.6")
    assert caught.value.allowed == "Hadoop 3.4.1, 3.4.2, 3.5.0"
    assert f"[{package}]" in (caught.value.help or "")


def test_settings_of_a_connector_are_defaults_that_everybody_may_change(tmp_path: Path) -> None:
    jars = (Path("/jars/a.jar"),)
    options = SessionOptions(conf=(("spark.hadoop.fs.s3a.retry.limit", "9"),), storage=("s3",))
    defaults = {"spark.hadoop.fs.s3a.connection.timeout": "99s"}
    conf = start_conf.start_conf(options, jars, tmp_path, defaults, {}, (), ("s3",))
    assert conf["spark.hadoop.fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert conf["spark.hadoop.fs.s3a.attempts.maximum"] == "1"
    assert conf["spark.hadoop.fs.s3a.input.stream.type"] == "classic", "another one asks for each file once more"
    assert conf["spark.hadoop.fs.s3a.retry.limit"] == "9"
    assert conf["spark.hadoop.fs.s3a.connection.timeout"] == "99s"
    without = start_conf.start_conf(options, jars, tmp_path, {}, {})
    assert "spark.hadoop.fs.s3.impl" not in without


@pytest.mark.parametrize(
    ("spark", "hadoop", "parts_of_s3"), [("4.0.5", "3.4.1", 34), ("4.1.4", "3.4.2", 34), ("4.2.1", "3.5.0", 36)]
)
def test_every_kind_has_settings_and_jars_pinned_for_the_hadoop_of_each_spark(
    tmp_path: Path, spark: str, hadoop: str, parts_of_s3: int
) -> None:
    assert set(CONNECTORS) == {(kind, one) for kind in CONNECTOR_SETTINGS for one in ("3.4.1", "3.4.2", "3.5.0")}
    home = spark_home(tmp_path, f"hadoop-client-api-{hadoop}")
    options = SessionOptions(storage=tuple(CONNECTOR_SETTINGS))
    assert connectors_to_bring(options, home, {}) == tuple(CONNECTOR_SETTINGS)
    every = needed_jars(Versions(spark, "4.4.0", home), CONNECTOR_SETTINGS)
    assert len({jar.file_name for jar in every}) == len(every) == 4 + parts_of_s3 + 7 + 1
    assert {jar.version for jar in every if jar.artifact in ("hadoop-aws", "hadoop-azure")} == {hadoop}
    assert len({jar.version for jar in every if jar.organisation == "software.amazon.awssdk"}) == 1
    assert all(len(jar.sha256) == 64 for jar in every)


def test_settings_of_connectors() -> None:
    assert connector_settings(("s3", "gcs"))["spark.hadoop.fs.gs.impl"].endswith("GoogleHadoopFileSystem")


@pytest.mark.parametrize(("line", "delta"), [(line, delta) for line in TESTED_DELTA for delta in TESTED_DELTA[line]])
def test_every_pair_has_pinned_jars_of_its_own_spark(line: str, delta: str) -> None:
    first, storage, *kernel = needed_jars(Versions(f"{line}.1", delta, Path()))
    assert first.artifact == ("delta-spark_2.13" if delta.startswith("4.0.") else f"delta-spark_{line}_2.13")
    assert (first.version, storage.artifact, storage.version) == (delta, "delta-storage", delta)
    assert [jar.artifact for jar in kernel] == ["delta-kernel-api", "delta-kernel-defaults"]


def test_azure_takes_whole_milliseconds_alone() -> None:
    settings = connector_settings(("azure",))
    assert settings
    assert all(value.isdigit() for key, value in settings.items() if ".io.retry." in key), settings
