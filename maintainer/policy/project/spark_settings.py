"""The key ``spark`` of maintainer.yml: settings and packages for every session that a command starts.

Secrets come from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from maintainer.errors.foreign_text import SECRET_KEY
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.resolve.policy_fields import setting
from maintainer.policy.yaml.yaml_document import Document

PREFIX = "spark."
FROM_OUTSIDE = "${env:"
PACKAGES = "spark.jars.packages"

_DYNAMODB = "io.delta:delta-storage-s3-dynamodb:4.4.0"
_PACKAGE = re.compile(r"[\w.-]+:[\w.-]+:[\w.+-]+")


@dataclass(frozen=True, slots=True, repr=False)
class SparkSettings:
    """Settings of Spark and packages that it loads. They may hold secrets, and are never shown."""

    packages: tuple[str, ...] = setting(
        (),
        items={"description": "`group:artifact:version`.", "examples": [_DYNAMODB]},
        uniqueItems=None,
        maxItems=50,
        example=[_DYNAMODB],
    )
    """Maven packages that Spark loads at each start, with their dependencies."""
    conf: tuple[tuple[str, object], ...] = setting(
        (),
        maxProperties=200,
        additionalProperties={
            "type": ["string", "number", "boolean"],
            "description": "The value of one setting.",
            "examples": ["4g"],
        },
        type="object",
        example={"spark.sql.catalogImplementation": "hive", "spark.hadoop.fs.s3a.secret.key": "${env:S3_SECRET_KEY}"},
    )
    """Spark settings, as for `--conf`; names begin with `spark.`. Write a secret as `${env:NAME}`, never in plain
    text."""

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """All settings, in their order; the packages are one of them."""
        conf = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self.conf}
        if self.packages:
            conf[PACKAGES] = ",".join(dict.fromkeys([*filter(None, [conf.get(PACKAGES)]), *self.packages]))
        return tuple(conf.items())


def spark_problems(document: Document) -> Iterator[Diagnostic]:
    """Refuse settings that are not Spark's, secrets that are written out, and packages that are none.

    No value of a setting is quoted.

    Args:
        document: maintainer.yml as it was written, before environment variables are put in.
    """
    for key, value in _conf(document.data).items():
        path = ("spark", "conf", key)
        # Of maps in maps the schema has said that names are one piece.
        if not (f"{key}." if isinstance(value, dict) else key).startswith(PREFIX):
            help = f"write `spark.hadoop.{key}` for a setting of Hadoop, or the whole name of one of Spark's"
            yield document.error_at(path, "P370", "the name of a Spark setting begins with `spark.`", help)
        elif SECRET_KEY.search(key) and isinstance(value, str) and value and FROM_OUTSIDE not in value:
            help = "write `${env:NAME}` and set that variable where maintainer runs; change the secret, Git has seen it"
            yield document.error_at(path, "P371", f"the secret of `{key}` is written out", help)
    for at, package in enumerate(_packages(document.data)):
        if not _PACKAGE.fullmatch(package):
            help = f"write `group:artifact:version`, as in `{_DYNAMODB}`"
            yield document.error_at(("spark", "packages", at), "P372", "this is not a Maven package", help)


def _conf(data: Mapping[str, object]) -> Mapping[str, object]:
    spark = data.get("spark")
    conf = spark.get("conf") if isinstance(spark, dict) else None
    return conf if isinstance(conf, dict) else {}


def _packages(data: Mapping[str, object]) -> tuple[str, ...]:
    spark = data.get("spark")
    packages = spark.get("packages") if isinstance(spark, dict) else None
    return tuple(str(package) for package in packages) if isinstance(packages, list) else ()
