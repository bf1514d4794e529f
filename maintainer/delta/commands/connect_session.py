"""Sessions on a Spark Connect server: one for the process, and a separate one for each worker.

Nothing is started and no JAR is fetched: the server must have Delta. A Spark Connect session has its own settings on
the server, so a worker's settings change nothing for others.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from maintainer.delta.commands.command_session import CommandSession
from maintainer.delta.spark.session_settings import refuse_unsafe, set_and_check, worker_settings
from maintainer.delta.spark.start_conf import CONNECT_SCHEME, DELTA_EXTENSION, EXTENSIONS, REMOTE_VARIABLE, remote_of
from maintainer.delta.storage.failures.engine_failures import message_of
from maintainer.engine.process_loss import is_engine_lost
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODE_VARIABLE = "SPARK_CONNECT_MODE_ENABLED"
_urls: list[str] = []
"""The servers that runs of this process are connected to: the variables name the last, and are put back after all."""
_variables_before: dict[str, str | None] = {}
_mode_lock = threading.Lock()
_PACKAGES = ("pyspark", "grpc", "grpc_status", "google.rpc", "pandas", "pyarrow", "zstandard")

UNKNOWN_CORES = 16
"""Tasks at once where the server does not say: Spark Connect has no question for it."""


def active_connect_session() -> SparkSession | None:
    """The Spark Connect session that is active in this process, without importing anything to find none."""
    connect = sys.modules.get("pyspark.sql.connect.session")
    return None if connect is None else cast("SparkSession | None", connect.SparkSession.getActiveSession())


@dataclass(slots=True)
class ConnectLease:
    """A session on a server for as long as it is needed; workers get sessions of their own."""

    spark: SparkSession
    make: Callable[[], SparkSession]
    cores: int | None
    conf: Mapping[str, str]

    def sessions(self) -> Callable[[str], AbstractContextManager[CommandSession]]:
        """Return what opens a worker's session: all our settings, set and read back."""

        @contextmanager
        def open_one(name: str) -> Iterator[CommandSession]:
            worker = self.make()
            try:
                set_and_check(worker.conf, worker_settings(self.cores or UNKNOWN_CORES, self.conf))
                yield CommandSession(worker, cast(Any, worker).interruptAll, cores=self.cores or 0)
            finally:
                with contextlib.suppress(Exception):  # the server may be gone
                    worker.stop()

        return open_one


@contextmanager
def open_connect(options: SessionOptions, env: Mapping[str, str] | None = None) -> Iterator[ConnectLease]:
    """Connect to the server that was asked for, or borrow the Spark Connect session that is active.

    Raises:
        EnvironmentUnfit: E608 a setting that cannot be applied, E632 a server without Delta, E634 no packages for
            Spark Connect, E635 no server that answers.
    """
    env = os.environ if env is None else env
    refuse_unsafe(options.conf_map)
    borrowed = active_connect_session()
    _check_packages()
    url = remote_of(options, env)
    if borrowed is not None:
        # Cloned on the server: a session of its own beside the one that is active, which is left as it is.
        yield _checked(borrowed, cast(Any, borrowed).cloneSession, options)
        return
    if url is None or not url.startswith(CONNECT_SCHEME):
        raise EnvironmentUnfit(
            "this is not the address of a Spark Connect server",
            code="E635",
            found=url or "nothing",
            allowed="sc://host:port",
            help="start a server with sbin/start-connect-server.sh and name it with --remote",
        )
    with _mode(url):
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        try:
            # The default session of this process from here on: Great Expectations takes it.
            spark = cast("SparkSession", RemoteSession.builder.remote(url).create())
        except Exception as error:
            raise _no_server(url, error) from error
        try:
            yield _checked(spark, lambda: cast("SparkSession", RemoteSession(connection=url)), options, url)
        finally:
            with contextlib.suppress(Exception):  # the server may be gone
                spark.stop()


@contextmanager
def _mode(url: str) -> Iterator[None]:
    """Make Spark mean Spark Connect in this process, as its own session builder does; the last one puts it back.

    Spark's functions, and Great Expectations which uses them, go by these variables.
    """
    with _mode_lock:
        if not _urls:
            _variables_before.update({key: os.environ.get(key) for key in (_MODE_VARIABLE, REMOTE_VARIABLE)})
        _urls.append(url)
        _set_variables({_MODE_VARIABLE: "1", REMOTE_VARIABLE: url})
    try:
        yield
    finally:
        with _mode_lock:
            _urls.remove(url)
            _set_variables({REMOTE_VARIABLE: _urls[-1]} if _urls else _variables_before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value


def _checked(
    spark: SparkSession, make: Callable[[], SparkSession], options: SessionOptions, url: str = "the active session"
) -> ConnectLease:
    """Check that the server answers and has Delta.

    Raises:
        EnvironmentUnfit: E632, E635.
    """
    try:
        extensions = spark.conf.get(EXTENSIONS, None) or ""
        master = spark.conf.get("spark.master", None) or ""
    except Exception as error:
        raise _no_server(url, error) from error
    if DELTA_EXTENSION not in extensions:
        raise EnvironmentUnfit(
            "the Spark Connect server was started without Delta",
            code="E632",
            where=url,
            found=f"{EXTENSIONS} = {extensions or 'not set'}",
            allowed=DELTA_EXTENSION,
            help="start the server with Delta's JARs, its extension and its catalog",
        )
    local = re.fullmatch(r"local\[(\d+)\]", master)
    return ConnectLease(spark, make, int(local[1]) if local else None, options.conf_map)


def _no_server(url: str, error: Exception) -> EnvironmentUnfit:
    found = "nobody answers there" if is_engine_lost(error) else message_of(error)
    return EnvironmentUnfit(
        "the Spark Connect server cannot be used",
        code="E635",
        where=url,
        found=found,
        help="check the address, and that a Spark 4 server with Spark Connect runs there",
    )


def _check_packages() -> None:
    """Raise unless Spark Connect's packages are there.

    Raises:
        EnvironmentUnfit: E634, naming those that are not.
    """
    from importlib.util import find_spec

    missing = []
    for name in _PACKAGES:
        try:
            missing += [] if find_spec(name) is not None else [name]
        except ModuleNotFoundError:  # of a package's parent
            missing.append(name)
    if missing:
        raise EnvironmentUnfit(
            "Spark Connect needs packages that are not installed",
            code="E634",
            found=f"missing: {', '.join(missing)}",
            help="pip install 'maintainer[connect]'",
        )
