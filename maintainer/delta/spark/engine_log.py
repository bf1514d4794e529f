"""Keep Spark's output off the terminal and write it to ``spark.log``.

There are three sources: the launcher and the JVM on the process's two outputs, log4j, and the loggers of py4j and
pyspark in this process. The JVM's outputs are connected to the file when it starts, log4j writes to them, and the
loggers get another handler.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape

from maintainer.engine.process_change import ProcessChange
from maintainer.errors.foreign_text import without_secrets

TAIL_LINES = 12
_TAIL_BYTES = 32 * 1024
_LOG4J = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="error">
  <Appenders>
    <Console name="out" target="SYSTEM_ERR">
      <PatternLayout alwaysWriteExceptions="false"
        pattern="%d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC} %p %c{1}: %replace{%m%n%ex}{SECRETS}{$1***}"/>
    </Console>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.hadoop.util.NativeCodeLoader" level="error"/>
    <Logger name="org.apache.spark.util.Utils" level="error"/>
    <Logger name="org.apache.spark.SparkConf" level="error"/>
    <Logger name="org.apache.spark.util.SparkStringUtils" level="error"/>
    <Root level="warn"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
"""

_SECRETS = (
    r"(?i)((?:secret|passw(?:or)?d|passphrase|token|access[._-]?key|account[._-]?key|credential|signature|\bsig)[\w.-]*"
    r"[\"']?(?:=|%3D|[\"']\s*:)\s*[\"']?|://[^/\s:@]*:(?=[^/\s]*@|(?![0-9]+/)[^\s\"'<>]*@)|\bBearer\s+)[^\s\"'<>,;&]+"
)
"""What the JVM leaves out of its log: values of settings, signatures and passwords of URLs. Without braces, which log4j
would read as its own. Exceptions stand within the pattern: log4j would write them once more, as they are. What the JVM
prints past log4j is not covered."""


def open_log(path: Path) -> BinaryIO:
    """Open ``spark.log`` for appending, making its folder. Only this user can read a file that is new.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def write_log4j_config(folder: Path) -> Path:
    """Write a log4j configuration that sends everything to the JVM's error output, which is ``spark.log``."""
    path = folder / "log4j2.xml"
    secrets = escape(_SECRETS, {'"': "&quot;"})
    path.write_text(_LOG4J.replace("SECRETS", secrets), encoding="utf-8")
    return path


class _OfPy4j(logging.Filter):
    """On the root logger: takes out what py4j says there, with a traceback, when a connection breaks in a call."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a record of py4j from all others; let everything else pass."""
        if "py4j" not in Path(record.pathname).parts:
            return True
        self._handler.handle(record)
        return False


class _WithoutSecrets(logging.Formatter):
    """py4j logs the answers of the JVM, which quote addresses and settings."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


def _engine_loggers() -> list[logging.Logger]:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # without Spark nothing is logged: it is found missing a moment later
        return []
    return [
        logging.getLogger("py4j"),
        # Made by pyspark's own factory: a plain logger does not take the arguments that it is called with.
        *(PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")),
    ]


def _quiet_loggers() -> Callable[[], None]:
    """Take the loggers from their handlers; returns what gives them back, beside those that were added meanwhile."""
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in _engine_loggers()]
    for logger, _, _, _ in before:
        logger.handlers.clear()
        logger.setLevel(logging.WARNING)
        logger.propagate = False

    def give_back() -> None:
        for logger, handlers, level, propagate in before:
            logger.handlers[:0] = handlers
            logger.setLevel(level)
            logger.propagate = propagate

    return give_back


_quiet = ProcessChange(_quiet_loggers)


class PythonLogs:
    """Sends what py4j and pyspark log in this process to ``spark.log`` for as long as a session is leased.

    py4j reports every broken connection at error level, and Python prints that to the terminal where no handler
    is set; pyspark prints each failed query as JSON. Both reach us as exceptions anyway. Leases may overlap, so
    ``restore`` removes this one's handler alone, and the last one puts the rest back as the first one found it.

    ``stays``: it does nothing. The JVM was killed while threads may be in a call, which breaks later.
    """

    def __init__(self, path: Path) -> None:
        self.stays = False
        self._handler = logging.FileHandler(path, encoding="utf-8", delay=True)
        self._handler.setFormatter(_WithoutSecrets("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        _quiet.begin()
        for logger in _engine_loggers():
            logging.Logger.addHandler(logger, self._handler)  # pyspark's own would give it another formatter
        self._of_py4j = _OfPy4j(self._handler)
        logging.getLogger().addFilter(self._of_py4j)

    def restore(self) -> None:
        """Restore the loggers, unless another lease still needs them, or they stay as they are."""
        if self.stays:
            return
        for logger in _engine_loggers():
            logger.removeHandler(self._handler)
        logging.getLogger().removeFilter(self._of_py4j)
        _quiet.end()
        self._handler.close()


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log that say something, for a message; empty when there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _TAIL_BYTES))
            text = stream.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    last_lines = [line.rstrip()[:300] for line in text.splitlines() if line.strip()]
    return "\n".join(last_lines[-lines:])
