"""The JARs beside Spark's own: where they are kept, how they get there, and a check of their content.

The documented way resolves 33 modules at each start for Delta alone. Ours are fetched once into our own folder and then
named on the class path. So no resolver runs at a start, and no other tool's cache can break one.

They are fetched with the Ivy that Spark ships, started directly, with an empty cache and settings that know only the
central repository. Spark's own ``spark.jars.packages`` also looks into the user's local Maven repository, and fails
when a POM lies there without its JAR.

Those that may stand on the class path are pinned by their digests in ``pinned_jars.txt``. Delta needs two, reading logs
without Spark jobs two more: Delta Kernel, of the same release, and of 4.4.0 for releases whose own Kernel has another
interface or is not published. Each kind of object store has a connector for each Hadoop that a Spark brings along, with
what it needs. Amazon's SDK comes in its parts, 34 JARs with 10 MB, where the bundle of hadoop-aws has 600 MB. It is of
the version that hadoop-aws was built for, but for Hadoop 3.4.1, which shares that of 3.4.2: the transfer manager of its
own was never published.

A line of the file has what needs the JAR (a release of Delta, alone or with a line of Spark, or a kind of object store
with the versions of Hadoop behind ``@``, its connector first), its ``organisation:artifact:version`` with a classifier
if it has one, and its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from maintainer.delta.spark.installed_versions import (
    DELTA_VERSION,
    HADOOP_VERSION,
    SPARK_LINE,
    Versions,
    hadoop_version,
    installed,
    pyspark_version,
    spark_line,
)
from maintainer.delta.spark.java_home import Java, run_java
from maintainer.errors import EnvironmentUnfit
from maintainer.journal.folder.cache_home import HOME_VARIABLE, cache_home
from maintainer.units import shortened

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


JARS_VARIABLE = "MAINTAINER_JARS"

SETTINGS_VARIABLE = "MAINTAINER_IVY_SETTINGS"
FETCH_TIMEOUT_SECONDS = 300.0

_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
_TOLD_LINES = 3
_TELLING = ("access error", "Exception", "not found", "timed out", "denied")

MAX_NAMED_JARS = 6
"""So many JARs are named in a message: a connector has up to 34."""

_CHUNK_BYTES = 1 << 20


def jar_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return where the JARs are kept that go with the installed Spark and Delta, those of another pair elsewhere.

    ``$MAINTAINER_JARS`` as it is; else ``jars/<version>`` below ``$MAINTAINER_HOME``, ``$XDG_CACHE_HOME/maintainer``
    or ``~/.cache/maintainer``.

    Raises:
        EnvironmentUnfit: E605 when no variable says where and the user has no home folder.
    """
    env = os.environ if env is None else env
    if env.get(JARS_VARIABLE):
        return Path(env[JARS_VARIABLE]).absolute()
    base = cache_home(env)
    if base is None:
        raise _jars_unavailable("this user has no home folder to keep the JARs in", Path("~"))
    delta, line = installed("delta-spark") or DELTA_VERSION, spark_line(pyspark_version() or SPARK_LINE)
    return base / "jars" / (delta if line == SPARK_LINE else f"{delta}-spark-{line}")


def needed_jars(versions: Versions, connectors: Iterable[str] = ()) -> tuple[Jar, ...]:
    """Return Delta's JARs and those of the connectors for some kinds of object store."""
    hadoop = hadoop_version(versions.spark_home) or HADOOP_VERSION
    return (*delta_jars(spark_line(versions.pyspark), versions.delta), *connector_jars(connectors, hadoop))


def unfit_jars(folder: Path, needed: Iterable[Jar]) -> dict[str, str]:
    """Return the file names that are missing or wrong in a folder, each with what is the matter.

    Every byte is read: a download cut short or a disk gone bad must not reach the class path (12 MB, 10 to 40 ms).

    Args:
        folder: Where the JARs should be.
        needed: See ``needed_jars``.

    Raises:
        EnvironmentUnfit: E605 when the folder or a file in it cannot be read.
    """
    problems: dict[str, str] = {}
    for jar in needed:
        path = folder / jar.file_name
        try:
            digest = _sha256(path)
        except FileNotFoundError:
            problems[jar.file_name] = "missing"
        except OSError as error:
            raise _jars_unavailable(f"the JARs cannot be read: {error.strerror}", path) from error
        else:
            if digest != jar.sha256:
                problems[jar.file_name] = f"damaged or another build (sha256 {digest[:12]}..)"
    return problems


