"""Compute the settings that an embedded session starts with: ours, the user's, and those that must be joined. Pure."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from maintainer.delta.spark import engine_log
from maintainer.delta.spark.connectors import GCS_CLASS, S3_CLASS, connector_settings
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import NotSupportedYet
from maintainer.model.table.store_kinds import DISK, STORE_KINDS

DEFAULT_MASTER = "local[*]"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog."
WAREHOUSE = "spark.sql.warehouse.dir"
_DELTA_ALONE = (f"{_CATALOG}spark_catalog", DELTA_CATALOG)
_CLASS_PATH = "spark.driver.extraClassPath"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_DRIVER_MEMORY = "spark.driver.memory"
_QUICK_COMPILER, _QUICK_COLLECTOR = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"
_CODE_CACHE = "-XX:ReservedCodeCacheSize"
_QUICK_CODE_CACHE = f"{_CODE_CACHE}=240m"
"""Java's default for both compilers. With C1 alone it is 48 MB, which the code of a night fills: from then on Java
spends a quarter of its time on throwing code away and compiling it again."""
_METASTORE_WAITS = {
    "spark.hadoop.hive.metastore.client.socket.timeout": "15s",
    "spark.hadoop.hive.metastore.connect.retries": "1",
    "spark.hadoop.hive.metastore.failure.retries": "0",
}
"""Hive's client waits ten minutes for a metastore that accepts and never answers, and then asks again."""
_A_COLLECTOR = re.compile(r"-XX:\+Use\w*GC")
_GIB = 1 << 30


def start_conf(
    options: SessionOptions,
    jars: tuple[Path, ...],
    folder: Path,
    defaults: Mapping[str, str],
    env: Mapping[str, str],
    archive_options: Sequence[str] = (),
    connectors: Sequence[str] = (),
) -> dict[str, str]:
    """Return every setting that an embedded session starts with.

    The user's settings win, except where both are needed: class path, Java options, extensions, JARs.

    Args:
        options: What the user said.
        jars: Delta's JARs, and those of the connectors.
        folder: The session's private folder.
        defaults: What Spark's own defaults file says; what we add must not hide it.
        env: Read for ``SPARK_DRIVER_MEMORY``.
        archive_options: Java options about the archive of classes.
        connectors: The connectors for object stores among the JARs.
    """
    user = options.conf_map
    settings = {**defaults, **user}
    master = options.master or user.get("spark.master") or defaults.get("spark.master") or DEFAULT_MASTER
    quick = not options.long_work
    conf = {
        _DELTA_ALONE[0]: settings.get(_DELTA_ALONE[0], DELTA_CATALOG),
        "spark.sql.session.timeZone": "UTC",
        "spark.scheduler.mode": settings.get("spark.scheduler.mode", "FAIR"),
        "spark.ui.enabled": settings.get("spark.ui.enabled", "false"),
        "spark.log.structuredLogging.enabled": "false",
        **{key: settings.get(key, value) for key, value in connector_settings(connectors).items()},
        **{key: value for key, value in user.items() if key != "spark.submit.deployMode"},
        "spark.master": master,
        "spark.app.name": options.app_name,
        "spark.ui.showConsoleProgress": "false",
        EXTENSIONS: _joined(DELTA_EXTENSION, settings.get(EXTENSIONS)),
        _CLASS_PATH: class_path(jars, settings.get(_CLASS_PATH)),
        JAVA_OPTIONS: java_options(folder, quick, archive_options, settings.get(JAVA_OPTIONS)),
    }
    if is_hive(settings):
        conf |= {key: settings.get(key, value) for key, value in _METASTORE_WAITS.items()}
    if WAREHOUSE in settings or not is_hive(settings):
        # A metastore that is asked for the first time writes the folder down as that of its first database.
        conf[WAREHOUSE] = settings.get(WAREHOUSE, str(folder / "warehouse"))
    if _DRIVER_MEMORY not in settings and not env.get("SPARK_DRIVER_MEMORY"):
        conf[_DRIVER_MEMORY] = default_driver_memory()
    if master.startswith("local"):
        # No name look-up that a VPN or a container can break, and no port that others can reach.
        conf.setdefault("spark.driver.host", "127.0.0.1")
        conf.setdefault("spark.driver.bindAddress", "127.0.0.1")
        conf.setdefault("spark.local.dir", settings.get("spark.local.dir", str(folder / "local")))
    if not is_one_process(master):
        conf["spark.jars"] = _joined(",".join(jar.as_uri() for jar in jars), settings.get("spark.jars"))
    return conf


