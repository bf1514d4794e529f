"""Fetch JARs with the Ivy that Spark ships, started directly and in a folder of its own.

Spark's own ``spark.jars.packages`` also looks into the user's local Maven repository, and fails when a POM lies there
without its JAR. Started directly, with an empty cache and settings that know only the central repository, Ivy sees
nothing of other tools. It is done before a Spark JVM would have started.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from maintainer.delta.spark.java_home import Java
from maintainer.delta.spark.pinned_jars import Jar

SETTINGS_VARIABLE = "MAINTAINER_IVY_SETTINGS"
FETCH_TIMEOUT_SECONDS = 300.0

_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
_TOLD_LINES = 3
_TELLING = ("access error", "Exception", "not found", "timed out", "denied")


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
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=FETCH_TIMEOUT_SECONDS,
            cwd=work,
            env=dict(env),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"no answer within {FETCH_TIMEOUT_SECONDS:.0f} s") from None
    if done.returncode != 0:
        raise FetchFailed(_telling_lines(done.stdout.decode("utf-8", "replace")))


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
