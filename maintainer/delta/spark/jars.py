"""Delta's JARs: which ones are needed, where they are kept, and a check of their content.

The documented way resolves 33 modules at each start. Delta needs only two JARs beside Spark's own, and two more let us
read logs without Spark jobs. They are fetched once into our own folder and then named on the class path. So no
resolver runs at a start, and no other tool's cache can break one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from maintainer.delta.spark import jar_fetch
from maintainer.delta.spark.installed_versions import DELTA_VERSION, Versions
from maintainer.delta.spark.java_home import Java
from maintainer.errors import EnvironmentUnfit

JARS_VARIABLE = "MAINTAINER_JARS"
HOME_VARIABLE = "MAINTAINER_HOME"

_ORGANISATION = "io.delta"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Jar:
    """One JAR of the release that we are built for, pinned by its digest."""

    artifact: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name the file has in the repository and in our folder."""
        return f"{self.artifact}-{DELTA_VERSION}.jar"


JARS = (
    Jar("delta-spark_4.1_2.13", "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10"),
    Jar("delta-storage", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
    Jar("delta-kernel-api", "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11"),
    Jar("delta-kernel-defaults", "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b"),
)


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
    if env.get(HOME_VARIABLE):
        base = Path(env[HOME_VARIABLE])
    elif env.get("XDG_CACHE_HOME"):
        base = Path(env["XDG_CACHE_HOME"]) / "maintainer"
    elif env.get("HOME"):
        base = Path(env["HOME"]) / ".cache" / "maintainer"
    else:
        try:
            base = Path.home() / ".cache" / "maintainer"
        except RuntimeError:
            raise _jars_unavailable("this user has no home folder to keep Delta's JARs in", Path("~")) from None
    return (base / "jars" / DELTA_VERSION).absolute()


def unfit_jars(folder: Path) -> dict[str, str]:
    """Return the file names that are missing or wrong in a folder, each with what is the matter.

    Every byte is read: a download cut short or a disk gone bad must not reach the class path (12 MB, 10 to 40 ms).

    Raises:
        EnvironmentUnfit: E605 when the folder or a file in it cannot be read.
    """
    problems: dict[str, str] = {}
    for jar in JARS:
        path = folder / jar.file_name
        try:
            digest = _sha256(path)
        except FileNotFoundError:
            problems[jar.file_name] = "missing"
        except OSError as error:
            raise _jars_unavailable(f"Delta's JARs cannot be read: {error.strerror}", path) from error
        else:
            if digest != jar.sha256:
                problems[jar.file_name] = f"damaged or another build (sha256 {digest[:12]}..)"
    return problems


def ensure_jars(java: Java, versions: Versions, env: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the four JARs, fetching those that are not there yet.

    Needs the network only the first time. Several processes may do this at once: each fetches into a folder of
    its own and moves whole, checked files into place.

    Raises:
        EnvironmentUnfit: E605 when they are not to be had, with the ways to bring them.
    """
    env = os.environ if env is None else env
    folder = jar_folder(env)
    problems = unfit_jars(folder)
    if problems:
        if env.get(JARS_VARIABLE):
            raise _jars_unavailable(
                f"{JARS_VARIABLE} names a folder that does not hold Delta's JARs", folder, found=_listing(problems)
            )
        _fetch_into(folder, [jar for jar in JARS if jar.file_name in problems], java, versions, env)
    return tuple(folder / jar.file_name for jar in JARS)


def _fetch_into(folder: Path, jars: list[Jar], java: Java, versions: Versions, env: Mapping[str, str]) -> None:
    artifacts = [jar_fetch.Artifact(_ORGANISATION, jar.artifact, DELTA_VERSION, jar.file_name) for jar in jars]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with jar_fetch.fetched(artifacts, java, versions.spark_home, beside=folder, env=env) as fetched:
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
        raise _jars_unavailable("Delta's JARs could not be fetched", folder, found=str(error)) from error
    except OSError as error:
        raise _jars_unavailable(
            f"Delta's JARs cannot be stored there: {error.strerror or error}",
            folder,
            found=str(error.filename or folder),
        ) from error


def _jars_unavailable(
    what: str, where: Path, *, found: str | None = None, allowed: str | None = None
) -> EnvironmentUnfit:
    names = ", ".join(jar.file_name for jar in JARS)
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
            f"no network: copy {names} from another machine into one folder and set {JARS_VARIABLE} to it"
        ),
    )


def _listing(problems: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {problem}" for name, problem in problems.items())


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
