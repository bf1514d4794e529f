"""``spark:`` in maintainer.yml: settings for Spark, and secrets that only come from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.engine_access import EngineOptions, project_engine
from maintainer.policy.project.policy_project import LoadedProject, load_project
from tests.support.policies.projects import write_project


def loaded(root: Path, text: str, **environ: str) -> LoadedProject:
    write_project(root, {"maintainer.yml": text})
    return load_project(root, environ=environ)


def test_settings_are_texts_in_their_order_and_the_command_line_wins(tmp_path: Path) -> None:
    text = (
        "spark:\n  conf:\n    spark.driver.memory: 4g\n    spark.sql.shuffle.partitions: 8\n"
        "    spark.ui.enabled: true\n    spark.hadoop.fs.s3a.secret.key: ${env:KEY}\n"
    )
    project = loaded(tmp_path, text, KEY="the-planted-value")
    assert project.diagnostics == ()
    assert project.project.spark_conf == (
        ("spark.driver.memory", "4g"),
        ("spark.sql.shuffle.partitions", "8"),
        ("spark.ui.enabled", "true"),
        ("spark.hadoop.fs.s3a.secret.key", "the-planted-value"),
    )
    assert "planted" not in repr(project.project)
    options = project_engine(project.project, EngineOptions(conf=(("spark.driver.memory", "8g"),)))
    assert dict(options.conf)["spark.driver.memory"] == "8g"
    assert dict(options.conf)["spark.ui.enabled"] == "true"


@pytest.mark.parametrize("text", ["spark:\n", "spark: {conf: }\n", "spark: {conf: {}}\n", "spark: {}\n"])
def test_without_settings_there_are_none(tmp_path: Path, text: str) -> None:
    project = loaded(tmp_path, text)
    assert (project.diagnostics, project.project.spark_conf) == ((), ())


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("fs.s3a.endpoint: x", "P370", "the name of a Spark setting begins with `spark.`"),
        (
            "spark.ssl.keyPassword: planted",
            "P371",
            "the secret of `spark.ssl.keyPassword` is written out",
        ),
        ("spark.password: planted", "P371", "the secret of `spark.password` is written out"),
    ],
)
def test_a_name_or_secret_that_is_refused(tmp_path: Path, line: str, code: str, says: str) -> None:
    (finding,) = loaded(tmp_path, f"spark:\n  conf:\n    {line}\n").diagnostics
    assert (finding.code, finding.message) == (code, says)
    assert finding.span.line == 4
    assert "planted" not in f"{finding.message} {finding.help}"


def test_packages_join_those_of_the_settings(tmp_path: Path) -> None:
    text = "spark:\n  packages: [a:b:1.0, c.d:e-f_2.13:2.0]\n"
    assert loaded(tmp_path, text).project.spark_conf == (("spark.jars.packages", "a:b:1.0,c.d:e-f_2.13:2.0"),)
    more = loaded(tmp_path, text + "  conf: {spark.jars.packages: 'x:y:3'}\n")
    assert more.diagnostics == ()
    assert dict(more.project.spark_conf)["spark.jars.packages"] == "x:y:3,a:b:1.0,c.d:e-f_2.13:2.0"


def test_a_package_that_is_none_is_refused_in_its_line(tmp_path: Path) -> None:
    (finding,) = loaded(tmp_path, "spark:\n  packages:\n    - a:b:1\n    - hadoop-aws\n").diagnostics
    assert (finding.code, finding.span.line) == ("P372", 5)


def test_an_empty_secret_is_none(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'spark:\n  conf:\n    spark.password: ""\n    spark.token: 5\n').diagnostics == ()


def test_a_key_of_s3_that_is_written_out_shows_nothing_of_the_file(tmp_path: Path) -> None:
    (finding,) = loaded(tmp_path, "spark:\n  conf:\n    spark.hadoop.fs.s3a.secret.key: planted\n").diagnostics
    assert (finding.code, finding.message) == ("Y123", "what looks like a secret")