def has_catalog(conf: Mapping[str, str]) -> bool:
    """Return whether a session with these settings knows tables by name as soon as it starts."""
    named = any(key.startswith(_CATALOG) and (key, value) != _DELTA_ALONE for key, value in conf.items())
    return named or is_hive(conf)


_SAY_MORE = frozenset(
    {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CLASSPATH",
     "SPARK_DIST_CLASSPATH", "HADOOP_CLASSPATH", "CLASSPATH"}
)  # fmt: skip
ENVIRONMENT_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables with more options for Java."""

_CONF_FILES = ("core-site.xml", "hdfs-site.xml", "hive-site.xml", "spark-env.sh")
_FILE_SYSTEM = re.compile(r"spark\.hadoop\.fs\.(?:\w+\.impl|defaultFS|default\.name)")


def direct_schemes(
    options: SessionOptions, spark_home: Path, defaults: Mapping[str, str], env: Mapping[str, str]
) -> frozenset[str] | None:
    """Return the schemes of the places that mean the same without a JVM; None where its configuration may say more.

    Hadoop also reads its own files and those of Spark, and what lies on the class path.

    Args:
        options: What the user said.
        spark_home: The Spark that would run.
        defaults: What Spark's own defaults file says.
        env: The environment.
    """
    folder = Path(env.get("SPARK_CONF_DIR") or spark_home / "conf")
    names_file_system = any(
        _FILE_SYSTEM.fullmatch(key) and value not in (S3_CLASS, GCS_CLASS) for key, value in options.conf
    )
    if defaults or names_file_system or _CLASS_PATH in options.conf_map or any(env.get(name) for name in _SAY_MORE):
        return None
    if any((folder / name).exists() for name in _CONF_FILES):
        return None
    java = [options.conf_map.get(JAVA_OPTIONS), *map(env.get, ENVIRONMENT_OF_JAVA)]
    # A proxy of Java's is on the way to stores, and this process does not know it.
    connectors = () if any("proxyHost" in (text or "") for text in java) else options.storage
    kinds = {"file": DISK, **{scheme: kind for scheme, kind in STORE_KINDS.items() if kind.is_served}}
    return frozenset(scheme for scheme, kind in kinds.items() if kind is DISK or kind.connector in connectors)


def is_hive(conf: Mapping[str, str]) -> bool:
    """Return whether the session catalog is Hive's."""
    return conf.get("spark.sql.catalogImplementation", "in-memory") != "in-memory"


def is_one_process(master: str) -> bool:
    """Whether the driver does all the work; ``local-cluster`` starts executors of their own, as a cluster does."""
    return master.startswith("local") and not master.startswith("local-cluster")


