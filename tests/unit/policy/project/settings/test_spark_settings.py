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
    assert project.project.spark.settings == (
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
    assert (project.diagnostics, project.project.spark.settings) == ((), ())


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
    assert loaded(tmp_path, text).project.spark.settings == (("spark.jars.packages", "a:b:1.0,c.d:e-f_2.13:2.0"),)
    more = loaded(tmp_path, text + "  conf: {spark.jars.packages: 'x:y:3'}\n")
    assert more.diagnostics == ()
    assert dict(more.project.spark.settings)["spark.jars.packages"] == "x:y:3,a:b:1.0,c.d:e-f_2.13:2.0"


def test_a_package_that_is_none_is_refused_in_its_line(tmp_path: Path) -> None:
    (finding,) = loaded(tmp_path, "spark:\n  packages:\n    - a:b:1\n    - hadoop-aws\n").diagnostics
    assert (finding.code, finding.span.line) == ("P372", 5)


def test_an_empty_secret_is_none(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'spark:\n  conf:\n    spark.password: ""\n    spark.token: 5\n').diagnostics == ()


def test_a_key_of_s3_that_is_written_out_shows_nothing_of_the_file(tmp_path: Path) -> None:
    (finding,) = loaded(tmp_path, "spark:\n  conf:\n    spark.hadoop.fs.s3a.secret.key: planted\n").diagnostics
    assert (finding.code, finding.message) == ("Y123", "what looks like a secret")


@pytest.mark.parametrize(
    "line",
    [
        "spark.hadoop.fs.gs.auth.service.account.json.keyfile: /secrets/lake.json",
        "spark.hadoop.fs.gs.auth.access.token.provider.impl: com.acme.Tokens",
        "spark.hadoop.fs.s3a.aws.credentials.provider: org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
        "spark.hadoop.fs.s3a.assumed.role.credentials.provider: software.amazon.awssdk.auth.credentials.Own",
        "spark.hadoop.fs.s3a.delegation.token.binding: org.apache.hadoop.fs.s3a.auth.delegation.SessionTokenBinding",
        "spark.hadoop.fs.s3a.encryption.key: arn:aws:kms:eu-central-1:123456789012:key/071a86ff-8881-4ba0",
        "spark.hadoop.fs.s3a.security.credential.provider.path: jceks://hdfs@nn1/s3.jceks",
        "spark.hadoop.fs.azure.account.keyprovider.acme.dfs.core.windows.net: org.apache.hadoop.fs.azurebfs.Own",
        "spark.hadoop.fs.azure.sas.token.provider.type.acme.dfs.core.windows.net: org.apache.hadoop.fs.azurebfs.Own",
        "spark.hadoop.fs.azure.account.oauth2.token.file: /var/run/secrets/azure/tokens/azure-identity-token",
        "spark.hadoop.fs.azure.account.oauth2.client.endpoint: https://login.microsoftonline.com/acme/oauth2/token",
        "spark.authenticate.secret.driver.file: /secrets/driver",
    ],
)
def test_where_a_secret_is_found_is_none(tmp_path: Path, line: str) -> None:
    assert loaded(tmp_path, f"spark:\n  conf:\n    {line}\n").diagnostics == ()


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.azure.account.key.file.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.key.provider.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.fixed.token.acme.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.s3a.bucket.profiles.secret.key",
        "spark.hadoop.fs.gs.auth.refresh.token",
        "spark.hadoop.fs.s3a.encryption.key",
        "spark.hadoop.javax.jdo.option.ConnectionPassword",
        "spark.authenticate.secret",
        "spark.ssl.keyStorePassword",
    ],
)
def test_a_secret_is_refused_whatever_stands_around_its_name(tmp_path: Path, name: str) -> None:
    (finding,) = loaded(tmp_path, f"spark:\n  conf:\n    {name}: planted\n").diagnostics
    assert finding.code in ("Y123", "P371")
    assert "planted" not in f"{finding.message} {finding.help}"
    assert finding.help is not None
    assert "${env:NAME}" in finding.help
