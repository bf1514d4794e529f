"""Detect that the Spark JVM or Connect server is gone.

A JVM ends by a signal, by the system when memory runs out, or when a user stops the session. Nothing is imported here:
exceptions are recognised by their class names and messages.
"""

from __future__ import annotations

import re

from maintainer.errors import EngineGone

MAX_CAUSES = 8

_NAMES = frozenset({"Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError"})
_CONNECT_STATUS = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})
_NO_ANSWER = re.compile(
    r"An error occurred while calling \S+|.*(Answer from Java side is empty|while trying to connect to the Java).*",
    re.DOTALL,
)
_NOT_THERE = re.compile(
    r"(?:java|scala|org|io|(?:java|scala|org\.apache\.(?:hadoop|spark)|io\.delta)\.\S+) does not exist in the JVM"
)
"""What py4j says of a name when nobody answers. Java, Hadoop and Spark have every name that is used here, and so has
Delta: its private names are looked up by reflection before a session is used, and one that is missing is E633."""
_STOPPED = re.compile(r"on a stopped SparkContext|SparkContext (has been|was) shut ?down", re.IGNORECASE)


def is_engine_lost(error: BaseException) -> bool:
    """Return whether the connection to the engine broke, so that nothing is known about what it did.

    Looks at the exception and what it was raised from, at most ``MAX_CAUSES`` deep.
    """
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if cause is None:
            return False
        if _is_lost(cause):
            return True
        cause = cause.__cause__
    return False


def _is_lost(error: BaseException) -> bool:
    name = type(error).__name__
    if isinstance(error, EngineGone) or name in _NAMES or name == "RetriesExceeded":
        return True
    status = getattr(error, "getGrpcStatusCode", None)
    if status is not None and status().name in _CONNECT_STATUS:
        return True
    # py4j swallows a connection that breaks in the middle of a call and says only this; with an answer of Java's,
    # such as a method that is not there, it adds a trace.
    message = str(error).strip() if name == "Py4JError" else ""
    return _NO_ANSWER.fullmatch(message) is not None or _NOT_THERE.fullmatch(message) is not None


def says_stopped(text: str) -> bool:
    """Return whether a message of Spark says that its context has ended: its JVM still answers, but runs no jobs."""
    return _STOPPED.search(text) is not None


def engine_gone(where: str | None) -> EngineGone:
    """Return the error for a table whose engine ended."""
    way_out = "see the end of spark.log in the run folder; often memory: --conf spark.driver.memory=8g"
    return EngineGone("the Spark JVM has gone", where=where, help=way_out)


def session_gone() -> EngineGone:
    """Return the error for a command whose session has lost its JVM."""
    found = "this process has a Spark session, and its JVM does not answer"
    way_out = "start this Python process again, then run `maintainer apply`: it finds out what landed, and goes on"
    return EngineGone("the Spark JVM has gone", found=found, help=way_out)
