"""Find the Java that Spark will use, and report problems with it early.

Spark's launcher takes ``$JAVA_HOME/bin/java``, or else the first ``java`` on ``PATH``. We look in the same order, so
the Java that is checked is the Java that runs. Spark 4 runs on Java 17 and 21, from 4.2 on also on 25, and starts its
JVM with ``--add-modules=jdk.incubator.vector``, so a trimmed runtime without that module does not work.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from maintainer.delta.spark.installed_versions import pyspark_version, spark_line
from maintainer.errors import EnvironmentUnfit

SUPPORTED_MAJORS = (17, 21)
"""What each Spark 4 runs on."""
FURTHER_MAJORS = {"4.2": (25,)}
"""What a line of Spark runs on besides (SPARK-51167)."""
VECTOR_MODULE = "jdk.incubator.vector"
PROBE_TIMEOUT_SECONDS = 20.0
NO_ANSWER = 124
"""The exit code of a Java that did not end in its time, as coreutils' ``timeout`` has it."""

_VERSION = re.compile(r'version "(?P<version>[^"]+)"')
_LEGACY_PREFIX = "1."


@dataclass(frozen=True, slots=True)
class Java:
    """One Java runtime, as it described itself."""

    executable: Path
    version: str
    major: int
    runtime: str

    def describe(self) -> str:
        """One line for people: version, runtime and where it is."""
        return f"Java {self.version} ({self.runtime}) at {self.executable}"


def install_hint() -> str:
    """Return the commands that install a fitting Java on this kind of machine."""
    if sys.platform == "darwin":
        return (
            'brew install openjdk@17\nexport JAVA_HOME="$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home"'
        )
    if sys.platform == "win32":
        return "winget install EclipseAdoptium.Temurin.17.JDK, then set JAVA_HOME to its folder"
    managers = (
        ("apt-get", "sudo apt-get install -y openjdk-17-jre-headless"),
        ("dnf", "sudo dnf install -y java-17-openjdk-headless"),
        ("apk", "apk add openjdk17-jre-headless"),
        ("zypper", "sudo zypper install -y java-17-openjdk-headless"),
    )
    for tool, command in managers:
        if shutil.which(tool):
            return f"{command}\nif an older Java comes first: set JAVA_HOME to the folder of Java 17"
    return "install Java 17 or 21 and set JAVA_HOME to its folder"


def locate_java(env: Mapping[str, str] | None = None) -> Path:
    """Return the ``java`` that Spark would start.

    Args:
        env: The environment to look in; the process's own by default.

    Raises:
        EnvironmentUnfit: E601 when there is none, or ``JAVA_HOME`` names a folder without one.
    """
    env = os.environ if env is None else env
    home = env.get("JAVA_HOME")
    if home:
        binary = Path(home) / "bin" / ("java.exe" if sys.platform == "win32" else "java")
        if not os.access(binary, os.X_OK) or binary.is_dir():
            found = f"JAVA_HOME={home}, and {binary} cannot be run"
            allowed = "the folder of Java 17 or 21, or JAVA_HOME unset to use the java on PATH"
            help = f"unset JAVA_HOME, or:\n{install_hint()}"
            raise _unfit("JAVA_HOME names a folder without a Java", found, code="E601", allowed=allowed, help=help)
        return binary
    java_path = shutil.which("java", path=env.get("PATH", os.defpath))
    if java_path is None:
        raise _unfit("no Java was found, and Spark needs one", "no JAVA_HOME, and no java on PATH", code="E601")
    return Path(java_path)


def _unfit(
    what: str,
    found: str,
    where: Path | None = None,
    *,
    code: str,
    allowed: str | None = "Java 17 or 21",
    help: str | None = None,
) -> EnvironmentUnfit:
    place = None if where is None else str(where)
    return EnvironmentUnfit(what, code=code, where=place, found=found, allowed=allowed, help=help or install_hint())


def parse_version(output: str) -> tuple[str, int] | None:
    """Return version and major version from what ``java -version`` prints, or None if it says neither.

    ``"1.8.0_402"`` is Java 8; from 9 on the major version comes first (JEP 223); ``"22-ea"`` is 22.
    """
    match = _VERSION.search(output)
    if match is None:
        return None
    version = match["version"]
    number = re.match(r"\d+", version.removeprefix(_LEGACY_PREFIX))
    return (version, int(number.group())) if number else None


def inspect_java(env: Mapping[str, str] | None = None) -> Java:
    """Find the Java that Spark would start and check that it can carry Spark.

    Costs one short JVM start, about 0.1 s: it is started the way Spark starts it, and only where that fails it is
    asked further questions.

    Raises:
        EnvironmentUnfit: E601 no Java or one that does not answer, E602 an unsupported version,
            E603 a runtime without the module ``jdk.incubator.vector``.
    """
    executable = locate_java(env)

    with_module, output = run_java(
        [str(executable), f"--add-modules={VECTOR_MODULE}", "-version"], env, timeout_seconds=PROBE_TIMEOUT_SECONDS
    )
    if with_module < 0:
        # Nothing is known of this Java: another question might be answered, and be taken for one about the module.
        what = "the Java that was found was ended from outside before it answered"
        help = "look for what ends processes here, such as the kernel when memory is short, and try again"
        raise _unfit(what, f"signal {-with_module}", executable, code="E601", allowed=None, help=help)
    exit_code = with_module
    if with_module not in (0, NO_ANSWER):
        exit_code, output = run_java([str(executable), "-version"], env, timeout_seconds=PROBE_TIMEOUT_SECONDS)
    parsed = parse_version(output)
    if exit_code != 0 or parsed is None:
        said = _first_lines(output) or f"exit code {exit_code} and no output"
        raise _unfit("the Java that was found does not run", said, executable, code="E601")
    version, major = parsed
    line = spark_line(pyspark_version() or "4")
    fitting = (*SUPPORTED_MAJORS, *FURTHER_MAJORS.get(line, ()))
    if major not in fitting:
        spark = line if major in chain(*FURTHER_MAJORS.values()) else "4"
        what, allowed = f"Spark {spark} does not run on Java {major}", f"Java {' or '.join(map(str, fitting))}"
        raise _unfit(what, f"Java {version}", executable, code="E602", allowed=allowed)
    if with_module != 0:
        what = f"this Java has no module {VECTOR_MODULE}, which Spark needs to start"
        found, allowed = f"a trimmed runtime of Java {version}", f"a complete Java {major}"
        raise _unfit(what, found, executable, code="E603", allowed=allowed)
    return Java(executable, version, major, _runtime_name(output))


def run_java(
    command: Sequence[str],
    env: Mapping[str, str] | None,
    *,
    timeout_seconds: float,
    folder: Path | None = None,
) -> tuple[int, str]:
    """Run Java and return its exit code and all it printed; a broken file is exit code 1, a hang ``NO_ANSWER``."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_seconds,
            cwd=folder,
            env=None if env is None else dict(env),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return NO_ANSWER, f"no answer within {timeout_seconds:.0f} s"
    except OSError as error:
        return 1, error.strerror or str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _runtime_name(output: str) -> str:
    """Return the runtime's name from the second line: ``OpenJDK Runtime Environment (build ...)``."""
    for line in output.splitlines():
        if "Runtime Environment" in line:
            return line.partition("(build")[0].strip()
    return "unknown runtime"


def _first_lines(output: str) -> str:
    """Return two lines: the first may be "Error occurred during initialization of VM", and the second says which."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return ": ".join(lines[:2])[:200]