def ensure_jars(
    java: Java, versions: Versions, env: Mapping[str, str] | None = None, connectors: Iterable[str] = ()
) -> tuple[Path, ...]:
    """Return Delta's four JARs and those of the connectors, fetching what is not there yet.

    Needs the network only the first time. Several processes may do this at once: each fetches into a folder of
    its own and moves whole, checked files into place.

    Raises:
        EnvironmentUnfit: E605 when they are not to be had, with the ways to bring them.
    """
    env = os.environ if env is None else env
    folder = jar_folder(env)
    needed = needed_jars(versions, connectors)
    problems = unfit_jars(folder, needed)
    if problems:
        if env.get(JARS_VARIABLE):
            raise _jars_unavailable(
                f"{JARS_VARIABLE} names a folder without all JARs that are needed",
                folder,
                found=shortened([f"{name}: {problem}" for name, problem in problems.items()], MAX_NAMED_JARS),
            )
        _fetch_into(folder, [jar for jar in needed if jar.file_name in problems], java, versions, env)
    return tuple(folder / jar.file_name for jar in needed)


def _fetch_into(folder: Path, jars: list[Jar], java: Java, versions: Versions, env: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with fetched(jars, java, versions.spark_home, beside=folder, env=env) as paths:
            for jar, path in zip(jars, paths, strict=True):
                digest = _sha256(path)
                if digest != jar.sha256:
                    raise _jars_unavailable(
                        "a JAR arrived with other bytes than those we are built for",
                        folder,
                        found=f"{jar.file_name} with sha256 {digest}",
                        allowed=f"sha256 {jar.sha256}",
                    )
                os.replace(path, folder / jar.file_name)
    except FetchFailed as error:
        raise _jars_unavailable(f"{_named(jars)} could not be fetched", folder, found=str(error)) from error
    except OSError as error:
        raise _jars_unavailable(
            f"{_named(jars)} cannot be stored there: {error.strerror or error}",
            folder,
            found=str(error.filename or folder),
        ) from error


def _named(jars: Iterable[Jar]) -> str:
    is_delta = {jar.organisation == "io.delta" for jar in jars}
    if is_delta == {True}:
        return "Delta's JARs"
    return "the JARs of a storage connector" if is_delta == {False} else "JARs of Delta and of a storage connector"


def _jars_unavailable(
    what: str, where: Path, *, found: str | None = None, allowed: str | None = None
) -> EnvironmentUnfit:
    return EnvironmentUnfit(
        what,
        code="E605",
        where=str(where),
        found=found,
        allowed=allowed,
        help=(
            "behind a proxy: set HTTPS_PROXY; with a mirror: "
            f"set {SETTINGS_VARIABLE} to an Ivy settings file that names it\n"
            f"home read-only: set {HOME_VARIABLE} to a folder that can be written\n"
            "no network: run `maintainer doctor` in this project on a machine that has one, copy the folder of JARs "
            f"that it names, and set {JARS_VARIABLE} to the copy"
        ),
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


class FetchFailed(Exception):
    """The fetch failed; the text is the resolver's message."""


@contextmanager
def fetched(
    jars: Sequence[Jar], java: Java, spark_home: Path, *, beside: Path, env: Mapping[str, str]
) -> Iterator[tuple[Path, ...]]:
    """Fetch JARs into a temporary folder and yield their paths, in the order asked for.

    Args:
        jars: What to fetch, without what they depend on.
        java: The Java to run the resolver on.
        spark_home: A Spark folder, for its Ivy.
        beside: An existing folder on the file system where the files will go, so that moving them is a rename.
        env: Where proxy settings and ``MAINTAINER_IVY_SETTINGS`` are read from.

    Raises:
        FetchFailed: The resolver failed, took more than five minutes, or brought something else.
        OSError: The temporary folder could not be made.
    """
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=beside))
    try:
        _run_ivy(jars, java, spark_home, work, env)
        paths = tuple(work / "out" / jar.file_name for jar in jars)
        for path in paths:
            if not path.is_file():
                raise FetchFailed(f"the resolver did not download {path.name}")
        yield paths
    finally:
        shutil.rmtree(work, ignore_errors=True)


