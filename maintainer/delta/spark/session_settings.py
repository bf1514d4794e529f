"""The settings of every session of ours, as data, each with its reason.

*Forced* settings guard the rows: nobody may change them, and they are read back before anything runs. *Pinned*
settings make what we write independent of a borrowed session; ``--conf`` may name them. *Tuned* settings keep Spark's
overhead on small tables small and depend on the number of cores; ``--conf`` may name them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from maintainer.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from pyspark.sql.conf import RuntimeConfig

PADS_CHAR = "spark.sql.readSideCharPadding"
"""Off while a rewrite reads, writes and proves. Spark pads what it reads of a CHAR column and would write it so, and
readers that do not pad would find other values than before."""

TIME_ZONE = "spark.sql.session.timeZone"

FORCED: Mapping[str, str | None] = {
    # With either of these on, a rewrite commits without the rows of the files that could not be read.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # The floor under vacuum, and an error instead of a guess about paths that cannot be made relative.
    "spark.databricks.delta.retentionDurationCheck.enabled": "true",
    "spark.databricks.delta.vacuum.relativize.ignoreError": "false",
    # Any other zone shifts nothing we write, but makes each commit rebuild the table's state: 3 times slower.
    TIME_ZONE: "UTC",
    # Overflow and bad casts must be errors, never nulls.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # Delta's own rule for column names.
    "spark.sql.caseSensitive": "false",
    # A name or value with `${env:HOME}` in it is text; Spark would put the variable's value into each statement. And a
    # backslash in our literals escapes.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Dates and timestamps before 1582 pass through unshifted, in both directions.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # Column mapping by id needs the ids in the files.
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Delta's extension sets it with a session's first query; a rewrite begins by asking for it.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # CHAR columns read the same before and after a commit.
    PADS_CHAR: "true",
    # A file is one bin, however many rows it has.
    "spark.sql.files.maxRecordsPerFile": "0",
    # Our own commits trigger no further rewriting; a table's property is for the table's writers.
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    "spark.databricks.delta.stats.collect": "true",
    # While we commit, Delta would step over a protocol upgrade or a feature that is switched on. Both are for us to
    # judge: what we proved rests on the protocol that we read.
    "spark.databricks.delta.featureEnablement.conflictResolution.enabled": "false",
    "spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled": "true",
    # Without it our log of a table would be the one that its session uses.
    "spark.databricks.delta.loadFileSystemConfigsFromDataFrameOptions": "true",
    # Each commit sets its own; a transaction id from outside would make Delta skip a commit silently.
    "spark.databricks.delta.commitInfo.userMetadata": None,
    "spark.databricks.delta.write.txnAppId": None,
    "spark.databricks.delta.write.txnVersion": None,
}
"""Key to value; None means: must not be set."""

UNSAFE_FOR_OTHERS: Mapping[str, tuple[str, str]] = {
    "spark.sql.files.ignoreMissingFiles": ("true", "queries leave out the rows of files that are missing"),
    "spark.sql.files.ignoreCorruptFiles": ("true", "queries leave out the rows of files that cannot be read"),
    "spark.databricks.delta.retentionDurationCheck.enabled": (
        "false",
        "a VACUUM in it may delete files that readers and writers still use",
    ),
}
"""What a session that is not ours may have: the value that is not safe, and what comes of it. Ours never have it."""

PINNED: Mapping[str, str] = {
    "spark.sql.parquet.compression.codec": "snappy",
    # Every engine reads it exactly. INT96, Spark's default, overflows in engines that count nanoseconds.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    # Coalescing saves tasks where a table turns out small; a number of files asked for is never changed by it.
    "spark.sql.adaptive.enabled": "true",
}
"""Key to value, unless ``--conf`` or the project says otherwise."""

LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
SNAPSHOT_PARTITIONS = "spark.databricks.delta.snapshotPartitions"

SLOW_DEFAULTS: Mapping[str, int] = {LISTING_TASKS: 10_000, SHUFFLE_PARTITIONS: 200, SNAPSHOT_PARTITIONS: 50}
"""Spark's defaults. Together they make small tables ten times slower."""

MIN_CORES = 1
_RUNTIME_PREFIXES = ("spark.sql.", "spark.databricks.", "spark.hadoop.", "spark.delta.")
_HADOOP_PREFIX = "spark.hadoop."


