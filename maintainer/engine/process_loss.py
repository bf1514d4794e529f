"""Detect that the Spark JVM or Connect server is gone, and wait no longer for a call that may hang.

A JVM ends by a signal, by the system when memory runs out, or when a user stops the session. No engine is imported
here: exceptions are recognised by their class names and messages.

A change of the whole process stands for as long as anybody needs it: runs on several threads may overlap.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

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


class SharedChange:
    """The first who begins makes the change, the last who ends takes it back.

    If each saved and restored for himself, one would restore what the other had set.

    Args:
        make: Makes the change and returns what takes it back.
    """

    def __init__(self, make: Callable[[], Callable[[], None]]) -> None:
        self._make = make
        self._take_back: Callable[[], None] | None = None
        self._num_users = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Have the change until ``end``."""
        with self._lock:
            if self._take_back is None:
                self._take_back = self._make()
            self._num_users += 1

    def end(self) -> None:
        """Need it no longer."""
        with self._lock:
            self._num_users -= 1
            if self._num_users == 0 and self._take_back is not None:
                take_back, self._take_back = self._take_back, None
                take_back()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the change within the block."""
        self.begin()
        try:
            yield
        finally:
            self.end()


ResultT = TypeVar("ResultT")


def side_call(call: Callable[[], ResultT], name: str) -> Future[ResultT]:
    """Make a call on a thread of this name; its result, or what it raises, is the future's.

    The thread is a daemon, as an executor's are not: one that never ends keeps no process from ending.
    """
    future: Future[ResultT] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
