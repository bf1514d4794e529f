"""Decide which connectors for object stores a session of ours brings, and the settings that they start with.

A Spark that has a connector of its own, as on EMR or Dataproc, keeps it and its settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from maintainer.delta.spark.installed_versions import HADOOP_VERSION, hadoop_version
from maintainer.delta.spark.jars import CONNECTORS
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import EnvironmentUnfit

S3_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
GCS_CLASS = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"

CONNECTOR_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "s3": {
        # `s3://` is what everybody else writes; Hadoop alone knows `s3a://`.
        "spark.hadoop.fs.s3.impl": S3_CLASS,
        # Hadoop's defaults multiply: 6 requests of Amazon's SDK within each of 8 tries, and 200 s for each silence.
        # Here 2 within each of 4, with some 4 s between them in all: the SDK's setting counts repetitions. Spark opens
        # a log in about ten requests: with 6 tries a server that takes no connection was known after more than two
        # minutes, with 4 after one. A store that is too busy gets 6 tries with some 30 s between them: each wait is
        # twice the one before, more or less by chance.
        "spark.hadoop.fs.s3a.attempts.maximum": "1",
        "spark.hadoop.fs.s3a.retry.limit": "3",
        "spark.hadoop.fs.s3a.retry.interval": "500ms",
        "spark.hadoop.fs.s3a.retry.throttle.limit": "5",
        "spark.hadoop.fs.s3a.retry.throttle.interval": "500ms",
        "spark.hadoop.fs.s3a.connection.timeout": "15s",
        "spark.hadoop.fs.s3a.bulk.delete.page.size": "1000",
        # From 3.4.3 on Hadoop reads by another stream: it asks for each file once more before it reads it, whatever
        # is known of it, and keeps an entry of each for as long as the file system lives
        # (https://issues.apache.org/jira/browse/HADOOP-20058).
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
    },
    "azure": {
        # Hadoop's own: 30 tries with up to 25 s between them. It takes whole milliseconds alone.
        "spark.hadoop.fs.azure.io.retry.max.retries": "4",
        "spark.hadoop.fs.azure.io.retry.backoff.interval": "500",
        "spark.hadoop.fs.azure.io.retry.max.backoff.interval": "5000",
    },
    "gcs": {
        "spark.hadoop.fs.gs.impl": GCS_CLASS,
        "spark.hadoop.fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
        # The connector calls a method as Hadoop 3.3 has it, so that each vectored read of Parquet fails on 3.4:
        # https://github.com/GoogleCloudDataproc/hadoop-connectors/pull/1498
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    },
}
"""What a session with our connector starts with, by the kind of store; the project and ``--conf`` may say otherwise."""

_PLACES = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def connectors_to_bring(options: SessionOptions, spark_home: Path, defaults: Mapping[str, str]) -> tuple[str, ...]:
    """Return the kinds of object store that the project needs, and whose connector is missing in a Spark.

    Args:
        options: What the user said; its settings may name a connector.
        spark_home: The Spark that will run.
        defaults: What Spark's own defaults file says, where the user says nothing else.

    Raises:
        EnvironmentUnfit: E671, no connector is pinned for the Hadoop of this Spark.
    """
    settings = {**defaults, **options.conf_map}
    named = " ".join(settings.get(key) or "" for key in _PLACES)
    missing = []
    for kind in dict.fromkeys(options.storage):
        artifact = CONNECTORS[kind, HADOOP_VERSION][0].artifact
        if artifact not in named and not any((spark_home / "jars").glob(f"{artifact}-*.jar")):
            missing.append(kind)
    hadoop = hadoop_version(spark_home) or HADOOP_VERSION
    if missing and (missing[0], hadoop) not in CONNECTORS:
        connector = CONNECTORS[missing[0], HADOOP_VERSION][0]
        # Google's connector has versions of its own.
        version = hadoop if connector.version == HADOOP_VERSION else "VERSION"
        pinned = sorted(pinned for kind, pinned in CONNECTORS if kind == missing[0])
        raise EnvironmentUnfit(
            f"no connector for `storage: [{missing[0]}]` is pinned for the Hadoop of this Spark",
            code="E671",
            where=str(spark_home),
            found=f"Hadoop {hadoop}",
            allowed=f"Hadoop {', '.join(pinned)}",
            help=f"maintainer.yml: `storage: []`, and `spark: {{packages: "
            f"[{connector.organisation}:{connector.artifact}:{version}]}}`",
        )
    return tuple(missing)


def connector_settings(connectors: Sequence[str]) -> dict[str, str]:
    """Return the settings that sessions with these connectors start with, where nobody says otherwise."""
    return {key: value for kind in connectors for key, value in CONNECTOR_SETTINGS[kind].items()}
