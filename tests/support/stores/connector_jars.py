"""The JARs that a process of a test is given: Delta's and one connector's, fetched where a machine lacks them."""

from __future__ import annotations

from functools import cache

from maintainer.delta.spark.installed_versions import check_versions
from maintainer.delta.spark.jars import ensure_jars, jar_folder
from maintainer.delta.spark.java_home import inspect_java


@cache
def folder_with_connector(kind: str) -> str:
    """Return the folder that ``MAINTAINER_JARS`` names, once it has the connector for a kind of store."""
    ensure_jars(inspect_java(), check_versions(), None, (kind,))
    return str(jar_folder())
