"""The table properties of Delta 4.4.0, what setting each one means to us, and how Delta reads intervals.

The list is read from ``DeltaConfigs`` of delta-spark 4.4.0; an integration test compares it with the JAR. Delta finds
keys without regard to case and stores them as spelled here.

Intervals are strings like ``interval 7 days``. Delta reads them with Spark's calendar intervals, with or without
``interval`` in front, in any case, and refuses months and years because they have no fixed length.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from enum import StrEnum

DELTA = "delta."
"""How every property of Delta begins, in any case."""


class PropertyKind(StrEnum):
    """How values of a property compare, and whether setting it is maintenance."""

    BOOLEAN = "boolean"
    INTERVAL = "interval"
    TEXT = "text"
    PROTOCOL = "protocol"  # may raise the protocol: readers and writers could be locked out
    INTERNAL = "internal"  # kept by Delta itself


_KINDS = {
    PropertyKind.BOOLEAN: (
        "autoOptimize autoOptimize.autoCompact autoOptimize.optimizeWrite castIcebergTimeType "
        "checkpoint.writeStatsAsJson checkpoint.writeStatsAsStruct compatibility.symlinkFormatManifest.enabled "
        "enableExpiredLogCleanup enableFullRetentionRollback ignoreIcebergBucketPartition randomizeFilePrefixes "
        "writePartitionColumnsToParquet"
    ),
    PropertyKind.INTERVAL: (
        "checkpointRetentionDuration deletedFileRetentionDuration dropFeatureTruncateHistory.retentionDuration "
        "logRetentionDuration sampleRetentionDuration setTransactionRetentionDuration"
    ),
    PropertyKind.TEXT: (
        "checkpointInterval dataSkippingNumIndexedCols dataSkippingStatsColumns dataSkippingStringPrefixLength "
        "isolationLevel parquet.format.version randomPrefixLength"
    ),
    PropertyKind.PROTOCOL: (
        "appendOnly checkpointPolicy columnMapping.mode enableChangeDataCapture enableChangeDataFeed "
        "enableDeletionVectors enableIcebergCompatV1 enableIcebergCompatV2 enableIcebergCompatV3 "
        "enableInCommitTimestamps enableMaterializePartitionColumnsFeature enableRowTracking enableTypeWidening "
        "enableVariantShredding ignoreProtocolDefaults minReaderVersion minWriterVersion "
        "universalFormat.enabledFormats"
    ),
    PropertyKind.INTERNAL: (
        "columnMapping.maxColumnId coordinatedCommits.commitCoordinator-preview "
        "coordinatedCommits.commitCoordinatorConf-preview coordinatedCommits.tableConf-preview "
        "inCommitTimestampEnablementTimestamp inCommitTimestampEnablementVersion lastCommitTimestamp "
        "lastUpdateVersion redirectReaderWriter-preview redirectWriterOnly-preview "
        "requireCheckpointProtectionBeforeVersion rowTrackingSuspended "
        "universalFormat.iceberg.atomicConversion.supported"
    ),
}

KNOWN_PROPERTIES: dict[str, PropertyKind] = {
    f"delta.{name}": kind for kind, names in _KINDS.items() for name in names.split()
}

_BY_LOWER = {name.lower(): name for name in KNOWN_PROPERTIES}
_PROTOCOL_PREFIXES = ("delta.feature.", "delta.constraints.", "delta.universalformat.", "delta.clustering.")

RESERVED_BY_SPARK = frozenset({"external", "is_managed_location", "location", "owner", "provider"})
"""Keys that Spark does not let anyone set as table properties."""


def canonical_name(key: str) -> str:
    """Return the key as Delta stores it; keys that are not Delta's keep their case."""
    return _BY_LOWER.get(key.lower(), key)


def kind_of(key: str) -> PropertyKind | None:
    """Return the kind of a property; None for a ``delta.`` key that Delta does not know.

    Keys without the ``delta.`` prefix are free-form text.
    """
    lower = key.lower()
    if lower in _BY_LOWER:
        return KNOWN_PROPERTIES[_BY_LOWER[lower]]
    if lower.startswith(_PROTOCOL_PREFIXES):
        return PropertyKind.PROTOCOL
    return None if lower.startswith("delta.") else PropertyKind.TEXT


_PROTOCOL_BOOLEANS = frozenset({"delta.appendonly", "delta.ignoreprotocoldefaults"})
_NUMBERS = {  # by name in lower case: the smallest number that Delta takes
    "delta.checkpointinterval": 1,
    "delta.dataskippingnumindexedcols": -1,
    "delta.dataskippingstringprefixlength": 0,
    "delta.randomprefixlength": 1,
}
_CHOICES = {"delta.columnmapping.mode": ("none", "id", "name"), "delta.checkpointpolicy": ("classic", "v2")}


def refused_value(key: str, value: str) -> str | None:
    """Return what Delta takes for this property where ``value`` is none of it; None where it may be right.

    Intervals are read by `parse_interval_ms`.
    """
    lower = key.lower()
    of_protocol = lower in _PROTOCOL_BOOLEANS or (
        kind_of(key) is PropertyKind.PROTOCOL and lower.startswith("delta.enable")
    )
    if kind_of(key) is PropertyKind.BOOLEAN or of_protocol:
        return None if value.lower() in ("true", "false") else "`true` or `false`"
    if lower in _NUMBERS:
        least = _NUMBERS[lower]
        is_number = re.fullmatch(r"-?[0-9]{1,9}", value) is not None and int(value) >= least
        return None if is_number else f"a whole number from {least}"
    choices = _CHOICES.get(lower, ())
    return None if not choices or value.lower() in choices else " or ".join(f"`{choice}`" for choice in choices)


_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"([+-]?[0-9]{1,18}(?:\.[0-9]{1,9})?)\s+(" + "|".join(_MICROSECONDS) + r")s?(?:\s+|$)")


def parse_interval_ms(text: str) -> int | None:
    """Read a Delta interval as whole milliseconds, rounded up; None for what Delta would refuse or we cannot read.

    Only seconds may have a fraction, as in Spark.
    """
    rest = text.strip().lower()
    if rest.startswith("interval"):
        rest = rest.removeprefix("interval").strip()
    total, position = Decimal(0), 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or ("." in match[1] and match[2] != "second"):
            return None
        total += Decimal(match[1]) * _MICROSECONDS[match[2]]
        position = match.end()
    if not rest or total < 0:
        return None
    return math.ceil(total / 1000)


def format_interval(seconds: int) -> str:
    """Print seconds as Delta writes intervals, in the largest unit that is exact: ``interval 7 days``."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds and seconds % length == 0:
            return f"interval {seconds // length} {unit}s"
    return f"interval {seconds} seconds"
