"""The JARs that may stand on the class path beside Spark's own, each pinned by its digest in ``pinned_jars.txt``.

Delta needs two, reading logs without Spark jobs two more: Delta Kernel, of the same release, and of 4.4.0 for releases
whose own Kernel has another interface or is not published. Each kind of object store has a connector for each Hadoop
that a Spark brings along, with what it needs. Amazon's SDK comes in its parts, 34 JARs with 10 MB, where the bundle of
hadoop-aws has 600 MB. It is of the version that hadoop-aws was built for, but for Hadoop 3.4.1, which shares that
of 3.4.2: the transfer manager of its own was never published.

A line of the file has what needs the JAR (a release of Delta, alone or with a line of Spark, or a kind of object store
with the versions of Hadoop behind ``@``, its connector first), its ``organisation:artifact:version`` with a classifier
if it has one, and its SHA-256.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_DELTA = "delta-"


@dataclass(frozen=True, slots=True)
class Jar:
    """One JAR of a Maven repository, pinned by its digest."""

    organisation: str
    artifact: str
    version: str
    classifier: str | None
    sha256: str

    @property
    def file_name(self) -> str:
        """The name the file has in the repository and in our folder."""
        classifier = "" if self.classifier is None else f"-{self.classifier}"
        return f"{self.artifact}-{self.version}{classifier}.jar"


def _pinned() -> dict[str, tuple[Jar, ...]]:
    """The JARs by what needs them, in the order of the file."""
    pinned: dict[str, tuple[Jar, ...]] = {}
    for line in Path(__file__).with_name("pinned_jars.txt").read_text(encoding="ascii").splitlines():
        needed_by, coordinates, sha256 = line.split()
        organisation, artifact, version, *classifier = coordinates.split(":")
        jar = Jar(organisation, artifact, version, classifier[0] if classifier else None, sha256)
        what, _, hadoops = needed_by.partition("@")
        for name in [f"{what}@{hadoop}" for hadoop in hadoops.split(",")] if hadoops else [what]:
            pinned[name] = (*pinned.get(name, ()), jar)
    return pinned


_PINNED = _pinned()


CONNECTORS: Mapping[tuple[str, str], tuple[Jar, ...]] = {
    (kind, hadoop): jars
    for kind, _, hadoop, jars in ((*name.partition("@"), jars) for name, jars in _PINNED.items())
    if hadoop
}
"""The JARs of each kind of object store for a version of Hadoop, the connector itself first."""


def delta_jars(spark_line: str, delta: str) -> tuple[Jar, ...]:
    """Return the four JARs of a release of Delta for a line of Spark, Delta's own first."""
    return (*_PINNED[f"{_DELTA}{delta}-spark-{spark_line}"], *_PINNED[f"{_DELTA}{delta}"])


def connector_jars(kinds: Iterable[str], hadoop: str) -> tuple[Jar, ...]:
    """Return the JARs that some kinds of object store need with a version of Hadoop, each kind once."""
    return tuple(jar for kind in dict.fromkeys(kinds) for jar in CONNECTORS[kind, hadoop])