def tasks_of_executor(setting: Callable[[str], str | None]) -> int | None:
    """Return how many tasks an executor has at once; None where its machine decides, as with a standalone master."""
    master = str(setting("spark.master"))
    if is_one_process(master):
        return None
    cores = setting("spark.executor.cores") or ("1" if master.startswith(("k8s", "yarn")) else None)
    return None if cores is None else max(1, int(cores) // int(setting("spark.task.cpus") or "1"))


def java_options(folder: Path, quick: bool, archive_options: Sequence[str] = (), more: str | None = None) -> str:
    """Return the driver's Java options: our logging, a quiet Derby, UTC, and what the user adds.

    Where Java is in another zone, Delta builds a table's state with Spark jobs at each commit that lists files in its
    checksum (``allFilesInCrc.verificationMode.forceOnNonUTC``).

    Args:
        folder: The session's private folder, which holds the log4j configuration.
        quick: The C1 compiler alone, and the serial collector unless the user names another. Measured on 10 small
            tables: 36 s of CPU instead of 56.
        archive_options: Options about the archive of classes.
        more: Options of the user, from ``--conf`` and Spark's own defaults file.
    """
    options = [
        _quoted(f"-Dlog4j2.configurationFile={engine_log.write_log4j_config(folder)}"),
        _quoted(f"-Dderby.stream.error.file={folder / 'derby.log'}"),
        "-Duser.timezone=UTC",
    ]
    options += [_quoted(option) for option in archive_options]
    if quick:
        options.append(_QUICK_COMPILER)
        # Two collectors are a JVM that does not start.
        options += [] if _A_COLLECTOR.search(more or "") else [_QUICK_COLLECTOR]
        options += [] if _CODE_CACHE in (more or "") else [_QUICK_CODE_CACHE]
    return " ".join([*options, *([more] if more else [])])


def class_path(jars: Sequence[Path], *more: str | None) -> str:
    """Return a class path of our JARs first and then the user's."""
    return os.pathsep.join([*(str(jar) for jar in jars), *(entry for entry in more if entry)])


def read_spark_defaults(spark_home: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return what ``spark-defaults.conf`` says, so that what we add is added and does not replace it.

    The file is a Java properties file; keys and values are separated by blanks, ``=`` or ``:``.
    """
    folder = Path(env.get("SPARK_CONF_DIR") or spark_home / "conf")
    try:
        text = (folder / "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    settings = {}
    for line in text.splitlines():
        parts = re.split(r"[\s=:]+", line.strip(), maxsplit=1)
        if len(parts) == 2 and not line.lstrip().startswith(("#", "!")):
            settings[parts[0]] = parts[1].strip()
    return settings


REMOTE_VARIABLE = "SPARK_REMOTE"
CONNECT_SCHEME = "sc://"


def remote_of(options: SessionOptions, env: Mapping[str, str]) -> str | None:
    """The Spark Connect server that was asked for: ``--remote`` or ``--master sc://``, ``--conf``, ``SPARK_REMOTE``."""
    master = options.master if (options.master or "").startswith(CONNECT_SCHEME) else None
    return options.remote or master or options.conf_map.get("spark.remote") or env.get(REMOTE_VARIABLE) or None


def refuse_connect(options: SessionOptions, env: Mapping[str, str]) -> None:
    """Refuse to start where Spark Connect was asked for.

    Raises:
        NotSupportedYet: E620.
    """
    remote = remote_of(options, env)
    if remote is not None:
        raise connect_refusal(f"Spark Connect was asked for: {remote}")


def connect_refusal(found: str) -> NotSupportedYet:
    """The error of the transaction engine over Spark Connect."""
    return NotSupportedYet(
        "the transaction engine does not run over Spark Connect: it proves a rewrite before it commits, and for that "
        "it needs Delta's own transaction",
        found=found,
        allowed="no --remote and no SPARK_REMOTE; a master such as local[*], spark://host:port, yarn or k8s://...",
        help="--engine command works over Spark Connect, and proves after the commit",
    )


def default_driver_memory() -> str:
    """Return the default of the driver's memory: a quarter of what this machine or container has, 1 to 4 GiB.

    In local mode the driver is also the executor, and Spark's own default of 1 GiB makes every sort spill.
    """
    total = machine_memory_bytes()
    return f"{max(1024, min(4096, total // 4 >> 20))}m"


def machine_memory_bytes() -> int:
    """Return how much memory this machine or container has."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        total = 4 * _GIB
    for limit_file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(Path(limit_file).read_text(encoding="ascii")))
    return total


def _quoted(option: str) -> str:
    """Quote one Java option for Spark's launcher, which splits at blanks and knows double quotes."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _joined(first: str, second: str | None) -> str:
    """Join two comma-separated lists, each entry once."""
    entries = [*first.split(","), *(second or "").split(",")]
    return ",".join(dict.fromkeys(entry.strip() for entry in entries if entry.strip()))