def ivy_command(jars: Sequence[Jar], java: Java, ivy_jar: Path, work: Path, env: Mapping[str, str]) -> list[str]:
    """Write the resolver's two input files into ``work`` and return the command that runs it."""
    settings = env.get(SETTINGS_VARIABLE)
    if not settings:
        settings = str(work / "settings.xml")
        Path(settings).write_text(_SETTINGS, encoding="utf-8")
    (work / "ivy.xml").write_text(_module(jars), encoding="utf-8")
    return [
        str(java.executable),
        "-XX:TieredStopAtLevel=1",
        f"-Divy.default.ivy.user.dir={work / 'ivy'}",
        *_proxy_options(env),
        "-jar",
        str(ivy_jar),
        "-settings",
        settings,
        "-cache",
        str(work / "cache"),
        "-ivy",
        str(work / "ivy.xml"),
        "-types",
        "jar",
        "-retrieve",
        str(work / "out" / "[artifact]-[revision](-[classifier]).[ext]"),
    ]


def _run_ivy(jars: Sequence[Jar], java: Java, spark_home: Path, work: Path, env: Mapping[str, str]) -> None:
    ivy_jars = sorted((spark_home / "jars").glob("ivy-*.jar"))
    if not ivy_jars:
        raise FetchFailed(f"this Spark has no Ivy: no ivy-*.jar in {spark_home / 'jars'}")
    command = ivy_command(jars, java, ivy_jars[-1], work, env)
    exit_code, output = run_java(command, env, timeout_seconds=FETCH_TIMEOUT_SECONDS, folder=work)
    if exit_code != 0:
        raise FetchFailed(_telling_lines(output))


def _module(jars: Sequence[Jar]) -> str:
    """Return an Ivy module that depends on the JARs and on nothing that they depend on."""
    dependencies = "\n".join(map(_dependency, jars))
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '  <info organisation="maintainer" module="jars"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n"
        "</ivy-module>\n"
    )


def _dependency(jar: Jar) -> str:
    head = (
        f"    <dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.artifact)}"
        f' rev={quoteattr(jar.version)} transitive="false" conf="default->master"'
    )
    if jar.classifier is None:
        return f"{head}/>"
    name, classifier = quoteattr(jar.artifact), quoteattr(jar.classifier)
    return f'{head}><artifact name={name} type="jar" ext="jar" m:classifier={classifier}/></dependency>'


def _proxy_options(env: Mapping[str, str]) -> list[str]:
    """Translate the proxy variables that other programs follow into Java's own."""
    options: list[str] = []
    for scheme in ("https", "http"):
        value = env.get(f"{scheme}_proxy") or env.get(f"{scheme.upper()}_PROXY")
        if not value:
            continue
        try:
            parts = urlsplit(value if "//" in value else f"//{value}")
            host, port = parts.hostname, parts.port
        except ValueError:
            continue
        if host:
            options += [f"-D{scheme}.proxyHost={host}", f"-D{scheme}.proxyPort={port or 80}"]
    excluded = env.get("no_proxy") or env.get("NO_PROXY")
    if options and excluded:
        hosts = [host.strip() for host in excluded.split(",") if host.strip()]
        patterns = "|".join(f"*{host}" if host.startswith(".") else host for host in hosts)
        options.append(f"-Dhttp.nonProxyHosts={patterns}")
    return options


def _telling_lines(output: str) -> str:
    """Return the few lines of the resolver's long output that say what went wrong."""
    lines = [line.strip(": \t") for line in output.splitlines()]
    telling = [line for line in lines if line and any(word in line for word in _TELLING)]
    chosen = list(dict.fromkeys(telling or [line for line in lines if line]))[-_TOLD_LINES:]
    return "\n".join(line[:200] for line in chosen) or "the resolver failed and said nothing"
