"""The JARs beside Spark's own: where they are kept, how they get there, and a check of their content.

The documented way resolves 33 modules at each start for Delta alone. Ours are fetched once into our own folder and then
named on the class path. So no resolver runs at a start, and no other tool's cache can break one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from maintainer.delta.spark import jar_fetch
from maintainer.delta.spark.installed_versions import DELTA_VERSION, Versions
from maintainer.delta.spark.java_home import Java
from maintainer.delta.spark.pinned_jars import DELTA_JARS, Jar, connector_jars
from maintainer.errors import EnvironmentUnfit
from maintainer.journal.folder.cache_home import HOME_VARIABLE, cache_home

JARS_VARIABLE = "MAINTAINER_JARS"

MAX_NAMED_JARS = 6
"""So many JARs are named in a message: a connector has up to 34."""

_CHUNK_BYTES = 1 << 20


def jar_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return where the JARs are kept.

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
    return base / "jars" / DELTA_VERSION


def needed_jars(connectors: Iterable[str] = ()) -> tuple[Jar, ...]:
    """Return Delta's JARs and those of the connectors for some kinds of object store."""
    return (*DELTA_JARS, *connector_jars(connectors))


def unfit_jars(folder: Path, connectors: Iterable[str] = ()) -> dict[str, str]:
    """Return the file names that are missing or wrong in a folder, each with what is the matter.

    Every byte is read: a download cut short or a disk gone bad must not reach the class path (12 MB, 10 to 40 ms).

    Args:
        folder: Where the JARs should be.
        connectors: Kinds of object store whose JARs are needed, too.

    Raises:
        EnvironmentUnfit: E605 when the folder or a file in it cannot be read.
    """
    problems: dict[str, str] = {}
    for jar in needed_jars(connectors):
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
    connectors = tuple(connectors)
    needed, problems = needed_jars(connectors), unfit_jars(folder, connectors)
    if problems:
        if env.get(JARS_VARIABLE):
            raise _jars_unavailable(
                f"{JARS_VARIABLE} names a folder without all JARs that are needed",
                folder,
                found=_listing(problems),
            )
        _fetch_into(folder, [jar for jar in needed if jar.file_name in problems], java, versions, env)
    return tuple(folder / jar.file_name for jar in needed)


def _fetch_into(folder: Path, jars: list[Jar], java: Java, versions: Versions, env: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with jar_fetch.fetched(jars, java, versions.spark_home, beside=folder, env=env) as fetched:
            for jar, path in zip(jars, fetched, strict=True):
                digest = _sha256(path)
                if digest != jar.sha256:
                    raise _jars_unavailable(
                        "a JAR arrived with other bytes than those we are built for",
                        folder,
                        found=f"{jar.file_name} with sha256 {digest}",
                        allowed=f"sha256 {jar.sha256}",
                    )
                os.replace(path, folder / jar.file_name)
    except jar_fetch.FetchFailed as error:
        raise _jars_unavailable(f"{_named(jars)} could not be fetched", folder, found=str(error)) from error
    except OSError as error:
        raise _jars_unavailable(
            f"{_named(jars)} cannot be stored there: {error.strerror or error}",
            folder,
            found=str(error.filename or folder),
        ) from error


def _named(jars: Iterable[Jar]) -> str:
    delta = {jar.file_name for jar in DELTA_JARS}
    is_delta = {jar.file_name in delta for jar in jars}
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
            f"set {jar_fetch.SETTINGS_VARIABLE} to an Ivy settings file that names it\n"
            f"home read-only: set {HOME_VARIABLE} to a folder that can be written\n"
            "no network: run `maintainer doctor` in this project on a machine that has one, copy the folder of JARs "
            f"that it names, and set {JARS_VARIABLE} to the copy"
        ),
    )


def _listing(problems: Mapping[str, str]) -> str:
    named = [f"{name}: {problem}" for name, problem in problems.items()]
    rest = len(named) - MAX_NAMED_JARS
    return "\n".join([*named[:MAX_NAMED_JARS], *([f"and {rest} more"] if rest > 0 else [])])


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
