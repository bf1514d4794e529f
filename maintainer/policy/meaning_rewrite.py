"""Meaning of the keys of rewrites and clustering: which exclude one another, which have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maintainer.policy.diagnostics import Severity
from maintainer.policy.document import Path
from maintainer.policy.meaning_values import Finding, map_at, size_at

NUMBER_AND_SIZE = "a number of files and a size of files cannot both be asked for"
TWO_LAYOUTS = "a partition cannot be in Z-order and as `rewrite` asks"


def check_rewrite(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield a rewrite that asks for nothing, for a number and a size, beside a Z-order, or for a column twice."""
    optimize = map_at(settings, ("optimize",)) or {}
    rewrite = map_at(optimize, ("rewrite",))
    if rewrite is None:
        return
    path = (*base, "optimize", "rewrite")
    if not any(value is not None for value in rewrite.values()):
        message = "asks for nothing"
        yield Finding("P319", path, message, "add `files`, `fileSize` or `sortBy`, or remove it", at_key=True)
    if rewrite.get("files") is not None and rewrite.get("fileSize") is not None:
        yield Finding("P319", (*path, "files"), NUMBER_AND_SIZE, "remove one of the two", (*path, "fileSize"))
    zorder = map_at(optimize, ("zorder",)) or {}
    if zorder.get("columns"):
        yield Finding("P319", path, TWO_LAYOUTS, "remove one of the two", (*base, "optimize", "zorder"), at_key=True)
    if size_at(rewrite, "fileSize") == 0:
        yield Finding("P307", (*path, "fileSize"), "must be larger than 0", "write a size like `128MiB`")
    seen: dict[str, str] = {}
    columns = rewrite.get("sortBy")
    for position, column in enumerate(columns if isinstance(columns, list) else ()):
        if isinstance(column, str):
            first = seen.setdefault(column.casefold(), column)
            # Exactly the same name twice is a finding of the schema.
            if first != column:
                message = f"is the same column as `{first}`: Delta's names have no case"
                yield Finding("P319", (*path, "sortBy", position), message, "remove one of the two")


def check_cluster(settings: dict[str, Any], base: Path) -> Iterator[Finding]:
    """Yield cube sizes of nothing, and a wanted size that the least one outdoes."""
    cluster = map_at(settings, ("optimize", "cluster")) or {}
    path = (*base, "optimize", "cluster")
    least, wanted = size_at(cluster, "minCubeSize"), size_at(cluster, "targetCubeSize")
    for key, value in (("minCubeSize", least), ("targetCubeSize", wanted)):
        if value == 0:
            yield Finding("P307", (*path, key), "must be larger than 0", "write a size like `10GiB`")
    if least and wanted and wanted < least:
        message = "is smaller than minCubeSize, which counts then"
        help = "make it larger, or leave it out"
        yield Finding("P307", (*path, "targetCubeSize"), message, help, (*path, "minCubeSize"), Severity.WARNING)
