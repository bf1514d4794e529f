"""The key ``spark`` of maintainer.yml: settings and packages for every session that a command starts.

Secrets come from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from maintainer.errors.foreign_text import SECRET_KEY
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.yaml.yaml_document import Document

PREFIX = "spark."
FROM_OUTSIDE = "${env:"
PACKAGES = "spark.jars.packages"

_PACKAGE = re.compile(r"[\w.-]+:[\w.-]+:[\w.+-]+")


def read_spark_conf(data: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Read the checked keys ``spark.conf`` and ``spark.packages`` as Spark's settings, in their order.

    Args:
        data: maintainer.yml, with environment variables put in.
    """
    conf = {key: _text(value) for key, value in _conf(data).items()}
    packages = _packages(data)
    if packages:
        conf[PACKAGES] = ",".join(dict.fromkeys([*filter(None, [conf.get(PACKAGES)]), *packages]))
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
            help = "write `group:artifact:version`, as in `io.delta:delta-storage-s3-dynamodb:4.4.0`"
            yield document.error_at(("spark", "packages", at), "P372", "this is not a Maven package", help)


def _conf(data: Mapping[str, object]) -> Mapping[str, object]:
    spark = data.get("spark")
    conf = spark.get("conf") if isinstance(spark, dict) else None
    return conf if isinstance(conf, dict) else {}


def _packages(data: Mapping[str, object]) -> tuple[str, ...]:
    spark = data.get("spark")
    packages = spark.get("packages") if isinstance(spark, dict) else None
    return tuple(str(package) for package in packages) if isinstance(packages, list) else ()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