def tuned(cores: int) -> dict[str, str]:
    """Return the three settings that decide what a small table costs, for a number of cores.

    Listing runs a task per partition that mostly waits for storage, so two a core; state reconstruction is
    fastest with very few partitions, whatever the machine.
    """
    cores = max(cores, MIN_CORES)
    return {
        LISTING_TASKS: str(_clamp(2 * cores, 4, 512)),
        SHUFFLE_PARTITIONS: str(_clamp(cores, 2, 200)),
        SNAPSHOT_PARTITIONS: str(_clamp(cores, 2, 16)),
    }


def worker_settings(cores: int, user_conf: Mapping[str, str]) -> dict[str, str | None]:
    """Return everything to set on a worker session: pinned, tuned, the user's own, and then the forced ones.

    Args:
        cores: Tasks that run at once.
        user_conf: What ``--conf`` and the project say. Keys that only mean something at Spark's start are left out.

    Raises:
        EnvironmentUnfit: E608 when the user's settings contradict a forced one.
    """
    refuse_unsafe(user_conf)
    settings: dict[str, str | None] = {**PINNED, **tuned(cores)}
    for key, value in user_conf.items():
        if is_runtime_key(key):
            settings[key.removeprefix(_HADOOP_PREFIX)] = value
    settings.update(FORCED)
    return settings


def set_and_check(conf: RuntimeConfig, settings: Mapping[str, str | None]) -> None:
    """Set settings (None: take away) and read every one back.

    Raises:
        EnvironmentUnfit: E608, the session does not take one; E606, one reads back as something else.
    """
    for key, value in settings.items():
        try:
            conf.unset(key) if value is None else conf.set(key, value)
        except Exception as error:
            if conf.get(key, None) == value:
                continue  # a static one, which Spark was started with
            found, help = str(error).partition("\n")[0], "leave it out, or set it where that session starts"
            what = "a Spark session that runs does not take this setting"
            raise EnvironmentUnfit(what, code="E608", where=key, found=found, help=help) from error
    for key, value in settings.items():
        current = conf.get(key, None)
        if (current or "").lower() != (value or "").lower():
            raise EnvironmentUnfit(
                "Spark did not accept a setting that protects the rows",
                code="E606",
                where=key,
                found="not set" if current is None else current,
                allowed="not set" if value is None else value,
                help="run maintainer in a Python process without an active Spark session",
            )


def refuse_unsafe(user_conf: Mapping[str, str]) -> None:
    """Refuse settings that would let rows be lost.

    Raises:
        EnvironmentUnfit: E608, naming the first contradiction.
    """
    for key, value in user_conf.items():
        if key not in FORCED:
            continue
        forced = FORCED[key]
        if forced is None or value.strip().lower() != forced.lower():
            raise EnvironmentUnfit(
                "this Spark setting cannot be changed: it protects the rows",
                code="E608",
                where="--conf, or spark.conf in maintainer.yml",
                found=f"{key}={value}",
                allowed="not set" if forced is None else f"{key}={forced}",
                help=f"remove {key}",
            )


def unsafe_settings(setting: Callable[[str], str | None]) -> tuple[str, ...]:
    """Say in words which settings of a session that is not ours let rows or files be lost; empty where none do.

    Args:
        setting: Returns a setting of that session, None where it is not set.
    """
    return tuple(
        f"the session has {key}={value}: {consequence}; maintainer's own work does not use it, and leaves it as it is"
        for key, (value, consequence) in UNSAFE_FOR_OTHERS.items()
        if (setting(key) or "").strip().lower() == value
    )


def is_runtime_key(key: str) -> bool:
    """Whether a setting can be given to a running session.

    Catalogs, extensions and the warehouse are read once, at Spark's start.
    """
    static = ("spark.sql.extensions", "spark.sql.catalogImplementation", "spark.sql.warehouse.dir")
    return key.startswith(_RUNTIME_PREFIXES) and key not in static and not key.startswith("spark.sql.hive.")


def slow_settings(current: Mapping[str, str | None]) -> dict[str, int]:
    """Return those of the three settings that make small tables slow in a session that somebody else made.

    Args:
        current: The session's values; None where it has only the default.
    """
    slow = {}
    for key, default in SLOW_DEFAULTS.items():
        text = current.get(key)
        value = int(text) if text is not None and text.isdigit() else default
        if value >= default:
            slow[key] = value
    return slow


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
