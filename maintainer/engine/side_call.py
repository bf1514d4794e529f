"""A call beside the caller, who goes on without it where it takes too long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

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
