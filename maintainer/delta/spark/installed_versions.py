"""Find which Spark and Delta are installed, without importing either."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from maintainer.delta.jvm import TESTED_DELTA, is_tested_pair, tested_pairs
from maintainer.errors import EnvironmentUnfit

DELTA_VERSION = "4.4.0"
SPARK_LINE = "4.1"
"""The pair that ``make test`` runs, and that messages recommend."""

HADOOP_VERSION = "3.4.2"
"""The Hadoop of that Spark."""

INSTALL_COMMAND = "pip install 'maintainer[spark]'"
"""Takes the releases that belong together: the extra pins them, and pip keeps the maintainer that is installed."""

REPAIR_COMMAND = f'pip install --force-reinstall "pyspark>={SPARK_LINE},<4.2" "delta-spark=={DELTA_VERSION}"'
"""Names the packages themselves: with the extra, pip would fetch maintainer again from wherever its index is."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The installed Spark and Delta, and the folder Spark starts from."""

    pyspark: str
    delta: str
    spark_home: Path


def spark_line(version: str) -> str:
    """Return the first two parts of a version of Spark."""
    return ".".join(version.split(".")[:2])


def hadoop_version(spark_home: Path) -> str | None:
    """Return the version of the Hadoop that a Spark brings along; None where it does not say."""
    jars = sorted((spark_home / "jars").glob("hadoop-client-api-*.jar"))
    return jars[-1].stem.removeprefix("hadoop-client-api-") if jars else None


def installed(distribution: str) -> str | None:
    """Return the version of an installed Python package, or None. Half-removed packages count as absent."""
    try:
        version: str | None = metadata.version(distribution)
    except (metadata.PackageNotFoundError, ValueError, KeyError, OSError):
        return None
    return version or None


def package_folder(module: str) -> Path | None:
    """Return where a top-level module lies, without importing it."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def pyspark_version() -> str | None:
    """Return the version of pyspark, also of one that came with a Spark folder on ``PYTHONPATH``."""
    version = installed("pyspark")
    folder = package_folder("pyspark")
    if version is not None or folder is None:
        return version if folder is not None else None
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r'__version__\s*(?::\s*\w+\s*)?=\s*"([^"]+)"', text)
    return match.group(1) if match else None


def lacks_spark(env: Mapping[str, str]) -> bool:
    """Whether this Python has what reads logs, and neither Spark nor Delta: then nothing else can be done."""
    can_read = package_folder("pyarrow") is not None and package_folder("obstore") is not None
    lacks = package_folder("pyspark") is None and package_folder("delta") is None
    return can_read and lacks and "SPARK_HOME" not in env


def check_versions(env: Mapping[str, str] | None = None) -> Versions:
    """Check that Spark and Delta are installed and are a pair that was tried.

    The transaction layer that we drive is not a public interface: what it has in a release that nobody tried, and what
    it does there, is not known.

    Raises:
        EnvironmentUnfit: E604, with the pip command that puts it right.
    """
    env = os.environ if env is None else env
    spark, delta = pyspark_version(), installed("delta-spark")
    if spark is None or delta is None or package_folder("delta") is None:
        raise _mismatch("Spark or Delta is not installed in this Python", spark, delta)
    line = spark_line(spark)
    if not is_tested_pair(spark, delta):
        fitting = TESTED_DELTA.get(line)
        help = REPAIR_COMMAND if fitting is None else f'pip install "delta-spark=={fitting[-1]}"'
        raise _mismatch("the installed Spark and Delta do not belong together", spark, delta, help)
    home = _spark_home(env)
    core = sorted((home / "jars").glob("spark-core_*.jar"))
    if not core and env.get("SPARK_HOME"):
        raise _mismatch("SPARK_HOME names a folder without a Spark", spark, delta, "unset SPARK_HOME", str(home))
    if not core:
        raise _mismatch("pyspark is only half installed: its JARs are missing", spark, delta, REPAIR_COMMAND, str(home))
    jar_version = core[-1].stem.rpartition("-")[2]
    if spark_line(jar_version) != line:
        raise EnvironmentUnfit(
            "SPARK_HOME names a Spark that does not fit the installed pyspark",
            code="E604",
            where=str(home),
            found=f"Spark {jar_version} there, pyspark {spark} in this Python",
            allowed=f"Spark {line}",
            help="unset SPARK_HOME",
        )
    return Versions(spark, delta, home)


def _spark_home(env: Mapping[str, str]) -> Path:
    """Return the folder that pyspark starts from: ``SPARK_HOME``, or else its own."""
    named = env.get("SPARK_HOME")
    if named:
        return Path(named)
    folder = package_folder("pyspark")
    return folder if folder is not None else Path()


def _mismatch(
    what: str, spark: str | None, delta: str | None, help: str = INSTALL_COMMAND, where: str | None = None
) -> EnvironmentUnfit:
    return EnvironmentUnfit(
        what,
        code="E604",
        where=where,
        found=f"pyspark {spark or 'none'}, delta-spark {delta or 'none'}",
        allowed=tested_pairs(),
        help=help,
    )
